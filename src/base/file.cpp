#include "src/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

namespace simclr {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

constexpr std::string_view kTemporaryMark = ".tmp-";  // then the process, '-' and 16 random hex digits
constexpr std::string_view kDigits = "0123456789", kHexDigits = "0123456789abcdef";

// An index that another process cannot guess; without random numbers from the system, one that differs between calls.
uint64_t random_index() {
  static std::atomic<uint64_t> calls{0};
  uint64_t index = 0;
  if (::getentropy(&index, sizeof index) != 0) index = ++calls;
  return index;
}

struct Temporary {
  std::filesystem::path path;
  int fd = -1;
};

// A new file next to `path`. fd < 0: errno says why.
Temporary create_temporary(const std::filesystem::path& path) {
  constexpr int kTries = 100;
  Temporary made;
  for (int i = 0; i < kTries && made.fd < 0 && (i == 0 || errno == EEXIST); ++i) {
    made.path = fmt::format("{}{}{}-{:016x}", path.string(), kTemporaryMark, ::getpid(), random_index());
    made.fd = ::open(made.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  }
  return made;
}

// What follows kTemporaryMark in the name of a temporary; earlier versions wrote the process alone.
bool is_temporary_suffix(std::string_view text) {
  const size_t process = std::min(text.find_first_not_of(kDigits), text.size());
  if (process == 0) return false;
  const std::string_view index = text.substr(process);
  return index.empty() ||
         (index.size() == 17 && index[0] == '-' && index.find_first_not_of(kHexDigits, 1) == index.npos);
}

const char* kind_of(mode_t mode) {
  return S_ISLNK(mode)    ? "a symbolic link"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISDIR(mode)  ? "a folder"
                          : "not a regular file";
}

// Closes at the end of a scope; for descriptors whose close cannot lose data.
struct ReadDescriptor {
  int fd;
  ~ReadDescriptor() { ::close(fd); }
};

}  // namespace

std::string errno_text(int error_number) {
  return std::generic_category().message(error_number);
}

int write_all(int fd, const void* data, size_t bytes) noexcept {
  const char* p = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(fd, p, bytes);
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    p += written;
    bytes -= static_cast<size_t>(written);
  }
  return 0;
}

DurableFile::DurableFile(std::filesystem::path path) : path_(std::move(path)) {
  struct stat info {};
  // The rename would put a file in the place of a device, a pipe or a folder.
  if (::lstat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode))
    fail(ExitCode::kOutput, "cannot write {}: it is not a regular file; choose another path", path_.string());
  Temporary made = create_temporary(path_);
  if (made.fd < 0) fail_to("create", errno);
  temporary_ = std::move(made.path);
  fd_ = made.fd;
}

DurableFile::~DurableFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void DurableFile::write(std::span<const std::byte> bytes) {
  if (const int error = write_all(fd_, bytes.data(), bytes.size())) fail_to("write", error);
}

void DurableFile::commit() {
  if (::fsync(fd_) != 0) fail_to("sync", errno);
  const int closed = ::close(std::exchange(fd_, -1));
  const int close_error = errno;
  if (closed != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = closed != 0 ? close_error : errno;
    ::unlink(temporary_.c_str());
    fail_to(closed != 0 ? "close" : "rename the finished file to", error);
  }
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail_to("open the folder of", errno);
  const ReadDescriptor close_folder{folder};
  // EINVAL: a file system that cannot sync folders; its rename is as durable as it gets.
  if (::fsync(folder) != 0 && errno != EINVAL) fail_to("sync the folder of", errno);
}

void DurableFile::fail_to(const char* what, int error_number) const {
  const char* advice = error_number == ENOSPC || error_number == EDQUOT
                           ? "free some space there or write to another disk"
                           : "check the folder and its permissions";
  fail(ExitCode::kOutput, "cannot {} {}: {}; {}", what, path_.string(), errno_text(error_number), advice);
}

void write_file_durably(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  DurableFile file(path);
  file.write(bytes);
  file.commit();
}

void write_file_durably(const std::filesystem::path& path, std::string_view text) {
  write_file_durably(path, std::as_bytes(std::span(text)));
}

FileHandle open_in_place(const std::filesystem::path& path, int flags) {
  // O_NONBLOCK: opening a pipe must not wait for its other end.
  FileHandle file(::open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  const int error = errno;
  struct stat info {};
  const bool known = file.is_open() ? ::fstat(file.get(), &info) == 0 : ::lstat(path.c_str(), &info) == 0;
  if (known && !S_ISREG(info.st_mode))
    fail(ExitCode::kOutput, "cannot open {}: it is {}; move it away", path.string(), kind_of(info.st_mode));
  if (!file.is_open())
    fail(ExitCode::kOutput, "cannot open {}: {}; check the folder and its permissions", path.string(),
         errno_text(error));
  return file;
}

std::vector<std::string> remove_temporaries_of(const std::filesystem::path& path) {
  const std::string prefix = fmt::format("{}{}", path.filename().string(), kTemporaryMark);
  std::vector<std::string> removed;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder_of(path), error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (!name.starts_with(prefix) || !is_temporary_suffix(std::string_view(name).substr(prefix.size()))) continue;
    if (::unlink(entries->path().c_str()) != 0 && errno != ENOENT) {
      fail(ExitCode::kOutput, "cannot remove the old temporary file {}: {}; check the folder and its permissions",
           entries->path().string(), errno_text(errno));
    }
    removed.push_back(name);
  }
  if (error)
    fail(ExitCode::kOutput, "cannot list {}: {}; check the folder and its permissions", folder_of(path).string(),
         error.message());
  return removed;
}

std::string read_file(const std::filesystem::path& path, int64_t max_bytes, ExitCode code) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(code, "cannot open {}: {}; check the path", path.string(), errno_text(errno));
  const ReadDescriptor close_file{fd};
  std::string content;
  std::array<char, 1 << 16> block;
  while (true) {
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(code, "cannot read {}: {}; check the path", path.string(), errno_text(errno));
    if (got == 0) return content;
    content.append(block.data(), got);
    if (static_cast<int64_t>(content.size()) > max_bytes)
      fail(code, "{} has more than {} bytes, too many for what it should be; check the path", path.string(), max_bytes);
  }
}

void make_directories(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  // With a trailing slash or an existing symlink, create_directories reports false or an error for what is in fact
  // there.
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    fail(ExitCode::kOutput, "cannot make the folder {}: {}; choose another one", path.string(),
         error ? error.message() : errno_text(errno));
  if (!S_ISDIR(info.st_mode))
    fail(ExitCode::kOutput, "{} is a file, but a folder is needed there; move it away", path.string());
  if (::access(path.c_str(), W_OK | X_OK) != 0)
    fail(ExitCode::kOutput, "cannot write into the folder {}: {}; change its permissions or choose another one",
         path.string(), errno_text(errno));
}

}  // namespace simclr
