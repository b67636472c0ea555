// CPU: rounds of tiles (streaming_plan.h) over the kernels of one tile (streaming_tile.h).
#include "kernels/infonce_streaming/infonce_streaming.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/numbers.h"
#include "kernels/infonce_common/exp.h"
#include "kernels/infonce_streaming/streaming_layout.h"

namespace simclr::detail {
namespace {

// What a call works with. Everything in the workspace.
struct Work {
  const InfoNceProblem& p;
  const StreamingPlan plan;
  const StreamingLayout layout;
  const TileKernels& kernels;
  const bool fixed_shift;
  float *e, *panels, *columns[2], *grad, *row_tops;
  double* row_sums;
  std::span<int32_t> done;

  Work(const CpuExec& exec, const InfoNceProblem& problem)
      : p(problem),
        plan(problem),
        layout(problem, plan),
        kernels(tile_kernels().front()),
        fixed_shift(problem.temperature >= (2 + problem.margin) / 86) {
    auto* start = workspace_as<std::byte>(exec, layout.bytes);
    const auto floats = [&](int64_t at) { return reinterpret_cast<float*>(start + at); };
    e = floats(layout.e);
    panels = floats(layout.panels);
    columns[0] = floats(layout.columns);
    columns[1] = columns[0] + layout.rows;
    grad = floats(layout.grad);
    row_tops = floats(layout.row_tops);
    row_sums = reinterpret_cast<double*>(start + layout.row_sums);
    done = {reinterpret_cast<int32_t*>(start + layout.done), static_cast<size_t>(plan.tiles())};
    SIMCLR_CHECK(bytes_of<float>(kTile * kTile) <= exec.thread_scratch_bytes,
                 "a tile needs {} floats of scratch, {} bytes are there", kTile * kTile, exec.thread_scratch_bytes);
  }

  StreamingTile tile(int64_t row_tile, int64_t column_tile, const StreamingPlan::Rows& rows) const {
    const double scale = 1 / p.temperature;
    return {.rows = e + row_tile * kTile * layout.width,
            .panels = panels + column_tile * kTile * p.columns,
            .stride = layout.width,
            .depth = p.columns,
            .first_row = row_tile * kTile,
            .first_column = column_tile * kTile,
            .begin = rows.begin,
            .end = rows.end,
            .batch = p.batch,
            .scale = to_float(scale),
            .scale_low = to_float(scale - as_double(to_float(scale)))};
  }
};

// e_all into padded rows and into panels.
void lay_out_embeddings(const CpuExec& exec, const ConstFloatMatrix& e_all, const Work& w) {
  parallel_for(exec, w.layout.rows / kPanel, [&](int64_t group, int) {
    float* panel = w.panels + group * kPanel * w.p.columns;  // [C][32]
    for (int64_t r = 0; r < kPanel; ++r) {
      const int64_t row = group * kPanel + r;
      float* to = w.e + row * w.layout.width;
      const int64_t filled = row < e_all.rows ? w.p.columns : 0;
      if (filled > 0) std::copy_n(e_all.row(row), filled, to);
      std::fill(to + filled, to + w.layout.width, 0.0F);
      for (int64_t c = 0; c < w.p.columns; ++c) panel[c * kPanel + r] = to[c];
    }
  });
}

double dot(const float* a, const float* b, int64_t count) {
  double sum = 0;
  for (int64_t c = 0; c < count; ++c) sum += as_double(a[c]) * as_double(b[c]);
  return sum;
}

// The largest of a tile's row; NaN if one is. Lanes as in streaming_tile.h.
SIMCLR_MULTIVERSION float top_of(const float* s) {
  float lane[16];
  int32_t nans = 0;
  for (int64_t l = 0; l < 16; ++l) lane[l] = -INFINITY;
  for (int64_t j = 0; j < kTile; j += 16) {
    for (int64_t l = 0; l < 16; ++l) {
      lane[l] = s[j + l] > lane[l] ? s[j + l] : lane[l];
      nans += s[j + l] != s[j + l];
    }
  }
  float top = lane[0];
  for (int64_t l = 1; l < 16; ++l) top = lane[l] > top ? lane[l] : top;
  return nans > 0 ? NAN : top;
}

SIMCLR_MULTIVERSION float sum_below(const float* s, float top, float scale) {
  float lane[16] = {};
  for (int64_t j = 0; j < kTile; j += 16) {
    for (int64_t l = 0; l < 16; ++l) lane[l] += exp_nonpositive((s[j + l] - top) * scale);
  }
  for (int64_t step = 8; step > 0; step /= 2) {
    for (int64_t l = 0; l < step; ++l) lane[l] += lane[l + step];
  }
  return lane[0];
}

// s_j -> exp((s_j - row's) / tau) + exp((s_j - column j's) / tau); each u in two floats
SIMCLR_MULTIVERSION void weigh_row(float* s, float row_high, float row_low, const float* high, const float* low,
                                   float scale) {
  for (int64_t j = 0; j < kTile; ++j) {
    s[j] =
        exp_nonpositive(((s[j] - row_high) - row_low) * scale) + exp_nonpositive(((s[j] - high[j]) - low[j]) * scale);
  }
}

// Adds a tile's sum to a row whose sum so far is `sum` * exp(`top` / tau).
void add_to_row(float tile_top, float tile_sum, double temperature, float& top, double& sum) {
  const double difference = (as_double(tile_top) - as_double(top)) / temperature;
  if (difference > 0) {
    sum = sum * std::exp(-difference) + as_double(tile_sum);
    top = tile_top;
  } else {
    sum += as_double(tile_sum) * std::exp(difference);
  }
}

float* tile_memory(const CpuExec& exec, int thread) {
  return reinterpret_cast<float*>(exec.scratch_of(thread));  // [128, 128]
}

void sum_negatives(const CpuExec& exec, const Work& w) {
  std::fill_n(w.row_sums, w.layout.slot_rows, 0.0);
  std::fill_n(w.row_tops, w.layout.slot_rows, w.fixed_shift ? 1.0F : -INFINITY);
  w.plan.for_each_meeting(exec, w.done, w.fixed_shift,
                          [&](int64_t i, int64_t j, const auto& rows, bool both, int thread) {
                            const StreamingTile tile = w.tile(i, j, rows);
                            const int64_t at = w.plan.slot_of(i) * kTile;
                            if (!w.fixed_shift) {
                              float* s = tile_memory(exec, thread);
                              w.kernels.similarities(tile, s);
                              for (int64_t r = rows.begin; r < rows.end; ++r) {
                                const float top = top_of(s + r * kTile);
                                if (top == -INFINITY) continue;  // no negative in this tile
                                add_to_row(top, sum_below(s + r * kTile, top, tile.scale), w.p.temperature,
                                           w.row_tops[at + r], w.row_sums[at + r]);
                              }
                              return;
                            }
                            float row_sums[kTile], column_sums[kTile];
                            w.kernels.sum_exponentials(tile, row_sums, both ? column_sums : nullptr);
                            for (int64_t r = rows.begin; r < rows.end; ++r)
                              w.row_sums[at + r] += as_double(row_sums[r]);
                            if (!both) return;
                            double* of_columns = w.row_sums + w.plan.slot_of(j) * kTile;
                            for (int64_t c = 0; c < kTile; ++c) of_columns[c] += as_double(column_sums[c]);
                          });
}

// Global row -> its place among all anchors, shard after shard.
int64_t shard_row(const InfoNceProblem& p, int64_t global_row) {
  const int64_t view = global_row / p.batch, image = global_row % p.batch;
  return (2 * (image / p.shard_images) + view) * p.shard_images + image % p.shard_images;
}

// What a row's weights need of it: 1 / denominator under the fixed shift, else tau * log of the denominator in two
// floats. Zeros for rows beyond 2B.
void lay_out_denominators(std::span<const double> log_denominators, const Work& w) {
  std::fill_n(w.columns[0], 2 * w.layout.rows, 0.0F);
  for (int64_t row = 0; row < w.p.keys(); ++row) {
    const double d = log_denominators[shard_row(w.p, row)];
    const double number = w.fixed_shift ? std::exp(1 / w.p.temperature - d) : d * w.p.temperature;
    w.columns[0][row] = to_float(number);
    w.columns[1][row] = to_float(number - as_double(w.columns[0][row]));
  }
}

// grad[row] = sum over negatives j of (p_row,j + p_j,row) e_j
void sum_gradients(const CpuExec& exec, const Work& w) {
  std::fill_n(w.grad, w.layout.slot_rows * w.layout.width, 0.0F);
  w.plan.for_each_meeting(exec, w.done, w.fixed_shift,
                          [&](int64_t i, int64_t j, const auto& rows, bool both, int thread) {
                            const StreamingTile tile = w.tile(i, j, rows);
                            float* weights = tile_memory(exec, thread);
                            const int64_t width = w.layout.width;
                            if (w.fixed_shift) {
                              w.kernels.weights(tile, w.columns[0] + i * kTile, w.columns[0] + j * kTile, weights);
                            } else {
                              w.kernels.similarities(tile, weights);
                              for (int64_t r = rows.begin; r < rows.end; ++r) {
                                weigh_row(weights + r * kTile, w.columns[0][i * kTile + r], w.columns[1][i * kTile + r],
                                          w.columns[0] + j * kTile, w.columns[1] + j * kTile, tile.scale);
                              }
                            }
                            const auto add = [&](bool transpose, int64_t from, int64_t to) {
                              const StreamingPlan::Rows wanted = w.plan.rows_of(to);
                              w.kernels.accumulate(weights, transpose, w.e + from * kTile * width, width, wanted.begin,
                                                   wanted.end, w.grad + w.plan.slot_of(to) * kTile * width);
                            };
                            add(false, j, i);
                            if (both) add(true, i, j);
                          });
}

}  // namespace

void streaming_forward(const CpuExec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& p,
                       const StreamingSaved& saved, std::span<double> shard_loss) {
  const Work w(exec, p);
  lay_out_embeddings(exec, e_all, w);
  sum_negatives(exec, w);
  parallel_for(exec, p.shards, [&](int64_t shard, int) {
    double sum = 0;
    for (int64_t row = 0; row < 2 * p.shard_images; ++row) {
      const int64_t anchor = shard * 2 * p.shard_images + row, global = p.global_row(shard, row);
      const int64_t at = w.plan.local_row(global);
      const double s_positive = dot(e_all.row(global), e_all.row((global + p.batch) % p.keys()), p.columns);
      // log(N_i / exp(l_ip)): how far the negatives together are above the positive
      const double gap = std::log(w.row_sums[at]) + (as_double(w.row_tops[at]) - s_positive + p.margin) / p.temperature;
      const double loss = p.decoupled ? gap : std::max(gap, 0.0) + std::log1p(std::exp(-std::abs(gap)));
      saved.losses[anchor] = loss;
      saved.log_denominators[anchor] = (s_positive - p.margin) / p.temperature + loss;
      saved.positive_weights[anchor] = p.decoupled ? 1.0 : 1.0 / (1.0 + std::exp(-gap));
      sum += loss;
    }
    shard_loss[shard] = sum;
  });
}

void streaming_backward(const CpuExec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& p,
                        const StreamingSaved& saved, std::span<const double> log_denominators,
                        const FloatMatrix& grad_e) {
  const Work w(exec, p);
  lay_out_embeddings(exec, e_all, w);
  lay_out_denominators(log_denominators, w);
  sum_gradients(exec, w);
  const double scale = 1 / (as_double(p.keys()) * p.temperature);
  parallel_for(exec, p.shards * 2, [&](int64_t part, int) {
    for (int64_t i = 0; i < p.shard_images; ++i) {
      const int64_t anchor = part * p.shard_images + i;
      const int64_t partner = (part ^ 1) * p.shard_images + i;  // the other view, in the same shard
      const int64_t global = p.global_row(part / 2, part % 2 * p.shard_images + i);
      const float* negatives = w.grad + w.plan.local_row(global) * w.layout.width;
      const float* e_positive = e_all.row((global + p.batch) % p.keys());
      const double pull = saved.positive_weights[anchor] + saved.positive_weights[partner];
      float* grad_row = grad_e.row(anchor);
      for (int64_t c = 0; c < p.columns; ++c) {
        grad_row[c] = to_float(scale * (as_double(negatives[c]) - pull * as_double(e_positive[c])));
      }
      std::fill(grad_row + p.columns, grad_row + grad_e.stride, 0.0F);
    }
  });
}

}  // namespace simclr::detail
