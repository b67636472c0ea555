// The options of `simclr_train pack`, as part of the command line.
#pragma once

#include <CLI/CLI.hpp>

#include "src/config/command_line.h"

namespace simclr {

// Adds the subcommand; what it is given goes into `into`.
CLI::App* describe_pack(CLI::App& app, PackCommand& into);

// What one option alone cannot know. Error(kUsage) with `hint` at its end.
void check_pack_options(const PackCommand& command, std::string_view hint);

}  // namespace simclr
