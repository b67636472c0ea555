// The movements of rows: a case small enough to check by hand.
#include "kernels/row_order/row_order.h"

#include <gtest/gtest.h>

#include "tests/kernels/rows_support.h"

namespace simclr {
namespace {

using test::TestMatrix;

TEST(RowOrder, MovesRowsBothWays) {
  // B = 4, S = 2, n = 2; the number in a row is its global row.
  const Exec exec = CpuExec{.threads = 2};
  TestMatrix shards(std::vector<float>{0, 1, 4, 5, 2, 3, 6, 7}, 8, 1, 3), global(8, 1, 2), back(8, 1);
  shards_to_global_order(exec, shards.view(), 2, global.view());
  EXPECT_EQ(global.dense(), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
  global_to_shard_order(exec, global.view(), 2, back.view());
  EXPECT_EQ(back.dense(), shards.dense());
  add_rows(exec, global.view(), back.view());
  EXPECT_EQ(back.dense(), (std::vector<float>{0, 2, 6, 8, 6, 8, 12, 14}));
  EXPECT_THROW(shards_to_global_order(exec, shards.view(), 3, global.view()), Error);
}

}  // namespace
}  // namespace simclr
