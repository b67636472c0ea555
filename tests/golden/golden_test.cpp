// The reader of the reference values: every case is there and whole, and a missing file is an error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "tests/golden/golden_support.h"

namespace simclr {
namespace {

bool holds_floats(const std::vector<double>& values) {
  return std::ranges::equal(test::to_float(values), values);
}

TEST(Golden, HoldsWholeCases) {
  const auto infonce = test::golden_infonce();
  ASSERT_EQ(infonce.size(), 6U);
  for (const auto& c : infonce) {
    EXPECT_EQ(std::ssize(c.z), 2 * c.batch * c.columns);
    EXPECT_EQ(c.grad_z.size(), c.z.size());
    EXPECT_TRUE(holds_floats(c.z));
  }
  EXPECT_EQ(infonce.back().temperature, 0.01);
  const auto barlow_twins = test::golden_barlow_twins();
  ASSERT_EQ(barlow_twins.size(), 3U);
  for (const auto& c : barlow_twins) {
    EXPECT_EQ(std::ssize(c.z), 2 * c.batch * c.columns);
    EXPECT_EQ(c.grad_z.size(), c.z.size());
    EXPECT_TRUE(holds_floats(c.z));
  }
  const auto batch_norm = test::golden_batch_norm();
  ASSERT_EQ(batch_norm.size(), 3U);
  for (const auto& c : batch_norm) {
    EXPECT_EQ(std::ssize(c.x), c.samples * c.channels * c.height * c.width);
    EXPECT_EQ(c.grad_x.size(), c.x.size());
    EXPECT_EQ(std::ssize(c.running_var), c.channels);
  }
}

TEST(Golden, ThrowsWhereAFileIsMissing) {
  setenv("SIMCLR_GOLDEN", "/nowhere", 1);
  EXPECT_THROW(test::golden_infonce(), std::runtime_error);
  unsetenv("SIMCLR_GOLDEN");
}

}  // namespace
}  // namespace simclr
