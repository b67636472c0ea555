// cudart's streams and events as the runtime's manual describes them: what must hold whether streams run early or late.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "emulator/runtime.h"
#include "emulator/settings.h"
#include "emulator/tests/device_memory.h"
#include "emulator/tests/kernels.h"

namespace simclr::test {

namespace {

class Event {
 public:
  explicit Event(unsigned flags = cudaEventDefault) {
    EXPECT_EQ(cudaEventCreateWithFlags(&event_, flags), cudaSuccess);
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }  // NOLINT(google-explicit-constructor): it is the event

 private:
  cudaEvent_t event_ = nullptr;
};

// Host functions on a stream that append to a list.
class Log {
 public:
  void add(cudaStream_t stream, int entry) {
    EXPECT_EQ(emulator::enqueue(stream, "log", [this, entry] { entries_.push_back(entry); }), cudaSuccess);
  }
  const std::vector<int>& entries() const { return entries_; }

 private:
  std::vector<int> entries_;
};

TEST(Stream, RunsInOrder) {
  const Stream stream;
  Log log;
  for (int i = 0; i < 10; ++i) log.add(stream, i);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(log.entries(), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
}

TEST(Stream, RunsWhenTheSettingsSay) {
  const Stream stream;
  Log log;
  for (int i = 0; i < 50; ++i) log.add(stream, i);
  switch (emulator::settings().streams) {
    case emulator::Streams::kEager:
      EXPECT_EQ(log.entries().size(), 50U);
      break;
    case emulator::Streams::kLazy:
      EXPECT_EQ(log.entries().size(), 0U);
      EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
      EXPECT_EQ(log.entries().size(), 1U);
      EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
      break;
    case emulator::Streams::kRandom:
      EXPECT_GT(log.entries().size(), 0U);
      break;
  }
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

TEST(Stream, WaitsForTheRecordBeforeTheCall) {
  const Stream a;
  const Stream b;
  const Event event(cudaEventDisableTiming);
  Log log;
  // Never recorded: no obstacle.
  ASSERT_EQ(cudaStreamWaitEvent(b, event, 0), cudaSuccess);
  log.add(b, 0);
  ASSERT_EQ(cudaStreamSynchronize(b), cudaSuccess);
  EXPECT_EQ(log.entries(), (std::vector<int>{0}));

  log.add(a, 1);
  ASSERT_EQ(cudaEventRecord(event, a), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(b, event, 0), cudaSuccess);
  log.add(b, 2);
  ASSERT_EQ(cudaStreamSynchronize(b), cudaSuccess);
  EXPECT_EQ(log.entries(), (std::vector<int>{0, 1, 2}));

  // A later record does not change what the wait is for.
  ASSERT_EQ(cudaEventRecord(event, a), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(b, event, 0), cudaSuccess);
  log.add(a, 3);
  ASSERT_EQ(cudaEventRecord(event, a), cudaSuccess);
  log.add(b, 4);
  ASSERT_EQ(cudaStreamSynchronize(b), cudaSuccess);
  if (emulator::settings().streams == emulator::Streams::kLazy) {
    EXPECT_EQ(log.entries(), (std::vector<int>{0, 1, 2, 4}));
  }
  ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(log.entries().size(), 5U);
}

TEST(Stream, DeviceSynchronizeWaitsForAll) {
  const Stream a;
  const Stream b;
  Log log;
  log.add(a, 1);
  log.add(b, 1);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(log.entries(), (std::vector<int>{1, 1}));
}

TEST(Stream, DestroyAndFreeFinishTheWork) {
  Log log;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  log.add(stream, 1);
  void* p = nullptr;
  ASSERT_EQ(cudaMalloc(&p, 16), cudaSuccess);
  ASSERT_EQ(cudaFree(p), cudaSuccess);  // synchronizes
  EXPECT_EQ(log.entries().size(), 1U);
  log.add(stream, 2);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(log.entries().size(), 2U);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

TEST(Stream, DefaultStreamIsRefused) {
  const Event event;
  for (cudaStream_t stream : {cudaStream_t{nullptr}, cudaStreamLegacy, cudaStreamPerThread}) {
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(emulator::enqueue(stream, "test", [] {}), cudaErrorInvalidResourceHandle);
  }
  cudaGetLastError();
}

TEST(Stream, FlagsAndPriorities) {
  int least = 1;
  int greatest = 1;
  ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
  EXPECT_EQ(least, 0);
  EXPECT_LT(greatest, least);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest), cudaSuccess);
  int priority = 1;
  unsigned flags = 7;
  EXPECT_EQ(cudaStreamGetPriority(stream, &priority), cudaSuccess);
  EXPECT_EQ(cudaStreamGetFlags(stream, &flags), cudaSuccess);
  EXPECT_EQ(priority, greatest);
  EXPECT_EQ(flags, static_cast<unsigned>(cudaStreamNonBlocking));
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, 0x40), cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST(Stream, WorkMustNotCallTheRuntime) {
  const Stream stream;
  cudaError_t inner = cudaSuccess;
  ASSERT_EQ(emulator::enqueue(stream, "outer", [&] { inner = emulator::enqueue(stream, "inner", [] {}); }),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(inner, cudaErrorNotPermitted);
  cudaGetLastError();
}

// Work that waits for another process must not keep a watchdog from polling.
TEST(Stream, PollsDoNotWaitForWorkOfAnotherThread) {
  const Stream stream;
  const Stream idle;
  std::atomic<bool> started = false;
  std::atomic<bool> finish = false;
  std::thread worker([&] {
    EXPECT_EQ(emulator::enqueue(stream, "work",
                                [&] {
                                  started = true;
                                  while (!finish) std::this_thread::yield();
                                }),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  });
  while (!started) std::this_thread::yield();
  EXPECT_EQ(cudaStreamQuery(idle), cudaErrorNotReady);
  finish = true;
  worker.join();
  EXPECT_EQ(cudaStreamQuery(idle), cudaSuccess);
  cudaGetLastError();
}

TEST(Stream, KernelsRunOnAnyThreadOfTheProcess) {
  const Stream stream;
  const std::vector<float> ones(256, 1.0F);
  const DeviceArray<float> x(ones);
  const DeviceArray<float> out(std::vector<float>{0.0F});
  for (int i = 0; i < 3; ++i) {
    std::thread([&] {
      EXPECT_EQ(sum(x.data(), out.data(), 256, stream), cudaSuccess);
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    }).join();
  }
  EXPECT_EQ(sum(x.data(), out.data(), 256, stream), cudaSuccess);
  EXPECT_EQ(out.read_after(stream)[0], 4 * 256.0F);
}

TEST(Event, NeverRecordedIsDone) {
  const Event event;
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
}

TEST(Event, MeasuresTime) {
  const Stream stream;
  const Event begin;
  const Event end;
  float milliseconds = -1.0F;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorInvalidResourceHandle);  // never recorded
  ASSERT_EQ(cudaEventRecord(begin, stream), cudaSuccess);
  ASSERT_EQ(emulator::enqueue(stream, "sleep", [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }),
            cudaSuccess);
  ASSERT_EQ(cudaEventRecord(end, stream), cudaSuccess);
  if (emulator::settings().streams == emulator::Streams::kLazy) {
    EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorNotReady);
  }
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  ASSERT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  EXPECT_GE(milliseconds, 5.0F);
  EXPECT_LT(milliseconds, 5000.0F);

  const Event untimed(cudaEventDisableTiming);
  ASSERT_EQ(cudaEventRecord(untimed, stream), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(untimed), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, untimed), cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

TEST(Event, HandlesAreChecked) {
  const Stream stream;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(nullptr), cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

}  // namespace

}  // namespace simclr::test
