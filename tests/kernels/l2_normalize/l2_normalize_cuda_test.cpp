// l2_normalize on CUDA against the CPU, from and to both types of storage. Numbers by hand are in
// l2_normalize_test.cpp.
#include "kernels/l2_normalize/l2_normalize.h"

#include "tests/kernels/cuda_support.h"

namespace simclr {
namespace {

using test::CudaMatrix;
using test::DeviceArray;

const Exec kCpu = CpuExec{.threads = 1};

struct Result {
  std::vector<float> e, grad_z;
  std::vector<double> norms;
};

Result run_on_cpu(std::vector<float> z, std::vector<float> grad_e, int64_t cols) {
  const int64_t rows = static_cast<int64_t>(z.size()) / cols;
  Result r{std::vector<float>(z.size()), std::vector<float>(z.size()), std::vector<double>(static_cast<size_t>(rows))};
  const FloatMatrix e{r.e.data(), rows, cols, cols};
  l2_normalize_forward(kCpu, FloatMatrix{z.data(), rows, cols, cols}, e, r.norms);
  l2_normalize_backward(kCpu, e, r.norms, FloatMatrix{grad_e.data(), rows, cols, cols},
                        FloatMatrix{r.grad_z.data(), rows, cols, cols});
  return r;
}

// z and grad_z are stored as `type`, with padding; the rows of z have garbage in theirs.
Result run_on_cuda(const std::vector<float>& z, const std::vector<float>& grad_e, int64_t cols, DataType type) {
  const test::CudaRun run(test::precision_of(type), {});
  const int64_t rows = static_cast<int64_t>(z.size()) / cols, stride = padded_cols(cols);
  const CudaMatrix z_in(type, rows, cols, stride, z, test::kNaN), g_in(DataType::kFloat32, rows, cols, cols, grad_e),
      e(DataType::kFloat32, rows, cols, cols + 3), grad_z(type, rows, cols, stride);
  const DeviceArray<double> norms(static_cast<size_t>(rows));
  l2_normalize_forward(run.exec(), z_in.view(), e.view(), {norms.data(), norms.count()});
  l2_normalize_backward(run.exec(), e.view(), {norms.data(), norms.count()}, g_in.view(), grad_z.view());
  EXPECT_TRUE(e.padding_is_zero());
  EXPECT_TRUE(grad_z.padding_is_zero());
  return {e.plain(), grad_z.plain(), norms.download()};
}

// Both sides compute in double from the same numbers and differ by the order of a sum: 1e-14 relative, which can move
// the rounding of the result by one unit of its type. The gradient cancels: its double error is relative to |g| / norm.
void expect_agreement(const std::vector<float>& z, const std::vector<float>& grad_e, int64_t cols, DataType type) {
  const Result want = run_on_cpu(test::as_stored(type, z), grad_e, cols), got = run_on_cuda(z, grad_e, cols, type);
  for (size_t i = 0; i < want.norms.size(); ++i) EXPECT_NEAR(got.norms[i], want.norms[i], 1e-14 * want.norms[i]);
  const auto unit = [](double value, double roundoff) { return 2 * roundoff * std::fabs(value); };
  EXPECT_TRUE(test::within(got.e, test::widen(want.e), [&](size_t i) { return unit(want.e[i], test::kUnit); })) << cols;
  EXPECT_TRUE(test::within(got.grad_z, test::widen(want.grad_z),
                           [&](size_t i) {
                             double largest = 0;
                             const size_t row = i / static_cast<size_t>(cols);
                             for (int64_t c = 0; c < cols; ++c)
                               largest = std::max(
                                   largest,
                                   std::fabs(double{grad_e[row * static_cast<size_t>(cols) + static_cast<size_t>(c)]}));
                             return unit(want.grad_z[i], test::unit_of(type)) + 1e-14 * largest / want.norms[row];
                           }))
      << cols << " columns, " << test::name_of(type);
}

TEST(L2NormalizeCuda, AgreesWithTheCpu) {
  for (const DataType type : test::kStorageTypes) {
    for (const int64_t cols : {1, 3, 31, 32, 33, 127, 128, 300}) {
      for (const int64_t rows : {1, 7, 8, 33}) {
        expect_agreement(test::random_values(rows * cols, 1), test::random_values(rows * cols, 2), cols, type);
      }
    }
  }
}

TEST(L2NormalizeCuda, TakesRowsThatFloatSquaresCannotHold) {
  for (const DataType type : test::kStorageTypes)
    expect_agreement({1e20F, 1e20F, 3e-12F, 4e-12F}, {1, 0.5F, 1, 0.5F}, 2, type);
}

TEST(L2NormalizeCuda, RowsBelowTheFloorAreScaledAndGetNoGradient) {
  const Result r = run_on_cuda({0, 0, 1e-20F, 0, 5e-13F, 0}, {1, 2, 3, 4, 5, 6}, 2, DataType::kFloat32);
  EXPECT_THAT(r.e, testing::ElementsAre(0, 0, testing::FloatEq(1e-8F), 0, testing::FloatEq(0.5F), 0));
  EXPECT_THAT(r.grad_z, testing::Each(0.0F));
}

TEST(L2NormalizeCuda, ShowsNonFiniteInput) {
  for (const DataType type : test::kStorageTypes) {
    EXPECT_TRUE(std::isnan(run_on_cuda({NAN, 1}, {0, 0}, 2, type).e[1]));
    EXPECT_TRUE(std::isnan(run_on_cuda({INFINITY, 1}, {0, 0}, 2, type).e[0]));
  }
}

TEST(L2NormalizeCuda, BitsOfARowDoNotDependOnTheOthers) {
  constexpr int64_t kRows = 19, kCols = 45;
  const auto z = test::random_values(kRows * kCols, 3), g = test::random_values(kRows * kCols, 4);
  const Result all = run_on_cuda(z, g, kCols, DataType::kFloat32);
  for (int64_t i = 0; i < kRows; ++i) {
    const auto row = [&](const std::vector<float>& v) {
      return std::vector<float>(v.begin() + i * kCols, v.begin() + (i + 1) * kCols);
    };
    const Result one = run_on_cuda(row(z), row(g), kCols, DataType::kFloat32);
    EXPECT_TRUE(test::same_bits(one.e, row(all.e)));
    EXPECT_TRUE(test::same_bits(one.grad_z, row(all.grad_z)));
  }
}

TEST(L2NormalizeCuda, WorksInPlace) {
  constexpr int64_t kRows = 9, kCols = 70;
  const auto z = test::random_values(kRows * kCols, 5), g = test::random_values(kRows * kCols, 6);
  const Result want = run_on_cuda(z, g, kCols, DataType::kFloat32);
  const test::CudaRun run(Precision::kFp32, {});
  const CudaMatrix m(DataType::kFloat32, kRows, kCols, kCols, z), grad(DataType::kFloat32, kRows, kCols, kCols, g);
  const DeviceArray<double> norms(kRows);
  l2_normalize_forward(run.exec(), m.view(), m.view(), {norms.data(), norms.count()});
  l2_normalize_backward(run.exec(), m.view(), {norms.data(), norms.count()}, grad.view(), grad.view());
  EXPECT_TRUE(test::same_bits(m.plain(), want.e));
  EXPECT_TRUE(test::same_bits(grad.plain(), want.grad_z));
}

TEST(L2NormalizeCuda, TakesNoRowsAndRefusesUnitRowsInBfloat16) {
  const test::CudaRun run(Precision::kBf16, {});
  const CudaMatrix none(DataType::kFloat32, 0, 4, 4), half(DataType::kBfloat16, 1, 4, 4);
  l2_normalize_forward(run.exec(), none.view(), none.view(), {});
  const DeviceArray<double> norms(1);
  EXPECT_THAT(
      [&] {
        l2_normalize_forward(run.exec(), half.view(), half.view(), {norms.data(), 1});
      },
      test::fires("elements of 4 bytes were asked for"));
}

}  // namespace
}  // namespace simclr
