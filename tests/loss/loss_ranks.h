// The product's loss on W ranks that are threads of this process: global inputs in, global results out.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "src/device/context.h"
#include "src/loss/contrastive_loss.h"
#include "tests/harness/thread_collectives.h"
#include "tests/kernels/rows_support.h"

namespace simclr::test {

struct LossRun {
  std::vector<double> losses;  // what forward() returned, per rank
  std::vector<float> grad_z;   // [2B, C], by shards
  bool padding_is_zero = true;
};

struct LossRunOptions {
  int ranks = 1;
  int threads = 1;      // per rank
  int64_t padding = 0;  // stride - C of z and grad_z
};

// z [2B, C] in the global row order. Loss and gradient, the way the training loop calls them.
inline LossRun run_loss(const std::vector<float>& z, const LossShape& shape, const LossSettings& settings,
                        const LossRunOptions& options) {
  const std::vector<float> z_by_shards = by_shards(z, shape.shards, shape.columns);
  const int64_t rows = 2 * shape.batch / options.ranks, elements = rows * shape.columns;
  LossRun out{.losses = std::vector<double>(options.ranks, NAN), .grad_z = std::vector<float>(z.size(), kNan)};
  std::vector<char> padding_is_zero(options.ranks, 0);
  run_ranks(options.ranks, [&](Collectives& collectives) {
    const int rank = collectives.rank();
    Context context(options.threads);
    const auto loss = make_loss(context, collectives, settings, shape);
    TestMatrix z_local({&z_by_shards[rank * elements], static_cast<size_t>(elements)}, rows, shape.columns,
                       shape.columns + options.padding);
    TestMatrix grad_z(rows, shape.columns, shape.columns + options.padding);
    out.losses[rank] = *loss->forward(z_local.view());
    loss->backward(grad_z.view());
    std::ranges::copy(grad_z.dense(), out.grad_z.begin() + rank * elements);
    padding_is_zero[rank] = grad_z.padding_is_zero();
  });
  out.padding_is_zero = std::ranges::all_of(padding_is_zero, [](char x) { return x != 0; });
  return out;
}

}  // namespace simclr::test
