// The options of the subcommand `export`.
#pragma once

#include <CLI/CLI.hpp>
#include <string_view>

#include "src/config/command_line.h"

namespace simclr {

CLI::App* describe_export(CLI::App& app, ExportCommand& into);
void check_export_options(const ExportCommand& command, std::string_view hint);

}  // namespace simclr
