// The options of `simclr_train preview` and `simclr_train report`, as part of the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "src/config/command_line.h"

namespace simclr {

// Add the subcommand; its values go to `into`.
CLI::App* describe_preview(CLI::App& app, PreviewCommand& into, ConfigSource& source);
CLI::App* describe_report(CLI::App& app, std::string& run_folder);

// Checks options against each other. Error(kUsage) that ends with `hint`.
void check_preview_options(const PreviewCommand& command, const ConfigSource& source, std::string_view hint);

}  // namespace simclr
