#include "src/check_loss/training_infonce.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/numbers.h"
#include "kernels/l2_normalize/l2_normalize.h"
#include "src/config/config_errors.h"

namespace simclr {
namespace {

void fill(const ViewPair& views, const FloatMatrix& z) {
  for (int64_t row = 0; row < z.rows; ++row) {
    const int64_t view = row / views.images(), image = row % views.images();
    for (int64_t c = 0; c < z.cols; ++c) {
      const double number = views.views[view].at(image, c);
      z.row(row)[c] = to_float(number);
      if (!std::isfinite(z.row(row)[c]))
        fail(ExitCode::kData, "row {}, column {} (both from 0) of {} is {}, too large for fp32; give --precision fp64",
             image, c, shown_path(views.paths[view].string()), number);
    }
  }
}

}  // namespace

TrainingInfoNce::TrainingInfoNce(const ViewPair& views, ImageRange own, const LossSettings& settings, int threads)
    : problem_{.batch = views.images(),
               .shard_images = 1,
               .shards = own.count,
               .first_shard = own.first,
               .columns = views.columns(),
               .temperature = settings.temperature,
               .margin = settings.margin,
               .decoupled = settings.decoupled},
      context_(threads),
      e_(context_.allocate_elements<float>(problem_.keys() * problem_.columns)),
      norms_(context_.allocate_elements<double>(problem_.keys())) {
  fill(views, e_all());
  l2_normalize_forward(context_.exec(), e_all(), e_all(), norms_.as<double>());
  if (!has_rows()) return;
  context_.reserve(streaming_scratch(problem_));
  saved_memory_ = context_.allocate(streaming_saved_bytes(problem_));
  saved_ = streaming_saved(problem_, saved_memory_.as<std::byte>());
}

FloatMatrix TrainingInfoNce::e_all() const {
  return {e_.as<float>().data(), problem_.keys(), problem_.columns, problem_.columns};
}

void TrainingInfoNce::forward(std::span<double> losses, std::span<double> log_denominators) {
  if (!has_rows()) return;
  const Buffer sums = context_.allocate_elements<double>(problem_.shards);
  streaming_forward(context_.exec(), e_all(), problem_, saved_, sums.as<double>());
  std::copy_n(saved_.losses, problem_.anchors(), losses.data());
  std::copy_n(saved_.log_denominators, problem_.anchors(), log_denominators.data());
}

void TrainingInfoNce::backward(std::span<const double> log_denominators, std::span<float> grad_z) {
  if (!has_rows()) return;
  const FloatMatrix grad{grad_z.data(), problem_.anchors(), problem_.columns, problem_.columns};
  streaming_backward(context_.exec(), e_all(), problem_, saved_, log_denominators, grad);
  // forward: e = z / ||z||
  const Buffer e_own = context_.allocate_elements<float>(grad.elements());
  const FloatMatrix e{e_own.as<float>().data(), grad.rows, grad.cols, grad.stride};
  std::vector<double> norms(grad.rows);
  for (int64_t row = 0; row < grad.rows; ++row) {
    const int64_t global = problem_.global_row(row / 2, row % 2);
    std::copy_n(e_all().row(global), e.cols, e.row(row));
    norms[row] = norms_.as<double>()[global];
  }
  l2_normalize_backward(context_.exec(), e, norms, grad, grad);
}

}  // namespace simclr
