// kernels/common: the error macros fire and say where, sums go in tree order, loops run each index once and keep
// libraries to one thread, scratch that is too small is refused, views find their elements.
#include <atomic>
#include <stdexcept>

#include "kernels/common/bfloat16.h"
#include "kernels/common/ordered_tree.h"
#include "kernels/common/parallel.h"
#include "tests/kernels/kernel_support.h"

namespace simclr {
namespace {

TEST(Error, FailThrowsCodeAndText) {
  try {
    fail(ExitCode::kData, "{}: {} bytes, {} expected", "a.bin", 3, 4);
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::kData);
    EXPECT_STREQ(e.what(), "a.bin: 3 bytes, 4 expected");
  }
  EXPECT_EQ(static_cast<int>(ExitCode::kUsage), 2);  // what the shell sees is part of the interface
  EXPECT_EQ(static_cast<int>(ExitCode::kStopped), 75);
}

TEST(Error, CheckNamesFileLineConditionAndMessage) {
  const int rows = 3;
  int line = 0;
  try {
    line = __LINE__ + 1;
    SIMCLR_CHECK(rows == 4, "x has {} rows", rows);
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::kOther);
    const std::string text = e.what();
    EXPECT_THAT(text, testing::HasSubstr(fmt::format("common_test.cpp:{}: x has 3 rows (rows == 4)", line)));
    EXPECT_EQ(text.find('\n'), std::string::npos);  // one line
  }
}

TEST(Error, CheckIsOneStatementAndEvaluatesOnce) {
  int evaluated = 0;
  if (evaluated == 0)
    SIMCLR_CHECK(++evaluated == 1, "unreachable {}", evaluated++);
  else
    FAIL();
  EXPECT_EQ(evaluated, 1);  // the condition once, the message not at all
}

// Values for which the orders differ: 1 + 2^-24 rounds to 1, so only pairs of small ones count.
TEST(OrderedTree, SumsInTreeOrder) {
  const float e = 0x1p-24F;
  const auto tree = [](std::vector<float> v) {
    ordered_tree_sum<float>([&](int64_t i) { return &v[i]; }, static_cast<int64_t>(v.size()), 0, 1);
    return v[0];
  };
  EXPECT_EQ(tree({5}), 5.0F);
  EXPECT_EQ(tree({1, e, e, e}), 1 + 2 * e);              // (1+e) + (e+e); one after the other: 1
  EXPECT_EQ(tree({e, e, e, e, 1, e, e, e}), 1 + 6 * e);  // 4e + ((1+e) + 2e) = 4e + (1+2e)
  EXPECT_EQ(tree({e, e, 1, e, e, e, e, e}), 1 + 6 * e);  // (2e + (1+e)) + 4e = (1+2e) + 4e
  EXPECT_EQ(tree({e, 1, e, -1}), e);                     // (e+1) + (e-1) = 1 + (e-1); one after the other: 0
}

TEST(OrderedTree, TouchesItsRangeOnly) {
  std::vector<std::vector<double>> parts = {{1, 2, 3}, {10, 20, 30}, {100, 200, 300}, {1000, 2000, 3000}};
  ordered_tree_sum<double>([&](int64_t i) { return parts[i].data(); }, 4, 1, 2);
  EXPECT_THAT(parts[0], testing::ElementsAre(1, 2222, 3));
  EXPECT_THAT(parts[1], testing::ElementsAre(10, 20, 30));
}

TEST(OrderedTree, RefusesCountsThatAreNotPowersOfTwo) {
  std::vector<float> v(8);
  for (const int64_t count : {0, 3, 6})
    EXPECT_THAT([&] { ordered_tree_sum<float>([&](int64_t i) { return &v[i]; }, count, 0, 1); },
                test::fires("power of two"));
}

TEST(ParallelFor, RunsEveryIndexOnce) {
  for (const int threads : {1, 2, 5}) {
    for (const int64_t count : {0, 1, 2, 7, 100}) {
      std::vector<std::atomic<int>> runs(count);
      parallel_for(CpuExec{.threads = threads}, count, [&](int64_t i, int thread) {
        EXPECT_TRUE(thread >= 0 && thread < threads);
        ++runs[i];
      });
      for (const auto& r : runs) EXPECT_EQ(r, 1);
    }
  }
}

// What each thread calls must see one thread: the bits of a library follow its thread count.
TEST(ParallelFor, HidesThreadsFromLibraries) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(4);
  for (const int threads : {1, 3}) {
    std::atomic<int> seen = 0, nested = 0;
    parallel_for(CpuExec{.threads = threads}, 12, [&](int64_t, int) {
      if (omp_get_max_threads() != 1) ++seen;
#pragma omp parallel
      if (omp_get_num_threads() != 1) ++nested;
    });
    EXPECT_EQ(seen, 0);
    EXPECT_EQ(nested, 0);
    EXPECT_EQ(omp_get_max_threads(), 4) << "the caller's own setting is left alone";
  }
  omp_set_num_threads(before);
}

TEST(ParallelFor, PassesExceptionsOn) {
  for (const int threads : {1, 3}) {
    std::atomic<int> finished = 0;
    EXPECT_THAT(
        [&] {
          parallel_for(CpuExec{.threads = threads}, 10, [&](int64_t i, int) {
            if (i == 4) throw std::out_of_range("four");
            ++finished;
          });
        },
        testing::ThrowsMessage<std::out_of_range>("four"));
    EXPECT_EQ(finished, 9);
  }
}

TEST(Exec, RefusesTooLittleWorkspace) {
  alignas(16) std::byte memory[64];
  const CpuExec exec{.workspace = memory, .workspace_bytes = sizeof memory};
  EXPECT_EQ(static_cast<void*>(workspace_as<double>(exec, 8)), memory);
  EXPECT_THAT([&] { workspace_as<double>(exec, 9); }, test::fires("needs 72 bytes of workspace, it has 64"));
}

TEST(Exec, ScratchOfThreadsFollowsOneAnother) {
  std::byte memory[96];
  const CpuExec exec{.threads = 3, .thread_scratch = memory, .thread_scratch_bytes = 32};
  EXPECT_EQ(exec.scratch_of(0), memory);
  EXPECT_EQ(exec.scratch_of(2), memory + 64);
}

TEST(Exec, NeedsTakeTheMaximumOfEach) {
  ScratchNeed need{.workspace_bytes = 10, .thread_bytes = 5};
  need.widen({.workspace_bytes = 7, .thread_bytes = 9});
  EXPECT_EQ(need.workspace_bytes, 10U);
  EXPECT_EQ(need.thread_bytes, 9U);
}

TEST(Views, RoundUp) {
  EXPECT_EQ(round_up(0, 16), 0);
  EXPECT_EQ(round_up(1, 16), 16);
  EXPECT_EQ(round_up(16, 16), 16);
  EXPECT_EQ(round_up(17, 16), 32);
  EXPECT_TRUE(channel_block() == 8 || channel_block() == 16);
  EXPECT_LE(channel_block(), kMaxChannelBlock);
}

TEST(Views, FindSamplesShardsAndRows) {
  const int64_t block = channel_block();
  std::vector<float> memory(2 * 3 * 2 * block * 4 * 5);
  const Activation a{memory.data(), 2, 3, block + 1, 4, 5};
  EXPECT_EQ(a.padded_channels(), 2 * block);
  EXPECT_EQ(a.sample_elements(), 2 * block * 20);
  EXPECT_EQ(a.elements(), static_cast<int64_t>(memory.size()));
  EXPECT_EQ(a.sample(5).as<float>(), memory.data() + 5 * 2 * block * 20);
  EXPECT_EQ(a.shard(1), a.sample(3));
  EXPECT_TRUE(a.same_shape(ConstActivation(a)));
  EXPECT_FALSE(a.same_shape(Activation{memory.data(), 2, 3, block + 2, 4, 5}));

  const Images images{memory.data(), 2, 3, 3, 4, 5};  // no padding
  EXPECT_EQ(images.sample_elements(), 60);
  EXPECT_EQ(images.elements(), 360);
  EXPECT_EQ(images.shard(1), images.sample(3));

  const Matrix m{memory.data(), 6, block + 1, padded_cols(block + 1)};
  EXPECT_EQ(m.stride, 2 * block);
  EXPECT_EQ(m.row(2).as<float>(), memory.data() + 4 * block);
  EXPECT_EQ(m.elements(), 12 * block);
  const Matrix part = m.slice(2, 3);
  EXPECT_EQ(part.data, m.row(2));
  EXPECT_EQ(part.rows, 3);
  EXPECT_EQ(part.stride, m.stride);
  const Activation as = as_activation(m, 2);
  EXPECT_EQ(as.samples, 3);
  EXPECT_EQ(as.sample(4), m.row(4));
  EXPECT_TRUE(as.is_in(Layout::kBlocked) && as.is_in(Layout::kNhwc) && !as.is_in(Layout::kNchw));
  EXPECT_TRUE(a.is_in(Layout::kBlocked) && !a.is_in(Layout::kNhwc));
  Activation other = a;
  other.layout = Layout::kNhwc;
  EXPECT_FALSE(a.same_shape(other));
}

// A view whose elements may be bfloat16 cannot be indexed, nor read through a pointer that it did not check.
template <typename View>
concept Indexable = requires(const View& v) {
  v.data[0];
}
|| requires(const View& v) {
  *v.data;
};
template <typename View>
concept GivesFloats = std::is_convertible_v<decltype(View::data), const float*>;
static_assert(!Indexable<Activation> && !Indexable<ConstActivation> && !GivesFloats<Activation>);
static_assert(!Indexable<Images> && !Indexable<ConstImages> && !GivesFloats<Images>);
static_assert(!Indexable<Matrix> && !Indexable<ConstMatrix> && !GivesFloats<Matrix>);
static_assert(Indexable<FloatMatrix> && Indexable<ActivationView<const Bfloat16*>>);
static_assert(std::is_convertible_v<FloatMatrix, ConstMatrix> && !std::is_convertible_v<Matrix, FloatMatrix>);
static_assert(!std::is_convertible_v<ConstMatrix, Matrix> && !std::is_convertible_v<ConstFloatMatrix, Matrix>);

TEST(Views, GiveElementsOnlyAsWhatIsStored) {
  std::vector<float> floats(4 * kMaxChannelBlock);
  std::vector<Bfloat16> halves(4 * kMaxChannelBlock);
  const int64_t cols = channel_block();
  const Matrix wide{floats.data(), 4, cols, cols}, narrow{halves.data(), 4, cols, cols};
  EXPECT_EQ(wide.type(), DataType::kFloat32);
  EXPECT_EQ(narrow.type(), DataType::kBfloat16);
  EXPECT_EQ(wide.as<float>().row(3), floats.data() + 3 * cols);
  EXPECT_EQ(narrow.as<Bfloat16>().row(3), halves.data() + 3 * cols);
  EXPECT_EQ(narrow.row(3).as<Bfloat16>(), halves.data() + 3 * cols);  // counted in elements
  EXPECT_THAT([&] { narrow.as<float>(); }, test::fires("elements of 2 bytes are stored"));
  EXPECT_THAT([&] { as_activation(wide, 2).as<Bfloat16>(); }, test::fires("elements of 2 bytes were asked for"));
  const Elements none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.as<float>(), nullptr);
  EXPECT_EQ(none.as<Bfloat16>(), nullptr);  // an argument that is left out has no type
}

}  // namespace
}  // namespace simclr
