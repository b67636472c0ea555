// The options of the commands that work with a trained encoder, as part of the command line: evaluate, embed.
#pragma once

#include <CLI/CLI.hpp>

#include "src/config/command_line.h"

namespace simclr {

// CHECKPOINT (or --checkpoint), --config, --set and --batch, which all of them have. The values go to `into`.
void describe_encoder(CLI::App& app, EncoderSource& into);
// Error(kUsage) that ends with `hint` if there is no checkpoint.
void check_encoder_options(const EncoderSource& source, std::string_view command, std::string_view hint);

CLI::App* describe_evaluate(CLI::App& app, EvaluateCommand& into);
void check_evaluate_options(const EvaluateCommand& command, std::string_view hint);

CLI::App* describe_embed(CLI::App& app, EmbedCommand& into);
void check_embed_options(const EmbedCommand& command, std::string_view hint);

}  // namespace simclr
