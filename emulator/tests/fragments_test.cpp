// Matrix products of a warp: against plain loops in every layout, how operands and sums are rounded, and which lane
// holds what, by the tables of the PTX ISA (mma.m16n8k8 for .tf32, mma.m16n8k16 for .bf16).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "emulator/tests/device_memory.h"
#include "emulator/tests/kernels.h"
#include "language/fragments.h"

namespace simclr::test {

namespace {

struct Results {
  std::vector<float> out, transposed;  // [2 warps][16, 16]
};

Results multiply(int depth, const std::vector<float>& a, const std::vector<float>& b, float c,
                 bool a_by_columns = false, bool b_by_columns = false) {
  const Stream stream;
  const DeviceArray<float> device_a(a), device_b(b), device_c(std::vector<float>{c}), out(512), transposed(512);
  const WarpProducts products{device_a.data(),   device_b.data(), device_c.data(), out.data(),
                              transposed.data(), a_by_columns,    b_by_columns};
  EXPECT_EQ(depth == 8 ? tf32_products(products, stream) : bfloat16_products(products, stream), cudaSuccess);
  return {out.read_after(stream), transposed.read_after(stream)};
}

// Whole numbers that both kinds of operands hold exactly, and so do the sums.
TEST(Fragments, ProductsInEveryLayout) {
  for (const int depth : {8, 16}) {
    for (const bool a_by_columns : {false, true}) {
      for (const bool b_by_columns : {false, true}) {
        std::vector<float> a(16 * depth), b(16 * depth), expected(256, 7.0F);
        for (int i = 0; i < 16; ++i) {
          for (int k = 0; k < depth; ++k) {
            const auto left = static_cast<float>((3 * i + 5 * k) % 17 - 8), right = static_cast<float>(i * k % 13 - 6);
            a[a_by_columns ? k * 16 + i : i * depth + k] = left;
            b[b_by_columns ? i * depth + k : k * 16 + i] = right;
          }
        }
        for (int i = 0; i < 16; ++i) {
          for (int j = 0; j < 16; ++j) {
            for (int k = 0; k < depth; ++k)
              expected[i * 16 + j] += static_cast<float>(((3 * i + 5 * k) % 17 - 8) * (j * k % 13 - 6));
          }
        }
        const Results results = multiply(depth, a, b, 7.0F, a_by_columns, b_by_columns);
        for (int e = 0; e < 512; ++e) {
          ASSERT_EQ(results.out[e], expected[e % 256]) << depth << " " << e;
          ASSERT_EQ(results.transposed[e / 256 * 256 + e % 16 * 16 + e % 256 / 16], expected[e % 256]) << e;
        }
      }
    }
  }
}

// Of a tf32 operand the upper 19 bits are read: what was not rounded before is cut off.
TEST(Fragments, OperandsOfTf32AreCutOff) {
  std::vector<float> a(128, 0.0F), b(128, 0.0F);
  a[0] = 1.0F + 0x1p-10F + 0x1.8p-11F;
  b[0] = 1.0F;
  EXPECT_EQ(multiply(8, a, b, 0.0F).out[0], 1.0F + 0x1p-10F);
}

// 1 + 3/4 of the last place, in both signs, and 1 less a hundredth of it.
TEST(Fragments, SumsAreRoundedTowardsZero) {
  for (const int depth : {8, 16}) {
    std::vector<float> a(16 * depth, 0.0F), b(16 * depth, 0.0F);
    a[0] = 0x1p-12F;
    b[0] = 0x1.8p-12F;
    EXPECT_EQ(multiply(depth, a, b, 1.0F).out[0], 1.0F);
    b[0] = -b[0];
    EXPECT_EQ(multiply(depth, a, b, -1.0F).out[0], -1.0F);
    EXPECT_EQ(multiply(depth, a, b, 1.0F).out[0], 1.0F - 0x1p-23F);
    a[0] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(multiply(depth, a, b, 1.0F).out[0]));
    a[0] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(multiply(depth, a, b, 1.0F).out[0], -std::numeric_limits<float>::infinity());
  }
}

TEST(Fragments, RoundingToTf32) {
  EXPECT_EQ(rounded_to_tf32(1.0F + 0x1p-11F), 1.0F + 0x1p-10F);  // the middle: away from zero
  EXPECT_EQ(rounded_to_tf32(-1.0F - 0x1p-11F), -1.0F - 0x1p-10F);
  EXPECT_EQ(rounded_to_tf32(1.0F + 0x1.FFCp-12F), 1.0F);
  EXPECT_EQ(rounded_to_tf32(2.0F - 0x1p-23F), 2.0F);
  EXPECT_EQ(rounded_to_tf32(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(rounded_to_tf32(std::numeric_limits<float>::quiet_NaN())));
}

using emulator::Place;

// Lane 14: group 3, second within it.
TEST(Fragments, LiesOverLanesAsPtxHasIt) {
  const auto expect = [](const std::vector<Place>& expected, auto&& place) {
    for (int i = 0; i < static_cast<int>(expected.size()); ++i) {
      EXPECT_TRUE((place(i).row == expected[i].row && place(i).column == expected[i].column)) << i;
    }
  };
  expect({{3, 2}, {11, 2}, {3, 6}, {11, 6}}, [](int i) { return emulator::place_in_a(8, 14, i); });
  expect({{2, 3}, {6, 3}, {2, 11}, {6, 11}}, [](int i) { return emulator::place_in_b(8, 14, i); });
  expect({{3, 4}, {3, 5}, {11, 4}, {11, 5}, {3, 12}, {3, 13}, {11, 12}, {11, 13}},
         [](int i) { return emulator::place_in_a(16, 14, i); });
  expect({{4, 3}, {5, 3}, {12, 3}, {13, 3}, {4, 11}, {5, 11}, {12, 11}, {13, 11}},
         [](int i) { return emulator::place_in_b(16, 14, i); });
  expect({{3, 4}, {3, 5}, {11, 4}, {11, 5}, {3, 12}, {3, 13}, {11, 12}, {11, 13}},
         [](int i) { return emulator::place_in_accumulator(14, i); });
}

}  // namespace

}  // namespace simclr::test
