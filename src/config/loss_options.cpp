#include "src/config/loss_options.h"

#include "kernels/common/error.h"
#include "src/config/config_errors.h"
#include "src/config/config_options.h"
#include "src/config/key_table.h"

namespace simclr {
namespace {

// A setting of training with the same meaning has the same range here.
void check_range(std::string_view option, std::string_view key, const LossCommand& command, std::string_view hint) {
  Settings settings;
  settings.loss = command.settings;
  const Key* found = find_key(key);
  SIMCLR_CHECK(found != nullptr, "no key {}", key);
  if (const std::string problem = found->check(settings); !problem.empty())
    fail(ExitCode::kUsage, "{}: {}, expected {}; {}", option, problem, found->expected, hint);
}

LossPrecision parse_precision(const std::string& text) {
  if (text == "fp32") return LossPrecision::kFp32;
  if (text == "fp64") return LossPrecision::kFp64;
  throw CLI::ValidationError("--precision", fmt::format("found {}, expected fp32 or fp64", shown(text)));
}

}  // namespace

CLI::App* describe_loss(CLI::App& app, LossCommand& into) {
  CLI::App* loss = app.add_subcommand(
      "loss", "Compute the loss of two .npy files and its gradient, to check a distributed loss of your own");
  loss->add_option("VIEW1,--z1", into.views[0],
                   "Projector outputs of view 1, all images: float32 or float64, [N, C], C order")
      ->type_name("");
  loss->add_option("VIEW2,--z2", into.views[1], "The same for view 2: row i is the positive of row i of VIEW1")
      ->type_name("");
  loss->add_option("--temperature", into.settings.temperature, "Divisor of the similarities. Default: 0.5")
      ->type_name("T");
  loss->add_option("--margin", into.settings.margin, "Subtracted from the similarity of positives. Default: 0")
      ->type_name("M");
  loss->add_flag("--decoupled", into.settings.decoupled, "Leave the positive out of the denominator");
  loss->add_option_function<std::string>(
          "--precision", [&into](const std::string& text) { into.precision = parse_precision(text); },
          "fp32: as in training; fp64: everything in double. Default: the precision of the files")
      ->type_name("fp32|fp64");
  loss->add_option("--grad1", into.gradients[0], "Write dL/dVIEW1 to this .npy file, in the type of the input")
      ->type_name("FILE");
  loss->add_option("--grad2", into.gradients[1], "Write dL/dVIEW2 to this .npy file")->type_name("FILE");
  loss->add_flag("--json", into.json, "Print one JSON object instead of lines");
  loss->add_option("--threads", into.threads, "Threads per rank. Default: its share of the cores")
      ->type_name("N")
      ->check(CLI::Range(1, 4096).description(""));
  loss->footer(
      "L = mean over all 2N anchors of -log softmax of the positive, with cosine similarities; dL/dz includes both "
      "roles\n"
      "of a row, as anchor and as key. Several ranks: mpirun -np W simclr_train loss ...; the numbers are the same.");
  loss->fallthrough();  // options of training after it are recognized and refused by name
  return loss;
}

void check_loss_options(const LossCommand& command, std::string_view hint) {
  if (command.views[0].empty() || command.views[1].empty())
    fail(ExitCode::kUsage, "two files are required: simclr_train loss VIEW1.npy VIEW2.npy; {}", hint);
  check_range("--temperature", "loss.temperature", command, hint);
  check_range("--margin", "loss.margin", command, hint);
  if (command.settings.decoupled && command.settings.margin != 0)
    fail(ExitCode::kUsage, "--margin {} has no gradient with --decoupled; leave one of them out ({})",
         command.settings.margin, hint);
  for (const std::string& gradient : command.gradients) {
    for (const std::string& view : command.views) {
      if (same_file(gradient, view))
        fail(ExitCode::kUsage, "the gradient would replace the input {}; give another path ({})", shown_path(view),
             hint);
    }
  }
  if (same_file(command.gradients[0], command.gradients[1]))
    fail(ExitCode::kUsage, "--grad1 and --grad2 are both {}; give two paths ({})", shown_path(command.gradients[1]),
         hint);
}

}  // namespace simclr
