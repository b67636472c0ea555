// Checks shapes once for all devices, then calls the overload of the device.
#include "kernels/barlow_twins/barlow_twins.h"

#include <cmath>

#include "kernels/barlow_twins/barlow_twins_device.h"
#include "kernels/common/numbers.h"

namespace simclr {
namespace {

void check_problem(const BarlowTwinsProblem& p) {
  SIMCLR_CHECK(p.batch >= 2, "a global batch of {} images has no variance", p.batch);
  SIMCLR_CHECK(p.shard_images >= 1 && p.shards >= 1 && p.columns >= 1, "{} shards of {} images, {} columns", p.shards,
               p.shard_images, p.columns);
  SIMCLR_CHECK(std::has_single_bit(static_cast<uint64_t>(p.shards)), "{} shards: not a power of two", p.shards);
  SIMCLR_CHECK(p.shards * p.shard_images <= p.batch, "{} shards of {} images in a batch of {}", p.shards,
               p.shard_images, p.batch);
  SIMCLR_CHECK(std::isfinite(p.lambda) && p.lambda >= 0, "lambda {} is below 0", p.lambda);
  SIMCLR_CHECK(std::isfinite(p.scale) && p.scale > 0, "scale {} is not above 0", p.scale);
  SIMCLR_CHECK(std::isfinite(p.eps) && p.eps > 0, "eps {} is not above 0", p.eps);
}

void check_rows(const char* name, const ConstMatrix& m, const BarlowTwinsProblem& p) {
  SIMCLR_CHECK(m.rows == p.rows() && m.cols == p.columns && m.stride >= m.cols,
               "{} is [{}, {}] with stride {}, not [{}, {}]", name, m.rows, m.cols, m.stride, p.rows(), p.columns);
}

void check_y(const ConstFloatMatrix& y, const BarlowTwinsProblem& p) {
  check_rows("y", y, p);
}

}  // namespace

ScratchNeed barlow_twins_scratch(const BarlowTwinsProblem& p) {
  check_problem(p);
  using barlow_twins::aligned_elements, barlow_twins::kBlock;
  const int64_t waiting = barlow_twins::waiting_sums(p.shards), parts = 2 * p.shards;
  const int64_t statistics = (parts + 1) * p.columns * static_cast<int64_t>(sizeof(double) / sizeof(float));
  const int64_t grad_y = parts * aligned_elements(p.shard_images, p.columns);  // CUDA
  const int64_t sums = waiting * aligned_elements(barlow_twins::cuda_block_rows(p.columns), p.columns);
  const int64_t block_sums = waiting * aligned_elements(kBlock, p.columns);
  const int64_t block_grad_y = aligned_elements(p.shard_images, kBlock);
  return {.workspace_bytes = bytes_of<float>(std::max({statistics, grad_y, sums})),
          .thread_bytes = bytes_of<float>(std::max(block_sums, block_grad_y))};
}

void barlow_twins_sums(const Exec& exec, const ConstMatrix& z, const BarlowTwinsProblem& p, double* sums) {
  check_problem(p);
  check_rows("z", z, p);
  std::visit([&](const auto& device) { barlow_twins::sums(device, z, p, sums); }, exec);
}

void barlow_twins_square_sums(const Exec& exec, const ConstMatrix& z, const BarlowTwinsProblem& p, const double* sums,
                              double* squares) {
  check_problem(p);
  check_rows("z", z, p);
  std::visit([&](const auto& device) { barlow_twins::square_sums(device, z, p, sums, squares); }, exec);
}

void barlow_twins_standardize(const Exec& exec, const ConstMatrix& z, const BarlowTwinsProblem& p, const double* sums,
                              const double* squares, const FloatMatrix& y, double* inv_std) {
  check_problem(p);
  check_rows("z", z, p);
  check_y(y, p);
  std::visit([&](const auto& device) { barlow_twins::standardize(device, z, p, sums, squares, y, inv_std); }, exec);
}

void barlow_twins_products(const Exec& exec, const ConstFloatMatrix& y, const BarlowTwinsProblem& p, float* products) {
  check_problem(p);
  check_y(y, p);
  std::visit([&](const auto& device) { barlow_twins::products(device, y, p, products); }, exec);
}

void barlow_twins_loss(const Exec& exec, const BarlowTwinsProblem& p, float* products_to_grad, double* radial,
                       double* loss) {
  check_problem(p);
  std::visit([&](const auto& device) { barlow_twins::loss(device, p, products_to_grad, radial, loss); }, exec);
}

void barlow_twins_backward(const Exec& exec, const ConstFloatMatrix& y, const BarlowTwinsProblem& p,
                           const float* grad_c, const double* inv_std, const double* radial, const Matrix& grad_z) {
  check_problem(p);
  check_y(y, p);
  check_rows("grad_z", grad_z, p);
  std::visit([&](const auto& device) { barlow_twins::backward(device, y, p, grad_c, inv_std, radial, grad_z); }, exec);
}

}  // namespace simclr
