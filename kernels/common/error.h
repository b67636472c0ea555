// The one exception type of the program, with the exit code that the process ends with.
// Which mechanism when: docs/decisions/0003-errors.md.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace simclr {

// What the process returns to the shell; documented in the README.
enum class ExitCode : int {
  kDone = 0,
  kOther = 1,     // a defect of the program
  kUsage = 2,     // command line or configuration
  kData = 3,      // data set
  kDevice = 4,    // device or communication
  kDiverged = 5,  // non-finite loss or gradient
  kOutput = 6,    // checkpoint or output could not be written or read
  kStopped = 75,  // stopped on request with a checkpoint written: requeue me
};

// what() is ONE line: what is wrong, where, and what to do about it.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

// throw Error{code, formatted text}; a function, so that call sites stay one line.
template <typename... Args>
[[noreturn]] void fail(ExitCode code, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(code, fmt::format(text, std::forward<Args>(args)...));
}

// Throws Error(kOther, "internal error at FILE:LINE: ... (CONDITION)"). Use through SIMCLR_CHECK.
[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& message);

}  // namespace simclr

// A precondition that only a defect of the program can break. Always on. The message is a fmt format string:
//   SIMCLR_CHECK(x.rows == y.rows, "x has {} rows, y has {}", x.rows, y.rows);
#define SIMCLR_CHECK(condition, ...)                                                      \
  do {                                                                                    \
    if (!(condition)) [[unlikely]]                                                        \
      ::simclr::check_failed(#condition, __FILE__, __LINE__, ::fmt::format(__VA_ARGS__)); \
  } while (false)
