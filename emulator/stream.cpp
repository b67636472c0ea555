// Queues and when they advance.
#include "emulator/stream.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>
#include <utility>
#include <vector>

#include "emulator/errors.h"
#include "emulator/runtime.h"
#include "emulator/settings.h"

namespace simclr::emulator {

namespace {

// In the order of creation: the random mode must not depend on addresses.
auto& streams = *new std::vector<cudaStream_t>;
auto& events = *new std::unordered_set<cudaEvent_t>;
thread_local int device_of_thread = 0;
bool running = false;  // a piece of work

bool is_default(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

bool exists(cudaStream_t stream) {
  return std::find(streams.begin(), streams.end(), stream) != streams.end();
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// On a broken device work is dropped, but waits for it end.
void run_first(CUstream_st& stream) {
  const Work work = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (work.wait_for) drain_until(*work.wait_for);
  if (work.run && broken() == cudaSuccess) {
    DeviceAccess access;
    running = true;
    work.run();
    running = false;
  }
  if (work.completes) {
    work.completes->time_s = now_s();
    work.completes->done = true;
  }
}

void advance_some() {
  auto& engine = random_engine();
  for (size_t i = 0; i < streams.size(); ++i) {
    for (uint64_t steps = engine() % 3; steps > 0 && !streams[i]->queue.empty(); --steps) run_first(*streams[i]);
  }
}

}  // namespace

cudaStream_t create_stream(unsigned flags, int priority, int device) {
  auto* stream = new CUstream_st{.queue = {}, .flags = flags, .priority = priority, .device = device};
  streams.push_back(stream);
  return stream;
}

void destroy_stream(cudaStream_t stream) {
  drain(stream);
  streams.erase(std::remove(streams.begin(), streams.end(), stream), streams.end());
  delete stream;
}

cudaEvent_t create_event(unsigned flags, int device) {
  auto* event = new CUevent_st{.ticket = {}, .flags = flags, .device = device};
  events.insert(event);
  return event;
}

void destroy_event(cudaEvent_t event) {
  events.erase(event);
  delete event;
}

void destroy_streams_and_events(int device) {
  for (size_t i = streams.size(); i-- > 0;) {
    if (streams[i]->device == device) destroy_stream(streams[i]);
  }
  for (auto it = events.begin(); it != events.end();) {
    const cudaEvent_t event = *it++;
    if (event->device == device) destroy_event(event);
  }
}

bool event_exists(cudaEvent_t event) {
  return events.count(event) != 0;
}

void push(cudaStream_t stream, Work work) {
  stream->queue.push_back(std::move(work));
  switch (settings().streams) {
    case Streams::kEager:
      drain(stream);
      break;
    case Streams::kLazy:
      break;
    case Streams::kRandom:
      advance_some();
      break;
  }
}

void drain(cudaStream_t stream) {
  while (!stream->queue.empty()) run_first(*stream);
}

void drain_until(Ticket& ticket) {
  while (!ticket.done) run_first(*ticket.stream);
}

void drain_device(int device) {
  for (size_t i = 0; i < streams.size(); ++i) {
    if (streams[i]->device == device) drain(streams[i]);
  }
}

void drain_blocking_streams(int device) {
  for (size_t i = 0; i < streams.size(); ++i) {
    if (streams[i]->device == device && (streams[i]->flags & cudaStreamNonBlocking) == 0) drain(streams[i]);
  }
}

void advance(cudaStream_t stream) {
  if (!stream->queue.empty()) run_first(*stream);
}

bool check_stream(cudaStream_t stream, const char* what) {
  std::lock_guard guard(runtime_lock());
  if (is_default(stream)) {
    complain("%s: the default stream; use streams of the program's own", what);
    return false;
  }
  if (!exists(stream)) {
    complain("%s: no such stream, it was destroyed or never created", what);
    return false;
  }
  return true;
}

int stream_device(cudaStream_t stream) {
  std::lock_guard guard(runtime_lock());
  return is_default(stream) || !exists(stream) ? current_device() : stream->device;
}

int current_device() {
  return device_of_thread;
}

void set_current_device(int device) {
  device_of_thread = device;
}

cudaError_t enqueue(cudaStream_t stream, const char* what, std::function<void()> work) {
  std::lock_guard guard(runtime_lock());
  if (const cudaError_t error = begin_call(); error != cudaSuccess) return error;
  if (!check_stream(stream, what)) return remember(cudaErrorInvalidResourceHandle);
  if (running) return refuse(cudaErrorNotPermitted, "%s: called from within the work of a stream", what);
  push(stream, {.what = what, .run = std::move(work), .wait_for = {}, .completes = {}});
  return cudaSuccess;
}

}  // namespace simclr::emulator
