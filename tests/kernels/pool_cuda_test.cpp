// pool on CUDA against the CPU op: the same sums in the same order, so the same bits in float32, and those bits rounded
// once in bfloat16.
#include "kernels/pool/pool.h"

#include "tests/kernels/cuda_support.h"

namespace simclr {
namespace {

using test::CudaFeatureMaps;
using test::CudaMatrix;
using test::DeviceArray;
using test::FeatureMaps;
using test::Shape;
using testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Shape pooled(Shape s) {
  s.height = max_pool_out(s.height), s.width = max_pool_out(s.width);
  return s;
}

struct MaxPool {
  std::vector<float> y, grad_x;  // plain
};
MaxPool max_pool_on_cpu(const Shape& shape, const std::vector<float>& x, const std::vector<float>& grad_y) {
  const Exec exec = CpuExec{};
  const FeatureMaps in(shape, x), grad_out(pooled(shape), grad_y);
  FeatureMaps out(pooled(shape)), grad_in(shape);
  std::vector<uint8_t> winners(out.all().size(), 255);
  max_pool_forward(exec, in.view(), out.view(), winners.data());
  max_pool_backward(exec, grad_out.view(), winners.data(), grad_in.view());
  return {out.plain(), grad_in.plain()};
}
MaxPool max_pool_on_cuda(DataType type, const Shape& shape, const std::vector<float>& x,
                         const std::vector<float>& grad_y) {
  const test::CudaRun run(test::precision_of(type), {});
  const CudaFeatureMaps in(type, shape, x), grad_out(type, pooled(shape), grad_y);
  const CudaFeatureMaps out(type, pooled(shape)), grad_in(type, shape);
  const DeviceArray<uint8_t> winners(static_cast<size_t>(out.view().elements()));  // starts as 255
  max_pool_forward(run.exec(), in.view(), out.view(), winners.data());
  max_pool_backward(run.exec(), grad_out.view(), winners.data(), grad_in.view());
  EXPECT_TRUE(out.padding_is_zero() && grad_in.padding_is_zero());
  return {out.plain(), grad_in.plain()};
}

class PoolCuda : public testing::TestWithParam<DataType> {
 protected:
  const DataType type_ = GetParam();
};
INSTANTIATE_TEST_SUITE_P(Types, PoolCuda, testing::ValuesIn(test::kStorageTypes),
                         [](const auto& instance) { return test::name_of(instance.param); });

TEST_P(PoolCuda, MaxHandNumbers) {
  const std::vector<float> x = {9, 2, 3, 4,  //
                                5, 6, 7, 8,  //
                                1, 1, 1, 1,  //
                                0, 0, 0, 2};
  const auto got = max_pool_on_cuda(type_, {1, 1, 1, 4, 4}, x, {1, 10, 100, 1000});
  EXPECT_THAT(got.y, ElementsAre(9, 8, 6, 8));  // windows around (0,0), (0,2), (2,0), (2,2); the 8 wins twice
  const float twice = test::as_stored(type_, std::vector<float>{1010})[0];
  EXPECT_THAT(got.grad_x, ElementsAre(1, 0, 0, 0, 0, 100, 0, twice, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST_P(PoolCuda, FirstOfEqualsWinsAndNanWins) {
  for (const float value : {5.0F, -kInfinity}) {
    const auto same = max_pool_on_cuda(type_, {1, 1, 1, 3, 3}, std::vector<float>(9, value), {1, 10, 100, 1000});
    EXPECT_THAT(same.y, testing::Each(value));
    EXPECT_THAT(same.grad_x, ElementsAre(1, 10, 0, 100, 1000, 0, 0, 0, 0));
  }
  const auto nan = max_pool_on_cuda(type_, {1, 1, 1, 3, 3}, {1, 2, 3, 4, test::kNaN, 6, 7, 8, kInfinity}, {1, 1, 1, 1});
  for (const float v : nan.y) EXPECT_TRUE(std::isnan(v));  // the center is in all four windows
  EXPECT_THAT(nan.grad_x, ElementsAre(0, 0, 0, 0, 4, 0, 0, 0, 0));
}

// The last one has more than one round of a block in each row.
TEST_P(PoolCuda, MaxGivesWhatTheCpuGives) {
  for (const Shape& shape : {Shape{1, 1, 1, 1, 1}, Shape{2, 3, 5, 7, 4}, Shape{1, 2, 17, 8, 9}, Shape{2, 1, 33, 1, 6},
                             Shape{1, 1, 127, 31, 33}}) {
    auto x = test::random_values(shape.elements(), 1);
    for (float& v : x) v = std::round(4 * v);  // many ties
    const auto grad_y = test::as_stored(type_, test::random_values(pooled(shape).elements(), 2));
    const auto want = max_pool_on_cpu(shape, x, grad_y), got = max_pool_on_cuda(type_, shape, x, grad_y);
    EXPECT_TRUE(test::same_bits(got.y, want.y));
    EXPECT_TRUE(test::same_bits(got.grad_x, test::as_stored(type_, want.grad_x)));
  }
}

TEST_P(PoolCuda, AverageGivesWhatTheCpuGives) {
  const test::CudaRun run(test::precision_of(type_), {});
  const Exec cpu = CpuExec{};
  for (const Shape& shape :
       {Shape{1, 1, 1, 1, 1}, Shape{2, 3, 5, 7, 4}, Shape{1, 2, 17, 8, 9}, Shape{4, 8, 127, 4, 3}}) {
    const int64_t stride = padded_cols(shape.channels);
    const auto x = test::as_stored(type_, test::random_values(shape.elements(), 1));
    const auto grad_y = test::as_stored(type_, test::random_values(shape.rows() * shape.channels, 2));
    const FeatureMaps host_x(shape, x);
    FeatureMaps host_grad_x(shape);
    std::vector<float> host_y(shape.rows() * stride);
    auto host_grad_y = test::to_nhwc(grad_y, shape.rows(), shape.channels, 1, stride);
    global_average_pool_forward(cpu, host_x.view(), {host_y.data(), shape.rows(), shape.channels, stride});
    global_average_pool_backward(cpu, {host_grad_y.data(), shape.rows(), shape.channels, stride}, host_grad_x.view());

    const CudaFeatureMaps in(type_, shape, x), grad_x(type_, shape);
    const CudaMatrix y(type_, shape.rows(), shape.channels, stride);
    // The op must not read what stands beyond the width.
    const CudaMatrix grad(type_, shape.rows(), shape.channels, stride, grad_y, test::kNaN);
    global_average_pool_forward(run.exec(), in.view(), y.view());
    global_average_pool_backward(run.exec(), grad.view(), grad_x.view());
    EXPECT_TRUE(y.padding_is_zero() && grad_x.padding_is_zero());
    const auto want_y = test::from_nhwc<float>(host_y, shape.rows(), shape.channels, 1, stride);
    EXPECT_TRUE(test::same_bits(y.plain(), test::as_stored(type_, want_y)));
    EXPECT_TRUE(test::same_bits(grad_x.plain(), test::as_stored(type_, host_grad_x.plain())));
  }
}

TEST_P(PoolCuda, AverageOfNanIsNan) {
  const Shape shape{1, 2, 3, 2, 2};
  auto x = test::random_values(shape.elements(), 1);
  x[4] = test::kNaN;  // channel 1 of the first sample
  const test::CudaRun run(test::precision_of(type_), {});
  const CudaFeatureMaps in(type_, shape, x);
  const CudaMatrix y(type_, 2, 3, padded_cols(3));
  global_average_pool_forward(run.exec(), in.view(), y.view());
  const auto got = y.plain();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(std::isnan(got[i]), i == 1) << i;
}

TEST(PoolCuda, RefusesOperandsOfTwoTypes) {
  const test::CudaRun run(Precision::kFp32, {});
  const auto fp32 = DataType::kFloat32, bf16 = DataType::kBfloat16;
  const CudaFeatureMaps x(fp32, {1, 2, 3, 5, 5}), y(bf16, {1, 2, 3, 3, 3});
  const CudaMatrix m(bf16, 2, 3, padded_cols(3));
  const DeviceArray<uint8_t> winners(1024);
  EXPECT_THAT([&] { max_pool_forward(run.exec(), x.view(), y.view(), winners.data()); }, test::fires("max pool"));
  EXPECT_THAT([&] { global_average_pool_forward(run.exec(), x.view(), m.view()); }, test::fires("average pool"));
}

}  // namespace
}  // namespace simclr
