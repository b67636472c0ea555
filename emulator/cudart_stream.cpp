// cudart: streams and events.
#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>

#include "emulator/errors.h"
#include "emulator/runtime.h"
#include "emulator/settings.h"
#include "emulator/stream.h"

namespace simclr::emulator {

namespace {

cudaError_t check_event(const char* call, cudaEvent_t event) {
  if (event_exists(event)) return cudaSuccess;
  return refuse(cudaErrorInvalidResourceHandle, "%s: no such event, it was destroyed or never created", call);
}

// A call for one stream.
template <typename F>
cudaError_t on_stream(const char* call, cudaStream_t stream, F&& body) {
  return guarded([&] {
    if (!check_stream(stream, call)) return remember(cudaErrorInvalidResourceHandle);
    return body();
  });
}

// Polls answer at once also while another thread runs the work of a stream, which may wait for other processes.
template <typename F>
cudaError_t poll(F&& body) {
  std::unique_lock guard(runtime_lock(), std::try_to_lock);
  if (!guard.owns_lock()) return remember(cudaErrorNotReady);
  if (const cudaError_t error = begin_call(); error != cudaSuccess) return error;
  return body();
}

cudaError_t create(cudaStream_t* stream, unsigned flags, int priority) {
  return guarded([&] {
    if (stream == nullptr || (flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) != 0) {
      return refuse(cudaErrorInvalidValue, "cudaStreamCreate: flags 0x%x", flags);
    }
    *stream = create_stream(flags, priority, current_device());
    return cudaSuccess;
  });
}

}  // namespace

}  // namespace simclr::emulator

using namespace simclr::emulator;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return create(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return create(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return create(stream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return on_stream("cudaStreamDestroy", stream, [&] {
    destroy_stream(stream);
    return remember(broken());
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return on_stream("cudaStreamSynchronize", stream, [&] {
    drain(stream);
    return remember(broken());
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return poll([&] {
    if (!check_stream(stream, "cudaStreamQuery")) return remember(cudaErrorInvalidResourceHandle);
    advance(stream);
    if (broken() != cudaSuccess) return remember(broken());
    return remember(stream->queue.empty() ? cudaSuccess : cudaErrorNotReady);
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return on_stream("cudaStreamGetPriority", stream, [&] {
    *priority = stream->priority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return on_stream("cudaStreamGetFlags", stream, [&] {
    *flags = stream->flags;
    return cudaSuccess;
  });
}

// Waits for the last record before this call; an event never recorded does not block.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  return on_stream("cudaStreamWaitEvent", stream, [&] {
    if (const cudaError_t error = check_event("cudaStreamWaitEvent", event); error != cudaSuccess) return error;
    if (event->ticket && !event->ticket->done) {
      push(stream, {.what = "cudaStreamWaitEvent", .run = {}, .wait_for = event->ticket, .completes = {}});
    }
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return enqueue(stream, "cudaLaunchHostFunc", [function, data] { function(data); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return guarded([&] {
    constexpr unsigned kFlags = cudaEventBlockingSync | cudaEventDisableTiming;
    if (event == nullptr || (flags & ~kFlags) != 0) {
      return refuse(cudaErrorInvalidValue, "cudaEventCreateWithFlags: flags 0x%x", flags);
    }
    *event = create_event(flags, current_device());
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return guarded([&] {
    if (const cudaError_t error = check_event("cudaEventDestroy", event); error != cudaSuccess) return error;
    destroy_event(event);
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return on_stream("cudaEventRecord", stream, [&] {
    if (const cudaError_t error = check_event("cudaEventRecord", event); error != cudaSuccess) return error;
    if (event->device != stream->device) {
      return refuse(cudaErrorInvalidResourceHandle, "cudaEventRecord: event of device %d, stream of device %d",
                    event->device, stream->device);
    }
    event->ticket = std::make_shared<Ticket>(Ticket{.stream = stream});
    push(stream, {.what = "cudaEventRecord", .run = {}, .wait_for = {}, .completes = event->ticket});
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return guarded([&] {
    if (const cudaError_t error = check_event("cudaEventSynchronize", event); error != cudaSuccess) return error;
    if (event->ticket) drain_until(*event->ticket);
    return remember(broken());
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return poll([&] {
    if (const cudaError_t error = check_event("cudaEventQuery", event); error != cudaSuccess) return error;
    const std::shared_ptr<Ticket> ticket = event->ticket;
    if (ticket && !ticket->done) advance(ticket->stream);
    if (broken() != cudaSuccess) return remember(broken());
    return remember(!ticket || ticket->done ? cudaSuccess : cudaErrorNotReady);
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return guarded([&] {
    for (const cudaEvent_t event : {begin, end}) {
      if (const cudaError_t error = check_event("cudaEventElapsedTime", event); error != cudaSuccess) return error;
      if (!event->ticket || (event->flags & cudaEventDisableTiming) != 0) {
        return refuse(cudaErrorInvalidResourceHandle, "cudaEventElapsedTime: an event %s",
                      event->ticket ? "without timing" : "never recorded");
      }
    }
    if (!begin->ticket->done || !end->ticket->done) return remember(cudaErrorNotReady);
    *milliseconds = static_cast<float>((end->ticket->time_s - begin->ticket->time_s) * 1e3);
    return cudaSuccess;
  });
}

}  // extern "C"
