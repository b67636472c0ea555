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

TEST(Throughput, LeavesOutWhatIsNoStep) {
  Throughput throughput(5, 0);
  throughput.step_done(10, 1);
  throughput.leave_out_until(50);  // an evaluation
  throughput.step_done(10, 51);
  EXPECT_EQ(throughput.images_per_s(), 10);
}

TEST(FormatDuration, ByHand) {
  EXPECT_EQ(format_duration(0), "0 s");
  EXPECT_EQ(format_duration(59.4), "59 s");
  EXPECT_EQ(format_duration(59.6), "1 min 00 s");
  EXPECT_EQ(format_duration(185), "3 min 05 s");
  EXPECT_EQ(format_duration(2 * 3600 + 7 * 60), "2 h 07 min");
  EXPECT_EQ(format_duration(4 * 86400 + 3 * 3600), "4 d 03 h");
  EXPECT_EQ(format_duration(-1), "0 s");
}

}  // namespace
}  // namespace simclr
