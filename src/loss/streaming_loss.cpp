// The distributed part of streaming InfoNCE: which rows and numbers go where. No formula of the loss stands here.
#include "src/loss/streaming_loss.h"

#include "kernels/l2_normalize/l2_normalize.h"
#include "kernels/ordered_sum/ordered_sum.h"
#include "kernels/row_order/row_order.h"
#include "src/loss/infonce_problem.h"

namespace simclr {

StreamingLoss::StreamingLoss(Context& context, Collectives& collectives, const LossSettings& settings,
                             const LossShape& shape)
    : context_(context),
      collectives_(collectives),
      shape_(shape),
      problem_(make_infonce_problem(collectives, settings, shape)),
      e_local_(allocate(problem_.anchors())),
      e_all_(allocate(problem_.keys())),
      by_shard_(allocate(problem_.keys())),
      norms_(context.allocate_elements<double>(problem_.anchors())),
      shard_losses_(context.allocate_elements<double>(problem_.shards)),
      loss_(context.allocate_elements<double>(1)),
      log_denominators_(context.allocate_elements<double>(problem_.keys())),
      saved_memory_(context.allocate(streaming_saved_bytes(problem_))),
      saved_(streaming_saved(problem_, saved_memory_.as<std::byte>())) {
  memory_bytes_ +=
      norms_.bytes() + shard_losses_.bytes() + loss_.bytes() + log_denominators_.bytes() + saved_memory_.bytes();
  context.reserve(streaming_scratch(problem_, !context.device().is_cpu()));
}

Buffer StreamingLoss::allocate(int64_t rows) {
  Buffer buffer = context_.allocate_elements<float>(rows * shape_.columns);
  memory_bytes_ += buffer.bytes();
  return buffer;
}

FloatMatrix StreamingLoss::rows_of(const Buffer& buffer) const {
  const auto floats = buffer.as<float>();
  return {floats.data(), std::ssize(floats) / shape_.columns, shape_.columns, shape_.columns};
}

const double* StreamingLoss::forward(const ConstMatrix& z) {
  const Exec& exec = context_.exec();
  const ProfileSpan span(context_.profiler(), {OpKind::kLoss, "loss", "forward"},
                         [&] { return infonce_work(problem_, 1); });
  SIMCLR_CHECK(z.rows == problem_.anchors() && z.cols == shape_.columns,
               "z is [{}, {}], the loss was made for [{}, {}]", z.rows, z.cols, problem_.anchors(), shape_.columns);
  l2_normalize_forward(exec, z, rows_of(e_local_), norms_.as<double>());

  // Ranks own consecutive shards, so what arrives in rank order is in shard order.
  collectives_.all_gather(e_local_.as<float>(), by_shard_.as<float>());
  shards_to_global_order(exec, rows_of(by_shard_), shape_.shards, rows_of(e_all_));

  const auto shard_losses = shard_losses_.as<double>();  // [shards of this rank]
  streaming_forward(exec, rows_of(e_all_), problem_, saved_, shard_losses);
  const auto loss = loss_.as<double>();  // [1]
  ordered_sum(exec, shard_losses.data(), problem_.shards, 1, 1, loss.data());
  collectives_.ordered_sum(loss);
  infonce_mean_loss(exec, loss.data(), problem_.keys(), loss.data());
  has_forward_ = true;
  return loss.data();
}

void StreamingLoss::backward(const Matrix& grad_z) {
  const Exec& exec = context_.exec();
  const ProfileSpan span(context_.profiler(), {OpKind::kLoss, "loss", "backward"},
                         [&] { return infonce_work(problem_, 2); });
  SIMCLR_CHECK(has_forward_, "backward() without a forward() before it");
  has_forward_ = false;
  const auto log_denominators = log_denominators_.as<double>();  // [2B], by shard
  const std::span<const double> own(saved_.log_denominators, problem_.anchors());
  collectives_.all_gather(own, log_denominators);

  const FloatMatrix grad_e = rows_of(by_shard_).slice(0, problem_.anchors());  // [rows of this rank, C]
  streaming_backward(exec, rows_of(e_all_), problem_, saved_, log_denominators, grad_e);
  l2_normalize_backward(exec, rows_of(e_local_), norms_.as<double>(), grad_e, grad_z);
}

std::string StreamingLoss::describe() const {
  return describe_infonce(collectives_, shape_);
}

}  // namespace simclr
