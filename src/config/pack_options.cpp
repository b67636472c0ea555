#include "src/config/pack_options.h"

#include <fmt/format.h>

#include "kernels/common/error.h"
#include "src/config/config_options.h"

namespace simclr {

CLI::App* describe_pack(CLI::App& app, PackCommand& into) {
  CLI::App* pack =
      app.add_subcommand("pack", "Write a data set as one file of decoded images, for data.format: packed");
  describe_config(*pack, into.source, "its section data names the data set");
  pack->add_option("--output", into.output, "Output file")->type_name("FILE");
  pack->add_option(
          "--size", into.size,
          fmt::format("Resize larger images to this shorter side, in pixels; 0: no resizing. Default: {}", into.size))
      ->type_name("PIXELS")
      ->check(CLI::Range(0, 65536).description(""));
  pack->add_option("--threads", into.threads, "Decoding threads. Default: all cores")
      ->type_name("N")
      ->check(CLI::Range(1, 4096).description(""));
  pack->add_option("--check", into.check, "Verify the checksums of this packed file instead")->type_name("FILE");
  pack->footer("Train on the file with --set data.format=packed --set data.path=FILE. Runs on one rank.");
  pack->fallthrough();  // options of training after it are recognized and refused by name
  return pack;
}

void check_pack_options(const PackCommand& command, std::string_view hint) {
  if (!command.check.empty()) {
    if (!command.source.config.empty() || !command.source.overrides.empty() || !command.output.empty())
      fail(ExitCode::kUsage, "--check takes no --config, --set or --output; {}", hint);
    return;
  }
  if (command.source.config.empty() || command.output.empty())
    fail(ExitCode::kUsage, "pack requires --config and --output: simclr_train pack --config FILE --output FILE; {}",
         hint);
  check_not_input(command.output, {command.source.config}, hint);
}

}  // namespace simclr
