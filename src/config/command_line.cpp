#include "src/config/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>

#include "kernels/common/error.h"
#include "src/config/config_errors.h"
#include "src/config/config_options.h"
#include "src/config/encoder_options.h"
#include "src/config/export_options.h"
#include "src/config/key_table.h"
#include "src/config/loss_options.h"
#include "src/config/pack_options.h"
#include "src/config/preview_options.h"

namespace simclr {

namespace {

constexpr const char* kHint = "see simclr_train --help";

struct Subcommand {
  Command command;
  CLI::App* app;
  std::function<void()> check;  // of several options together; throws Error(kUsage)
};

struct Parser {
  CLI::App app{"Pre-trains an image encoder with SimCLR; without a subcommand it trains.", "simclr_train"};
  std::vector<Subcommand> subcommands;

  // The subcommand on the command line, or null.
  const Subcommand* given() const {
    for (const Subcommand& subcommand : subcommands)
      if (subcommand.app->parsed()) return &subcommand;
    return nullptr;
  }
};

CLI::App* describe_info(CLI::App& app, std::string& file) {
  CLI::App* info =
      app.add_subcommand("info", "Describe a checkpoint: step, configuration, tensors, sha256 of the weights");
  info->add_option("CHECKPOINT", file, "A checkpoint, or a run folder, for its newest checkpoint")
      ->type_name("")
      ->required();
  info->fallthrough();  // options of training after it are recognized and refused by name
  return info;
}

// The group of a subcommand in --help.
const char* group_of(Command command) {
  switch (command) {
    case Command::kPreview:
    case Command::kPack:
      return "Before training";
    case Command::kLoss:
      return "Tools";
    default:
      return "After training";
  }
}

void describe(Parser& parser, CommandLine& into, bool& version) {
  CLI::App& app = parser.app;
  app.set_help_flag("-h,--help", "Print this help and exit");
  describe_config(app, into.source, "required for training");
  app.add_option(
         "--resume", into.resume,
         "auto: from the newest valid checkpoint in the run folder, if any; none: from scratch; PATH: from this "
         "checkpoint. Default: " +
             into.resume)
      ->type_name("auto|none|PATH");
  app.add_option("--output", into.output, "The run folder. Default: run.output_dir/run.name")->type_name("DIR");
  app.add_flag("--dry-run", into.dry_run,
               "Set up everything, report shapes, parameters and memory, and exit before the first step");
  app.add_flag("--print-config", into.print_config, "Print the resolved configuration as YAML and exit");
  app.add_option(
         "--profile", into.profile_steps,
         "Profile N steps, op by op (CPU only): a table in the log and in profile.txt, and a trace for Chrome or "
         "Perfetto; training continues. Default: 20")
      ->type_name("[N]")
      ->expected(0, 1)
      ->default_str("20")
      ->check(CLI::Range(int64_t{1}, int64_t{1000}));
  app.add_flag("-q,--quiet", into.quiet, "Print only warnings, errors and the outcome; train.log has everything");
  app.add_flag("--version", version, "Print the versions of the program and its libraries and exit");
  for (const char* name : {"--config", "--set", "--resume", "--output", "--profile"})
    app.get_option(name)->group("Training");
  for (const char* name : {"--dry-run", "--print-config"}) app.get_option(name)->group("Inspect before training");
  for (const char* name : {"--quiet", "--version", "--help"}) app.get_option(name)->group("General");
  app.footer(
      "Several ranks: mpirun -np N simclr_train --config FILE\n"
      "Exit codes: 0 done, 2 usage or configuration, 3 data, 4 device or communication, 5 diverged, 6 checkpoint or\n"
      "output, 75 stopped on request with a checkpoint written, 1 anything else");

  parser.subcommands = {
      {Command::kPack, describe_pack(app, into.pack), [&into] { check_pack_options(into.pack, kHint); }},
      {Command::kPreview, describe_preview(app, into.preview, into.source),
       [&into] { check_preview_options(into.preview, into.source, kHint); }},
      {Command::kInfo, describe_info(app, into.info_file), [] {}},
      {Command::kEvaluate, describe_evaluate(app, into.evaluate),
       [&into] { check_evaluate_options(into.evaluate, kHint); }},
      {Command::kEmbed, describe_embed(app, into.embed), [&into] { check_embed_options(into.embed, kHint); }},
      {Command::kExport, describe_export(app, into.exported), [&into] { check_export_options(into.exported, kHint); }},
      {Command::kReport, describe_report(app, into.report_folder), [] {}},
      {Command::kLoss, describe_loss(app, into.loss), [&into] { check_loss_options(into.loss, kHint); }},
  };
  for (const Subcommand& subcommand : parser.subcommands) subcommand.app->group(group_of(subcommand.command));
}

// A hint for an unknown argument: the option with the nearest name.
std::string hint_for(const Parser& parser, const std::string& argument) {
  const CLI::App* subcommand = parser.given() == nullptr ? nullptr : parser.given()->app;
  if (!argument.starts_with("-")) {
    const std::string path = argument.substr(0, argument.find('='));
    if (path.size() < argument.size() && find_key(path) != nullptr)
      return fmt::format("set a key with --set {}, or {}", shown_path(argument), kHint);
    if (subcommand != nullptr) return fmt::format("{} takes no further argument, {}", subcommand->get_name(), kHint);
    return fmt::format("give the configuration as --config {}, or {}", shown_path(argument), kHint);
  }
  const std::string name = argument.substr(0, argument.find('='));
  std::string nearest;
  for (const CLI::Option* option : (subcommand != nullptr ? subcommand : &parser.app)->get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string candidate = "--" + option->get_lnames().front();
    if (nearest.empty() || edit_distance(name, candidate) < edit_distance(name, nearest)) nearest = candidate;
  }
  if (2 * edit_distance(name, nearest) > name.size()) return kHint;  // no option is similar
  return fmt::format("did you mean {}? ({})", nearest, kHint);
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

// An option of training that the subcommand does not use is an error.
void check_options_of_training(const Parser& parser) {
  for (const CLI::Option* option : parser.app.get_options()) {
    if (option->count() == 0) continue;
    fail(ExitCode::kUsage, "{} has no meaning for {}; {}", option->get_name(), parser.given()->app->get_name(), kHint);
  }
}

// As of `--output "$RUN"` where RUN is not set; without a refusal it would count as not given.
void check_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& value : option->results())
      if (value.empty())
        fail(ExitCode::kUsage, "{} is empty; give it a value, or leave it out ({})", option->get_name(), kHint);
  }
}

void check_train(const CommandLine& line) {
  if (line.source.config.empty()) {
    fail(ExitCode::kUsage, "no configuration; start with --config FILE, e.g. --config configs/quickstart.yaml ({})",
         kHint);
  }
  if (line.profile_steps > 0 && (line.dry_run || line.print_config))
    fail(ExitCode::kUsage, "--profile measures training steps, and {} runs none; leave one of them out ({})",
         line.dry_run ? "--dry-run" : "--print-config", kHint);
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  bool version = false;
  Parser parser;
  describe(parser, line, version);
  try {
    parser.app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    line.command = Command::kHelp;
    line.help = parser.app.help();
    return line;
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> extras = parser.app.remaining(true);
    fail(ExitCode::kUsage, "unknown argument {}; {}", shown(extras.front()), hint_for(parser, extras.front()));
  } catch (const CLI::ParseError& error) {
    fail(ExitCode::kUsage, "{}; {}", one_line(error.what()), kHint);
  }
  if (version) {
    line.command = Command::kVersion;
    return line;
  }
  check_empty_values(parser.app);
  if (const Subcommand* subcommand = parser.given()) {
    check_empty_values(*subcommand->app);
    check_options_of_training(parser);
    line.command = subcommand->command;
    subcommand->check();
    return line;
  }
  check_train(line);
  return line;
}

std::string run_folder(const CommandLine& command_line, const Settings& settings) {
  if (!command_line.output.empty()) return command_line.output;
  return (std::filesystem::path(settings.run.output_dir) / settings.run.name).string();
}

}  // namespace simclr
