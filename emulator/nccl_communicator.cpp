// The communicators of the fake NCCL: made, found, destroyed, aborted, asked. They are blocking; ncclInProgress never
// appears.
#include "emulator/nccl_communicator.h"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>

#include "emulator/runtime.h"

struct ncclComm {
  std::shared_ptr<simclr::emulator::nccl::Segment> segment;  // queued work keeps it beyond an abort
  int device = 0;
};

namespace simclr::emulator::nccl {
namespace {

constexpr const char* kIdPrefix = "/emulator-nccl-";

// Not runtime_lock(): aborting and polling must get through while a collective waits.
std::mutex& table_lock() {
  static auto* lock = new std::mutex;
  return *lock;
}
std::set<const ncclComm*>& live() {
  static auto* comms = new std::set<const ncclComm*>;
  return *comms;
}
std::string& last_error() {
  static auto* text = new std::string;
  return *text;
}

}  // namespace

ncclResult_t misuse(ncclResult_t status, const char* format, ...) {
  char text[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  complain("NCCL: %s", text);
  const std::lock_guard guard(table_lock());
  last_error() = text;
  return status;
}

Comm find_comm(ncclComm_t comm) {
  const std::lock_guard guard(table_lock());
  return live().count(comm) ? Comm{comm->segment, comm->device} : Comm{};
}

namespace {

ncclResult_t join(ncclComm_t* out, int ranks, const ncclUniqueId& id, int rank) {
  if (!out || ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks)
    return misuse(ncclInvalidArgument, "ncclCommInitRank: rank %d of %d (the fake takes up to %d)", rank, ranks,
                  kMostRanks);
  if (std::strncmp(id.internal, kIdPrefix, std::strlen(kIdPrefix)) != 0 || id.internal[sizeof id.internal - 1] != '\0')
    return misuse(ncclInvalidArgument, "ncclCommInitRank: an id that ncclGetUniqueId has not made");
  if (device_available() != cudaSuccess) return misuse(ncclUnhandledCudaError, "ncclCommInitRank: there is no device");
  std::shared_ptr<Segment> segment;
  try {
    segment = std::make_shared<Segment>(id.internal, ranks, rank);
  } catch (const std::runtime_error& e) {
    return misuse(ncclSystemError, "ncclCommInitRank: %s", e.what());
  }
  Header& header = segment->header();
  int other_count = 0, expected = 0;
  if (!header.ranks.compare_exchange_strong(other_count, ranks) && other_count != ranks) {
    segment->fail(ncclInvalidUsage, "ncclCommInitRank: this rank was given " + std::to_string(ranks) +
                                        " ranks, another one " + std::to_string(other_count));
    return ncclInvalidUsage;
  }
  for (int r = 0; r < ranks; ++r)
    if (header.rank[r].process == ::getpid())
      return misuse(ncclInvalidUsage, "ncclCommInitRank: ranks %d and %d are the same process; the fake takes one each",
                    r, rank);
  if (!header.rank[rank].process.compare_exchange_strong(expected, ::getpid())) {
    segment->fail(ncclInvalidUsage, "ncclCommInitRank: there are two of rank " + std::to_string(rank));
    return ncclInvalidUsage;
  }
  ++header.joined;
  const bool all_here = segment->wait([&] { return header.joined >= ranks; },
                                      [&] { return "ncclCommInitRank with " + std::to_string(ranks) + " ranks"; },
                                      [&](int r) { return header.rank[r].process == 0; });
  segment->unlink();  // all ranks have opened it and keep it
  if (!all_here) return segment->status();
  auto* comm = new ncclComm{segment, current_device()};
  const std::lock_guard guard(table_lock());
  live().insert(comm);
  *out = comm;
  return ncclSuccess;
}

// Takes the communicator out of the table; null when it is none.
std::shared_ptr<Segment> take(ncclComm_t comm) {
  const std::lock_guard guard(table_lock());
  if (live().erase(comm) == 0) return nullptr;
  const std::shared_ptr<Segment> segment = comm->segment;
  delete comm;
  return segment;
}

}  // namespace
}  // namespace simclr::emulator::nccl

using namespace simclr::emulator;        // NOLINT: the entry points below stand outside of every namespace
using namespace simclr::emulator::nccl;  // NOLINT

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  if (!version) return misuse(ncclInvalidArgument, "ncclGetVersion: no place for the result");
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (!id) return misuse(ncclInvalidArgument, "ncclGetUniqueId: no place for the result");
  std::random_device random;
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->internal, sizeof id->internal, "%s%d-%08x%08x", kIdPrefix, static_cast<int>(::getpid()), random(),
                random());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return join(comm, ranks, id, rank);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const ncclConfig_t fresh = NCCL_CONFIG_INITIALIZER;
  if (config && (config->magic != fresh.magic || config->size != fresh.size))
    return misuse(ncclInvalidArgument, "ncclCommInitRankConfig: the configuration is not NCCL_CONFIG_INITIALIZER's");
  if (config && config->blocking == 0)
    return misuse(ncclInvalidArgument, "ncclCommInitRankConfig: the fake's communicators are blocking");
  return join(comm, ranks, id, rank);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Comm found = find_comm(comm);
  if (!found.segment) return misuse(ncclInvalidArgument, "ncclCommFinalize: no communicator, or one that is gone");
  if (cudaDeviceSynchronize() != cudaSuccess) return ncclUnhandledCudaError;
  return found.segment->status();
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm) return ncclSuccess;
  const Comm found = find_comm(comm);
  if (!found.segment) return misuse(ncclInvalidArgument, "ncclCommDestroy: no communicator, or one that is gone");
  if (found.segment->status() == ncclSuccess) cudaDeviceSynchronize();  // what is queued belongs to the others too
  const auto segment = take(comm);
  if (segment) segment->leave();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const auto segment = take(comm);
  if (!segment) return misuse(ncclInvalidArgument, "ncclCommAbort: no communicator, or one that is gone");
  segment->abort();
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* status) {
  const Comm found = find_comm(comm);
  if (!found.segment || !status)
    return misuse(ncclInvalidArgument, "ncclCommGetAsyncError: no communicator or no place");
  *status = found.segment->status();
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  const Comm found = find_comm(comm);
  if (!found.segment || !count) return misuse(ncclInvalidArgument, "ncclCommCount: no communicator or no place");
  *count = found.segment->ranks();
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  const Comm found = find_comm(comm);
  if (!found.segment || !rank) return misuse(ncclInvalidArgument, "ncclCommUserRank: no communicator or no place");
  *rank = found.segment->rank();
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  const Comm found = find_comm(comm);
  if (!found.segment || !device) return misuse(ncclInvalidArgument, "ncclCommCuDevice: no communicator or no place");
  *device = found.device;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t status) {
  static constexpr const char* kTexts[] = {"no error",
                                           "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
                                           "unhandled system error (run with NCCL_DEBUG=INFO for details)",
                                           "internal error - please report this issue to the NCCL developers",
                                           "invalid argument (run with NCCL_DEBUG=WARN for details)",
                                           "invalid usage (run with NCCL_DEBUG=WARN for details)",
                                           "remote process exited or there was a network error",
                                           "NCCL operation in progress"};
  return status >= 0 && status < ncclNumResults ? kTexts[status] : "unknown result code";
}

const char* ncclGetLastError(ncclComm_t comm) {
  static thread_local std::string text;
  const Comm found = find_comm(comm);
  text = found.segment ? found.segment->failure() : "";
  const std::lock_guard guard(table_lock());
  if (text.empty()) text = last_error();
  return text.c_str();
}

}  // extern "C"
