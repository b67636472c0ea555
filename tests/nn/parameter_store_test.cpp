// The two runs of memory behind all parameters: where each starts, what the gaps hold, which part is summed over ranks.
#include "src/nn/parameter_store.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/kernels/kernel_support.h"

namespace simclr {
namespace {

TEST(ParameterStore, LaysPerRankGradientsFirstAndStartsEachParameterAt256Bytes) {
  Context context(1);
  ParameterStore store;
  Parameter& a = store.add("a.weight", {2, 5}, GradientScope::kPerRank);        // 10 elements: 64 with the gap
  Parameter& norm = store.add("norm.weight", {3}, GradientScope::kGlobal);      // 3: 64
  Parameter& b = store.add("b.weight", {65}, GradientScope::kPerRank);          // 65: 128
  Parameter& c = store.add("c.weight", {4, 4, 2, 2}, GradientScope::kPerRank);  // 64: 64, no gap
  EXPECT_EQ(a.value, nullptr);
  store.allocate(context);

  EXPECT_EQ(a.grad, store.gradients().data());
  EXPECT_EQ(b.grad - a.grad, 64);
  EXPECT_EQ(c.grad - b.grad, 128);
  EXPECT_EQ(norm.grad - c.grad, 64);
  EXPECT_EQ(store.gradients().size(), 64u + 128 + 64 + 64);
  EXPECT_EQ(store.per_rank_gradients().data(), store.gradients().data());
  EXPECT_EQ(store.per_rank_gradients().size(), 64u + 128 + 64);
  for (const auto& p : store.parameters()) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p.value) % 256, 0u) << p.name;
    EXPECT_EQ(p.value - a.value, p.grad - a.grad) << p.name;  // values are laid out as gradients are
  }
  for (const float g : store.gradients()) ASSERT_EQ(g, 0.0F);
}

TEST(ParameterStore, CountsElementsWithoutGaps) {
  Context context(1);
  ParameterStore store;
  store.add("w", {2, 3, 1, 1}, GradientScope::kPerRank);
  store.add("b", {2}, GradientScope::kPerRank);
  EXPECT_EQ(store.element_count(), 8);
  EXPECT_FALSE(store.parameters()[0].one_dimensional());
  EXPECT_TRUE(store.parameters()[1].one_dimensional());
}

TEST(ParameterStore, BuffersDoNotOverlapAndAreNotParameters) {
  Context context(1);
  ParameterStore store;
  store.add("w", {2}, GradientScope::kGlobal);
  NamedBuffer& mean = store.add_buffer("running_mean", {70});
  NamedBuffer& var = store.add_buffer("running_var", {70});
  store.allocate(context);
  EXPECT_EQ(var.value - mean.value, 128);
  EXPECT_EQ(store.parameters().size(), 1u);
  EXPECT_EQ(store.gradients().size(), 64u);
  EXPECT_EQ(store.per_rank_gradients().size(), 0u);
}

TEST(ParameterStore, RefusesTwoOfOneNameAndLateComers) {
  Context context(1);
  ParameterStore store;
  store.add("w", {2}, GradientScope::kPerRank);
  EXPECT_THAT([&] { store.add("w", {3}, GradientScope::kPerRank); }, test::fires("two parameters are called w"));
  store.allocate(context);
  EXPECT_THAT([&] { store.add("v", {2}, GradientScope::kPerRank); }, test::fires("v is added after allocate()"));
  EXPECT_THAT([&] { store.add_buffer("m", {2}); }, test::fires("m is added after allocate()"));
}

}  // namespace
}  // namespace simclr
