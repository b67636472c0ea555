// What hangs or spoils memory with the real NCCL, the fake has to notice and name: ranks that are not in the same call,
// a rank that does not come, an abort. Each test breaks its own communicator. EMULATOR_NCCL_TIMEOUT_S is short here,
// and rank 1's fifth operation meets a fault of the network (EMULATOR_NCCL_FAULT).
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "emulator/tests/nccl/nccl_support.h"

namespace simclr::test {
namespace {

using testing::HasSubstr;

class NcclFaults : public NcclTest {
 protected:
  void SetUp() override {
    NcclTest::SetUp();
    if (ranks < 2) GTEST_SKIP() << "needs two ranks";
  }
  bool is_last() const { return rank == ranks - 1; }
  std::string last() const { return "rank " + std::to_string(ranks - 1); }
  const char* reason() const { return ncclGetLastError(comm); }

  // Rank `ranks - 1` differs: the others name it, and it names another.
  void expect_disagreement(const char* theirs, const char* mine) {
    EXPECT_EQ(outcome(), ncclInvalidUsage);
    EXPECT_THAT(reason(), HasSubstr(is_last() ? mine : theirs));
    if (!is_last()) {
      EXPECT_THAT(reason(), HasSubstr("of " + last() + " it is"));
    }
    EXPECT_EQ(ncclAllReduce(data.data(), data.data(), 4, ncclFloat32, ncclSum, comm, stream), ncclInvalidUsage)
        << "a broken communicator takes nothing more";
  }
  // Runs a collective that will not complete next to a watchdog, which waits for ncclCommGetAsyncError, and the
  // collective ends when this rank aborts, no sooner. Returns the error.
  ncclResult_t abort_after_error(const std::function<void(ncclComm_t, float*)>& collective) {
    const ncclComm_t mine = std::exchange(comm, nullptr);
    float* memory = data.data();
    std::atomic<bool> ended = false;
    ncclResult_t status = ncclSuccess;
    std::thread watchdog([&] {
      for (int i = 0; i < 500 && status == ncclSuccess; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_EQ(ncclCommGetAsyncError(mine, &status), ncclSuccess);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_FALSE(ended) << "pending work does not complete on its own";
      EXPECT_EQ(ncclCommAbort(mine), ncclSuccess);
    });
    const auto begin = std::chrono::steady_clock::now();
    collective(mine, memory);
    cudaStreamSynchronize(stream);
    ended = true;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(900)) << "it was the time limit";
    watchdog.join();
    return status;
  }
  static constexpr size_t kRoom = 4096;
  struct Late {  // after SetUp has made the stream
    float* memory = nullptr;
    ~Late() { cudaFree(memory); }
    float* data() {
      if (!memory) {
        EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory), 2 * kRoom * sizeof(float)), cudaSuccess);
      }
      return memory;
    }
  } data;
};

TEST_F(NcclFaults, RanksInDifferentCollectives) {
  if (is_last()) {
    ASSERT_EQ(ncclBroadcast(data.data(), data.data(), 4, ncclFloat32, 0, comm, stream), ncclSuccess);
  } else {
    ASSERT_EQ(ncclAllReduce(data.data(), data.data(), 4, ncclFloat32, ncclSum, comm, stream), ncclSuccess);
  }
  expect_disagreement("it is ncclBroadcast", "of this rank is ncclBroadcast");
}

TEST_F(NcclFaults, DifferentCounts) {
  ASSERT_EQ(ncclAllReduce(data.data(), data.data(), is_last() ? 10 : 20, ncclFloat32, ncclSum, comm, stream),
            ncclSuccess);
  expect_disagreement("it is ncclAllReduce of 10 x float32", "it is ncclAllReduce of 20 x float32");
}

TEST_F(NcclFaults, BytesForElements) {
  // On one rank, with memory enough: only the other ranks can notice.
  const size_t count = is_last() ? 16 * sizeof(float) : 16;
  ASSERT_EQ(ncclAllGather(data.data(), data.data() + kRoom, count, ncclFloat32, comm, stream), ncclSuccess);
  expect_disagreement("it is ncclAllGather of 64 x float32", "it is ncclAllGather of 16 x float32");
}

TEST_F(NcclFaults, DifferentTypes) {
  ASSERT_EQ(ncclAllReduce(data.data(), data.data(), 4, is_last() ? ncclFloat64 : ncclFloat32, ncclSum, comm, stream),
            ncclSuccess);
  expect_disagreement("4 x float64", "4 x float32");
}

TEST_F(NcclFaults, DifferentOperations) {
  ASSERT_EQ(ncclAllReduce(data.data(), data.data(), 4, ncclFloat32, is_last() ? ncclMax : ncclSum, comm, stream),
            ncclSuccess);
  expect_disagreement("operation 2", "operation 0");
}

TEST_F(NcclFaults, DifferentRoots) {
  ASSERT_EQ(ncclBroadcast(data.data(), data.data(), 4, ncclFloat32, is_last() ? 1 : 0, comm, stream), ncclSuccess);
  expect_disagreement("from rank 1", "from rank 0");
}

// The others call a collective that the last rank skips: its next one is another.
TEST_F(NcclFaults, ASkippedCollective) {
  if (!is_last()) {
    ASSERT_EQ(ncclAllReduce(data.data(), data.data(), 4, ncclFloat32, ncclSum, comm, stream), ncclSuccess);
  }
  ncclAllReduce(data.data(), data.data(), 8, ncclFloat32, ncclSum, comm, stream);
  expect_disagreement("8 x float32", "4 x float32");
}

TEST_F(NcclFaults, ARankThatDoesNotCome) {
  if (!is_last()) {
    ASSERT_EQ(ncclAllReduce(data.data(), data.data(), 4, ncclFloat32, ncclSum, comm, stream), ncclSuccess);
    EXPECT_THAT(outcome(), testing::AnyOf(ncclSystemError, ncclRemoteError));  // the first to notice informs the others
    if (outcome() == ncclSystemError) {
      EXPECT_THAT(reason(), testing::AllOf(HasSubstr("ncclAllReduce of 4 x float32"), HasSubstr("for " + last())));
    }
  }
  wait_for_all_ranks();
  EXPECT_NE(outcome(), ncclSuccess);
}

TEST_F(NcclFaults, ARankThatHasDestroyedItsCommunicator) {
  if (is_last()) {
    EXPECT_EQ(ncclCommDestroy(std::exchange(comm, nullptr)), ncclSuccess);
  } else {
    ASSERT_EQ(ncclAllReduce(data.data(), data.data(), 4, ncclFloat32, ncclSum, comm, stream), ncclSuccess);
    EXPECT_EQ(outcome(), ncclRemoteError);
  }
}

// NVIDIA's guide: when a rank fails, every other one has to abort its own communicator.
TEST_F(NcclFaults, PeersNoticeAnAbortAndKeepWaiting) {
  if (is_last()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(ncclCommAbort(std::exchange(comm, nullptr)), ncclSuccess);
  } else {
    EXPECT_EQ(abort_after_error([&](ncclComm_t mine, float* memory) {
                ncclAllReduce(memory, memory, 4, ncclFloat32, ncclSum, mine, stream);
              }),
              ncclRemoteError);
  }
  wait_for_all_ranks();
}

TEST_F(NcclFaults, APlantedFaultOfTheNetwork) {
  const std::vector<float> ones(4, 1.0F);
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(cudaMemcpyAsync(data.data(), ones.data(), 16, cudaMemcpyHostToDevice, stream), cudaSuccess);
    ASSERT_EQ(ncclAllReduce(data.data(), data.data(), 4, ncclFloat32, ncclSum, comm, stream), ncclSuccess);
    ASSERT_EQ(outcome(), ncclSuccess);
  }
  EXPECT_EQ(abort_after_error([&](ncclComm_t mine, float* memory) {
              ncclAllReduce(memory, memory, 4, ncclFloat32, ncclSum, mine, stream);
            }),
            ncclRemoteError);
  wait_for_all_ranks();
}

// As a watchdog does: from another thread, while this one waits within the collective.
TEST_F(NcclFaults, AbortEndsTheOwnWait) {
  if (!is_last()) {
    const ncclComm_t mine = std::exchange(comm, nullptr);
    float* memory = data.data();
    std::thread watchdog([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      ncclResult_t status = ncclSuccess;
      EXPECT_EQ(ncclCommGetAsyncError(mine, &status), ncclSuccess);
      EXPECT_EQ(ncclCommAbort(mine), ncclSuccess);
    });
    const auto begin = std::chrono::steady_clock::now();
    ncclAllReduce(memory, memory, 4, ncclFloat32, ncclSum, mine, stream);
    cudaStreamSynchronize(stream);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(900)) << "it was the time limit";
    watchdog.join();
  }
  wait_for_all_ranks();
}

TEST_F(NcclFaults, SendAndReceiveOfDifferentCounts) {
  if (rank == 0) {
    ASSERT_EQ(ncclSend(data.data(), 10, ncclFloat32, 1, comm, stream), ncclSuccess);
    EXPECT_THAT(outcome(), testing::AnyOf(ncclSuccess, ncclRemoteError));  // a short message may have left already
  } else if (rank == 1) {
    ASSERT_EQ(ncclRecv(data.data(), 12, ncclFloat32, 0, comm, stream), ncclSuccess);
    EXPECT_EQ(outcome(), ncclInvalidUsage);
    EXPECT_THAT(reason(), HasSubstr("ncclRecv of 12 x float32 from rank 0 meets its ncclSend of 10 x float32"));
  }
}

TEST_F(NcclFaults, RanksThatDisagreeOnTheirNumber) {
  ncclComm_t second = nullptr;
  const ncclUniqueId id = unique_id();
  const ncclResult_t status = ncclCommInitRank(&second, is_last() ? ranks + 1 : ranks, id, rank);
  EXPECT_THAT(status, testing::AnyOf(ncclInvalidUsage, ncclRemoteError));
  EXPECT_EQ(second, nullptr);
}

TEST_F(NcclFaults, ARankThatDoesNotJoin) {
  ncclComm_t second = nullptr;
  const ncclUniqueId id = unique_id();
  if (!is_last()) {
    EXPECT_THAT(ncclCommInitRank(&second, ranks, id, rank), testing::AnyOf(ncclSystemError, ncclRemoteError));
    EXPECT_EQ(second, nullptr);
  }
  wait_for_all_ranks();
}

}  // namespace
}  // namespace simclr::test
