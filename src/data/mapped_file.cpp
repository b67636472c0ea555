#include "src/data/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

#include "kernels/common/error.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/config/config_errors.h"

namespace simclr {
namespace {

// The mapped files, for the SIGBUS handler, which may access lock-free atomics only. Files beyond the 16th are not
// recorded: a lost page in them keeps SIGBUS's default action.
struct Mapping {
  std::atomic<const uint8_t*> begin;
  std::atomic<int64_t> bytes;
  std::array<char, 1024> path;  // written before begin
};
std::array<Mapping, 16> mappings;
static_assert(std::atomic<const uint8_t*>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

// SIGBUS handler for lost pages of mapped files; a SIGBUS for any other memory keeps the default action.
void report_lost_page(int number, siginfo_t* info, void*) {
  const auto* at = static_cast<const uint8_t*>(info->si_addr);
  for (const Mapping& mapping : mappings) {
    const uint8_t* begin = mapping.begin.load();
    if (begin == nullptr || at < begin || at >= begin + mapping.bytes.load()) continue;
    std::array<char, 1400> text;
    std::snprintf(text.data(), text.size(),
                  "can no longer read %s: it was cut off while the run used it, or its disk failed; restore it and "
                  "start the same command again",
                  mapping.path.data());
    if (claim_last_words())
      log_last_words(text.data());
    else
      ::sleep(2);  // another thread of this process may be writing its last words
    ::_exit(static_cast<int>(ExitCode::kData));
  }
  ::signal(number, SIG_DFL);  // the faulting instruction is repeated on return
}

void install_lost_page_handler() {
  struct sigaction action {};
  action.sa_sigaction = report_lost_page;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  if (::sigaction(SIGBUS, &action, nullptr) != 0)
    fail(ExitCode::kOther, "cannot install the handler of signal {} (errno {}); please report it", SIGBUS, errno);
}

std::mutex mappings_change;

void remember(const uint8_t* begin, int64_t bytes, const std::string& path) {
  std::lock_guard lock(mappings_change);
  install_lost_page_handler();
  for (Mapping& mapping : mappings) {
    if (mapping.begin.load() != nullptr) continue;
    const size_t length = std::min(path.size(), mapping.path.size() - 1);
    std::copy_n(path.data(), length, mapping.path.data());
    mapping.path[length] = '\0';
    mapping.bytes.store(bytes);
    mapping.begin.store(begin);
    return;
  }
}

void forget(const uint8_t* begin) {
  std::lock_guard lock(mappings_change);
  for (Mapping& mapping : mappings)
    if (mapping.begin.load() == begin) mapping.begin.store(nullptr);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path, std::string_view advice) {
  const auto refuse = [&](const std::string& why) {
    fail(ExitCode::kData, "cannot read {}: {}; {}", shown_path(path.string()), why, advice);
  };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe without a writer does not block
  if (fd < 0) refuse(errno_text(errno));
  struct stat info {};
  const int error = ::fstat(fd, &info) == 0 ? 0 : errno;
  const bool regular = error == 0 && S_ISREG(info.st_mode);
  void* memory = nullptr;
  int map_error = 0;
  if (regular && info.st_size > 0) {
    memory = ::mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED) map_error = errno;
  }
  ::close(fd);
  if (error != 0 || map_error != 0) refuse(errno_text(error != 0 ? error : map_error));
  if (!regular) refuse("it is not a regular file");
  data_ = static_cast<const uint8_t*>(memory);
  size_ = info.st_size;
  if (data_ != nullptr) remember(data_, size_, shown_path(path.string()));
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  forget(data_);
  ::munmap(const_cast<uint8_t*>(data_), size_);
}

}  // namespace simclr
