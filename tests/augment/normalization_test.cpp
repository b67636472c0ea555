// The normalization in a checkpoint comes back to the bit, and damaged text is noticed.
#include "src/augment/normalization.h"

#include <gtest/gtest.h>

#include <cmath>

namespace simclr {
namespace {

TEST(Normalization, ComesBackToTheBit) {
  ViewParams params;
  params.mean = {0.1F, 1.0F / 3, 0.7F};
  params.inverse_std = {std::nextafter(4.0F, 5.0F), 1e-3F, 123456.7F};
  const std::string text = print_normalization(params);
  ViewParams read;
  ASSERT_TRUE(read_normalization(text, read)) << text;
  EXPECT_EQ(read.mean, params.mean);
  EXPECT_EQ(read.inverse_std, params.inverse_std);
}

TEST(Normalization, IsReadable) {
  ViewParams params;
  params.mean = {0.5F, 0.25F, 0};
  params.inverse_std = {4, 2, 1};
  EXPECT_EQ(print_normalization(params), "(value - [0.5, 0.25, 0]) * [4, 2, 1]");
}

TEST(Normalization, DamagedTextSetsNothing) {
  ViewParams params;
  for (const char* text : {"", "(value - [0.5, 0.25]) * [4, 2, 1]", "(value - [0.5, 0.25, 0]) * [4, 2, 1] ",
                           "(value - [0.5, nan, 0]) * [4, 2, 1]", "(value - [0.5, 0.25, 0]) * [4, 2, inf]"}) {
    EXPECT_FALSE(read_normalization(text, params)) << text;
    EXPECT_EQ(params.inverse_std, ViewParams{}.inverse_std);
  }
}

}  // namespace
}  // namespace simclr
