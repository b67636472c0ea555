// The options of `simclr_train pack`, as part of the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "src/config/command_line.h"

namespace simclr {

// Adds the subcommand; its values go to `into`.
CLI::App* describe_pack(CLI::App& app, PackCommand& into);

// Checks options against each other. Error(kUsage) that ends with `hint`.
void check_pack_options(const PackCommand& command, std::string_view hint);

}  // namespace simclr
