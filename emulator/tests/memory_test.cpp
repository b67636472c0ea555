// cudart's memory as the runtime's manual describes it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "emulator/runtime.h"
#include "emulator/tests/device_memory.h"

namespace simclr::test {

namespace {

// The error and that it became the last one, which is taken away.
#define EXPECT_REFUSED(call, error)         \
  do {                                      \
    EXPECT_EQ((call), (error));             \
    EXPECT_EQ(cudaGetLastError(), (error)); \
  } while (false)

TEST(Memory, NewMemoryIsNaNAndAligned) {
  const DeviceArray<float> array(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(array.data()) % 256, 0U);
  for (const float x : array.read()) EXPECT_TRUE(std::isnan(x));
  const DeviceArray<int> ints(3);
  EXPECT_EQ(ints.read(), (std::vector<int>{-1, -1, -1}));
}

TEST(Memory, NothingForZeroBytes) {
  void* p = &p;
  EXPECT_EQ(cudaMalloc(&p, 0), cudaSuccess);
  EXPECT_EQ(p, nullptr);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(nullptr), cudaSuccess);
}

TEST(Memory, FreeTakesWhatMallocReturnedOnce) {
  char* p = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&p), 64), cudaSuccess);
  EXPECT_REFUSED(cudaFree(p + 16), cudaErrorInvalidValue);
  EXPECT_REFUSED(cudaFreeHost(p), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(p), cudaSuccess);
  EXPECT_REFUSED(cudaFree(p), cudaErrorInvalidValue);
  int host = 0;
  EXPECT_REFUSED(cudaFree(&host), cudaErrorInvalidValue);
}

TEST(Memory, InfoCountsAndEnds) {
  size_t free_before = 0;
  size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_before, &total), cudaSuccess);
  size_t free_between = 0;
  {
    const DeviceArray<char> array(1 << 20);
    ASSERT_EQ(cudaMemGetInfo(&free_between, &total), cudaSuccess);
  }
  EXPECT_EQ(free_before - free_between, size_t{1} << 20);
  void* p = &p;
  EXPECT_REFUSED(cudaMalloc(&p, total + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(p, nullptr);
  size_t free_after = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_after, &total), cudaSuccess);
  EXPECT_EQ(free_after, free_before);
}

TEST(Memory, CopiesOfEveryKind) {
  const std::vector<int> values{1, 2, 3, 4};
  const size_t bytes = values.size() * sizeof(int);
  const DeviceArray<int> a(values.size());
  const DeviceArray<int> b(values.size());
  std::vector<int> back(values.size());
  ASSERT_EQ(cudaMemcpy(a.data(), values.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(b.data(), a.data(), bytes, cudaMemcpyDeviceToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(back.data(), b.data(), bytes, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back, values);
  back.assign(4, 0);
  ASSERT_EQ(cudaMemcpy(back.data(), b.data(), bytes, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(back, values);
  EXPECT_EQ(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice), cudaSuccess);
}

TEST(Memory, CopiesThatDoNotFitAreRefused) {
  std::vector<int> host(8);
  const DeviceArray<int> a(4);
  const DeviceArray<int> b(4);
  const size_t bytes = 16;
  EXPECT_REFUSED(cudaMemcpy(a.data(), host.data(), bytes, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  EXPECT_REFUSED(cudaMemcpy(a.data(), b.data(), bytes, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_REFUSED(cudaMemcpy(host.data(), a.data(), bytes, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_REFUSED(cudaMemcpy(a.data(), host.data(), bytes + 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_REFUSED(cudaMemcpy(host.data(), a.data() + 1, bytes, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_REFUSED(cudaMemcpy(host.data(), a.data(), bytes, static_cast<cudaMemcpyKind>(7)),
                 cudaErrorInvalidMemcpyDirection);
  EXPECT_REFUSED(cudaMemset(a.data(), 0, bytes + 1), cudaErrorInvalidValue);
  EXPECT_REFUSED(cudaMemset(host.data(), 0, bytes), cudaErrorInvalidValue);
}

TEST(Memory, AsynchronousCopiesAndFills) {
  const Stream stream;
  const PinnedArray<int> pinned(4, 7);
  const DeviceArray<int> a(4);
  std::vector<int> back(4);
  ASSERT_EQ(cudaMemcpyAsync(a.data(), pinned.data(), 16, cudaMemcpyHostToDevice, stream), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(a.data(), 0, 4, stream), cudaSuccess);
  // To pageable memory: done on return, and so is all that comes before it in the stream.
  ASSERT_EQ(cudaMemcpyAsync(back.data(), a.data(), 16, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(back, (std::vector<int>{0, 7, 7, 7}));
  EXPECT_REFUSED(cudaMemcpyAsync(a.data(), pinned.data(), 16, cudaMemcpyHostToDevice, nullptr),
                 cudaErrorInvalidResourceHandle);
  EXPECT_REFUSED(cudaMemsetAsync(a.data(), 0, 17, stream), cudaErrorInvalidValue);
}

TEST(Memory, PointersCanBeAskedFor) {
  const DeviceArray<int> a(4);
  const PinnedArray<int> pinned(4, 0);
  int host = 0;
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, a.data() + 1), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, pinned.data()), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, &host), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

TEST(Memory, WhatFakesAsk) {
  const DeviceArray<char> a(100);
  const PinnedArray<char> pinned(100, 0);
  EXPECT_TRUE(emulator::inside_device(a.data(), 100));
  EXPECT_TRUE(emulator::inside_device(a.data() + 99, 1, 0));
  EXPECT_TRUE(emulator::inside_device(nullptr, 0));
  EXPECT_FALSE(emulator::inside_device(a.data(), 101));
  EXPECT_FALSE(emulator::inside_device(a.data() + 100, 1));
  EXPECT_FALSE(emulator::inside_device(a.data(), 100, 1));
  EXPECT_FALSE(emulator::inside_device(pinned.data(), 1));
  EXPECT_TRUE(emulator::inside_pinned(pinned.data(), 100));
  EXPECT_FALSE(emulator::inside_pinned(pinned.data() + 1, 100));
  EXPECT_STREQ(emulator::describe_pointer(a.data() + 90), "device memory of 100 bytes, 10 before its end");
}

TEST(Error, NamesAndTexts) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
}

TEST(Error, PeekLeavesGetTakes) {
  EXPECT_EQ(cudaSetDevice(99), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);  // a success does not clear it
  EXPECT_EQ(device, 0);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace

}  // namespace simclr::test
