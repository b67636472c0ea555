// bfloat16 on the CPU where nothing but the storage differs from float32: the float op on the same numbers, its result
// rounded once, is the only right answer, to the bit. Products are in bfloat16_products_test.cpp.
#include <bit>

#include "kernels/barlow_twins/barlow_twins.h"
#include "kernels/common/parallel.h"
#include "kernels/common/simd.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/l2_normalize/l2_normalize.h"
#include "kernels/pool/pool.h"
#include "src/device/host_matrix.h"
#include "tests/kernels/batch_norm_support.h"
#include "tests/kernels/bfloat16_support.h"

namespace simclr {
namespace {

using test::Bfloat16Array;
using test::Bfloat16Maps;
using test::Bfloat16Matrix;
using test::FeatureMaps;
using test::rounded;
using test::same_bits;
using test::Shape;

constexpr auto kType = DataType::kBfloat16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Bfloat16, RoundsToNearestTiesToEven) {
  const auto bits = [](float v) { return to_bfloat16(v).bits; };
  EXPECT_EQ(bits(1.0F), 0x3f80);
  EXPECT_EQ(bits(1.0F + 0x1p-8F), 0x3f80);             // a tie: to even, below
  EXPECT_EQ(bits(1.0F + 0x1p-8F + 0x1p-20F), 0x3f81);  // above the tie
  EXPECT_EQ(bits(1.0F + 3 * 0x1p-8F), 0x3f82);         // a tie: to even, above
  EXPECT_EQ(bits(-1.0F - 3 * 0x1p-8F), 0xbf82);
  EXPECT_EQ(bits(std::numeric_limits<float>::max()), 0x7f80);  // rounds to infinity
  EXPECT_EQ(bits(-kInfinity), 0xff80);
  EXPECT_EQ(bits(-0.0F), 0x8000);
  EXPECT_EQ(bits(std::bit_cast<float>(0x00018000U)), 0x0002);  // denormals are numbers, too
  for (const uint32_t nan : {0x7f800001U, 0x7fffffffU, 0xff800001U, 0xffc00000U})
    EXPECT_EQ(bits(std::bit_cast<float>(nan)), 0x7fff) << nan;
}

TEST(Bfloat16, EveryOneSurvivesTheWayToFloatAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = as_float(Bfloat16{static_cast<uint16_t>(bits)});
    ASSERT_EQ(to_bfloat16(value).bits, std::isnan(value) ? 0x7fff : bits);
  }
}

// Floats of every exponent, with ties and NaN among them.
std::vector<float> awkward_floats() {
  std::vector<float> values;
  for (uint32_t high = 0; high < 0x10000; high += 7)
    for (const uint32_t low : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU})
      values.push_back(std::bit_cast<float>(high << 16 | low));
  values.resize(values.size() / 16 * 16);
  return values;
}

SIMCLR_MULTIVERSION void through_lanes(const float* from, size_t count, Bfloat16* halves, float* floats) {
  for (size_t i = 0; i < count; i += 16) {
    Lanes<16>::store(halves + i, Lanes<16>::load(from + i));
    Lanes<16>::store(floats + i, Lanes<16>::load(halves + i));
  }
}

TEST(Bfloat16, BlocksAndArraysRoundAsOneNumberDoes) {
  const std::vector<float> values = awkward_floats();
  std::vector<Bfloat16> halves(values.size()), array(values.size());
  std::vector<float> back(values.size());
  through_lanes(values.data(), values.size(), halves.data(), back.data());
  to_bfloat16(values.data(), static_cast<int64_t>(values.size()), array.data());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(halves[i].bits, to_bfloat16(values[i]).bits) << i;
    ASSERT_EQ(array[i].bits, halves[i].bits) << i;
    ASSERT_EQ(std::bit_cast<uint32_t>(back[i]), uint32_t{halves[i].bits} << 16) << i;
  }
}

class Bfloat16Ops : public test::Bfloat16Test {
 protected:
  const Exec exec_ = CpuExec{.threads = 2};
};

constexpr int64_t kTask = 1 << 16;  // elements that one task of relu and add takes
const int64_t kLengths[] = {0, 1, 31, 33, kTask - 1, kTask + 1, 3 * kTask + 17};

// n values with one more that the op must not touch.
Bfloat16Array with_sentinel(std::vector<float> values) {
  values.push_back(-7.0F);
  return Bfloat16Array(values);
}
std::vector<float> without_sentinel(const Bfloat16Array& array) {
  std::vector<float> values = array.values();
  EXPECT_EQ(values.back(), -7.0F);
  values.pop_back();
  return values;
}

TEST_F(Bfloat16Ops, ReluAndAddHandNumbers) {
  const Bfloat16Array x(std::vector<float>{-2, -0x1p-130F, 0, 0x1p-130F, 3, kInfinity, -kInfinity, test::kNaN});
  const Bfloat16Array grad_y(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}), y(8), grad_x(8);
  relu_forward(exec_, 8, x.data(), y.data());
  relu_backward(exec_, 8, grad_y.data(), y.data(), grad_x.data());
  EXPECT_TRUE(same_bits(y.values(), rounded(std::vector<float>{0, 0, 0, 0x1p-130F, 3, kInfinity, 0, test::kNaN})));
  EXPECT_THAT(grad_x.values(), testing::ElementsAre(0, 0, 0, 4, 5, 6, 0, 0));
  // 1 + 2^-8 and 1 + 3 * 2^-8 are ties
  const Bfloat16Array part(std::vector<float>{0x1p-8F, 0x1p-8F}), total(std::vector<float>{1, 1 + 0x1p-7F});
  add_to(exec_, 2, part.data(), total.data());
  EXPECT_THAT(total.values(), testing::ElementsAre(1, 1 + 0x1p-6F));
}

TEST_F(Bfloat16Ops, ReluAndAddRoundOnceForEveryLength) {
  for (const int64_t n : kLengths) {
    const auto x = rounded(test::random_values(n, 1)), other = rounded(test::random_values(n, 2));
    std::vector<float> y(x.size()), grad_x(x.size()), total = other;
    relu_forward(exec_, n, x.data(), y.data());
    relu_backward(exec_, n, other.data(), y.data(), grad_x.data());
    if (n > 0) add_to(exec_, n, x.data(), total.data());
    const std::vector<float> nan(x.size(), test::kNaN);
    const Bfloat16Array in = with_sentinel(x), grad_y = with_sentinel(other), out = with_sentinel(nan),
                        grad_in = with_sentinel(nan), sum = with_sentinel(other);
    relu_forward(exec_, n, in.data(), out.data());
    relu_backward(exec_, n, grad_y.data(), out.data(), grad_in.data());
    add_to(exec_, n, in.data(), sum.data());
    EXPECT_TRUE(same_bits(without_sentinel(out), y)) << n;
    EXPECT_TRUE(same_bits(without_sentinel(grad_in), grad_x)) << n;
    EXPECT_TRUE(same_bits(without_sentinel(sum), rounded(total))) << n;
  }
}

Shape pooled(Shape s) {
  s.height = max_pool_out(s.height), s.width = max_pool_out(s.width);
  return s;
}

struct MaxPool {
  std::vector<float> y, grad_x;  // plain
};
template <typename Maps>
MaxPool max_pool(const Exec& exec, const Shape& shape, const std::vector<float>& x, const std::vector<float>& grad_y) {
  const Maps in(shape, x), grad_out(pooled(shape), grad_y);
  const Maps out(pooled(shape)), grad_in(shape);
  std::vector<uint8_t> winners(out.view().elements(), 255);
  max_pool_forward(exec, in.view(), out.view(), winners.data());
  max_pool_backward(exec, grad_out.view(), winners.data(), grad_in.view());
  EXPECT_TRUE(out.padding_is_zero() && grad_in.padding_is_zero());
  return {out.plain(), grad_in.plain()};
}

TEST_F(Bfloat16Ops, MaxPoolRoundsOnce) {
  for (const Shape& shape :
       {Shape{1, 1, 1, 1, 1}, Shape{2, 3, 5, 7, 4}, Shape{1, 2, 17, 8, 9}, Shape{2, 1, 33, 1, 6}}) {
    auto x = test::random_values(shape.elements(), 1);
    for (float& v : x) v = std::round(4 * v);  // many ties
    const auto grad_y = rounded(test::random_values(pooled(shape).elements(), 2));
    const auto want = max_pool<FeatureMaps>(exec_, shape, x, grad_y),
               got = max_pool<Bfloat16Maps>(exec_, shape, x, grad_y);
    EXPECT_TRUE(same_bits(got.y, want.y));
    EXPECT_TRUE(same_bits(got.grad_x, rounded(want.grad_x)));
  }
}

TEST_F(Bfloat16Ops, AveragePoolRoundsOnce) {
  for (const Shape& shape :
       {Shape{1, 1, 1, 1, 1}, Shape{2, 3, 5, 7, 4}, Shape{1, 2, 17, 8, 9}, Shape{4, 8, 127, 4, 3}}) {
    const int64_t rows = shape.rows(), channels = shape.channels, stride = padded_cols(channels);
    const auto x = rounded(test::random_values(shape.elements(), 1));
    const auto grad_y = rounded(test::random_values(rows * channels, 2));
    const FeatureMaps floats(shape, x), float_grad_x(shape);
    std::vector<float> float_y(rows * stride), float_grad_y(float_y.size(), test::kNaN);
    const FloatMatrix want_y{float_y.data(), rows, channels, stride},
        want_grad_y{float_grad_y.data(), rows, channels, stride};
    for (int64_t i = 0; i < rows; ++i) std::copy_n(&grad_y[i * channels], channels, want_grad_y.row(i));
    global_average_pool_forward(exec_, floats.view(), want_y);
    global_average_pool_backward(exec_, want_grad_y, float_grad_x.view());

    const Bfloat16Maps in(shape, x), grad_x(shape);
    const Bfloat16Matrix y(rows, channels), grad(rows, channels, grad_y);
    global_average_pool_forward(exec_, in.view(), y.view());
    global_average_pool_backward(exec_, grad.view(), grad_x.view());
    EXPECT_TRUE(y.padding_is_zero() && grad_x.padding_is_zero());
    std::vector<float> plain_y;
    for (int64_t i = 0; i < rows; ++i) plain_y.insert(plain_y.end(), want_y.row(i), want_y.row(i) + channels);
    EXPECT_TRUE(same_bits(y.plain(), rounded(plain_y)));
    EXPECT_TRUE(same_bits(grad_x.plain(), rounded(float_grad_x.plain())));
  }
}

// Statistics and sums see the stored numbers, which float holds exactly; what is written is rounded once.
TEST_F(Bfloat16Ops, BatchNormRoundsOnce) {
  for (const Shape& shape : {Shape{2, 4, 16, 5, 5}, Shape{8, 2, 33, 3, 4}, Shape{1, 6, 7, 1, 1}}) {
    for (const int groups : {1, 2}) {
      for (const bool residual : {false, true}) {
        const test::BatchNormCase c{.shape = shape, .groups = groups, .relu = true, .residual = residual};
        test::BatchNormInputs in = test::random_batch_norm_inputs(c);
        for (auto* values : {&in.x, &in.residual, &in.grad_y}) *values = rounded(*values);
        const auto want = test::run_batch_norm(c, 1, 1, in), got = test::run_batch_norm<Bfloat16Maps>(c, 1, 2, in);
        EXPECT_TRUE(same_bits(got.y, rounded(want.y)));
        EXPECT_TRUE(same_bits(got.grad_x, rounded(want.grad_x)));
        EXPECT_TRUE(same_bits(got.grad_residual, want.grad_residual));
        EXPECT_TRUE(same_bits(got.grad_gamma, want.grad_gamma) && same_bits(got.grad_beta, want.grad_beta));
        EXPECT_TRUE(same_bits(got.mean, want.mean) && same_bits(got.inv_std, want.inv_std));
        EXPECT_TRUE(same_bits(got.running_mean, want.running_mean) && same_bits(got.running_var, want.running_var));
        const auto ranks = test::run_batch_norm<Bfloat16Maps>(c, static_cast<int>(shape.shards), 1, in);
        EXPECT_TRUE(same_bits(got.y, ranks.y) && same_bits(got.grad_x, ranks.grad_x)) << "a shard on each rank";
      }
    }
  }
}

TEST_F(Bfloat16Ops, L2NormalizeReadsAndWritesIt) {
  constexpr int64_t kRows = 67, kCols = 33;
  const auto z = rounded(test::random_values(kRows * kCols, 1)), g = test::random_values(kRows * kCols, 2);
  const auto floats = [](const std::vector<float>& v) { return ConstFloatMatrix{v.data(), kRows, kCols, kCols}; };
  std::vector<float> want_e(z.size()), want_grad(z.size()), e(z.size());
  std::vector<double> want_norms(kRows), norms(kRows);
  l2_normalize_forward(exec_, floats(z), {want_e.data(), kRows, kCols, kCols}, want_norms);
  l2_normalize_backward(exec_, floats(want_e), want_norms, floats(g), {want_grad.data(), kRows, kCols, kCols});
  const Bfloat16Matrix stored(kRows, kCols, z), grad_z(kRows, kCols);
  l2_normalize_forward(exec_, stored.view(), {e.data(), kRows, kCols, kCols}, norms);
  l2_normalize_backward(exec_, floats(e), norms, floats(g), grad_z.view());
  EXPECT_TRUE(same_bits(e, want_e));
  EXPECT_EQ(norms, want_norms);
  EXPECT_TRUE(same_bits(grad_z.plain(), rounded(want_grad)));
  EXPECT_TRUE(grad_z.padding_is_zero());
}

TEST_F(Bfloat16Ops, BarlowTwinsReadsAndWritesIt) {
  const BarlowTwinsProblem p{.batch = 24, .shard_images = 6, .shards = 4, .columns = 67};
  const auto z = rounded(test::random_values(p.rows() * p.columns, 1));
  const test::PoisonedContext context(2, barlow_twins_scratch(p));
  const auto run = [&](ConstMatrix in, Matrix grad_z) {
    const auto width = static_cast<size_t>(2 * p.columns);
    std::vector<double> sums(width), squares(width), inv_std(width), radial(width);
    std::vector<float> y(z.size()), c(static_cast<size_t>(p.columns * p.columns));
    const FloatMatrix rows{y.data(), p.rows(), p.columns, p.columns};
    double loss = 0;
    barlow_twins_sums(context.exec(), in, p, sums.data());
    barlow_twins_square_sums(context.exec(), in, p, sums.data(), squares.data());
    barlow_twins_standardize(context.exec(), in, p, sums.data(), squares.data(), rows, inv_std.data());
    barlow_twins_products(context.exec(), rows, p, c.data());
    barlow_twins_loss(context.exec(), p, c.data(), radial.data(), &loss);
    barlow_twins_backward(context.exec(), rows, p, c.data(), inv_std.data(), radial.data(), grad_z);
    return loss;
  };
  std::vector<float> want(z.size());
  const double loss = run({z.data(), p.rows(), p.columns, p.columns}, {want.data(), p.rows(), p.columns, p.columns});
  const Bfloat16Matrix stored(p.rows(), p.columns, z), grad_z(p.rows(), p.columns);
  EXPECT_EQ(run(stored.view(), grad_z.view()), loss);
  EXPECT_TRUE(same_bits(grad_z.plain(), rounded(want)));
  EXPECT_TRUE(grad_z.padding_is_zero());
}

TEST_F(Bfloat16Ops, TheDeviceStoresItAndTheHostReadsFloats) {
  const auto device = make_cpu_device(1, Precision::kBf16);
  EXPECT_EQ(device->storage(), kType);
  EXPECT_EQ(std::get<CpuExec>(device->exec()).precision, Precision::kBf16);
  EXPECT_EQ(make_cpu_device(1)->storage(), DataType::kFloat32);
  const auto values = test::random_values(6, 1);
  const Bfloat16Matrix stored(2, 3, values);
  HostMatrix host;
  const ConstFloatMatrix fetched = host.fetch(*device, stored.view());
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(fetched.row(i / 3)[i % 3], rounded(values)[i]) << i;
}

TEST(Bfloat16, TheCpuRefusesPrecisionsThatItDoesNotHave) {
  EXPECT_THAT([] { make_cpu_device(1, Precision::kTf32); }, test::fires("no CPU has tf32"));
  if (const std::string reason = why_no_bfloat16(); !reason.empty()) {
    EXPECT_THAT(reason, testing::HasSubstr("AVX512_BF16"));
    EXPECT_THAT([] { make_cpu_device(1, Precision::kBf16); }, test::fires("AVX512_BF16"));
  }
}

}  // namespace
}  // namespace simclr
