#include "src/config/export_options.h"

#include "kernels/common/error.h"
#include "src/config/config_options.h"

namespace simclr {

CLI::App* describe_export(CLI::App& app, ExportCommand& into) {
  CLI::App* command = app.add_subcommand(
      "export", "Write the encoder of a checkpoint as safetensors with torchvision's names (docs/pytorch.md)");
  command
      ->add_option("CHECKPOINT,--checkpoint", into.checkpoint,
                   "A checkpoint, or a run folder, for its newest checkpoint")
      ->type_name("");
  command->add_option("--output", into.output, "Output file, e.g. encoder.safetensors")->type_name("FILE");
  command->add_flag("--include-projector", into.include_projector,
                    "Also write the projector, as projector.0.weight, ...");
  command->fallthrough();  // options of training after it are recognized and refused by name
  return command;
}

void check_export_options(const ExportCommand& command, std::string_view hint) {
  if (command.checkpoint.empty())
    fail(ExitCode::kUsage,
         "a checkpoint is required: simclr_train export runs/NAME/checkpoints/step_….safetensors --output FILE; {}",
         hint);
  if (command.output.empty())
    fail(ExitCode::kUsage, "export needs --output FILE, e.g. --output encoder.safetensors; {}", hint);
  check_not_input(command.output, {command.checkpoint}, hint);
}

}  // namespace simclr
