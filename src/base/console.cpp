#include "src/base/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "src/base/file.h"

namespace simclr {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";

size_t terminal_columns(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 120;  // the pseudo terminal of mpirun has no size
}

}  // namespace

Console::Console(int out_fd, int error_fd, bool out_is_terminal) : fds_{out_fd, error_fd}, terminal_(out_is_terminal) {}

void Console::put(Stream stream, std::string_view bytes) {
  const int index = static_cast<int>(stream);
  if (silent_[index]) return;
  const int error = write_all(fds_[index], bytes.data(), bytes.size());
  if (error == 0) return;
  silent_[index] = true;
  int none = 0;
  if (error != EPIPE && error != EIO) first_error_.compare_exchange_strong(none, error);
}

void Console::print(Stream stream, std::string_view line) {
  std::lock_guard lock(mutex_);
  if (!rewriting_.empty()) put(Stream::kOut, kClearLine);
  put(stream, std::string(line) + "\n");
  if (!rewriting_.empty()) put(Stream::kOut, rewriting_);
}

void Console::rewrite(std::string_view text) {
  if (!terminal_) return;
  std::lock_guard lock(mutex_);
  rewriting_ = text.substr(0, terminal_columns(fds_[0]) - 1);
  put(Stream::kOut, std::string(kClearLine) + rewriting_);
}

void Console::clear() {
  std::lock_guard lock(mutex_);
  if (!rewriting_.empty()) put(Stream::kOut, kClearLine);
  rewriting_.clear();
}

void Console::keep() {
  std::lock_guard lock(mutex_);
  if (!rewriting_.empty()) put(Stream::kOut, "\n");
  rewriting_.clear();
}

bool stdout_is_terminal() {
  if (!::isatty(STDOUT_FILENO)) return false;
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return true;
  const std::string parents_stdout = "/proc/" + std::to_string(::getppid()) + "/fd/1";
  std::array<char, 256> target{};
  const ssize_t length = ::readlink(parents_stdout.c_str(), target.data(), target.size());
  const std::string_view name(target.data(), static_cast<size_t>(std::max<ssize_t>(length, 0)));
  return name.starts_with("/dev/pts/") || name.starts_with("/dev/tty") || name == "/dev/console";
}

}  // namespace simclr
