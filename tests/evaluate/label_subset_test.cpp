// Shares of the labels: balanced, nested, a function of the seed alone.
#include "src/evaluate/label_subset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace simclr {
namespace {

using testing::ElementsAre;

std::vector<int32_t> labels_of_classes(const std::vector<int>& sizes) {
  std::vector<int32_t> labels;
  for (size_t c = 0; c < sizes.size(); ++c)
    labels.insert(labels.end(), static_cast<size_t>(sizes[c]), static_cast<int32_t>(c));
  for (size_t i = 0; i + 7 < labels.size(); i += 3) std::swap(labels[i], labels[labels.size() - 1 - i]);
  return labels;
}

std::vector<int64_t> counts(const std::vector<int32_t>& labels, const std::vector<int64_t>& rows) {
  std::vector<int64_t> count(static_cast<size_t>(*std::max_element(labels.begin(), labels.end())) + 1);
  for (const int64_t row : rows) ++count[labels[row]];
  return count;
}

bool contains(const std::vector<int64_t>& all, const std::vector<int64_t>& part) {
  return std::includes(all.begin(), all.end(), part.begin(), part.end());
}

TEST(LabelSubset, IsBalancedSortedAndNested) {
  const auto labels = labels_of_classes({200, 100, 3});
  const auto one = draw_label_subset(labels, 1, 5), ten = draw_label_subset(labels, 10, 5),
             all = draw_label_subset(labels, 100, 5);
  EXPECT_THAT(counts(labels, one), ElementsAre(2, 1, 1)) << "at least one of every class";
  EXPECT_THAT(counts(labels, ten), ElementsAre(20, 10, 1));
  EXPECT_THAT(counts(labels, all), ElementsAre(200, 100, 3));
  for (const auto& rows : {one, ten, all}) EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
  EXPECT_TRUE(contains(ten, one) && contains(all, ten));
  EXPECT_EQ(draw_label_subset(labels, 10, 5), ten);
  EXPECT_NE(draw_label_subset(labels, 10, 6), ten);
}

TEST(LabelSubset, HoldsOutAFifthOfEveryClass) {
  const auto labels = labels_of_classes({50, 9, 2, 1});
  const auto rows = draw_label_subset(labels, 100, 1);
  const HeldOutSplit split = hold_out(labels, rows, 1);
  EXPECT_THAT(counts(labels, split.held_out), ElementsAre(10, 1, 1, 0));
  EXPECT_THAT(counts(labels, split.fit), ElementsAre(40, 8, 1, 1));
  std::vector<int64_t> together;
  std::merge(split.fit.begin(), split.fit.end(), split.held_out.begin(), split.held_out.end(),
             std::back_inserter(together));
  EXPECT_EQ(together, rows);
}

}  // namespace
}  // namespace simclr
