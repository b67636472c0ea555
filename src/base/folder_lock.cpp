#include "src/base/folder_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <thread>

#include "src/base/file.h"

namespace simclr {
namespace {

constexpr std::chrono::milliseconds kPause(100);  // between two tries

std::string describe_this_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"an unknown host"};
  return fmt::format("process {} on {}, since {:%Y-%m-%dT%H:%M:%SZ}", ::getpid(), host.data(),
                     fmt::gmtime(std::time(nullptr)));
}

// What the holder wrote, in one line of bounded length.
std::string read_holder(int fd) {
  std::array<char, 400> text{};
  const ssize_t got = ::pread(fd, text.data(), text.size() - 1, 0);
  if (got <= 0) return "another process";
  const std::string holder(text.data(), got);
  return holder.substr(0, holder.find('\n'));
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder, double patience_s, const Beat& beat) {
  const std::filesystem::path path = folder / "lock";
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience_s);
  file_ = open_in_place(path, O_RDWR | O_CREAT);
  while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    if (error == EINTR) continue;
    if (error != EWOULDBLOCK) {
      warning_ = fmt::format("cannot lock {}: {}; see to it that no other run uses this folder", path.string(),
                             errno_text(error));
      return;
    }
    if (std::chrono::steady_clock::now() >= give_up) {
      const std::string holder = read_holder(file_.get());
      fail(ExitCode::kOutput, "{} is in use by another run ({}); wait for it, stop it, or take another --output",
           folder.string(), holder);
    }
    beat();
    std::this_thread::sleep_for(kPause);
  }
  const std::string text = describe_this_process() + "\n";
  int error = ::ftruncate(file_.get(), 0) == 0 ? 0 : errno;
  if (error == 0) error = write_all(file_.get(), text.data(), text.size());
  if (error != 0) {
    fail(ExitCode::kOutput, "cannot write {}: {}; free some space, or check the folder and its permissions",
         path.string(), errno_text(error));
  }
}

}  // namespace simclr
