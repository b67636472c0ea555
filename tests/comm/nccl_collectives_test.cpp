// NcclCollectives between processes, one GPU each, with inputs that floats represent exactly, so that equality is ==;
// the order of a sum with inputs whose rounding distinguishes orders. StagedCollectives carries the host's memory, so its
// operations are in every check. Outputs start as NaN or 255.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "kernels/common/ordered_tree.h"
#include "src/comm/element.h"
#include "src/comm/gradient_reducer.h"
#include "src/comm/make_collectives.h"
#include "src/comm/nccl_check.h"
#include "src/comm/nccl_collectives.h"
#include "src/comm/staged_collectives.h"
#include "src/comm/topology.h"
#include "src/device/choose_device.h"
#include "tests/harness/mpi_test_main.h"

namespace simclr {
namespace {

// Around short sums (32 KiB) and what does not divide by the ranks; the last takes two pieces of 32 MiB.
const std::vector<int64_t> kCounts = {1, 2, 3, 31, 64, 1025, 8192, 8193, 100003};
constexpr int64_t kTwoPieces = (int64_t{8} << 20) + 5;

double value(int rank, int64_t index) {
  return static_cast<double>(index % 1009) + 2048.0 * rank;
}

template <typename T>
std::vector<T> values(int rank, int64_t count) {
  std::vector<T> result(count);
  for (int64_t i = 0; i < count; ++i) result[i] = static_cast<T>(value(rank, i));
  return result;
}

// The communicator of one kind of reduction, made once for all tests: on the context of this rank's GPU.
struct Gpu {
  explicit Gpu(Reduction reduction)
      : bootstrap(make_collectives(test_session(), Reduction::kFastest, nullptr)),
        context(make_cuda_device(
            {.ordinal = choose_gpu(probe_gpus().count, test_session().rank(), test_session().size())})),
        nccl(make_nccl_collectives(*bootstrap, context, reduction)),
        staged(*nccl, context.shared_device(), nullptr) {}
  std::unique_ptr<Collectives> bootstrap;
  Context context;
  std::unique_ptr<NcclCollectives> nccl;
  StagedCollectives staged;
};

Gpu& ordered() {
  static auto* const gpu = new Gpu(Reduction::kOrdered);  // as long as the process, like the device
  return *gpu;
}
Gpu& fastest() {
  static auto* const gpu = new Gpu(Reduction::kFastest);
  return *gpu;
}
bool tree_is_possible() {
  return is_power_of_two(test_session().size());
}

// One GPU a rank: on a real machine there may be fewer.
class NcclCollectivesTest : public testing::Test {
 protected:
  void SetUp() override {
    const int gpus = probe_gpus().count, ranks = test_session().size();
    if (gpus < ranks) GTEST_SKIP() << ranks << " ranks, and this machine has " << gpus << " GPUs";
  }
};

template <typename T>
void check_sums(Collectives& c, int64_t count) {
  std::vector<T> data = values<T>(c.rank(), count);
  c.ordered_sum(std::span(data));
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int r = 0; r < c.size(); ++r) sum += value(r, i);
    ASSERT_EQ(data[i], static_cast<T>(sum)) << "element " << i << " of " << count;
  }
}

template <typename T>
void check_scatter(Collectives& c, int64_t count) {
  const std::vector<T> send = values<T>(c.rank(), count * c.size());
  std::vector<T> receive(count, std::numeric_limits<T>::quiet_NaN());
  c.reduce_scatter(std::span(send), std::span(receive));
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int r = 0; r < c.size(); ++r) sum += value(r, c.rank() * count + i);
    ASSERT_EQ(receive[i], static_cast<T>(sum)) << "element " << i << " of " << count;
  }
}

TEST_F(NcclCollectivesTest, SumAndScatterExactlyAtEveryLength) {
  for (const bool fast : {false, true}) {
    if (!fast && !tree_is_possible()) continue;
    Collectives& c = fast ? fastest().staged : ordered().staged;
    for (const int64_t count : kCounts) {
      check_sums<float>(c, count);
      check_sums<double>(c, count);
      check_scatter<float>(c, count);
      check_scatter<double>(c, count);
    }
  }
  if (tree_is_possible()) {
    check_sums<float>(ordered().staged, kTwoPieces);
    check_scatter<float>(ordered().staged, kTwoPieces / ordered().staged.size());
  }
}

TEST_F(NcclCollectivesTest, AddInTheTreeOrder) {
  if (!tree_is_possible()) GTEST_SKIP() << "an ordered sum requires a power of two of ranks";
  Collectives& c = ordered().staged;
  for (const int64_t count : kCounts) {
    // 1, 1e-7, 2e-7 ...: another order of additions rounds to other bits.
    std::vector<std::vector<float>> parts;
    for (int r = 0; r < c.size(); ++r) {
      std::vector<float>& part = parts.emplace_back(static_cast<size_t>(count));
      for (int64_t i = 0; i < count; ++i)
        part[i] = 1.0F / static_cast<float>(3 + (i * 7 + r * r * 5) % 101) * (r % 2 ? 1e-3F : 1.0F);
    }
    std::vector<float> data = parts[c.rank()];
    c.ordered_sum(std::span(data));
    ordered_tree_sum<float>([&](int64_t i) { return parts[i].data(); }, c.size(), 0, count);
    ASSERT_EQ(data, parts[0]) << count << " elements";
  }
}

TEST_F(NcclCollectivesTest, GatherAndBroadcastBytesFloatsAndDoubles) {
  Collectives& c = fastest().staged;
  for (const int64_t count : kCounts) {
    const std::vector<double> send = values<double>(c.rank(), count);
    std::vector<double> receive(count * c.size(), std::numeric_limits<double>::quiet_NaN());
    c.all_gather(std::span(send), std::span(receive));
    for (int r = 0; r < c.size(); ++r)
      for (int64_t i = 0; i < count; ++i) ASSERT_EQ(receive[r * count + i], value(r, i));

    std::vector<std::byte> mine(count, static_cast<std::byte>(c.rank() + 1));
    std::vector<std::byte> all(count * c.size(), std::byte{255});
    c.all_gather(std::span(mine), std::span(all));
    for (size_t i = 0; i < all.size(); ++i)
      ASSERT_EQ(static_cast<int>(all[i]), static_cast<int>(i) / static_cast<int>(count) + 1);

    for (int root = 0; root < c.size(); ++root) {
      std::vector<float> data = values<float>(c.rank(), count);
      c.broadcast(std::span(data), root);
      ASSERT_EQ(data, values<float>(root, count)) << "from rank " << root;
    }
  }
  c.barrier();
}

// Sums that overlap with the computation: what is queued after finish() sees them, whenever the streams run.
TEST_F(NcclCollectivesTest, SumBucketsDuringTheComputation) {
  if (!tree_is_possible()) GTEST_SKIP() << "an ordered sum requires a power of two of ranks";
  Gpu& gpu = ordered();
  const int64_t count = 10007, bucket = 1500;
  const std::vector<float> mine = values<float>(gpu.nccl->rank(), count);
  const Buffer gradients = gpu.context.allocate_elements<float>(count);
  GradientReducer reducer(*gpu.nccl, bucket);
  Device& device = gpu.context.device();
  const Buffer ready = gpu.context.allocate_elements<float>(count);
  device.upload(ready.data(), mine.data(), ready.bytes());
  reducer.begin(gradients.as<float>());
  for (const int64_t first : {int64_t{9000}, int64_t{5000}, int64_t{1}, int64_t{0}}) {
    static int64_t end = 0;
    end = first == 9000 ? count : end;
    device.copy(gradients.as<float>().data() + first, ready.as<float>().data() + first,
                static_cast<size_t>(end - first) * sizeof(float));  // queued: no one has waited for it
    end = first;
    reducer.ready_from(first);
  }
  reducer.finish();
  const Buffer after = gpu.context.allocate_elements<float>(count);
  device.copy(after.data(), gradients.data(), after.bytes());
  std::vector<float> sums(count);
  device.download(sums.data(), after.data(), after.bytes());
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int r = 0; r < gpu.nccl->size(); ++r) sum += value(r, i);
    ASSERT_EQ(sums[i], static_cast<float>(sum)) << "element " << i;
  }
}

// What is queued on the device's stream before an operation is seen by it, and it by what is queued after. Many times:
// with streams that run at random moments, each is a chance to be early.
TEST_F(NcclCollectivesTest, KeepTheOrderOfTheComputation) {
  Gpu& gpu = fastest();
  Device& device = gpu.context.device();
  const int64_t count = 100;
  const int ranks = gpu.nccl->size();
  const Buffer source = gpu.context.allocate_elements<float>(count), send = gpu.context.allocate_elements<float>(count);
  const Buffer all = gpu.context.allocate_elements<float>(count * ranks), after = gpu.context.allocate(all.bytes());
  for (int round = 1; round <= 25; ++round) {
    std::vector<float> mine = values<float>(gpu.nccl->rank(), count);
    for (float& v : mine) v += static_cast<float>(round);
    device.upload(source.data(), mine.data(), source.bytes());
    device.copy(send.data(), source.data(), send.bytes());  // queued
    gpu.nccl->all_gather(send.as<float>(), all.as<float>());
    device.copy(after.data(), all.data(), all.bytes());  // queued
    std::vector<float> gathered(count * ranks);
    device.download(gathered.data(), after.data(), after.bytes());
    for (int r = 0; r < ranks; ++r)
      for (int64_t i = 0; i < count; ++i) ASSERT_EQ(gathered[r * count + i], value(r, i) + round) << "round " << round;

    device.copy(send.data(), source.data(), send.bytes());  // queued
    gpu.nccl->start_ordered_sum(send.as<float>());
    gpu.nccl->finish_sums();
    device.copy(after.data(), send.data(), send.bytes());
    std::vector<float> sums(count);
    device.download(sums.data(), after.data(), send.bytes());
    for (int64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (int r = 0; r < ranks; ++r) sum += value(r, i) + round;
      ASSERT_EQ(sums[i], static_cast<float>(sum)) << "round " << round;
    }
  }
}

TEST_F(NcclCollectivesTest, AHealthyCommunicatorHasNoError) {
  EXPECT_EQ(fastest().nccl->health()->error(), "");
  EXPECT_NE(nccl_version().find("NCCL 2."), std::string::npos);
}

TEST(NcclCheck, NamesCallAndPlace) {
  nccl_check(ncclSuccess, "", "", 0);
  nccl_check(ncclInProgress, "", "", 0);
  const auto text = [](const char* file) -> std::string {
    try {
      nccl_check(ncclInvalidUsage, "ncclSend(...)", file, 7);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::kDevice);
      return e.what();
    }
    return "";
  };
  EXPECT_NE(text("/x/src/comm/a.cpp").find(", in ncclSend(...) at src/comm/a.cpp:7"), std::string::npos);
  EXPECT_NE(text("/x/a.cpp").find(" at /x/a.cpp:7"), std::string::npos);
  EXPECT_EQ(text("/x/a.cpp").find("NCCL: "), 0U);
}

}  // namespace
}  // namespace simclr
