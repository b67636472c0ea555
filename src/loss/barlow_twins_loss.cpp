// The distributed part of Barlow Twins: what ranks add up. No formula of the loss stands here, and no factor of W.
#include "src/loss/barlow_twins_loss.h"
#include "kernels/common/numbers.h"

namespace simclr {
namespace {

BarlowTwinsProblem make_problem(const Collectives& collectives, const LossSettings& settings, const LossShape& shape) {
  SIMCLR_CHECK(shape.shards >= 1 && shape.shards % collectives.size() == 0, "{} shards on {} ranks", shape.shards,
               collectives.size());
  SIMCLR_CHECK(shape.batch % shape.shards == 0, "{} images in {} shards", shape.batch, shape.shards);
  return {.batch = shape.batch,
          .shard_images = shape.shard_images(),
          .shards = shape.shards / collectives.size(),
          .columns = shape.columns,
          .lambda = settings.lambda,
          .scale = settings.scale};
}

}  // namespace

BarlowTwinsLoss::BarlowTwinsLoss(Context& context, Collectives& collectives, const LossSettings& settings,
                                 const LossShape& shape)
    : context_(context),
      collectives_(collectives),
      problem_(make_problem(collectives, settings, shape)),
      y_stride_(round_up(shape.columns, 64)),
      y_(context.allocate_elements<float>(problem_.rows() * y_stride_)),
      products_(context.allocate_elements<float>(shape.columns * shape.columns)),
      sums_(context.allocate_elements<double>(2 * shape.columns)),
      squares_(context.allocate_elements<double>(2 * shape.columns)),
      inv_std_(context.allocate_elements<double>(2 * shape.columns)),
      radial_(context.allocate_elements<double>(2 * shape.columns)),
      loss_(context.allocate_elements<double>(1)) {
  context.reserve(barlow_twins_scratch(problem_));
}

FloatMatrix BarlowTwinsLoss::y() const {
  return {y_.as<float>().data(), problem_.rows(), problem_.columns, y_stride_};
}

// y1^T y2 over the images of this rank; backward y2 G^T and y1 G.
Work BarlowTwinsLoss::work(int products) const {
  const auto pairs = as_double(problem_.rows()) / 2, columns = as_double(problem_.columns);
  return {.flops = products * 2 * pairs * columns * columns, .bytes = 0};
}

const double* BarlowTwinsLoss::forward(const ConstMatrix& z) {
  const Exec& exec = context_.exec();
  const ProfileSpan span(context_.profiler(), {OpKind::kLoss, "loss", "forward"}, [&] { return work(1); });
  SIMCLR_CHECK(z.rows == problem_.rows() && z.cols == problem_.columns, "z is [{}, {}], the loss was made for [{}, {}]",
               z.rows, z.cols, problem_.rows(), problem_.columns);
  const auto sums = sums_.as<double>(), squares = squares_.as<double>();  // [2, C]
  barlow_twins_sums(exec, z, problem_, sums.data());
  collectives_.ordered_sum(sums);
  barlow_twins_square_sums(exec, z, problem_, sums.data(), squares.data());
  collectives_.ordered_sum(squares);
  barlow_twins_standardize(exec, z, problem_, sums.data(), squares.data(), y(), inv_std_.as<double>().data());

  const auto products = products_.as<float>();  // [C, C]
  barlow_twins_products(exec, y(), problem_, products.data());
  collectives_.ordered_sum(products);
  const auto loss = loss_.as<double>();
  barlow_twins_loss(exec, problem_, products.data(), radial_.as<double>().data(), loss.data());
  has_forward_ = true;
  return loss.data();
}

void BarlowTwinsLoss::backward(const Matrix& grad_z) {
  const ProfileSpan span(context_.profiler(), {OpKind::kLoss, "loss", "backward"}, [&] { return work(2); });
  SIMCLR_CHECK(has_forward_, "backward() without a forward() before it");
  has_forward_ = false;
  barlow_twins_backward(context_.exec(), y(), problem_, products_.as<float>().data(), inv_std_.as<double>().data(),
                        radial_.as<double>().data(), grad_z);
}

std::string BarlowTwinsLoss::describe() const {
  const int ranks = collectives_.size();
  return fmt::format(
      "B={} images, 2 views, {} {} x {}: correlation of {} x {} columns over all images, lambda {}, scale {}",
      problem_.batch, ranks, ranks == 1 ? "rank" : "ranks", problem_.batch / ranks, problem_.columns, problem_.columns,
      problem_.lambda, problem_.scale);
}

size_t BarlowTwinsLoss::memory_bytes() const {
  size_t bytes = 0;
  for (const Buffer* buffer : {&y_, &products_, &sums_, &squares_, &inv_std_, &radial_, &loss_})
    bytes += buffer->bytes();
  return bytes;
}

}  // namespace simclr
