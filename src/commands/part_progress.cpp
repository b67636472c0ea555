#include "src/commands/part_progress.h"

#include <utility>

#include "kernels/common/numbers.h"
#include "src/base/log.h"
#include "src/base/progress_line.h"

namespace simclr {
namespace {

constexpr double kTerminalS = 0.2, kLogS = 10;

}  // namespace

PartProgress::PartProgress(bool shown, std::string name)
    : shown_(shown), name_(std::move(name)), start_s_(monotonic_seconds()), last_s_(start_s_) {}

PartProgress::~PartProgress() {
  try {
    if (rewritten_) rewrite_console_line("");
  } catch (...) {  // the line stays on the terminal, which is harmless
    rewritten_ = false;
  }
}

void PartProgress::at(int64_t done, int64_t total) {
  if (!shown_ || done <= 0) return;
  const double elapsed = monotonic_seconds() - start_s_;
  const double left = elapsed * as_double(total - done) / as_double(done);
  say(fmt::format("{} of {}, left {}", done, total, format_duration(left)));
}

void PartProgress::say(std::string_view text) {
  if (!shown_) return;
  const double now = monotonic_seconds();
  const bool terminal = console_is_terminal();
  if (now - last_s_ < (terminal ? kTerminalS : kLogS)) return;
  last_s_ = now;
  if (!terminal) {
    log_info("{}: {}", name_, text);
    return;
  }
  rewrite_console_line(fmt::format("{}: {}", name_, text));
  rewritten_ = true;
}

}  // namespace simclr
