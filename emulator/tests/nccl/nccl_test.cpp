// The fake NCCL computes what NVIDIA documents for each collective: operands are small integers, exact in every type
// and in every order, so results are compared with ==. Sizes around the fake's chunks. Run under mpirun with several
// rank counts.
#include "emulator/tests/nccl/nccl_support.h"

namespace simclr::test {
namespace {

// What rank r has at place i: up to 7 in size, different for all ranks and places in a row.
template <typename T>
T value_of(int r, size_t i) {
  return T(static_cast<float>((i * 5 + static_cast<size_t>(r) * 3) % 8));
}
template <typename T>
std::vector<T> values_of(int r, size_t count, size_t first = 0) {
  std::vector<T> values;
  for (size_t i = 0; i < count; ++i) values.push_back(value_of<T>(r, first + i));
  return values;
}
template <typename T>
bool equal(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <typename T>
class NcclTypes : public NcclTest {};
using Types = testing::Types<float, double, uint8_t, int32_t, int64_t, __nv_bfloat16>;
TYPED_TEST_SUITE(NcclTypes, Types);

constexpr size_t kSizes[] = {0, 1, 3, 65536, 65537, 200'001};

TYPED_TEST(NcclTypes, AllGatherPutsTheRanksInOrder) {
  using T = TypeParam;
  for (const size_t count : kSizes) {
    const auto all = static_cast<size_t>(this->ranks);
    std::vector<T> want;
    for (int r = 0; r < this->ranks; ++r)
      for (const T v : values_of<T>(r, count)) want.push_back(v);
    const DeviceValues<T> send(this->stream, values_of<T>(this->rank, count));
    const DeviceValues<T> receive(this->stream, count * all);
    ASSERT_EQ(ncclAllGather(send.data(), receive.data(), count, nccl_type<T>(), this->comm, this->stream), ncclSuccess);
    EXPECT_TRUE(equal(receive.values(), want)) << count;

    std::vector<T> start(count * all, T(9.0F));  // in place
    const auto mine = values_of<T>(this->rank, count);
    std::copy(mine.begin(), mine.end(), start.begin() + static_cast<std::ptrdiff_t>(count) * this->rank);
    const DeviceValues<T> both(this->stream, start);
    ASSERT_EQ(ncclAllGather(both.data() + static_cast<size_t>(this->rank) * count, both.data(), count, nccl_type<T>(),
                            this->comm, this->stream),
              ncclSuccess);
    EXPECT_TRUE(equal(both.values(), want)) << count << ", in place";
  }
}

TYPED_TEST(NcclTypes, AllReduceCombinesAllRanks) {
  using T = TypeParam;
  for (const size_t count : kSizes)
    for (const auto op : {ncclSum, ncclMax, ncclMin}) {
      std::vector<T> want;
      for (size_t i = 0; i < count; ++i) {
        float result = op == ncclMin ? 100.0F : 0.0F;
        for (int r = 0; r < this->ranks; ++r) {
          const auto v = static_cast<float>(value_of<T>(r, i));
          result = op == ncclSum ? result + v : op == ncclMax ? std::max(result, v) : std::min(result, v);
        }
        want.push_back(T(result));
      }
      const DeviceValues<T> send(this->stream, values_of<T>(this->rank, count)), receive(this->stream, count);
      ASSERT_EQ(ncclAllReduce(send.data(), receive.data(), count, nccl_type<T>(), op, this->comm, this->stream),
                ncclSuccess);
      EXPECT_TRUE(equal(receive.values(), want)) << count << ", operation " << op;
      ASSERT_EQ(ncclAllReduce(send.data(), send.data(), count, nccl_type<T>(), op, this->comm, this->stream),
                ncclSuccess);
      EXPECT_TRUE(equal(send.values(), want)) << count << ", operation " << op << ", in place";
    }
}

TYPED_TEST(NcclTypes, ReduceScatterKeepsTheRanksPart) {
  using T = TypeParam;
  for (const size_t count : kSizes) {
    const size_t first = static_cast<size_t>(this->rank) * count, all = count * static_cast<size_t>(this->ranks);
    std::vector<T> want;
    for (size_t i = 0; i < count; ++i) {
      float sum = 0.0F;
      for (int r = 0; r < this->ranks; ++r) sum += static_cast<float>(value_of<T>(r, first + i));
      want.push_back(T(sum));
    }
    const DeviceValues<T> send(this->stream, values_of<T>(this->rank, all)), receive(this->stream, count);
    ASSERT_EQ(ncclReduceScatter(send.data(), receive.data(), count, nccl_type<T>(), ncclSum, this->comm, this->stream),
              ncclSuccess);
    EXPECT_TRUE(equal(receive.values(), want)) << count;
    ASSERT_EQ(
        ncclReduceScatter(send.data(), send.data() + first, count, nccl_type<T>(), ncclSum, this->comm, this->stream),
        ncclSuccess);
    auto after = send.values();
    EXPECT_TRUE(equal(std::vector<T>(after.begin() + static_cast<std::ptrdiff_t>(first),
                                     after.begin() + static_cast<std::ptrdiff_t>(first + count)),
                      want))
        << count << ", in place";
  }
}

TYPED_TEST(NcclTypes, BroadcastGivesTheRootsValues) {
  using T = TypeParam;
  for (const size_t count : kSizes)
    for (int root = 0; root < this->ranks; ++root) {
      const DeviceValues<T> send(this->stream, values_of<T>(this->rank, count)), receive(this->stream, count);
      ASSERT_EQ(ncclBroadcast(send.data(), receive.data(), count, nccl_type<T>(), root, this->comm, this->stream),
                ncclSuccess);
      EXPECT_TRUE(equal(receive.values(), values_of<T>(root, count))) << count << " from " << root;
    }
}

class Nccl : public NcclTest {};

TEST_F(Nccl, AverageDividesByTheRanks) {
  const DeviceValues<float> data(stream, std::vector<float>{static_cast<float>(rank * 2), 5.0F});
  ASSERT_EQ(ncclAllReduce(data.data(), data.data(), 2, ncclFloat32, ncclAvg, comm, stream), ncclSuccess);
  EXPECT_THAT(data.values(), testing::ElementsAre(static_cast<float>(ranks - 1), 5.0F));
}

// Everyone to everyone, itself included, each pair another number of elements: none, few, and more than a pipe holds.
TEST_F(Nccl, GroupedSendsAndReceivesPassEachOther) {
  const auto count_of = [](int from, int to) {
    return from == to ? size_t{5} : static_cast<size_t>((from + 2 * to) % 3) * 20'000;
  };
  std::vector<std::unique_ptr<DeviceValues<float>>> sent, received;
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int r = 0; r < ranks; ++r) {
    const size_t out = count_of(rank, r), in = count_of(r, rank);
    sent.push_back(std::make_unique<DeviceValues<float>>(stream, values_of<float>(rank, out, static_cast<size_t>(r))));
    received.push_back(std::make_unique<DeviceValues<float>>(stream, in));
    ASSERT_EQ(ncclSend(sent.back()->data(), out, ncclFloat32, r, comm, stream), ncclSuccess);
    ASSERT_EQ(ncclRecv(received.back()->data(), in, ncclFloat32, r, comm, stream), ncclSuccess);
  }
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  for (int r = 0; r < ranks; ++r)
    EXPECT_TRUE(equal(received[r]->values(), values_of<float>(r, count_of(r, rank), static_cast<size_t>(rank))))
        << "from " << r;
}

TEST_F(Nccl, MessagesOfAPairKeepTheirOrder) {
  if (ranks < 2) GTEST_SKIP() << "needs two ranks";
  constexpr size_t kCount = 10'000, kOther = 9'000;
  if (rank == 0) {
    const DeviceValues<float> a(stream, values_of<float>(1, kCount)), b(stream, values_of<float>(2, kOther));
    ASSERT_EQ(ncclSend(a.data(), kCount, ncclFloat32, 1, comm, stream), ncclSuccess);
    ASSERT_EQ(ncclSend(b.data(), kOther, ncclFloat32, 1, comm, stream), ncclSuccess);
  } else if (rank == 1) {
    const DeviceValues<float> a(stream, kCount), b(stream, kOther);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    ASSERT_EQ(ncclRecv(a.data(), kCount, ncclFloat32, 0, comm, stream), ncclSuccess);
    ASSERT_EQ(ncclRecv(b.data(), kOther, ncclFloat32, 0, comm, stream), ncclSuccess);
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    EXPECT_TRUE(equal(a.values(), values_of<float>(1, kCount)));
    EXPECT_TRUE(equal(b.values(), values_of<float>(2, kOther)));
  }
}

// Nothing of a group runs before its end, which is the last of nested ones.
TEST_F(Nccl, GroupsOfCollectives) {
  const DeviceValues<float> data(stream, values_of<float>(rank, static_cast<size_t>(ranks)));
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  for (int root = 0; root < ranks; ++root)
    ASSERT_EQ(ncclBroadcast(data.data() + root, data.data() + root, 1, ncclFloat32, root, comm, stream), ncclSuccess);
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_TRUE(equal(data.values(), values_of<float>(rank, static_cast<size_t>(ranks)))) << "ran within the group";
  ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  std::vector<float> want;
  for (int root = 0; root < ranks; ++root) want.push_back(value_of<float>(root, static_cast<size_t>(root)));
  EXPECT_TRUE(equal(data.values(), want));
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage) << "without a start";
}

// Before and after in stream order, and across streams by an event.
TEST_F(Nccl, WorkIsOrderedByStreams) {
  cudaStream_t other = nullptr;
  cudaEvent_t filled = nullptr, summed = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&summed, cudaEventDisableTiming), cudaSuccess);
  {
    const DeviceValues<float> data(other, values_of<float>(rank, 1000));
    ASSERT_EQ(cudaEventRecord(filled, other), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(stream, filled, 0), cudaSuccess);
    ASSERT_EQ(ncclAllReduce(data.data(), data.data(), 1000, ncclFloat32, ncclSum, comm, stream), ncclSuccess);
    ASSERT_EQ(cudaEventRecord(summed, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(other, summed, 0), cudaSuccess);
    std::vector<float> want(1000);
    for (int r = 0; r < ranks; ++r)
      for (size_t i = 0; i < want.size(); ++i) want[i] += value_of<float>(r, i);
    EXPECT_TRUE(equal(data.values(), want));
  }
  cudaEventDestroy(filled);
  cudaEventDestroy(summed);
  cudaStreamDestroy(other);
}

TEST_F(Nccl, ReportsItsProperties) {
  int count = -1, user_rank = -1, device = -1, version = 0;
  EXPECT_EQ(ncclCommCount(comm, &count), ncclSuccess);
  EXPECT_EQ(ncclCommUserRank(comm, &user_rank), ncclSuccess);
  EXPECT_EQ(ncclCommCuDevice(comm, &device), ncclSuccess);
  EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_EQ(count, ranks);
  EXPECT_EQ(user_rank, rank);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(version, NCCL_VERSION_CODE);
  EXPECT_STREQ(ncclGetErrorString(ncclSuccess), "no error");
}

TEST_F(Nccl, TwoCommunicatorsLiveSideBySide) {
  ncclComm_t second = nullptr;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ASSERT_EQ(ncclCommInitRankConfig(&second, ranks, unique_id(), rank, &config), ncclSuccess);
  const DeviceValues<float> a(stream, std::vector{1.0F}), b(stream, std::vector{2.0F});
  ASSERT_EQ(ncclAllReduce(a.data(), a.data(), 1, ncclFloat32, ncclSum, comm, stream), ncclSuccess);
  ASSERT_EQ(ncclAllReduce(b.data(), b.data(), 1, ncclFloat32, ncclSum, second, stream), ncclSuccess);
  EXPECT_EQ(a.values()[0], static_cast<float>(ranks));
  EXPECT_EQ(b.values()[0], static_cast<float>(2 * ranks));
  EXPECT_EQ(ncclCommFinalize(second), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(second), ncclSuccess);
}

// Refused at the call, on this rank alone: nothing is queued, so the ranks stay together.
TEST_F(Nccl, WrongArgumentsAreRefused) {
  const size_t all = static_cast<size_t>(ranks) * 64;
  const DeviceValues<float> send(stream, std::vector<float>(64)), receive(stream, all);
  const auto gather = [&](const void* from, void* to, size_t count, ncclDataType_t type) {
    return ncclAllGather(from, to, count, type, comm, stream);
  };
  EXPECT_EQ(gather(send.data(), receive.data(), 64 * sizeof(float), ncclFloat32), ncclInvalidArgument)
      << "bytes for elements";
  EXPECT_EQ(gather(send.data(), receive.data(), 33, ncclFloat64), ncclInvalidArgument) << "another type";
  std::vector<float> host(all);
  EXPECT_EQ(gather(host.data(), receive.data(), 64, ncclFloat32), ncclInvalidArgument) << "host memory";
  EXPECT_EQ(gather(nullptr, receive.data(), 64, ncclFloat32), ncclInvalidArgument) << "null";
  EXPECT_EQ(gather(send.data(), receive.data(), 64, ncclFloat16), ncclInvalidArgument) << "a type that it lacks";
  EXPECT_EQ(gather(receive.data() + 1, receive.data(), 2, ncclFloat32), ncclInvalidUsage) << "overlap";
  EXPECT_EQ(ncclAllGather(send.data(), receive.data(), 64, ncclFloat32, comm, nullptr), ncclInvalidArgument)
      << "the default stream";
  EXPECT_EQ(ncclAllGather(send.data(), receive.data(), 64, ncclFloat32, nullptr, stream), ncclInvalidArgument);
  EXPECT_EQ(ncclBroadcast(send.data(), send.data(), 64, ncclFloat32, ranks, comm, stream), ncclInvalidArgument)
      << "root";
  EXPECT_EQ(ncclAllReduce(send.data(), send.data(), 64, ncclInt32, ncclAvg, comm, stream), ncclInvalidArgument);
  EXPECT_EQ(ncclSend(send.data(), 65, ncclFloat32, 0, comm, stream), ncclInvalidArgument) << "past the end";
  EXPECT_EQ(ncclSend(send.data(), 64, ncclFloat32, ranks, comm, stream), ncclInvalidArgument) << "peer";
  EXPECT_EQ(ncclSend(send.data(), 64, ncclFloat32, rank, comm, stream), ncclInvalidUsage) << "to itself, alone";
  ncclComm_t none = nullptr;
  EXPECT_EQ(ncclCommInitRank(&none, 2, {}, 0), ncclInvalidArgument) << "an id of its own";
  EXPECT_EQ(ncclCommInitRank(&none, ranks, unique_id(), ranks), ncclInvalidArgument) << "rank";
  EXPECT_THAT(ncclGetLastError(nullptr), testing::HasSubstr("rank"));
  EXPECT_EQ(outcome(), ncclSuccess);
  ASSERT_EQ(gather(send.data(), receive.data(), 64, ncclFloat32), ncclSuccess);
}

TEST_F(Nccl, DestroyedCommunicatorsAreRefused) {
  ncclComm_t gone = comm;
  comm = nullptr;
  ASSERT_EQ(ncclCommDestroy(gone), ncclSuccess);
  const DeviceValues<float> data(stream, std::vector<float>(4));
  ncclResult_t status = ncclSuccess;
  EXPECT_EQ(ncclAllReduce(data.data(), data.data(), 4, ncclFloat32, ncclSum, gone, stream), ncclInvalidArgument);
  EXPECT_EQ(ncclCommGetAsyncError(gone, &status), ncclInvalidArgument);
  EXPECT_EQ(ncclCommDestroy(gone), ncclInvalidArgument);
  EXPECT_EQ(ncclCommAbort(gone), ncclInvalidArgument);
}

}  // namespace
}  // namespace simclr::test
