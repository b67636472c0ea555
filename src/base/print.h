// What a command prints as its result (not the log): to standard output, and an error when that is lost.
#pragma once

#include <string_view>

namespace simclr {

// Error(kOutput) when the text did not get out, e.g. a full disk.
void print_out(std::string_view text);

}  // namespace simclr
