// Weights in the Winograd domain: against the library's own reorder, against G g G^T in double, and the layouts that
// are not taken for known. Only with oneDNN 2.x, which has them.
#include "kernels/conv2d/winograd_weights.h"

#include <cmath>

#include "kernels/common/onednn.h"
#include "onednn_create.h"
#include "onednn_winograd.h"
#include "tests/kernels/kernel_support.h"

namespace simclr {
namespace {

using conv2d::Pass;
using dnnl::memory;
using Format = memory::format_tag;

constexpr int64_t kBlock = WinogradLayout::kBlock;

// As the library's forward convolution of 16 samples of 8x8 takes it.
memory::desc transformed_desc(int64_t out, int64_t in) {
  const onednn::SingleThreadScope single;
  const auto map = [](int64_t channels) {
    return memory::desc({16, channels, 8, 8}, memory::data_type::f32, Format::nChw16c);
  };
  const memory::desc any({out, in, 3, 3}, memory::data_type::f32, Format::any);
  return onednn::describe_forward(onednn::cpu_engine(), dnnl::prop_kind::forward_inference,
                                  dnnl::algorithm::convolution_winograd,
                                  {map(in), any, map(out), {1, 1}, {1, 1}, {1, 1}}, {})
      .weights_desc();
}

struct Channels {
  int64_t out, in;
};

class WinogradWeights : public testing::TestWithParam<Channels> {
 protected:
  void SetUp() override {
    if (channel_block() != kBlock) GTEST_SKIP() << "this processor has no Winograd convolution";
    std::tie(out_, in_) = std::pair{GetParam().out, GetParam().in};
    desc_ = transformed_desc(out_, in_);
    const auto layout = onednn::winograd_layout(desc_);
    ASSERT_TRUE(layout);
    layout_ = *layout;
    weight_ = test::random_values(out_ * in_ * 9, 5);
  }

  std::vector<float> transform(const std::vector<float>& weight, Pass pass, int threads = 1) const {
    std::vector<float> u(layout_.elements(), test::kNaN);
    const bool forward = pass == Pass::kForward;
    conv2d::transform_weights(CpuExec{.threads = threads}, weight.data(), forward ? out_ : in_, forward ? in_ : out_,
                              pass, layout_, u.data());
    return u;
  }

  int64_t out_ = 0, in_ = 0;
  memory::desc desc_;
  WinogradLayout layout_;
  std::vector<float> weight_;
};

// G of the points 0, 5/8, -5/8, 3/2, -3/2 and infinity, as it is defined: |G g G^T| where `size` is asked for.
double expected(const float* g, int64_t u, int64_t v, bool size) {
  const double points[] = {0, 0.625, -0.625, 1.5, -1.5};
  const auto entry = [&](int64_t row, int k) {
    if (row == 5) return k == 2 ? 1.0 : 0.0;
    double value = std::pow(points[row], k);
    for (int64_t other = 0; other < 5; ++other)
      if (other != row) value /= points[row] - points[other];
    return value;
  };
  double sum = 0;
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 3; ++c) {
      const double term = entry(u, r) * g[3 * r + c] * entry(v, c);
      sum += size ? std::fabs(term) : term;
    }
  return sum;
}

// Two transforms in float32: each of their three terms is rounded, as are the constants.
constexpr double kBound = 10 * test::kUnit;

TEST_P(WinogradWeights, AreGTimesWindowTimesGTransposed) {
  const auto u = transform(weight_, Pass::kForward);
  std::vector<double> want(u.size(), 0), bound(u.size(), 0);
  size_t at = 0;
  const int64_t out_groups = layout_.out / layout_.out_group, in_groups = layout_.in / layout_.in_group;
  for (int64_t og = 0; og < out_groups; ++og)
    for (int64_t row = 0; row < 6; ++row)
      for (int64_t column = 0; column < 6; ++column)
        for (int64_t ig = 0; ig < in_groups; ++ig)
          for (int64_t ob = 0; ob < layout_.out_group; ++ob)
            for (int64_t i = 0; i < layout_.in_group * kBlock; ++i)
              for (int64_t o = 0; o < kBlock; ++o, ++at) {
                const int64_t out = (og * layout_.out_group + ob) * kBlock + o;
                const int64_t in = ig * layout_.in_group * kBlock + i;
                if (out >= out_ || in >= in_) continue;
                const float* g = weight_.data() + (out * in_ + in) * 9;
                want[at] = expected(g, row, column, false);
                bound[at] = kBound * expected(g, row, column, true);
              }
  ASSERT_EQ(at, u.size());
  EXPECT_TRUE(test::within(u, want, [&](size_t i) { return bound[i]; }));
}

TEST_P(WinogradWeights, AreThoseOfTheLibrary) {
  const auto u = transform(weight_, Pass::kForward);
  std::vector<float> theirs(u.size(), test::kNaN);
  ASSERT_EQ(desc_.get_size(), theirs.size() * sizeof(float));
  memory plain({{out_, in_, 3, 3}, memory::data_type::f32, Format::oihw}, onednn::cpu_engine(), weight_.data());
  memory transformed(desc_, onednn::cpu_engine(), theirs.data());
  dnnl::reorder(plain, transformed).execute(onednn::thread_stream(), plain, transformed);
  onednn::thread_stream().wait();
  // Windows of values in [-1, 1]; the largest row of G sums to 1.4.
  EXPECT_TRUE(test::within(u, test::widen(theirs), [](size_t) { return 2 * kBound * 1.4 * 1.4; }));
}

TEST_P(WinogradWeights, OfBackwardDataAreTurnedAndTransposed) {
  std::vector<float> other(weight_.size());  // [in, out, 3, 3]
  for (int64_t o = 0; o < out_; ++o)
    for (int64_t i = 0; i < in_; ++i)
      for (int64_t t = 0; t < 9; ++t) other[(i * out_ + o) * 9 + t] = weight_[(o * in_ + i) * 9 + 8 - t];
  EXPECT_TRUE(test::same_bits(transform(other, Pass::kBackwardData), transform(weight_, Pass::kForward)));
}

TEST_P(WinogradWeights, BitsDoNotDependOnThreads) {
  EXPECT_TRUE(test::same_bits(transform(weight_, Pass::kForward, 3), transform(weight_, Pass::kForward)));
}

std::string channels_name(const testing::TestParamInfo<Channels>& info) {
  return fmt::format("{}of{}", info.param.out, info.param.in);
}
INSTANTIATE_TEST_SUITE_P(Channels, WinogradWeights,
                         testing::Values(Channels{16, 16}, Channels{20, 33}, Channels{31, 5}, Channels{1, 100},
                                         Channels{64, 96}, Channels{112, 80}, Channels{256, 128}),
                         channels_name);

TEST(WinogradLayouts, ThatAreNotKnownAreNotTaken) {
  EXPECT_FALSE(onednn::winograd_layout({{16, 16, 3, 3}, memory::data_type::f32, Format::OIhw16i16o}));
  if (channel_block() != kBlock) GTEST_SKIP() << "this processor has no Winograd convolution";
  const memory::desc known = transformed_desc(64, 64);
  const auto taken_with = [&](auto&& change) {
    memory::desc other = known;
    change(other.data, other.data.format_desc.wino_desc);
    return onednn::winograd_layout(other).has_value();
  };
  using Desc = dnnl_memory_desc_t;
  using Wino = dnnl_wino_desc_t;
  EXPECT_TRUE(taken_with([](Desc&, Wino&) {}));
  EXPECT_FALSE(taken_with([](Desc&, Wino& w) { w.wino_format = dnnl_wino_wei_aaOBiOo; }));
  EXPECT_FALSE(taken_with([](Desc&, Wino& w) { w.alpha = 4; }));
  EXPECT_FALSE(taken_with([](Desc&, Wino& w) { w.r = 5; }));
  EXPECT_FALSE(taken_with([](Desc&, Wino& w) { w.ic_block = 8; }));
  EXPECT_FALSE(taken_with([](Desc&, Wino& w) { w.oc_block = 32; }));
  EXPECT_FALSE(taken_with([](Desc&, Wino& w) { w.ic2_block = 3; }));
  EXPECT_FALSE(taken_with([](Desc&, Wino& w) { w.oc2_block = 0; }));
  EXPECT_FALSE(taken_with([](Desc&, Wino& w) { w.oc = 48; }));
  EXPECT_FALSE(taken_with([](Desc&, Wino& w) { w.size += 64; }));
  EXPECT_FALSE(taken_with([](Desc& m, Wino&) { m.data_type = dnnl_s8; }));
  EXPECT_FALSE(taken_with([](Desc& m, Wino&) { m.extra.flags = dnnl_memory_extra_flag_scale_adjust; }));
}

}  // namespace
}  // namespace simclr
