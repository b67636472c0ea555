// HeartbeatBoard in files of a folder that all hosts see: one line of text per rank, rewritten in place. Readers open
// the file each time, since network file systems promise fresh content only after an open.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <vector>

#include "src/base/file.h"
#include "src/base/log.h"
#include "src/comm/agreement.h"
#include "src/comm/heartbeat.h"

namespace simclr {
namespace {

using Line = std::array<char, 128>;

uint64_t checksum(const Pulse& p) {
  return p.alive * 31 + p.progress * 37 + static_cast<uint64_t>(p.step) * 41 + static_cast<uint64_t>(p.phase) * 43 +
         p.waiting * 47u + p.left * 53u + static_cast<uint64_t>(p.stop_signal) * 59 + p.knows_of_stop * 61u +
         p.begun * 67u;
}

Line format(const Pulse& p) {
  Line line;
  line.fill(' ');
  const int length =
      std::snprintf(line.data(), line.size(), "%" PRIu64 " %" PRIu64 " %" PRId64 " %d %d %d %" PRId32 " %d %d %" PRIu64,
                    p.alive, p.progress, p.step, static_cast<int>(p.phase), p.waiting, p.left, p.stop_signal,
                    p.knows_of_stop, p.begun, checksum(p));
  line[length] = ' ';
  line.back() = '\n';
  return line;
}

// False for a line that was read while it was written.
bool parse(Line line, Pulse& pulse) {
  line.back() = '\0';
  Pulse p;
  int phase = 0, waiting = 0, left = 0, knows_of_stop = 0, begun = 0;
  uint64_t sum = 0;
  const int fields =
      std::sscanf(line.data(), "%" SCNu64 " %" SCNu64 " %" SCNd64 " %d %d %d %" SCNd32 " %d %d %" SCNu64, &p.alive,
                  &p.progress, &p.step, &phase, &waiting, &left, &p.stop_signal, &knows_of_stop, &begun, &sum);
  p.phase = static_cast<Phase>(phase);
  p.waiting = waiting != 0;
  p.left = left != 0;
  p.knows_of_stop = knows_of_stop != 0;
  p.begun = begun != 0;
  if (fields != 10 || sum != checksum(p)) return false;
  pulse = p;
  return true;
}

class FileBoard final : public HeartbeatBoard {
 public:
  FileBoard(const std::filesystem::path& folder, int rank, int size) : rank_(rank), size_(size), last_(size) {
    for (int r = 0; r < size; ++r) paths_.push_back(folder / fmt::format("rank_{:05}", r));
    claim_path_ = folder / "claim";
    fd_ = ::open(paths_[rank].c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd_ < 0)
      fail(ExitCode::kOutput, "cannot make {}: {}; the run folder must be writable on every host",
           paths_[rank].string(), errno_text(errno));
  }
  ~FileBoard() override { ::close(fd_); }
  FileBoard(const FileBoard&) = delete;
  FileBoard& operator=(const FileBoard&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void publish(const Pulse& mine) noexcept override {
    const Line line = format(mine);
    const bool written =
        ::pwrite(fd_, line.data(), line.size(), 0) == static_cast<ssize_t>(line.size()) && ::fdatasync(fd_) == 0;
    if (written || warned_) return;
    warned_ = true;
    const int error = errno;
    Line text;  // the others will find this rank silent; its own reason would be lost without this line
    std::snprintf(text.data(), text.size(), "rank %d cannot write its heartbeat file (errno %d): check the run folder",
                  rank_, error);
    log_last_words(text.data());
  }

  Pulse read(int rank) noexcept override {
    const int fd = ::open(paths_[rank].c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return last_[rank];
    Line line{};
    if (::pread(fd, line.data(), line.size(), 0) == static_cast<ssize_t>(line.size())) parse(line, last_[rank]);
    ::close(fd);
    return last_[rank];
  }

  bool claim_report() noexcept override {
    const int fd = ::open(claim_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd >= 0) ::close(fd);
    return fd >= 0 || errno != EEXIST;  // better said twice than not at all
  }

  double interval_s(double timeout_s) const override { return std::clamp(timeout_s / 10, 0.05, 5.0); }

 private:
  const int rank_, size_;
  std::vector<std::filesystem::path> paths_;  // [W]
  std::filesystem::path claim_path_;
  std::vector<Pulse> last_;  // [W]
  int fd_ = -1;
  bool warned_ = false;
};

}  // namespace

std::unique_ptr<HeartbeatBoard> make_file_board(Collectives& collectives, const std::filesystem::path& run_folder) {
  const std::filesystem::path folder = run_folder / "heartbeat";
  agree_on(collectives, [&] {
    if (collectives.rank() != 0) return;
    std::error_code nothing_there;
    std::filesystem::remove_all(folder, nothing_there);  // of an earlier run
    make_directories(folder);
  });
  return agree_on(collectives, [&]() -> std::unique_ptr<HeartbeatBoard> {
    return std::make_unique<FileBoard>(folder, collectives.rank(), collectives.size());
  });
}

}  // namespace simclr
