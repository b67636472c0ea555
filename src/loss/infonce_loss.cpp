// The distributed part of InfoNCE: which rows go where. No formula of the loss stands here, and no factor of W.
#include "src/loss/infonce_loss.h"

#include "kernels/l2_normalize/l2_normalize.h"
#include "kernels/ordered_sum/ordered_sum.h"
#include "kernels/row_order/row_order.h"
#include "src/loss/infonce_problem.h"

namespace simclr {
namespace {

FloatMatrix rows_of(const Buffer& buffer, int64_t columns) {
  const auto floats = buffer.as<float>();
  return {floats.data(), std::ssize(floats) / columns, columns, columns};
}

}  // namespace

InfoNceLoss::InfoNceLoss(Context& context, Collectives& collectives, const LossSettings& settings,
                         const LossShape& shape)
    : context_(context),
      collectives_(collectives),
      shape_(shape),
      problem_(make_infonce_problem(collectives, settings, shape)),
      e_local_(allocate(problem_.anchors())),
      e_all_(allocate(problem_.keys())),
      by_shard_(allocate(problem_.keys())),
      grad_keys_(allocate(problem_.keys())),
      grad_e_(allocate(problem_.anchors())),
      grad_e_keys_(allocate(problem_.anchors())),
      norms_(context.allocate_elements<double>(problem_.anchors())),
      shard_losses_(context.allocate_elements<double>(problem_.shards)),
      loss_(context.allocate_elements<double>(1)),
      saved_memory_(context.allocate(infonce_saved_bytes(problem_))),
      saved_(infonce_saved(problem_, saved_memory_.as<std::byte>())) {
  memory_bytes_ += norms_.bytes() + shard_losses_.bytes() + loss_.bytes() + saved_memory_.bytes();
  context.reserve(infonce_scratch(problem_));
}

Buffer InfoNceLoss::allocate(int64_t rows) {
  Buffer buffer = context_.allocate_elements<float>(rows * shape_.columns);
  memory_bytes_ += buffer.bytes();
  return buffer;
}

const double* InfoNceLoss::forward(const ConstMatrix& z) {
  const Exec& exec = context_.exec();
  const ProfileSpan span(context_.profiler(), {OpKind::kLoss, "loss", "forward"},
                         [&] { return infonce_work(problem_, 1); });
  SIMCLR_CHECK(z.rows == problem_.anchors() && z.cols == shape_.columns,
               "z is [{}, {}], the loss was made for [{}, {}]", z.rows, z.cols, problem_.anchors(), shape_.columns);
  l2_normalize_forward(exec, z, rows_of(e_local_, shape_.columns), norms_.as<double>());

  // Ranks own consecutive shards, so what arrives in rank order is in shard order.
  collectives_.all_gather(e_local_.as<float>(), by_shard_.as<float>());
  const FloatMatrix e_all = rows_of(e_all_, shape_.columns);  // [2B, C]
  shards_to_global_order(exec, rows_of(by_shard_, shape_.columns), shape_.shards, e_all);

  const auto shard_losses = shard_losses_.as<double>();  // [shards of this rank]
  infonce_forward(exec, e_all, problem_, saved_, shard_losses);
  const auto loss = loss_.as<double>();  // [1]
  ordered_sum(exec, shard_losses.data(), problem_.shards, 1, 1, loss.data());
  collectives_.ordered_sum(loss);
  infonce_mean_loss(exec, loss.data(), problem_.keys(), loss.data());
  has_forward_ = true;
  return loss.data();
}

void InfoNceLoss::backward(const Matrix& grad_z) {
  const Exec& exec = context_.exec();
  const ProfileSpan span(context_.profiler(), {OpKind::kLoss, "loss", "backward"},
                         [&] { return infonce_work(problem_, 2); });
  SIMCLR_CHECK(has_forward_, "backward() without a forward() before it");
  has_forward_ = false;
  const FloatMatrix grad_e = rows_of(grad_e_, shape_.columns);        // [rows of this rank, C]
  const FloatMatrix grad_keys = rows_of(grad_keys_, shape_.columns);  // [2B, C]
  infonce_backward(exec, rows_of(e_all_, shape_.columns), problem_, saved_, grad_e, grad_keys);

  // forward: all_gather e. Its backward is a reduce_scatter: every rank holds a part of the gradient of every row.
  global_to_shard_order(exec, grad_keys, shape_.shards, rows_of(by_shard_, shape_.columns));
  collectives_.reduce_scatter(by_shard_.as<float>(), grad_e_keys_.as<float>());
  add_rows(exec, rows_of(grad_e_keys_, shape_.columns), grad_e);

  // forward: e = z / ||z||
  l2_normalize_backward(exec, rows_of(e_local_, shape_.columns), norms_.as<double>(), grad_e, grad_z);
}

std::string InfoNceLoss::describe() const {
  return describe_infonce(collectives_, shape_);
}

}  // namespace simclr
