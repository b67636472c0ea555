// linear (and the product under it): numbers by hand, plain loops in double, zeroed padding, and the promise on bits.
#include "kernels/linear/linear.h"

#include "kernels/common/gemm.h"
#include "kernels/common/parallel.h"
#include "tests/kernels/kernel_support.h"

namespace simclr {
namespace {

using test::PoisonedContext;
using testing::ElementsAre;

struct LinearCase {
  int64_t shards, samples, in, out;
  bool bias = true;
  int64_t rows() const { return shards * samples; }
};

// A matrix of given stride that starts as NaN, padding included.
struct PaddedMatrix {
  PaddedMatrix(int64_t rows, int64_t cols, int64_t stride)
      : memory(static_cast<size_t>(rows * stride), test::kNaN), view{memory.data(), rows, cols, stride} {}
  PaddedMatrix(int64_t rows, int64_t cols, int64_t stride, const std::vector<float>& plain)
      : PaddedMatrix(rows, cols, stride) {
    for (int64_t i = 0; i < rows * cols; ++i) view.row(i / cols)[i % cols] = plain[i];
  }
  std::vector<float> plain() const {
    std::vector<float> result;
    for (int64_t i = 0; i < view.rows; ++i) result.insert(result.end(), view.row(i), view.row(i) + view.cols);
    return result;
  }
  bool padding_is_zero() const {
    for (int64_t i = 0; i < view.rows; ++i)
      for (int64_t j = view.cols; j < view.stride; ++j)
        if (view.row(i)[j] != 0.0F) return false;
    return true;
  }
  std::vector<float> memory;
  FloatMatrix view;
};

struct LinearInputs {
  std::vector<float> x, weight, bias, grad_y;  // [rows, in], [out, in], [out], [rows, out]
};
LinearInputs random_linear_inputs(const LinearCase& c) {
  return {test::random_values(c.rows() * c.in, 1), test::random_values(c.out * c.in, 2), test::random_values(c.out, 3),
          test::random_values(c.rows() * c.out, 4)};
}

struct LinearResults {
  std::vector<float> y, grad_x, grad_weight, grad_bias;
};

// Inputs whose padding is NaN (it must not be read), outputs and scratch full of NaN.
LinearResults run(const LinearCase& c, int threads, const LinearInputs& in) {
  const PoisonedContext context(threads, linear_scratch(c.shards, c.in, c.out));
  const Exec& exec = context.exec();
  const int64_t in_stride = padded_cols(c.in), out_stride = padded_cols(c.out);
  const PaddedMatrix x(c.rows(), c.in, in_stride, in.x), grad_y(c.rows(), c.out, out_stride, in.grad_y);
  PaddedMatrix y(c.rows(), c.out, out_stride), grad_x(c.rows(), c.in, in_stride);
  LinearResults r{.y = {},
                  .grad_x = {},
                  .grad_weight = std::vector<float>(in.weight.size(), test::kNaN),
                  .grad_bias = std::vector<float>(in.bias.size(), test::kNaN)};
  linear_forward(exec, c.shards, x.view, in.weight.data(), c.bias ? in.bias.data() : nullptr, y.view);
  linear_backward_data(exec, c.shards, grad_y.view, in.weight.data(), grad_x.view);
  linear_backward_weights(exec, c.shards, x.view, grad_y.view, r.grad_weight.data(),
                          c.bias ? r.grad_bias.data() : nullptr);
  EXPECT_TRUE(y.padding_is_zero() && grad_x.padding_is_zero());
  r.y = y.plain(), r.grad_x = grad_x.plain();
  return r;
}

TEST(Linear, HandNumbers) {
  // W = [1 2; 3 4; 5 6], b = (10, 20, 30), x = (1, 2) and (0, -1)
  const LinearCase c{.shards = 1, .samples = 2, .in = 2, .out = 3};
  const LinearInputs in{
      .x = {1, 2, 0, -1}, .weight = {1, 2, 3, 4, 5, 6}, .bias = {10, 20, 30}, .grad_y = {1, 0, -1, 2, 1, 0}};
  const auto got = run(c, 1, in);
  EXPECT_THAT(got.y, ElementsAre(15, 31, 47, 8, 16, 24));
  EXPECT_THAT(got.grad_x, ElementsAre(1 - 5, 2 - 6, 2 + 3, 4 + 4));
  EXPECT_THAT(got.grad_weight, ElementsAre(1, 2 - 2, 0, 0 - 1, -1, -2));  // column o: sum of grad_y[i][o] * x[i]
  EXPECT_THAT(got.grad_bias, ElementsAre(3, 1, -1));
  LinearCase without = c;
  without.bias = false;
  EXPECT_THAT(run(without, 1, in).y, ElementsAre(5, 11, 17, -2, -4, -6));
}

// Dot products of n terms in float: |error| <= n u sum|a||b|.
TEST(Linear, AgreesWithPlainLoops) {
  const LinearCase cases[] = {{1, 1, 1, 1},          {2, 1, 31, 33}, {1, 3, 33, 31, false},
                              {2, 8, 48, 16, false}, {4, 5, 7, 129}, {1, 2, 515, 3}};
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("{} shards of {}, {} to {}", c.shards, c.samples, c.in, c.out));
    const LinearInputs in = random_linear_inputs(c);
    const auto got = run(c, 2, in);
    // sum over k of a(i, k) * b(k, j), and of the absolute values
    const auto expect_product = [](const std::vector<float>& c_got, int64_t rows, int64_t cols, int64_t terms, auto a,
                                   auto b, const float* bias) {
      std::vector<double> want, size;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < cols; ++j) {
          double sum = bias ? bias[j] : 0, abs = std::fabs(sum);
          for (int64_t k = 0; k < terms; ++k)
            sum += double{a(i, k)} * b(k, j), abs += std::fabs(double{a(i, k)} * b(k, j));
          want.push_back(sum), size.push_back(abs);
        }
      }
      EXPECT_TRUE(test::within(c_got, want, [&](size_t i) { return test::sum_error(terms + 1) * size[i]; }));
    };
    const auto at = [](const std::vector<float>& m, int64_t cols) {
      return [&m, cols](int64_t i, int64_t j) { return m[i * cols + j]; };
    };
    const auto turned = [](auto f) { return [f](int64_t i, int64_t j) { return f(j, i); }; };
    const auto x = at(in.x, c.in), w = at(in.weight, c.in), g = at(in.grad_y, c.out);
    expect_product(got.y, c.rows(), c.out, c.in, x, turned(w), c.bias ? in.bias.data() : nullptr);
    expect_product(got.grad_x, c.rows(), c.in, c.out, g, w, nullptr);
    expect_product(got.grad_weight, c.out, c.in, c.rows(), turned(g), x, nullptr);
    const auto one = [](int64_t, int64_t) { return 1.0F; };
    if (c.bias) expect_product(got.grad_bias, c.out, 1, c.rows(), turned(g), one, nullptr);
  }
}

TEST(LinearBits, DependNeitherOnThreadsNorOnTheCutIntoRanks) {
  for (const LinearCase& c : {LinearCase{8, 4, 33, 17}, LinearCase{8, 1, 64, 128}, LinearCase{8, 6, 128, 100}}) {
    const LinearInputs in = random_linear_inputs(c);
    const auto one = run(c, 1, in);
    for (const int threads : {2, 3}) {
      const auto more = run(c, threads, in);
      EXPECT_TRUE(test::same_bits(one.y, more.y));
      EXPECT_TRUE(test::same_bits(one.grad_x, more.grad_x));
      EXPECT_TRUE(test::same_bits(one.grad_weight, more.grad_weight));
      EXPECT_TRUE(test::same_bits(one.grad_bias, more.grad_bias));
    }
    const auto piece = [](const std::vector<float>& v, int64_t s) {
      const auto size = static_cast<ptrdiff_t>(v.size() / 8);
      return std::vector<float>(v.begin() + s * size, v.begin() + (s + 1) * size);
    };
    std::vector<std::vector<float>> g;  // gradients of weight and bias, one after the other, of each shard
    for (int64_t s = 0; s < 8; ++s) {
      const auto part = run({1, c.samples, c.in, c.out}, 1, {piece(in.x, s), in.weight, in.bias, piece(in.grad_y, s)});
      EXPECT_TRUE(test::same_bits(part.y, piece(one.y, s))) << s;
      EXPECT_TRUE(test::same_bits(part.grad_x, piece(one.grad_x, s))) << s;
      g.push_back(part.grad_weight);
      g.back().insert(g.back().end(), part.grad_bias.begin(), part.grad_bias.end());
    }
    std::vector<float> whole = one.grad_weight, tree, in_sequence;
    whole.insert(whole.end(), one.grad_bias.begin(), one.grad_bias.end());
    for (size_t i = 0; i < whole.size(); ++i) {
      tree.push_back(((g[0][i] + g[1][i]) + (g[2][i] + g[3][i])) + ((g[4][i] + g[5][i]) + (g[6][i] + g[7][i])));
      in_sequence.push_back(0.0F);
      for (const auto& part : g) in_sequence.back() += part[i];
    }
    EXPECT_TRUE(test::same_bits(whole, tree));
    EXPECT_FALSE(test::same_bits(in_sequence, tree)) << "the inputs cannot distinguish the orders";
  }
}

TEST(Linear, RefusesWrongShapes) {
  const PoisonedContext context(1, linear_scratch(2, 3, 5));
  const Exec& exec = context.exec();
  PaddedMatrix x(4, 3, 3), y(4, 5, 5), short_y(3, 5, 5), narrow(4, 5, 4);
  const std::vector<float> w(15);
  std::vector<float> grad(15);
  EXPECT_THAT([&] { linear_forward(exec, 2, x.view, w.data(), nullptr, short_y.view); }, test::fires("4 and 3 rows"));
  EXPECT_THAT([&] { linear_forward(exec, 3, x.view, w.data(), nullptr, y.view); }, test::fires("in 3 shards"));
  EXPECT_THAT([&] { linear_backward_data(exec, 0, y.view, w.data(), x.view); }, test::fires("in 0 shards"));
  EXPECT_THAT([&] { linear_forward(exec, 2, x.view, w.data(), nullptr, narrow.view); },
              test::fires("bad matrix width"));
  EXPECT_THAT([&] { linear_backward_weights(CpuExec{}, 2, x.view, y.view, grad.data(), nullptr); },
              test::fires("bytes of workspace"));
}

// [1 2; 3 4] and its transposes, alpha and beta, strides beyond the width.
TEST(Gemm, HandNumbers) {
  const float a[] = {1, 2, 99, 3, 4, 99}, b[] = {5, 6, 7, 8};
  const ConstFloatMatrix ma{a, 2, 2, 3}, mb{b, 2, 2, 2};
  const auto product = [&](Op op_a, Op op_b, GemmScale scale, float start) {
    std::vector<float> c(8, start);
    parallel_for(CpuExec{}, 1, [&](int64_t, int) { gemm(ma, op_a, mb, op_b, scale, FloatMatrix{c.data(), 2, 2, 4}); });
    EXPECT_TRUE(test::same_bits(std::vector{c[2], c[3]}, std::vector{start, start}));  // beyond the width: untouched
    return std::vector<float>{c[0], c[1], c[4], c[5]};
  };
  EXPECT_THAT(product(Op::kNone, Op::kNone, {}, test::kNaN), ElementsAre(19, 22, 43, 50));
  EXPECT_THAT(product(Op::kTranspose, Op::kNone, {}, test::kNaN), ElementsAre(26, 30, 38, 44));
  EXPECT_THAT(product(Op::kNone, Op::kTranspose, {}, test::kNaN), ElementsAre(17, 23, 39, 53));
  EXPECT_THAT(product(Op::kTranspose, Op::kTranspose, {}, test::kNaN), ElementsAre(23, 31, 34, 46));
  EXPECT_THAT(product(Op::kNone, Op::kNone, {.alpha = 2, .beta = 1}, 100), ElementsAre(138, 144, 186, 200));
}

TEST(Gemm, RefusesWrongShapesAndManyThreads) {
  std::vector<float> v(16);
  const ConstFloatMatrix a{v.data(), 2, 3, 3};
  const FloatMatrix c{v.data(), 2, 2, 2};
  EXPECT_THAT([&] { gemm(a, Op::kNone, {v.data(), 2, 2, 2}, Op::kNone, {}, c); }, test::fires("[2, 3] x [2, 2]"));
  EXPECT_THAT([&] { gemm(a, Op::kNone, {v.data(), 3, 2, 1}, Op::kNone, {}, c); }, test::fires("strides 3, 1, 2"));
  const int before = omp_get_max_threads();
  omp_set_num_threads(2);
  EXPECT_THAT([&] { gemm(a, Op::kNone, {v.data(), 3, 2, 2}, Op::kNone, {}, c); }, test::fires("outside parallel_for"));
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace simclr
