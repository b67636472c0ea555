// The movements of rows on CUDA against the CPU.
#include "kernels/row_order/row_order.h"

#include <utility>

#include "tests/kernels/cuda_support.h"

namespace simclr {
namespace {

using test::CudaMatrix;
using test::CudaRun;

constexpr DataType kFloat = DataType::kFloat32;

// Copies and single additions: the bits of the CPU, and nothing written outside the columns.
TEST(RowOrderCuda, HasTheBitsOfTheCpu) {
  const Exec cpu = CpuExec{.threads = 1};
  const CudaRun cuda(Precision::kFp32, {});
  for (const int64_t columns : {1, 3, 33, 128}) {
    for (const auto& [n, shards] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 2}, {5, 8}, {33, 4}}) {
      const int64_t rows = 2 * n * shards, stride = columns + 5;
      auto values = test::random_values(rows * columns, 1), other = test::random_values(rows * columns, 2);
      const auto matrix = [&](std::vector<float>& v) { return FloatMatrix{v.data(), rows, columns, columns}; };
      std::vector<float> global(values.size()), by_shard(values.size()), sum = values;
      shards_to_global_order(cpu, matrix(values), shards, matrix(global));
      global_to_shard_order(cpu, matrix(values), shards, matrix(by_shard));
      add_rows(cpu, matrix(other), matrix(sum));

      const CudaMatrix in(kFloat, rows, columns, stride, values), more(kFloat, rows, columns, columns, other),
          out(kFloat, rows, columns, columns), back(kFloat, rows, columns, stride, values),
          total(kFloat, rows, columns, stride, values);
      shards_to_global_order(cuda.exec(), in.view(), shards, out.view());
      EXPECT_TRUE(test::same_bits(out.plain(), global));
      global_to_shard_order(cuda.exec(), in.view(), shards, back.view());
      EXPECT_TRUE(test::same_bits(back.plain(), by_shard));
      add_rows(cuda.exec(), more.view(), total.view());
      EXPECT_TRUE(test::same_bits(total.plain(), sum));
      EXPECT_TRUE(back.padding_is_zero() && total.padding_is_zero());
    }
  }
}

}  // namespace
}  // namespace simclr
