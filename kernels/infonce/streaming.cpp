// Checks shapes, lays out the saved memory, refuses devices that have no streaming loss.
#include "kernels/infonce/streaming.h"

#include "kernels/infonce/streaming_layout.h"

namespace simclr {
namespace {

const CpuExec& cpu_of(const Exec& exec) {
  const auto* cpu = std::get_if<CpuExec>(&exec);
  if (cpu == nullptr) {
    fail(ExitCode::kUsage, "loss.algorithm: streaming is for the CPU so far; take einsum or auto on a GPU");
  }
  return *cpu;
}

void check_matrix(const char* name, const ConstMatrix& m, int64_t rows, int64_t cols) {
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

ScratchNeed streaming_scratch(const InfoNceProblem& p) {
  return {.workspace_bytes = static_cast<size_t>(detail::StreamingLayout(p).bytes),
          .thread_bytes = static_cast<size_t>(detail::kTile * detail::kTile) * sizeof(float)};
}

void streaming_forward(const Exec& exec, const ConstMatrix& e_all, const InfoNceProblem& problem,
                       const StreamingSaved& saved, std::span<double> shard_loss) {
  check_infonce_problem(problem);
  check_matrix("e_all", e_all, problem.keys(), problem.columns);
  SIMCLR_CHECK(shard_loss.size() == static_cast<size_t>(problem.shards), "{} sums for {} shards", shard_loss.size(),
               problem.shards);
  detail::streaming_forward(cpu_of(exec), e_all, problem, saved, shard_loss);
}

void streaming_backward(const Exec& exec, const ConstMatrix& e_all, const InfoNceProblem& problem,
                        const StreamingSaved& saved, std::span<const double> log_denominators, const Matrix& grad_e) {
  check_infonce_problem(problem);
  check_matrix("e_all", e_all, problem.keys(), problem.columns);
  check_matrix("grad_e", grad_e, problem.anchors(), problem.columns);
  SIMCLR_CHECK(log_denominators.size() == static_cast<size_t>(problem.keys()), "{} log-denominators for {} rows",
               log_denominators.size(), problem.keys());
  detail::streaming_backward(cpu_of(exec), e_all, problem, saved, log_denominators, grad_e);
}

}  // namespace simclr
