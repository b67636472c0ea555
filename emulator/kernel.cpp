// A launch: the checks CUDA makes and more, then all blocks of the grid, one after the other.
#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "emulator/block.h"
#include "emulator/errors.h"
#include "emulator/kernel.h"
#include "emulator/memory.h"
#include "emulator/races.h"
#include "emulator/runtime.h"
#include "emulator/settings.h"
#include "emulator/symbols.h"

namespace simclr::emulator {

namespace {

constexpr size_t kSharedWithoutAsking = size_t{48} << 10;
auto& shared_limits = *new std::unordered_map<const void*, size_t>;

struct Launch {
  KernelCall call;
  dim3 blocks;
  dim3 threads;
  size_t shared_bytes = 0;
  int device = 0;
};

// Whether this is the kernel that EMULATOR_FAULT names. Counts as it is asked.
bool meets_planted_fault(int device) {
  static long long kernels = 0;
  return device == settings().fault_device && ++kernels == settings().fault_kernel;
}

bool sizes_are_legal(dim3 blocks, dim3 threads) {
  return blocks.x >= 1 && blocks.y >= 1 && blocks.z >= 1 && blocks.x <= 0x7fffffffU && blocks.y <= 65535 &&
         blocks.z <= 65535 && threads.x >= 1 && threads.y >= 1 && threads.z >= 1 && threads.x <= kMostThreads &&
         threads.y <= kMostThreads && threads.z <= 64 && uint64_t{threads.x} * threads.y * threads.z <= kMostThreads;
}

// Names the first argument that points to no memory of the device. On a GPU the kernel itself fails, at its first
// access.
cudaError_t check_pointers(const KernelCall& call, int device) {
  for (const PointerArgument& argument : call.pointers) {
    if (argument.pointer == nullptr) continue;
    const Allocation* a = find_allocation(argument.pointer);
    if (a != nullptr && (a->space == Space::kPinned || a->device == device)) continue;
    return refuse(cudaErrorIllegalAddress, "kernel %s: argument %d points to %s", symbol_name(call.kernel).c_str(),
                  argument.position, describe_pointer(argument.pointer));
  }
  return cudaSuccess;
}

void check_tails(const KernelCall& call) {
  for (const PointerArgument& argument : call.pointers) {
    const Allocation* a = argument.pointer == nullptr ? nullptr : find_allocation(argument.pointer);
    if (a == nullptr || tail_is_intact(*a)) continue;
    break_device(cudaErrorIllegalAddress, "kernel %s wrote past the end of its argument %d, %s",
                 symbol_name(call.kernel).c_str(), argument.position, describe_pointer(argument.pointer));
    return;
  }
}

// The dynamic shared memory of a launch: exactly as large as asked for, so that AddressSanitizer sees an overrun.
class DynamicShared {
 public:
  explicit DynamicShared(size_t bytes) : bytes_(bytes) { take(); }
  ~DynamicShared() {
    for (void* p : taken_) std::free(p);
  }
  DynamicShared(const DynamicShared&) = delete;
  DynamicShared& operator=(const DynamicShared&) = delete;

  // Of the next block. Blocks that race with each other get memory of their own.
  void* renew() {
    if (bytes_ == 0) return nullptr;
    if (settings().race_blocks) take();
    poison(taken_.back(), bytes_);
    return taken_.back();
  }

 private:
  void take() {
    constexpr size_t kAlignment = 128;
    void* p = nullptr;
    if (bytes_ == 0) return;
    if (posix_memalign(&p, kAlignment, bytes_) != 0) std::abort();
    taken_.push_back(p);
  }

  size_t bytes_;
  std::vector<void*> taken_;
};

std::vector<uint64_t> order_blocks(uint64_t count) {
  std::vector<uint64_t> order;
  if (settings().order == Order::kForward) return order;
  order.resize(count);
  std::iota(order.begin(), order.end(), uint64_t{0});
  if (settings().order == Order::kReverse) std::reverse(order.begin(), order.end());
  if (settings().order == Order::kRandom) std::shuffle(order.begin(), order.end(), random_engine());
  return order;
}

void run_grid(const Launch& launch) {
  if (meets_planted_fault(launch.device))
    return break_device(cudaErrorIllegalAddress, "kernel %s: the planted fault",
                        symbol_name(launch.call.kernel).c_str());
  blockDim = launch.threads;
  gridDim = launch.blocks;
  {
    DynamicShared dynamic(launch.shared_bytes);
    prepare_blocks(launch.threads, &launch.call.body);
    races::begin_kernel(static_cast<int>(launch.threads.x * launch.threads.y * launch.threads.z));
    const StaticShared shared = static_shared_of(launch.call.kernel);  // of the thread that runs the stream
    const dim3 grid = launch.blocks;
    const uint64_t count = uint64_t{grid.x} * grid.y * grid.z;
    const std::vector<uint64_t> order = order_blocks(count);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t b = order.empty() ? i : order[i];
      blockIdx = {static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x % grid.y),
                  static_cast<unsigned>(b / grid.x / grid.y)};
      if (shared.bytes > 0) poison(shared.begin, shared.bytes);
      races::begin_block();
      const std::string error = run_block(dynamic.renew());
      if (!error.empty()) {
        break_device(cudaErrorLaunchFailure, "kernel %s, block (%u,%u,%u): %s", symbol_name(launch.call.kernel).c_str(),
                     blockIdx.x, blockIdx.y, blockIdx.z, error.c_str());
        break;
      }
    }
    races::end_kernel();
  }
  check_tails(launch.call);
}

size_t shared_limit(const void* kernel) {
  const auto found = shared_limits.find(kernel);
  return found == shared_limits.end() ? kSharedWithoutAsking : found->second;
}

// What CUDA refuses at the call, and what this project's rules do.
cudaError_t check_launch(const cudaLaunchConfig_t& config, const KernelCall& call) {
  const auto name = [&call] { return symbol_name(call.kernel); };
  if (config.numAttrs != 0) return refuse(cudaErrorNotSupported, "kernel %s: launch attributes", name().c_str());
  const dim3 b = config.gridDim;
  const dim3 t = config.blockDim;
  if (!sizes_are_legal(b, t)) {
    return refuse(cudaErrorInvalidConfiguration, "kernel %s: (%u,%u,%u) blocks of (%u,%u,%u) threads", name().c_str(),
                  b.x, b.y, b.z, t.x, t.y, t.z);
  }
  if (const size_t limit = shared_limit(call.kernel); config.dynamicSmemBytes > limit) {
    return refuse(cudaErrorInvalidValue,
                  "kernel %s: %zu bytes of dynamic shared memory, cudaFuncSetAttribute allows %zu", name().c_str(),
                  config.dynamicSmemBytes, limit);
  }
  if (const StaticShared shared = static_shared_of(call.kernel); shared.bytes > 0 && shared.in_program) {
    return refuse(cudaErrorInvalidDeviceFunction,
                  "kernel %s is part of the program, where static shared memory lies among the program's own "
                  "thread-local variables; kernels belong into a shared library of their own",
                  name().c_str());
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t set_shared_limit(const void* kernel, int bytes) {
  std::lock_guard guard(runtime_lock());
  if (bytes < 0 || static_cast<size_t>(bytes) > kMostShared) {
    return refuse(cudaErrorInvalidValue, "kernel %s: %d bytes of dynamic shared memory, a multiprocessor has %zu",
                  symbol_name(kernel).c_str(), bytes, kMostShared);
  }
  shared_limits[kernel] = static_cast<size_t>(bytes);
  return cudaSuccess;
}

cudaError_t launch_kernel(const cudaLaunchConfig_t* config, KernelCall call) {
  std::lock_guard guard(runtime_lock());
  if (const cudaError_t error = begin_call(); error != cudaSuccess) return error;
  if (config == nullptr) return refuse(cudaErrorInvalidValue, "kernel launch without a configuration");
  if (!check_stream(config->stream, "kernel launch")) return remember(cudaErrorInvalidResourceHandle);
  if (stream_device(config->stream) != current_device()) {
    return refuse(cudaErrorInvalidResourceHandle, "kernel %s: its stream belongs to device %d, the current one is %d",
                  symbol_name(call.kernel).c_str(), stream_device(config->stream), current_device());
  }
  if (const cudaError_t error = check_launch(*config, call); error != cudaSuccess) return error;
  if (const cudaError_t error = check_pointers(call, current_device()); error != cudaSuccess) return error;
  Launch launch{std::move(call), config->gridDim, config->blockDim, config->dynamicSmemBytes, current_device()};
  return enqueue(config->stream, "kernel", [launch = std::move(launch)] { run_grid(launch); });
}

}  // namespace simclr::emulator
