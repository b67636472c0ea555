// What a fake library (cuBLAS, cuDNN, NCCL) needs from the emulator: queue its work on a stream, look up whether an
// operand is in device memory, refuse loudly. It is not for the program under test, which knows NVIDIA's headers
// only.
//
// A fake defines the C symbols of the real header, checks what the real library checks and more, and queues the work:
//   if (!inside_device(x, bytes)) return complain("cublasX: x runs past its allocation"), CUBLAS_STATUS_INVALID_VALUE;
//   if (enqueue(stream, "cublasX", [=] { ... }) != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <mutex>

namespace simclr::emulator {

// ---- refusing ----

// Prints "emulator: TEXT" as one line to stderr. The text says what is wrong and with which values; a function that
// the call reached by a handle names itself first ("cublasSgemm: lda is 3, A has 4 rows").
[[gnu::format(printf, 1, 2)]] void complain(const char* format, ...);

// complain(), and the error becomes cudart's last error. Returns it: `return refuse(cudaErrorInvalidValue, "...")`.
[[gnu::format(printf, 2, 3)]] cudaError_t refuse(cudaError_t error, const char* format, ...);

// For work that fails while it runs: complain(), and from now on the device is broken, as after a failed kernel. Queued
// work is dropped, every later call of cudart returns the error until cudaDeviceReset (CUDA calls such an error
// sticky).
[[gnu::format(printf, 2, 3)]] void break_device(cudaError_t error, const char* format, ...);

// The sticky error, or cudaSuccess. A fake's handle calls return their own failure while it is set.
cudaError_t broken();

// cudaSuccess when EMULATOR_NO_DEVICE leaves this process a driver and a device, else the error that says so.
// For cublasCreate and its like, which fail with it.
cudaError_t device_available();

// ---- streams ----

// Queues a host function on a stream of the program. Order as on a GPU: after what was queued on the stream before,
// after the events the stream waits for. When it runs is EMULATOR_STREAMS' choice:
//   eager   within this call (so a collective of several ranks blocks in the call until the others come)
//   lazy    at the latest moment: when the program synchronizes with, polls or waits for what comes after it
//   random  somewhere between, by EMULATOR_SEED
// A stream runs its work in whichever thread drives it, under runtime_lock(), with device memory readable and writable
// even when EMULATOR_PROTECT is on. Operands captured as pointers are read then, not now; scalars are captured by
// value. Returns cudaSuccess when queued (also when it ran at once and broke the device: that shows in the next call,
// as on a GPU), the sticky error when the device is broken, cudaErrorInvalidResourceHandle (loudly) for a stream that
// was destroyed or never created and for the default stream: the program must use streams of its own. `what` names the
// work in messages; a literal.
cudaError_t enqueue(cudaStream_t stream, const char* what, std::function<void()> work);

// False, loudly with `what`, for the default stream and for handles of no live stream.
bool check_stream(cudaStream_t stream, const char* what);

// The device (0, 1, ...) a stream or the calling thread's cudaSetDevice stands for.
int stream_device(cudaStream_t stream);
int current_device();

// Guards all state of the emulator; recursive. Fakes with state of their own that streams touch may use it too. Work of
// a stream runs with it held: work that waits for other processes blocks every other thread's calls into cudart, except
// cudaStreamQuery and cudaEventQuery (they answer cudaErrorNotReady). Calls that must get through meanwhile, such as
// ncclCommAbort and ncclCommGetAsyncError, must not take it.
std::recursive_mutex& runtime_lock();

// ---- memory ----

// True when [p, p + bytes) lies within ONE live allocation: of cudaMalloc (on `device`, or on any), of
// cudaMallocHost/cudaHostAlloc. Zero bytes are inside everything, null included. Not loud: the caller says what it
// means.
inline constexpr int kAnyDevice = -1;
bool inside_device(const void* p, size_t bytes, int device = kAnyDevice);
bool inside_pinned(const void* p, size_t bytes);

// "device memory of 4096 bytes, 128 before its end", "freed device memory of 64 bytes", "no memory of the device": for
// messages. The text lives until the same thread's next call.
const char* describe_pointer(const void* p);

// A fake may read or write device memory only from queued work, or while one of these lives (EMULATOR_PROTECT).
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

}  // namespace simclr::emulator
