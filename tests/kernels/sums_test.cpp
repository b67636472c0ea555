// The sum over shards in its one order, and the fingerprint of replicas: small numbers by hand, then orders that round
// to other bits.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/fingerprint/fingerprint.h"
#include "kernels/ordered_sum/ordered_sum.h"

namespace simclr {
namespace {

TEST(OrderedSum, AddsInTheTreeOrder) {
  // ((1 + 2^-24) + (2^-24 + 2^-24)): the second pair is added first and so survives; from left to right all are lost.
  constexpr float kTiny = 0x1p-24F;
  std::vector<float> parts = {1, 10, kTiny, 20, kTiny, 30, kTiny, 40};  // 4 parts of 2
  std::vector<float> sum(2, -1);
  ordered_sum(CpuExec{.threads = 2}, parts.data(), 4, 2, 2, sum.data());
  EXPECT_EQ(sum, (std::vector<float>{1 + 0x1p-23F, 100}));
}

TEST(OrderedSum, LeavesTheSumInItsFirstPart) {
  std::vector<double> parts = {1, 2, 0, 3, 4, 0};  // 2 parts of 2, 3 apart
  ordered_sum(CpuExec{}, parts.data(), 2, 3, 2, parts.data());
  EXPECT_EQ(parts[0], 4);
  EXPECT_EQ(parts[1], 6);
}

TEST(OrderedSum, RefusesPartsThatMakeNoTree) {
  std::vector<float> parts(3);
  EXPECT_THROW(ordered_sum(CpuExec{}, parts.data(), 3, 1, 1, parts.data()), Error);
  EXPECT_THROW(ordered_sum(CpuExec{}, parts.data(), 2, 1, 2, parts.data()), Error) << "parts that overlap";
}

uint64_t fingerprint(const std::vector<float>& values, int64_t first = 0, int threads = 1) {
  uint64_t sum = 0;
  add_fingerprint(CpuExec{.threads = threads}, values, first, &sum);
  return sum;
}

TEST(Fingerprint, SeesOneBitAndAnExchange) {
  std::vector<float> values(100000, 0.5F);
  values[7] = 2;
  const uint64_t before = fingerprint(values);
  EXPECT_EQ(fingerprint(values, 0, 3), before) << "threads";
  std::vector<float> other = values;
  other[99999] = -0.5F;
  EXPECT_NE(fingerprint(other), before) << "a sign";
  other = values;
  std::swap(other[7], other[8]);
  EXPECT_NE(fingerprint(other), before) << "an exchange";
}

// Words of zero are SplitMix64 with seed 0, whose first outputs are published.
TEST(Fingerprint, OfZerosIsTheSumOfSplitMix64) {
  EXPECT_EQ(fingerprint({0.0F}), 0xE220A8397B1DCDAFU);
  EXPECT_EQ(fingerprint({0.0F, 0.0F, 0.0F}), 0xE220A8397B1DCDAFU + 0x6E789E6AA1B965F4U + 0x06C45D188009454FU);
}

TEST(Fingerprint, ContinuesWhereARunOfValuesEnds) {
  const std::vector<float> all = {1, 2, 3, 4, 5}, head = {1, 2}, tail = {3, 4, 5};
  EXPECT_EQ(fingerprint(all), fingerprint(head) + fingerprint(tail, 2));
  EXPECT_NE(fingerprint(all), fingerprint(head) + fingerprint(tail, 1));
}

}  // namespace
}  // namespace simclr
