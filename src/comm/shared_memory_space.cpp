#include "src/comm/shared_memory_space.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <filesystem>

#include "kernels/common/numbers.h"
#include "src/base/log.h"

namespace simclr {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;
constexpr uint64_t kForMpi = 4 * kMebibyte, kForNccl = 64 * kMebibyte;

double in_mebibytes(uint64_t bytes) {
  return as_double(bytes) / as_double(kMebibyte);
}

}  // namespace

std::optional<std::string> describe_shared_memory_shortage(const SharedMemoryFacts& facts) {
  if (facts.local_ranks < 2) return std::nullopt;
  const uint64_t wanted = static_cast<uint64_t>(facts.local_ranks) * (facts.has_gpus ? kForNccl : kForMpi);
  if (facts.free_bytes >= wanted) return std::nullopt;
  return fmt::format(
      "/dev/shm has {:.1f} MiB free, and the {} ranks of this host want {:.0f} MiB of it ({}); give a container more "
      "with docker run --ipc=host or --shm-size=1g",
      in_mebibytes(facts.free_bytes), facts.local_ranks, in_mebibytes(wanted), facts.has_gpus ? "NCCL" : "Open MPI");
}

void check_shared_memory(const Launcher& launcher) {
  if (launcher.local_rank != 0) return;
  struct statvfs room {};
  if (::statvfs("/dev/shm", &room) != 0) return;  // no /dev/shm: MPI keeps its segments elsewhere
  const SharedMemoryFacts facts{.local_ranks = launcher.local_ranks,
                                .free_bytes = uint64_t{room.f_bavail} * uint64_t{room.f_frsize},
                                .has_gpus = std::filesystem::exists("/dev/nvidiactl")};
  if (const auto shortage = describe_shared_memory_shortage(facts)) log_warning("{}", *shortage);
}

}  // namespace simclr
