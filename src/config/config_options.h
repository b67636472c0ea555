// --config and --set: the same for training and for every subcommand that works with a configuration.
#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>

#include "src/config/command_line.h"

namespace simclr {

// Adds both options; their values go to `into`. needed_for ends the help line: "required for training".
void describe_config(CLI::App& app, ConfigSource& into, std::string_view needed_for);

// The same file under one or two spellings, links followed, whether or not it exists yet. False where either is "".
bool same_file(const std::string& a, const std::string& b);

// Refuses an output file that is one of the inputs ("": none). Error(kUsage) that ends with `hint`.
void check_not_input(const std::string& written, std::initializer_list<std::string> inputs, std::string_view hint);

}  // namespace simclr
