#include "src/config/encoder_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "kernels/common/error.h"
#include "src/config/config_errors.h"
#include "src/config/config_options.h"

namespace simclr {
namespace {

// A number > 0 without trailing characters; `auto` is 0.
double parse_c(const std::string& text) {
  if (text == "auto") return 0;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0) || !std::isfinite(value))
    throw CLI::ValidationError("--c", fmt::format("found {}, expected auto or a number > 0", shown(text)));
  return value;
}

}  // namespace

void describe_encoder(CLI::App& app, EncoderSource& into) {
  app.add_option("CHECKPOINT,--checkpoint", into.checkpoint, "A checkpoint, or a run folder, for its newest checkpoint")
      ->type_name("");
  describe_config(app, into.source, "changes keys of the checkpoint's configuration, for instance data.path; optional");
  app.add_option(
         "--batch", into.batch,
         "Images per call of the network on each rank; changes memory and time, not the results. Default: chosen "
         "for the machine")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20).description(""));
  app.fallthrough();  // options of training after it are recognized and refused by name
}

void check_encoder_options(const EncoderSource& source, std::string_view command, std::string_view hint) {
  if (source.checkpoint.empty())
    fail(ExitCode::kUsage,
         "a checkpoint is required: simclr_train {} runs/NAME (or one of its checkpoints/*.safetensors); {}", command,
         hint);
}

CLI::App* describe_evaluate(CLI::App& app, EvaluateCommand& into) {
  CLI::App* evaluate = app.add_subcommand(
      "evaluate",
      "Report k-NN accuracy and a linear probe on the features of a trained encoder: train split against test split");
  describe_encoder(*evaluate, into.encoder);
  evaluate->add_option("--k", into.k, "Number of neighbors that vote; repeatable. Default: 1, 20 and 200")
      ->type_name("N")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1000000).description(""));
  evaluate
      ->add_option("--labels", into.percent,
                   "Share of the training labels that the linear probe uses, per class; repeatable; 0: no probe. "
                   "Default: 1, 10 and 100")
      ->type_name("PERCENT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->check(CLI::Range(0.0, 100.0).description(""));
  evaluate
      ->add_option_function<std::string>(
          "--c", [&into](const std::string& text) { into.c = parse_c(text); },
          "The probe's inverse regularization, C of scikit-learn's LogisticRegression. Default: auto, chosen on a "
          "held-out fifth of the labels")
      ->type_name("C|auto");
  evaluate->add_option("--json", into.json, "Write all results, with confusion matrices, to this JSON file")
      ->type_name("FILE");
  evaluate->footer("Several ranks: mpirun -np W simclr_train evaluate ...; the numbers are the same for every W.");
  return evaluate;
}

void check_evaluate_options(const EvaluateCommand& command, std::string_view hint) {
  check_encoder_options(command.encoder, "evaluate", hint);
  check_not_input(command.json, {command.encoder.checkpoint, command.encoder.source.config}, hint);
  if (command.percent.size() > 1 && std::count(command.percent.begin(), command.percent.end(), 0.0) > 0)
    fail(ExitCode::kUsage, "--labels 0 turns the probe off and cannot be combined with other shares; leave it out ({})",
         hint);
}

CLI::App* describe_embed(CLI::App& app, EmbedCommand& into) {
  CLI::App* embed =
      app.add_subcommand("embed", "Write the features of a trained encoder, and the labels, as .npy files");
  describe_encoder(*embed, into.encoder);
  embed->add_option("--output", into.output, "Output file of features: float32 [images, columns]")->type_name("FILE");
  embed->add_option("--labels", into.labels, "Output file of labels: int64 [images]")->type_name("FILE");
  embed
      ->add_option_function<std::string>(
          "--split",
          [&into](const std::string& text) {
            if (text != "train" && text != "test")
              throw CLI::ValidationError("--split", fmt::format("found {}, expected train or test", shown(text)));
            into.test_split = text == "test";
          },
          "The images to encode. Default: train")
      ->type_name("train|test");
  embed->add_flag("--projector", into.projector,
                  "Write the outputs of the projector, which enter the loss, instead of the encoder's");
  embed->footer("Rows are in the order of the data set, not normalized.");
  return embed;
}

void check_embed_options(const EmbedCommand& command, std::string_view hint) {
  check_encoder_options(command.encoder, "embed", hint);
  if (command.output.empty()) fail(ExitCode::kUsage, "embed needs --output FILE, e.g. --output features.npy; {}", hint);
  for (const std::string& file : {command.output, command.labels})
    check_not_input(file, {command.encoder.checkpoint, command.encoder.source.config}, hint);
  if (same_file(command.output, command.labels))
    fail(ExitCode::kUsage, "--output and --labels are both {}; give two paths ({})", shown_path(command.labels), hint);
}

}  // namespace simclr
