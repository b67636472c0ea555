// The scenarios: `emulator_scenarios NAME`. Each prints what it saw, "launch ERROR, sync ERROR" for kernels, "value X"
// for what it read; the tests compare. Exit code 0 unless the emulator or a sanitizer ends the process.
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "emulator/tests/kernels.h"

namespace simclr::test {

namespace {

constexpr size_t kCount = 64;
constexpr size_t kBytes = kCount * sizeof(float);

// What most scenarios start from: x is 64 ones, out and y are 64 values not written yet.
struct Fixture {
  cudaStream_t stream = nullptr;
  cudaStream_t other = nullptr;
  float* x = nullptr;
  float* y = nullptr;
  float* out = nullptr;
  float* pinned = nullptr;  // 64 threes

  Fixture() {
    const std::vector<float> ones(kCount, 1.0F);
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    require(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    for (float** p : {&x, &y, &out}) require(cudaMalloc(reinterpret_cast<void**>(p), kBytes));
    require(cudaMemcpy(x, ones.data(), kBytes, cudaMemcpyHostToDevice));
    require(cudaMallocHost(reinterpret_cast<void**>(&pinned), kBytes));
    for (size_t i = 0; i < kCount; ++i) pinned[i] = 3.0F;
  }
  ~Fixture() {
    cudaStreamDestroy(stream);
    cudaStreamDestroy(other);
    for (float* p : {x, y, out}) cudaFree(p);
    cudaFreeHost(pinned);
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  static void require(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::printf("set-up failed: %s\n", cudaGetErrorName(error));
    std::exit(3);
  }
  void end(cudaError_t launched) const {
    const cudaError_t waited = cudaStreamSynchronize(stream);
    std::printf("launch %s, sync %s\n", cudaGetErrorName(launched), cudaGetErrorName(waited));
  }
  static void print(const float* device, size_t index) {
    float value = 0.0F;
    require(cudaMemcpy(&value, device + index, sizeof value, cudaMemcpyDeviceToHost));
    std::printf("value %g\n", static_cast<double>(value));
  }
};

void print_last_errors() {
  const cudaError_t first = cudaGetLastError();
  const cudaError_t second = cudaGetLastError();
  std::printf("last %s, then %s\n", cudaGetErrorName(first), cudaGetErrorName(second));
}

using Scenario = void (*)(Fixture&);
int* as_int(float* p) {
  return reinterpret_cast<int*>(p);
}

// ---- broken kernels ----

const std::map<std::string, Scenario> kKernels{
    {"sum_without_barrier",
     [](Fixture& f) {
       f.end(sum_without_barrier(f.x, f.out, kCount, f.stream));
       Fixture::print(f.out, 0);
     }},
    {"two_sums_one_buffer",
     [](Fixture& f) {
       f.end(two_sums_one_buffer(f.x, f.out, f.stream));
       Fixture::print(f.out, 0);
     }},
    {"reverse_without_syncwarp",
     [](Fixture& f) {
       f.end(reverse_without_syncwarp(f.out, f.stream));
       Fixture::print(f.out, 0);
     }},
    {"divergent_barrier", [](Fixture& f) { f.end(divergent_barrier(f.out, f.stream)); }},
    {"return_before_barrier", [](Fixture& f) { f.end(return_before_barrier(f.out, 40, f.stream)); }},
    {"mask_of_absent_lanes", [](Fixture& f) { f.end(mask_of_absent_lanes(f.out, f.stream)); }},
    {"mask_without_oneself", [](Fixture& f) { f.end(mask_without_oneself(f.out, f.stream)); }},
    {"different_collectives", [](Fixture& f) { f.end(different_collectives(as_int(f.out), f.stream)); }},
    {"product_of_half_a_warp", [](Fixture& f) { f.end(product_of_half_a_warp(f.out, f.stream)); }},
    {"misaligned_fragment", [](Fixture& f) { f.end(load_misaligned_fragment(f.x, f.out, 4, 8, f.stream)); }},
    {"wrong_stride_of_fragment", [](Fixture& f) { f.end(load_misaligned_fragment(f.x, f.out, 8, 9, f.stream)); }},
    {"write_with_offset", [](Fixture& f) { f.end(write_with_offset(f.out, 4, f.stream)); }},
    {"write_shared_with_offset", [](Fixture& f) { f.end(write_shared_with_offset(f.out, 4, f.stream)); }},
    {"write_dynamic_with_offset", [](Fixture& f) { f.end(write_dynamic_with_offset(f.out, 4, f.stream)); }},
    {"read_misaligned", [](Fixture& f) { f.end(read_misaligned(f.x, f.out, f.stream)); }},
    {"read_unwritten_shared",
     [](Fixture& f) {
       f.end(read_unwritten_shared(f.out, f.stream));
       Fixture::print(f.out, 0);
       Fixture::print(f.out, 40);
     }},
    {"read_unwritten_global",
     [](Fixture& f) {
       f.end(axpy(1.0F, f.x, f.y, kCount, f.stream));
       Fixture::print(f.y, 0);
     }},
    {"add_without_atomic",
     [](Fixture& f) {
       f.end(cudaMemset(f.out, 0, kBytes));
       f.end(add_without_atomic(f.out, f.stream));
       Fixture::print(f.out, 0);
     }},
    {"overflow_index", [](Fixture& f) { f.end(overflow_index(f.out, 1500000000, f.stream)); }},
    {"recurse", [](Fixture& f) { f.end(recurse(as_int(f.out), 1000, f.stream)); }},
    {"work_after_trap",
     [](Fixture& f) {
       const cudaError_t launched = call_trap(f.out, f.stream);
       // A host function is not called after an error, says the manual; and a later launch returns the error.
       cudaLaunchHostFunc(
           f.stream, [](void*) { std::printf("called\n"); }, nullptr);
       f.end(launched);
       std::printf("later launch %s\n", cudaGetErrorName(call_trap(f.out, f.stream)));
     }},
    {"call_trap",
     [](Fixture& f) {
       f.end(call_trap(f.out, f.stream));
       // Broken until it is reset, and then as new.
       std::printf("malloc %s\n", cudaGetErrorName(cudaMalloc(reinterpret_cast<void**>(&f.out), kBytes)));
       print_last_errors();
       std::printf("reset %s\n", cudaGetErrorName(cudaDeviceReset()));
       print_last_errors();
       std::printf("malloc %s\n", cudaGetErrorName(cudaMalloc(reinterpret_cast<void**>(&f.out), kBytes)));
       cudaFree(f.out);
       std::_Exit(0);  // what the fixture has is gone with the reset
     }},
};

// ---- pointers ----

const std::map<std::string, Scenario> kPointers{
    {"host_pointer",
     [](Fixture& f) {
       std::vector<float> host(kCount);
       f.end(write_with_offset(host.data(), 0, f.stream));
     }},
    {"freed_pointer",
     [](Fixture& f) {
       float* p = nullptr;
       Fixture::require(cudaMalloc(reinterpret_cast<void**>(&p), kBytes));
       Fixture::require(cudaFree(p));
       f.end(write_with_offset(p, 0, f.stream));
     }},
    {"pointer_past_the_end", [](Fixture& f) { f.end(write_with_offset(f.out + kCount, 0, f.stream)); }},
    {"host_reads_device", [](Fixture& f) { std::printf("value %g\n", static_cast<double>(f.x[0])); }},
    {"leak",
     [](Fixture&) {
       void* p = nullptr;
       Fixture::require(cudaMalloc(&p, 1000));
     }},
    {"default_stream", [](Fixture& f) { f.end(write_with_offset(f.out, 0, nullptr)); }},
    {"destroyed_stream",
     [](Fixture& f) {
       cudaStream_t gone = nullptr;
       Fixture::require(cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking));
       Fixture::require(cudaStreamDestroy(gone));
       f.end(write_with_offset(f.out, 0, gone));
     }},
};

// ---- streams ----

const std::map<std::string, Scenario> kStreams{
    {"missing_event",  // a copy on one stream, its reader on another
     [](Fixture& f) {
       Fixture::require(cudaMemset(f.y, 0, kBytes));
       Fixture::require(cudaMemcpyAsync(f.out, f.pinned, kBytes, cudaMemcpyHostToDevice, f.other));
       f.end(axpy(1.0F, f.out, f.y, kCount, f.stream));
       Fixture::print(f.y, 0);
     }},
    {"event",  // the same, done right
     [](Fixture& f) {
       cudaEvent_t copied = nullptr;
       Fixture::require(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
       Fixture::require(cudaMemset(f.y, 0, kBytes));
       Fixture::require(cudaMemcpyAsync(f.out, f.pinned, kBytes, cudaMemcpyHostToDevice, f.other));
       Fixture::require(cudaEventRecord(copied, f.other));
       Fixture::require(cudaStreamWaitEvent(f.stream, copied, 0));
       f.end(axpy(1.0F, f.out, f.y, kCount, f.stream));
       Fixture::print(f.y, 0);
       Fixture::require(cudaEventDestroy(copied));
     }},
    {"pinned_reused",
     [](Fixture& f) {
       Fixture::require(cudaMemcpyAsync(f.out, f.pinned, kBytes, cudaMemcpyHostToDevice, f.stream));
       f.pinned[0] = -1.0F;
       f.end(cudaSuccess);
       Fixture::print(f.out, 0);
     }},
    {"pageable_reused",  // right: pageable memory is staged within the call
     [](Fixture& f) {
       std::vector<float> host(kCount, 5.0F);
       Fixture::require(cudaMemcpyAsync(f.out, host.data(), kBytes, cudaMemcpyHostToDevice, f.stream));
       host[0] = -1.0F;
       f.end(cudaSuccess);
       Fixture::print(f.out, 0);
     }},
    {"read_before_sync",
     [](Fixture& f) {
       Fixture::require(cudaMemcpyAsync(f.pinned, f.x, kBytes, cudaMemcpyDeviceToHost, f.stream));
       std::printf("value %g\n", static_cast<double>(f.pinned[0]));
     }},
    {"memcpy_does_not_wait",  // cudaMemcpy is on the default stream, which non-blocking streams do not know
     [](Fixture& f) {
       Fixture::require(cudaMemset(f.y, 0, kBytes));
       Fixture::require(axpy(1.0F, f.x, f.y, kCount, f.stream));
       Fixture::print(f.y, 0);
     }},
    {"memcpy_waits_for_blocking",
     [](Fixture& f) {
       cudaStream_t blocking = nullptr;
       Fixture::require(cudaStreamCreate(&blocking));
       Fixture::require(cudaMemset(f.y, 0, kBytes));
       Fixture::require(axpy(1.0F, f.x, f.y, kCount, blocking));
       Fixture::print(f.y, 0);
       Fixture::require(cudaStreamDestroy(blocking));
     }},
    {"poll",  // a loop of polls comes to an end, and is not at its end at once
     [](Fixture& f) {
       cudaEvent_t done = nullptr;
       Fixture::require(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
       for (int i = 0; i < 3; ++i) Fixture::require(axpy(1.0F, f.x, f.x, 1, f.stream));
       Fixture::require(cudaEventRecord(done, f.stream));
       int polls = 1;
       while (cudaEventQuery(done) == cudaErrorNotReady) ++polls;
       std::printf("polls %d, last %s\n", polls, cudaGetErrorName(cudaGetLastError()));
       Fixture::print(f.x, 0);
       Fixture::require(cudaEventDestroy(done));
     }},
    {"order",  // of 64 threads in 2 blocks
     [](Fixture& f) {
       int* log = nullptr;
       Fixture::require(cudaMalloc(reinterpret_cast<void**>(&log), 65 * sizeof(int)));
       Fixture::require(cudaMemset(log, 0, 65 * sizeof(int)));
       Fixture::require(log_order(log, 2, 32, f.stream));
       Fixture::require(cudaStreamSynchronize(f.stream));
       std::vector<int> host(65);
       Fixture::require(cudaMemcpy(host.data(), log, 65 * sizeof(int), cudaMemcpyDeviceToHost));
       std::printf("order");
       for (size_t i = 1; i < host.size(); ++i) std::printf(" %d", host[i]);
       std::printf("\n");
       Fixture::require(cudaFree(log));
     }},
};

// ---- devices: without a fixture, since there may be none ----

void print_devices() {
  int count = -1;
  const cudaError_t error = cudaGetDeviceCount(&count);
  int driver = -1;
  cudaDriverGetVersion(&driver);
  std::printf("%s, %d devices, driver %s\n", cudaGetErrorName(error), count, driver == 0 ? "none" : "some");
  print_last_errors();
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp p;
    if (cudaGetDeviceProperties(&p, i) != cudaSuccess) return;
    std::printf("device %d: %s, %d.%d, uuid ", i, p.name, p.major, p.minor);
    for (const char byte : p.uuid.bytes) std::printf("%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    std::printf("\n");
  }
  void* p = nullptr;
  std::printf("malloc %s\n", cudaGetErrorName(cudaMalloc(&p, 16)));
  cudaFree(p);
}

// Two devices: what belongs to one is refused on the other.
void mix_devices() {
  float* p0 = nullptr;
  float* p1 = nullptr;
  cudaStream_t stream1 = nullptr;
  Fixture::require(cudaMalloc(reinterpret_cast<void**>(&p0), kBytes));
  Fixture::require(cudaSetDevice(1));
  Fixture::require(cudaMalloc(reinterpret_cast<void**>(&p1), kBytes));
  Fixture::require(cudaStreamCreateWithFlags(&stream1, cudaStreamNonBlocking));
  std::printf("own %s\n", cudaGetErrorName(write_with_offset(p1, 0, stream1)));
  std::printf("pointer %s\n", cudaGetErrorName(write_with_offset(p0, 0, stream1)));
  Fixture::require(cudaSetDevice(0));
  std::printf("stream %s\n", cudaGetErrorName(write_with_offset(p0, 0, stream1)));
  int thread_device = -1;
  std::thread([&] { cudaGetDevice(&thread_device); }).join();
  std::printf("a new thread is on device %d\n", thread_device);
  std::printf("device 2 %s\n", cudaGetErrorName(cudaSetDevice(2)));
  cudaFree(p0);
  cudaFree(p1);
  cudaStreamDestroy(stream1);
}

int run(const std::string& name) {
  if (name == "devices") return print_devices(), 0;
  if (name == "mix_devices") return mix_devices(), 0;
  for (const auto* table : {&kKernels, &kPointers, &kStreams}) {
    const auto found = table->find(name);
    if (found == table->end()) continue;
    Fixture fixture;
    found->second(fixture);
    return 0;
  }
  std::printf("no scenario of this name\n");
  return 4;
}

}  // namespace

}  // namespace simclr::test

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  return argc == 2 ? simclr::test::run(argv[1]) : 4;
}
