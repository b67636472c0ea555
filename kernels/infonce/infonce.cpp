// Checks shapes once for all devices, lays out the saved memory, then calls the overload of the device.
#include "kernels/infonce/infonce.h"

#include <algorithm>
#include <bit>

#include "kernels/common/numbers.h"
#include "kernels/infonce/blocks.h"

namespace simclr {
namespace {

int64_t aligned_shard_elements(const InfoNceProblem& p) {
  return detail::aligned_elements(2 * p.shard_images, p.keys());
}

void check_matrix(const char* name, const ConstFloatMatrix& m, int64_t rows, int64_t cols) {
  SIMCLR_CHECK(m.rows == rows && m.cols == cols && m.stride >= cols, "{} is [{}, {}] with stride {}, not [{}, {}]",
               name, m.rows, m.cols, m.stride, rows, cols);
}

void check_saved(const InfoNceProblem& p, const InfoNceSaved& saved) {
  SIMCLR_CHECK(saved.exponentials && saved.shard_elements == aligned_shard_elements(p),
               "saved memory was laid out for another problem: {} elements a shard, not {}", saved.shard_elements,
               aligned_shard_elements(p));
}

}  // namespace

size_t infonce_saved_bytes(const InfoNceProblem& p) {
  return bytes_of<float>(p.shards * aligned_shard_elements(p)) + static_cast<size_t>(p.anchors()) * 3 * sizeof(double);
}

InfoNceSaved infonce_saved(const InfoNceProblem& p, std::span<std::byte> memory) {
  check_infonce_problem(p);
  SIMCLR_CHECK(std::has_single_bit(static_cast<uint64_t>(p.shards)), "{} shards: not a power of two", p.shards);
  SIMCLR_CHECK(memory.size() >= infonce_saved_bytes(p), "{} bytes given, {} needed", memory.size(),
               infonce_saved_bytes(p));
  const int64_t shard_elements = aligned_shard_elements(p);
  auto* exponentials = reinterpret_cast<float*>(memory.data());
  auto* losses = reinterpret_cast<double*>(exponentials + p.shards * shard_elements);
  return {exponentials, shard_elements, losses, losses + p.anchors(), losses + 2 * p.anchors()};
}

ScratchNeed infonce_scratch(const InfoNceProblem& p) {
  const int64_t weighted = p.shards * detail::aligned_elements(2 * p.shard_images, p.columns);
  const int64_t anchor_sums = detail::kAnchorBlock * p.columns;
  const int64_t key_sums = p.shards * detail::aligned_elements(detail::kKeyBlock, p.columns);
  const int64_t key_parts = p.shards * detail::aligned_elements(p.keys(), p.columns);  // CUDA
  return {.workspace_bytes = bytes_of<float>(weighted + key_parts),
          .thread_bytes = bytes_of<float>(std::max(anchor_sums, key_sums))};
}

void infonce_forward(const Exec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& problem,
                     const InfoNceSaved& saved, std::span<double> shard_loss) {
  check_infonce_problem(problem);
  check_saved(problem, saved);
  check_matrix("e_all", e_all, problem.keys(), problem.columns);
  SIMCLR_CHECK(problem.products == DataType::kFloat32, "einsum multiplies in float32");
  SIMCLR_CHECK(shard_loss.size() == static_cast<size_t>(problem.shards), "{} sums for {} shards", shard_loss.size(),
               problem.shards);
  std::visit([&](const auto& device) { detail::infonce_forward(device, e_all, problem, saved, shard_loss); }, exec);
}

void infonce_backward(const Exec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& problem,
                      const InfoNceSaved& saved, const FloatMatrix& grad_anchors, const FloatMatrix& grad_keys) {
  check_infonce_problem(problem);
  check_saved(problem, saved);
  check_matrix("e_all", e_all, problem.keys(), problem.columns);
  check_matrix("grad_anchors", grad_anchors, problem.anchors(), problem.columns);
  check_matrix("grad_keys", grad_keys, problem.keys(), problem.columns);
  std::visit(
      [&](const auto& device) { detail::infonce_backward(device, e_all, problem, saved, grad_anchors, grad_keys); },
      exec);
}

void infonce_mean_loss(const Exec& exec, const double* total, int64_t keys, double* loss) {
  SIMCLR_CHECK(keys >= 4, "the mean of {} losses", keys);
  std::visit([&](const auto& device) { detail::infonce_mean_loss(device, total, keys, loss); }, exec);
}

}  // namespace simclr
