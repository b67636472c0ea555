// Which ranks share a bound of memory, and when they exceed it: claims made up by hand.
#include "src/train/memory_check.h"

#include <gtest/gtest.h>

#include <vector>

namespace simclr {
namespace {

MemoryClaim claim(int node, int64_t bytes, const std::vector<MemoryClaim::Bound>& bounds) {
  MemoryClaim claim{.bytes = bytes, .node = node, .bound_count = static_cast<int32_t>(bounds.size())};
  std::copy(bounds.begin(), bounds.end(), claim.bounds.begin());
  return claim;
}

std::optional<MemoryDemand> overdraft_of(int rank, const std::vector<MemoryClaim>& claims) {
  return find_overdraft(memory_demands(rank, claims));
}

TEST(MemoryCheck, AddsUpTheRanksOfAHost) {
  const std::vector<MemoryClaim> claims = {claim(0, 600, {{1000, 0}}), claim(1, 600, {{1000, 0}}),
                                           claim(1, 500, {{1000, 0}}), claim(0, 300, {{1000, 0}})};
  EXPECT_FALSE(overdraft_of(0, claims));
  const auto found = overdraft_of(1, claims);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes, 1100);
  EXPECT_EQ(found->allowed, 1000);
  EXPECT_EQ(found->ranks, 2);
  EXPECT_TRUE(overdraft_of(2, claims));
  EXPECT_FALSE(overdraft_of(3, claims));
}

// Two containers of 700 on a host of 2000, in one group of 1300; a third one stands outside.
TEST(MemoryCheck, CountsInAGroupOnlyItsOwnRanks) {
  const MemoryClaim::Bound host{2000, 0}, job{1300, 9};
  std::vector<MemoryClaim> claims = {claim(0, 600, {host, {700, 5}, job}), claim(0, 600, {host, {700, 6}, job}),
                                     claim(0, 500, {host})};
  for (const int rank : {0, 1, 2}) EXPECT_FALSE(overdraft_of(rank, claims)) << rank;
  claims[1].bytes = 760;
  EXPECT_EQ(overdraft_of(1, claims)->bound, 1);
  EXPECT_EQ(overdraft_of(1, claims)->ranks, 1);
  EXPECT_FALSE(overdraft_of(0, claims)) << "1360 of 1300 may be a claim that is too large";
  claims[0].bytes = 690;
  EXPECT_EQ(overdraft_of(0, claims)->bound, 2);
  EXPECT_EQ(overdraft_of(0, claims)->ranks, 2);
  EXPECT_FALSE(overdraft_of(2, claims));
}

// The numbers of control groups are counted by each host for itself.
TEST(MemoryCheck, TheSameGroupOfAnotherHostIsAnother) {
  const MemoryClaim::Bound host{2000, 0}, group{1000, 5};
  EXPECT_FALSE(overdraft_of(0, {claim(0, 900, {host, group}), claim(1, 900, {host, group})}));
  EXPECT_TRUE(overdraft_of(0, {claim(0, 900, {host, group}), claim(0, 900, {host, group})}));
}

TEST(MemoryCheck, RefusesNothingWhereNoBoundIsKnown) {
  EXPECT_FALSE(overdraft_of(0, {claim(0, int64_t{1} << 60, {})}));
}

TEST(MemoryCheck, LetsPassWhatMayBeAnErrorOfTheClaim) {
  EXPECT_FALSE(overdraft_of(0, {claim(0, 1000, {{1000, 0}})}));
  EXPECT_FALSE(overdraft_of(0, {claim(0, 1050, {{1000, 0}})}));
  EXPECT_TRUE(overdraft_of(0, {claim(0, 1060, {{1000, 0}})}));
}

}  // namespace
}  // namespace simclr
