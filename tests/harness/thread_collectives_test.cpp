// The harness of other tests: its sums, their order, and that each misuse is an error instead of a hang.
#include "tests/harness/thread_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "kernels/common/error.h"

namespace simclr {
namespace {

TEST(ThreadCollectives, GathersSumsScattersAndBroadcasts) {
  for (int size : {1, 2, 4, 8}) {
    run_ranks(size, [size](Collectives& c) {
      ASSERT_EQ(c.size(), size);
      const float mine[2] = {static_cast<float>(c.rank()), 10.0f + static_cast<float>(c.rank())};
      std::vector<float> all(2 * size, -1.0f);
      c.all_gather(std::span(mine), std::span(all));
      for (int r = 0; r < size; ++r) EXPECT_EQ(all[2 * r + 1], 10.0f + static_cast<float>(r));

      std::vector<double> sum(5, c.rank() + 1.0);
      c.ordered_sum(std::span(sum));
      EXPECT_EQ(sum, std::vector<double>(5, size * (size + 1) / 2.0));

      std::vector<double> send(3 * size), receive(3);
      for (int i = 0; i < 3 * size; ++i) send[i] = i + 100.0 * c.rank();
      c.reduce_scatter(std::span<const double>(send), std::span(receive));
      for (int i = 0; i < 3; ++i) EXPECT_EQ(receive[i], size * (3 * c.rank() + i) + 50.0 * size * (size - 1));

      std::vector<uint8_t> bytes(3, static_cast<uint8_t>(c.rank()));
      c.broadcast(std::span(bytes), size - 1);
      EXPECT_EQ(bytes[2], size - 1);
      c.barrier();
    });
  }
}

TEST(ThreadCollectives, AddsInTreeOrder) {
  // 1 + 1e8 loses the 1 in float32: (1 + 1e8) + (-1e8 + 1) = 1e8 - 1e8 = 0 (+ nothing), left to right would give 1.
  const float values[4] = {1.0f, 1e8f, -1e8f, 1.0f};
  run_ranks(4, [&](Collectives& c) {
    std::vector<float> data(1, values[c.rank()]);
    c.ordered_sum(std::span(data));
    EXPECT_EQ(data[0], 0.0f);
  });
}

TEST(ThreadCollectives, RethrowsTheFailingRanksError) {
  try {
    run_ranks(4, [](Collectives& c) {
      if (c.rank() == 2) fail(ExitCode::kData, "image 7 is broken");
      c.barrier();
    });
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::kData);
    EXPECT_STREQ(e.what(), "image 7 is broken");
  }
}

void expect_error(int size, const std::function<void(Collectives&)>& body, const std::string& text) {
  try {
    run_ranks(size, body, 0.3);
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr(text));
  }
}

TEST(ThreadCollectives, WrongUseIsAnError) {
  expect_error(
      2,
      [](Collectives& c) {
        if (c.rank() == 1) c.barrier();
      },
      "returned");
  expect_error(
      2,
      [](Collectives& c) {
        std::vector<float> data(c.rank() + 1);
        c.ordered_sum(std::span(data));
      },
      "another rank called");
  expect_error(
      3,
      [](Collectives& c) {
        std::vector<float> data(4);
        c.ordered_sum(std::span(data));
      },
      "not a power of two");
  expect_error(
      2,
      [](Collectives& c) {
        std::vector<float> data(4);
        c.all_gather(std::span<const float>(data), std::span(data));
      },
      "all_gather: 4 elements");
}

TEST(ThreadCollectives, WaitingTooLongIsAnError) {
  std::atomic<bool> released{false};
  expect_error(
      2,
      [&](Collectives& c) {
        if (c.rank() == 0) {
          while (!released) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          return;
        }
        try {
          c.barrier();
        } catch (const Error&) {
          released = true;
          throw;
        }
      },
      "rank 1 has waited in barrier for 0.3 s");
}

TEST(ForwardingCollectives, LetsATestReplaceOneOperation) {
  struct NoSum : ForwardingCollectives {
    using ForwardingCollectives::ForwardingCollectives;
    void ordered_sum(TypedSpan) override {}
  };
  run_ranks(2, [](Collectives& c) {
    NoSum wrapped(c);
    std::vector<float> data(1, 1.0f), all(2);
    wrapped.ordered_sum(std::span(data));
    wrapped.all_gather(std::span<const float>(data), std::span(all));
    EXPECT_EQ(all, (std::vector<float>{1.0f, 1.0f}));
  });
}

}  // namespace
}  // namespace simclr
