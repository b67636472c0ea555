// MpiCollectives between real processes, with inputs that float32 represents exactly, so that equality is ==.
// Every element encodes its rank and index; outputs start as NaN (floats) or 255 (bytes).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

#include "kernels/common/error.h"
#include "src/comm/element.h"
#include "src/comm/gradient_reducer.h"
#include "src/comm/make_collectives.h"
#include "src/comm/mpi_collectives.h"
#include "tests/harness/mpi_test_main.h"

namespace simclr {
namespace {

// Around vector, slice (16 elements) and short-message (1024 floats) borders, and five pieces of 1 MiB.
const std::vector<int64_t> kCounts = {0, 1, 15, 31, 33, 127, 1024, 1025, 4099, (1 << 20) + 7};

// Small integers: sums over ranks are exact in float32.
double value(int rank, int64_t index) {
  return static_cast<double>(index % 1009) + 2048.0 * rank;
}

template <typename T>
std::vector<T> values(int rank, int64_t count) {
  std::vector<T> result(count);
  for (int64_t i = 0; i < count; ++i) result[i] = static_cast<T>(value(rank, i));
  return result;
}

template <typename T>
double expected_sum(int size, int64_t index) {
  double sum = 0;
  for (int r = 0; r < size; ++r) sum += value(r, index);
  return sum;
}

// Small sizes that cut every message into many pieces.
constexpr MessageSizes kTinyPieces = {.short_bytes = 40, .piece_bytes = 200, .direct_bytes = 96};

class MpiCollectivesTest : public testing::Test {
 protected:
  MpiCollectivesTest() {
    if (!test_session().uses_mpi()) {
      implementations_.push_back(make_collectives(test_session(), Reduction::kOrdered, nullptr));
      return;
    }
    if (is_power_of_two(test_session().size())) {
      implementations_.push_back(std::make_unique<MpiCollectives>(test_session(), nullptr));
      implementations_.push_back(std::make_unique<MpiCollectives>(test_session(), nullptr, kTinyPieces));
    }
    implementations_.push_back(std::make_unique<FastestMpiCollectives>(test_session(), nullptr));
    implementations_.push_back(std::make_unique<FastestMpiCollectives>(test_session(), nullptr, kTinyPieces));
  }

  // Long counts in tiny pieces would take minutes and show nothing new.
  static bool skip(size_t implementation, int64_t count) { return implementation % 2 == 1 && count > 127; }

  template <typename T>
  void check_sums();

  std::vector<std::unique_ptr<Collectives>> implementations_;
};

template <typename T>
void MpiCollectivesTest::check_sums() {
  for (size_t k = 0; k < implementations_.size(); ++k) {
    Collectives& c = *implementations_[k];
    const int size = c.size(), rank = c.rank();
    for (const int64_t count : kCounts) {
      if (skip(k, count)) continue;
      std::vector<T> data = values<T>(rank, count);
      c.ordered_sum(std::span(data));
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(data[i], expected_sum<T>(size, i))
            << "ordered_sum, implementation " << k << ", count " << count << ", " << i;

      if (count > 5000 && size > 2) continue;
      const std::vector<T> send = values<T>(rank, count * size);
      std::vector<T> receive(count, std::numeric_limits<T>::quiet_NaN());
      c.reduce_scatter(std::span(send), std::span(receive));
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(receive[i], expected_sum<T>(size, rank * count + i))
            << "reduce_scatter, implementation " << k << ", count " << count;
      ASSERT_EQ(send, values<T>(rank, count * size)) << "the input of reduce_scatter changed";
    }
  }
}

TEST_F(MpiCollectivesTest, SumsFloat32) {
  check_sums<float>();
}
TEST_F(MpiCollectivesTest, SumsFloat64) {
  check_sums<double>();
}

TEST_F(MpiCollectivesTest, GathersInRankOrder) {
  for (size_t k = 0; k < implementations_.size(); ++k) {
    Collectives& c = *implementations_[k];
    for (const int64_t count : kCounts) {
      if (skip(k, count)) continue;
      const std::vector<float> send = values<float>(c.rank(), count);
      std::vector<float> receive(count * c.size(), NAN);
      c.all_gather(std::span(send), std::span(receive));
      for (int r = 0; r < c.size(); ++r)
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(receive[r * count + i], value(r, i))
              << "implementation " << k << ", count " << count << ", rank " << r;
    }
  }
}

TEST_F(MpiCollectivesTest, BroadcastsFromEachRank) {
  for (size_t k = 0; k < implementations_.size(); ++k) {
    Collectives& c = *implementations_[k];
    for (const int64_t count : kCounts) {
      if (skip(k, count)) continue;
      for (int root = 0; root < c.size(); ++root) {
        std::vector<uint8_t> data(count, 255);
        if (c.rank() == root)
          for (int64_t i = 0; i < count; ++i) data[i] = static_cast<uint8_t>((i + 7 * root) % 251);
        c.broadcast(std::span(data), root);
        for (int64_t i = 0; i < count; ++i) ASSERT_EQ(data[i], (i + 7 * root) % 251);
      }
    }
    c.barrier();
  }
}

// Values whose float32 sum depends on the order: the result is that of the tree, to the bit, for short and long
// messages and any cut.
TEST_F(MpiCollectivesTest, AddsInTreeOrder) {
  if (!is_power_of_two(test_session().size())) GTEST_SKIP() << "an ordered sum needs a power of two of ranks";
  const auto rough = [](int rank, int64_t i) {
    return static_cast<float>(std::sin(1.0 + static_cast<double>(i) * 0.7 + rank) * std::pow(10.0, (i + 3 * rank) % 8));
  };
  const int size = test_session().size();
  int64_t differs_from_left_to_right = 0;
  for (const int64_t count : {1, 33, 1025, 1500}) {
    std::vector<float> tree(count);
    for (int64_t i = 0; i < count; ++i) {
      std::vector<float> level(size);
      float running = 0;
      for (int r = 0; r < size; ++r) running += level[r] = rough(r, i);
      while (level.size() > 1) {
        std::vector<float> next;
        for (size_t r = 0; r < level.size(); r += 2) next.push_back(level[r] + level[r + 1]);
        level = next;
      }
      tree[i] = level[0];
      differs_from_left_to_right += tree[i] != running;
    }
    const size_t ordered = test_session().uses_mpi() ? 2 : 1;  // the first two implementations
    for (size_t k = 0; k < ordered; ++k) {
      if (skip(k, count)) continue;
      Collectives& c = *implementations_[k];
      std::vector<float> data(count);
      for (int64_t i = 0; i < count; ++i) data[i] = rough(c.rank(), i);
      std::vector<float> buckets = data;
      c.ordered_sum(std::span(data));
      ASSERT_EQ(data, tree) << "implementation " << k << ", count " << count;
      GradientReducer(c, 700).reduce(buckets);
      ASSERT_EQ(buckets, tree) << "in buckets, implementation " << k << ", count " << count;

      std::vector<float> send(count * size), receive(count);
      for (int64_t i = 0; i < count * size; ++i) send[i] = rough(c.rank(), i % count);
      c.reduce_scatter(std::span<const float>(send), std::span(receive));
      ASSERT_EQ(receive, tree) << "reduce_scatter, implementation " << k << ", count " << count;
    }
  }
  if (size >= 4) {
    EXPECT_GT(differs_from_left_to_right, 100) << "the inputs do not distinguish the orders";
  }
}

TEST_F(MpiCollectivesTest, WrongUseIsAnError) {
  Collectives& c = *implementations_[0];
  std::vector<float> data(4), other(4 * c.size() + 1);
  EXPECT_THROW(c.all_gather(std::span<const float>(data), std::span(other)), Error);
  EXPECT_THROW(c.reduce_scatter(std::span<const float>(other), std::span(data)), Error);
  EXPECT_THROW(c.broadcast(std::span(data), c.size()), Error);
  std::vector<uint8_t> bytes(4);
  EXPECT_THROW(c.ordered_sum(std::span(bytes)), Error);
}

// More than 2^31 bytes in one call. Takes gigabytes of memory, so only on request.
TEST_F(MpiCollectivesTest, MoreThan2To31Bytes) {
  if (std::getenv("SIMCLR_TEST_HUGE") == nullptr) GTEST_SKIP() << "set SIMCLR_TEST_HUGE=1; needs 3.3 GB per rank";
  Collectives& c = *implementations_[0];
  {
    const int64_t count = (int64_t{1} << 31) / c.size() + 5;
    std::vector<uint8_t> send(count, static_cast<uint8_t>(c.rank() + 1)), receive(count * c.size());
    send[count - 1] = 77;
    c.all_gather(std::span<const uint8_t>(send), std::span(receive));
    for (int r = 0; r < c.size(); ++r) {
      EXPECT_EQ(receive[r * count], r + 1);
      EXPECT_EQ(receive[(r + 1) * count - 2], r + 1);
      EXPECT_EQ(receive[(r + 1) * count - 1], 77);
    }
  }
  {
    std::vector<uint8_t> data((int64_t{1} << 31) + 5, static_cast<uint8_t>(c.rank() + 1));
    c.broadcast(std::span(data), c.size() - 1);
    EXPECT_EQ(data.back(), c.size());
  }
  std::vector<float> data((int64_t{1} << 29) + 5, static_cast<float>(c.rank() + 1));
  c.ordered_sum(std::span(data));
  const int sum_of_ranks = c.size() * (c.size() + 1) / 2;
  EXPECT_EQ(data.back(), static_cast<float>(sum_of_ranks));
}

}  // namespace
}  // namespace simclr
