// What the tests of the fake NCCL share: a communicator over the ranks of mpirun, device arrays, and waiting for the
// other ranks by MPI alone.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "src/comm/make_collectives.h"
#include "tests/harness/mpi_test_main.h"

namespace simclr::test {

template <typename T>
constexpr ncclDataType_t nccl_type();
template <>
constexpr ncclDataType_t nccl_type<float>() {
  return ncclFloat32;
}
template <>
constexpr ncclDataType_t nccl_type<double>() {
  return ncclFloat64;
}
template <>
constexpr ncclDataType_t nccl_type<uint8_t>() {
  return ncclUint8;
}
template <>
constexpr ncclDataType_t nccl_type<int32_t>() {
  return ncclInt32;
}
template <>
constexpr ncclDataType_t nccl_type<int64_t>() {
  return ncclInt64;
}
template <>
constexpr ncclDataType_t nccl_type<__nv_bfloat16>() {
  return ncclBfloat16;
}

class NcclTest : public testing::Test {
 protected:
  void SetUp() override {
    bootstrap_ = make_collectives(test_session(), Reduction::kFastest, nullptr);
    rank = bootstrap_->rank();
    ranks = bootstrap_->size();
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(ncclCommInitRank(&comm, ranks, unique_id(), rank), ncclSuccess);
  }
  // With what was queued on the stream done, and the ranks together again.
  void TearDown() override {
    cudaStreamSynchronize(stream);
    if (comm) {
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    }
    cudaStreamDestroy(stream);
    bootstrap_->barrier();
  }

  ncclUniqueId unique_id() {
    ncclUniqueId id{};
    if (rank == 0) {
      EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    }
    bootstrap_->broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
    return id;
  }
  void wait_for_all_ranks() { bootstrap_->barrier(); }

  // What the communicator says once the stream is done.
  ncclResult_t outcome() {
    cudaStreamSynchronize(stream);
    ncclResult_t status = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(comm, &status), ncclSuccess);
    return status;
  }

  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  int rank = 0, ranks = 1;

 private:
  std::unique_ptr<Collectives> bootstrap_;
};

// Device memory whose copies are queued on a stream.
template <typename T>
class DeviceValues {
 public:
  DeviceValues(cudaStream_t stream, size_t count) : stream_(stream), count_(count) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data_), std::max<size_t>(count * sizeof(T), 1)), cudaSuccess);
  }
  DeviceValues(cudaStream_t stream, const std::vector<T>& values) : DeviceValues(stream, values.size()) {
    EXPECT_EQ(cudaMemcpyAsync(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice, stream_), cudaSuccess);
  }
  ~DeviceValues() {
    cudaStreamSynchronize(stream_);
    cudaFree(data_);
  }
  DeviceValues(const DeviceValues&) = delete;
  DeviceValues& operator=(const DeviceValues&) = delete;

  T* data() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> result(count_);
    EXPECT_EQ(cudaMemcpyAsync(result.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    return result;
  }

 private:
  cudaStream_t stream_;
  size_t count_;
  T* data_ = nullptr;
};

}  // namespace simclr::test
