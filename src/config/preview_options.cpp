#include "src/config/preview_options.h"

#include <fmt/format.h>

#include "kernels/common/error.h"
#include "src/config/config_options.h"

namespace simclr {

CLI::App* describe_preview(CLI::App& app, PreviewCommand& into, ConfigSource& source) {
  CLI::App* preview = app.add_subcommand("preview", "Write augmented views of the first step as a PNG image");
  describe_config(*preview, source, "required");
  preview->add_option("--output", into.output, fmt::format("Output file. Default: {}", into.output))->type_name("FILE");
  preview->add_option("--rows", into.rows, fmt::format("Number of images, one per row. Default: {}", into.rows))
      ->type_name("N")
      ->check(CLI::Range(1, 200).description(""));
  preview->footer(
      "Each row: an image, its view 1 and its view 2, as step 1 of training uses them, without normalization.");
  preview->fallthrough();  // options of training after it are recognized and refused by name
  return preview;
}

CLI::App* describe_report(CLI::App& app, std::string& run_folder) {
  CLI::App* report = app.add_subcommand("report", "Write report.html of a run folder again, e.g. after a crash");
  report->add_option("RUN_FOLDER", run_folder, "The folder with metrics.jsonl and config.yaml")
      ->type_name("")
      ->required();
  report->fallthrough();
  return report;
}

void check_preview_options(const PreviewCommand& command, const ConfigSource& source, std::string_view hint) {
  if (source.config.empty())
    fail(ExitCode::kUsage, "preview requires a configuration: simclr_train preview --config FILE; {}", hint);
  check_not_input(command.output, {source.config}, hint);
}

}  // namespace simclr
