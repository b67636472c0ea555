#include "src/comm/stop_signals.h"

#include <signal.h>

#include <atomic>
#include <cerrno>
#include <vector>

#include "kernels/common/error.h"

namespace simclr {
namespace {

std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

void set_handler(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // reads and writes in progress continue
  sigemptyset(&action.sa_mask);
  if (::sigaction(number, &action, nullptr) != 0)
    fail(ExitCode::kOther, "cannot set the handler of signal {} (errno {}); please report it", number, errno);
}

bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void remember(int number) {
  int none = 0;
  first_signal.compare_exchange_strong(none, number);
}

}  // namespace

void install_signal_handlers() {
  static const std::vector<int> requests = [] {
    std::vector<int> found;
    for (const int number : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP, SIGXCPU})
      if (!is_ignored(number)) found.push_back(number);
    return found;
  }();
  for (const int number : requests) set_handler(number, remember);
  for (const int number : {SIGPIPE, SIGXFSZ}) set_handler(number, SIG_IGN);
}

int stop_signal() noexcept {
  return first_signal.load();
}

}  // namespace simclr
