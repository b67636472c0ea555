// Checks shapes once for all devices, lays out the saved memory, then calls the overload of the device.
#include "kernels/infonce_streaming/infonce_streaming.h"

#include "kernels/common/numbers.h"
#include "kernels/infonce_streaming/streaming_cuda_plan.h"
#include "kernels/infonce_streaming/streaming_layout.h"

namespace simclr {
namespace {

void check_products(const Exec& exec, const InfoNceProblem& p) {
  SIMCLR_CHECK(p.products == DataType::kFloat32 || !std::holds_alternative<CpuExec>(exec), "CPUs multiply in float32");
}

void check_matrix(const char* name, const ConstFloatMatrix& m, int64_t rows, int64_t cols) {
  SIMCLR_CHECK(m.rows == rows && m.cols == cols && m.stride >= cols, "{} is [{}, {}] with stride {}, not [{}, {}]",
               name, m.rows, m.cols, m.stride, rows, cols);
}

}  // namespace

size_t streaming_saved_bytes(const InfoNceProblem& p) {
  return static_cast<size_t>(p.anchors()) * 3 * sizeof(double);
}

StreamingSaved streaming_saved(const InfoNceProblem& p, std::span<std::byte> memory) {
  check_infonce_problem(p);
  SIMCLR_CHECK(memory.size() >= streaming_saved_bytes(p), "{} bytes given, {} needed", memory.size(),
               streaming_saved_bytes(p));
  auto* losses = reinterpret_cast<double*>(memory.data());
  return {losses, losses + p.anchors(), losses + 2 * p.anchors()};
}

ScratchNeed streaming_scratch(const InfoNceProblem& p, bool on_gpu) {
  if (on_gpu) return {.workspace_bytes = static_cast<size_t>(detail::StreamingCudaPlan(p).bytes)};
  return {.workspace_bytes = static_cast<size_t>(detail::StreamingLayout(p).bytes),
          .thread_bytes = bytes_of<float>(detail::kTile * detail::kTile)};
}

void streaming_forward(const Exec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& problem,
                       const StreamingSaved& saved, std::span<double> shard_loss) {
  check_infonce_problem(problem);
  check_matrix("e_all", e_all, problem.keys(), problem.columns);
  SIMCLR_CHECK(shard_loss.size() == static_cast<size_t>(problem.shards), "{} sums for {} shards", shard_loss.size(),
               problem.shards);
  check_products(exec, problem);
  std::visit([&](const auto& device) { detail::streaming_forward(device, e_all, problem, saved, shard_loss); }, exec);
}

void streaming_backward(const Exec& exec, const ConstFloatMatrix& e_all, const InfoNceProblem& problem,
                        const StreamingSaved& saved, std::span<const double> log_denominators,
                        const FloatMatrix& grad_e) {
  check_infonce_problem(problem);
  check_matrix("e_all", e_all, problem.keys(), problem.columns);
  check_matrix("grad_e", grad_e, problem.anchors(), problem.columns);
  SIMCLR_CHECK(log_denominators.size() == static_cast<size_t>(problem.keys()), "{} log-denominators for {} rows",
               log_denominators.size(), problem.keys());
  check_products(exec, problem);
  std::visit(
      [&](const auto& device) { detail::streaming_backward(device, e_all, problem, saved, log_denominators, grad_e); },
      exec);
}

}  // namespace simclr
