// Streams as queues of host functions, events as tickets. When a queue advances is EMULATOR_STREAMS' choice
// (runtime.h). For cudart_stream.cpp, cudart_memory.cpp and kernel.cpp; fakes use runtime.h. All functions under
// runtime_lock().
#pragma once

#include <driver_types.h>

#include <deque>
#include <functional>
#include <memory>

namespace simclr::emulator {

// One cudaEventRecord: done when its stream has got there.
struct Ticket {
  CUstream_st* stream = nullptr;
  bool done = false;
  double time_s = 0.0;
};

struct Work {
  const char* what = "";
  std::function<void()> run;          // empty: nothing to run
  std::shared_ptr<Ticket> wait_for;   // starts when this is done
  std::shared_ptr<Ticket> completes;  // done when this work is
};

// What cudaStreamCreateWithPriority makes.
cudaStream_t create_stream(unsigned flags, int priority, int device);
void destroy_stream(cudaStream_t stream);  // after its work
cudaEvent_t create_event(unsigned flags, int device);
void destroy_event(cudaEvent_t event);
void destroy_streams_and_events(int device);
bool event_exists(cudaEvent_t event);

void push(cudaStream_t stream, Work work);

// Run work until the queue is empty, the ticket is done, all streams of the device are empty.
void drain(cudaStream_t stream);
void drain_until(Ticket& ticket);
void drain_device(int device);
// The streams that the default stream waits for: without cudaStreamNonBlocking.
void drain_blocking_streams(int device);

void set_current_device(int device);  // of the calling thread

// Runs at most one piece of work: what polling does in the lazy mode, so that a loop of polls ends.
void advance(cudaStream_t stream);

}  // namespace simclr::emulator

struct CUstream_st {
  std::deque<simclr::emulator::Work> queue;
  unsigned flags = 0;
  int priority = 0;
  int device = 0;
};

struct CUevent_st {
  std::shared_ptr<simclr::emulator::Ticket> ticket;  // of the last record; null before the first
  unsigned flags = 0;
  int device = 0;
};
