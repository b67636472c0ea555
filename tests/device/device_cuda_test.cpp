// One GPU as a Device: memory, copies and their order, what comes back later, and what is said when memory is missing.
// Which GPU a rank takes, and matrices on their way to the host.
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "kernels/common/cuda_check.h"
#include "src/device/choose_device.h"
#include "src/device/context.h"
#include "src/device/host_matrix.h"

namespace simclr {
namespace {

using testing::Each;
using testing::HasSubstr;

std::vector<float> counted(size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

std::vector<float> download(Device& device, const Buffer& buffer) {
  std::vector<float> values(buffer.as<float>().size());
  device.download(values.data(), buffer.data(), buffer.bytes());
  return values;
}

TEST(CudaDevice, GivesZeroedAlignedMemory) {
  Context context(make_cuda_device({}));
  EXPECT_FALSE(context.device().is_cpu());
  for (const size_t count : {1, 64, 65, 100003}) {
    // Twice: the second lot may lie where the first was.
    for (int round = 0; round < 2; ++round) {
      const Buffer buffer = context.allocate_elements<float>(static_cast<int64_t>(count));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kBufferAlignment, 0U);
      EXPECT_THAT(download(context.device(), buffer), Each(0.0F));
      context.device().upload(buffer.data(), counted(count, 1).data(), buffer.bytes());
    }
  }
  EXPECT_EQ(context.allocate(0).data(), nullptr);
}

// Everything is queued on one stream: later work sees earlier results, and the host's memory is its own again.
TEST(CudaDevice, KeepsTheOrderOfCopies) {
  Context context(make_cuda_device({}));
  Device& device = context.device();
  const Buffer a = context.allocate_elements<float>(1000), b = context.allocate_elements<float>(1000);
  std::vector<float> host = counted(1000, 5);
  device.upload(a.data(), host.data(), a.bytes());
  std::fill(host.begin(), host.end(), -1.0F);
  device.copy(b.data(), a.data(), a.bytes());
  device.zero(a.data(), 500 * sizeof(float));
  device.copy(a.data(), b.data() + 900 * sizeof(float), 100 * sizeof(float));
  EXPECT_EQ(download(device, b), counted(1000, 5));
  std::vector<float> expected = counted(1000, 5);
  std::fill(expected.begin(), expected.begin() + 500, 0.0F);
  std::iota(expected.begin(), expected.begin() + 100, 905.0F);
  EXPECT_EQ(download(device, a), expected);
  // Nothing is as good as something.
  device.upload(a.data(), nullptr, 0);
  device.copy(a.data(), nullptr, 0);
  device.zero(a.data(), 0);
  device.download(nullptr, a.data(), 0);
}

TEST(CudaDevice, BringsBackWhatWasThereWhenItWasAsked) {
  Context context(make_cuda_device({}));
  Device& device = context.device();
  const Buffer buffer = context.allocate_elements<float>(300);
  const auto readback = device.make_readback(buffer.bytes());
  for (int round = 0; round < 3; ++round) {
    const std::vector<float> now = counted(300, static_cast<float>(round));
    device.upload(buffer.data(), now.data(), buffer.bytes());
    readback->start(buffer.data());
    device.zero(buffer.data(), buffer.bytes());  // after it, whenever the copy is made
    std::vector<float> arrived(300);
    std::memcpy(arrived.data(), readback->wait(), buffer.bytes());
    EXPECT_EQ(arrived, now);
  }
}

// host() may be filled again at once: it waits until the memory has left.
TEST(CudaDevice, SendsWhatTheHostHadWhenItStarted) {
  Context context(make_cuda_device({}));
  Device& device = context.device();
  const Buffer buffer = context.allocate_elements<float>(300), before = context.allocate_elements<float>(300);
  const auto upload = device.make_upload(buffer.bytes());
  for (int round = 0; round < 4; ++round) {
    device.copy(before.data(), buffer.data(), buffer.bytes());
    const std::vector<float> now = counted(300, static_cast<float>(round));
    std::memcpy(upload->host(), now.data(), buffer.bytes());
    upload->start(buffer.data(), buffer.bytes());
  }
  EXPECT_EQ(download(device, buffer), counted(300, 3));
  EXPECT_EQ(download(device, before), counted(300, 2));
}

TEST(CudaDevice, SendsTheFirstBytesAndNoMore) {
  Context context(make_cuda_device({}));
  Device& device = context.device();
  const Buffer buffer = context.allocate_elements<float>(300);
  const auto upload = device.make_upload(buffer.bytes());
  std::vector<float> expected = counted(300, 1);
  std::memcpy(upload->host(), expected.data(), buffer.bytes());
  upload->start(buffer.data(), 200 * sizeof(float));
  std::fill(expected.begin() + 200, expected.end(), 0.0F);
  EXPECT_EQ(download(device, buffer), expected);
  upload->start(nullptr, 0);
  EXPECT_THAT([&] { upload->start(buffer.data(), buffer.bytes() + 1); },
              testing::ThrowsMessage<std::exception>(HasSubstr("1201 bytes of 1200 on the way")));
}

TEST(CudaDevice, SaysHowMuchMemoryIsMissing) {
  Context context(make_cuda_device({}));
  EXPECT_THAT([&] { context.allocate(size_t{1} << 50); },
              testing::Throws<Error>(testing::AllOf(
                  testing::Property(&Error::code, ExitCode::kDevice),
                  testing::Property(&Error::what,
                                    testing::AllOf(HasSubstr("1125899906842624 bytes"), HasSubstr("are free"))))));
  EXPECT_THAT(download(context.device(), context.allocate(64)), Each(0.0F)) << "the device remains usable";
}

TEST(CudaDevice, KnowsItsLibrariesAndItsStorage) {
  const auto device = make_cuda_device({.threads = 3});
  EXPECT_EQ(device->threads(), 3);
  EXPECT_NE(device->model(), "");
  EXPECT_THAT(device->library_version(), testing::MatchesRegex("CUDA [0-9.]+ \\(driver [0-9.]+\\), cuBLAS [0-9]+, "
                                                               "cuDNN [0-9.]+, channels in blocks of [0-9]+"));
  EXPECT_EQ(device->storage(), DataType::kFloat32);
  const auto half = make_cuda_device({.precision = Precision::kBf16});
  EXPECT_EQ(half->storage(), DataType::kBfloat16);
  EXPECT_EQ(std::get<CudaExec>(half->exec()).precision, Precision::kBf16);
}

// The old scratch may be in use when a larger one is wanted, and both together need not fit.
TEST(CudaDevice, ScratchGrowsWithTheContext) {
  Context context(make_cuda_device({}));
  const auto& exec = std::get<CudaExec>(context.exec());
  context.reserve({.workspace_bytes = 1000, .thread_bytes = 0});
  EXPECT_EQ(exec.workspace_bytes, 1000U);
  std::byte* const first = exec.workspace;
  context.reserve({.workspace_bytes = 10, .thread_bytes = 0});
  EXPECT_EQ(exec.workspace, first);
  context.reserve({.workspace_bytes = 5000, .thread_bytes = 0});
  EXPECT_EQ(exec.workspace_bytes, 5000U);
  EXPECT_EQ(context.allocated_bytes(), 5000U);
  context.device().zero(exec.workspace, 5000);
  context.device().synchronize();
}

TEST(ChooseGpu, TheOnlyOneOrTheOneOfTheRanksPlace) {
  EXPECT_EQ(choose_gpu(1, 0, 1), 0);
  EXPECT_EQ(choose_gpu(1, 3, 4), 0) << "a launcher has given each rank its own";
  EXPECT_EQ(choose_gpu(8, 0, 1), 0);
  for (int r = 0; r < 4; ++r) {
    EXPECT_EQ(choose_gpu(4, r, 4), r);
    EXPECT_EQ(choose_gpu(8, r, 4), r);
  }
  EXPECT_THAT([] { choose_gpu(2, 0, 3); }, testing::ThrowsMessage<Error>(HasSubstr("3 ranks on this node and 2 GPUs")));
}

TEST(ChooseGpu, EachGpuHasItsOwnIdentity) {
  const GpuProbe probe = probe_gpus();
  ASSERT_GE(probe.count, 1);
  EXPECT_EQ(probe.reason, "");
  const GpuFacts first = read_gpu(0);
  EXPECT_EQ(first.ordinal, 0);
  EXPECT_EQ(first.uuid, read_gpu(0).uuid);
  EXPECT_STREQ(first.name.data(), make_cuda_device({})->model().c_str());
  for (int other = 1; other < probe.count; ++other) EXPECT_NE(first.uuid, read_gpu(other).uuid);
}

TEST(HostMatrix, IsACopyInFloat32) {
  Context context(make_cuda_device({}));
  Device& device = context.device();
  HostMatrix host;
  const std::vector<float> values = counted(3 * 8, -4);
  const Buffer memory = context.allocate_elements<float>(3 * 8);
  device.upload(memory.data(), values.data(), memory.bytes());
  const ConstFloatMatrix fetched = host.fetch(device, {memory.as<float>().data(), 3, 5, 8});
  EXPECT_EQ(fetched.rows, 3);
  EXPECT_EQ(fetched.cols, 5);
  EXPECT_EQ(fetched.stride, 8);
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(fetched.data[i], values[i]);

  // bfloat16: 1, -2.5, the largest, infinity, a subnormal; another size in the same object.
  const std::vector<uint16_t> halves = {0x3F80, 0xC020, 0x7F7F, 0x7F80, 0x0001, 0x8000};
  const Buffer half_memory = context.allocate(halves.size() * sizeof(uint16_t));
  device.upload(half_memory.data(), halves.data(), half_memory.bytes());
  const ConstFloatMatrix half = host.fetch(device, {{half_memory.data(), DataType::kBfloat16}, 2, 3, 3});
  EXPECT_EQ(std::vector<float>(half.data, half.data + 6),
            (std::vector<float>{1.0F, -2.5F, 0x1.FEp127F, std::numeric_limits<float>::infinity(), 0x1p-133F, -0.0F}));
  EXPECT_TRUE(std::signbit(half.data[5]));
}

TEST(HostMatrix, OnTheCpuIsTheMatrixItself) {
  const auto device = make_cpu_device(1);
  const std::vector<float> values = counted(6, 0);
  HostMatrix host;
  EXPECT_EQ(host.fetch(*device, {values.data(), 2, 3, 3}).data, values.data());
}

TEST(CudaErrors, NameLibraryCallAndPlace) {
  const auto says = [](auto call, const char* text) {
    EXPECT_THAT(call, testing::ThrowsMessage<Error>(
                          testing::AllOf(HasSubstr(text), HasSubstr(" at tests/device/device_cuda_test.cpp:"))));
  };
  says([] { SIMCLR_CUDA(cudaErrorInvalidValue); },
       "CUDA: cudaErrorInvalidValue: invalid argument (1), in cudaErrorInvalidValue");
  says([] { SIMCLR_CUBLAS(CUBLAS_STATUS_NOT_INITIALIZED); }, " (1), in CUBLAS_STATUS_NOT_INITIALIZED");
  says([] { SIMCLR_CUDNN(CUDNN_STATUS_BAD_PARAM); }, "cuDNN: CUDNN_STATUS_BAD_PARAM (2000), in CUDNN_STATUS_BAD_PARAM");
  SIMCLR_CUDA(cudaSuccess);
}

// What is queued behind an aborted communicator runs on half of the data: no thread that waits for it may continue.
class HoldDeviceWaits : public testing::Test {
 protected:
  // Runs `wait` in a process of its own after the waits were held, and lets that process end with 7 from another
  // thread. What returns ends it with 1.
  template <typename Wait>
  static void expect_no_return(Wait wait) {
    EXPECT_EXIT(
        {
          hold_device_waits();
          std::thread([] {
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            ::_exit(7);
          }).detach();
          wait();
          ::_exit(1);
        },
        testing::ExitedWithCode(7), "");
  }
};

TEST_F(HoldDeviceWaits, LeavesNoWayBackFromTheDevice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // CUDA does not survive a fork
  expect_no_return([] { make_cuda_device({})->synchronize(); });
  expect_no_return([] {
    const auto device = make_cuda_device({});
    device->make_readback(4)->wait();
  });
  expect_no_return([] {
    float value = 0;
    make_cuda_device({})->download(&value, nullptr, 0);
  });
}

}  // namespace
}  // namespace simclr
