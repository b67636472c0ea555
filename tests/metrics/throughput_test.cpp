// Rates and remaining times by hand.
#include "src/metrics/throughput.h"

#include <gtest/gtest.h>

namespace simclr {
namespace {

TEST(Throughput, IsZeroBeforeTheFirstStep) {
  const Throughput throughput(3, 100);
  EXPECT_EQ(throughput.images_per_s(), 0);
  EXPECT_EQ(throughput.time_left_s(10), 0);
}

TEST(Throughput, CountsTheLastSteps) {
  Throughput throughput(2, 100);
  throughput.step_done(8, 104);  // 4 s, slow start
  EXPECT_EQ(throughput.images_per_s(), 2);
  EXPECT_EQ(throughput.time_left_s(10), 40);
  throughput.step_done(8, 105);
  throughput.step_done(8, 106);  // the first is out of the window
  EXPECT_EQ(throughput.images_per_s(), 8);
  EXPECT_EQ(throughput.time_left_s(10), 10);
  throughput.step_done(8, 109);  // 1 s and 3 s
  EXPECT_EQ(throughput.images_per_s(), 4);
  EXPECT_EQ(throughput.time_left_s(10), 20);
}

TEST(Throughput, LeavesOutTimeBetweenSteps) {
  Throughput throughput(5, 0);
  throughput.step_done(10, 1);
  throughput.leave_out_until(50);  // an evaluation
  throughput.step_done(10, 51);
  EXPECT_EQ(throughput.images_per_s(), 10);
}

}  // namespace
}  // namespace simclr
