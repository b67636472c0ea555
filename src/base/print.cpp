#include "src/base/print.h"

#include <cerrno>
#include <cstdio>

#include "src/base/file.h"

namespace simclr {

void print_out(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    fail(ExitCode::kOutput, "cannot write to standard output: {}", errno_text(errno));
}

}  // namespace simclr
