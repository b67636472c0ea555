// Runs the streaming op on one rank's part of a problem: every output and the scratch start as NaN.
#pragma once

#include "kernels/infonce_streaming/infonce_streaming.h"
#include "src/device/context.h"
#include "tests/kernels/infonce/infonce_support.h"

namespace simclr::test {

struct StreamingOutputs {
  std::vector<double> shard_loss, losses, log_denominators;
  std::vector<float> grad_e;  // [anchors, C]
  bool padding_is_zero;

  // As the checks of einsum want it: all in the anchors' part.
  InfoNceOutputs as_einsum(const InfoNceProblem& p) const {
    return {shard_loss, losses, grad_e, std::vector<float>(p.keys() * p.columns), padding_is_zero};
  }
};

// e [2B, C] in the global order. all_log_denominators [2B] by shard; none: the rank owns everything.
inline StreamingOutputs run_streaming(const std::vector<float>& e, const InfoNceProblem& p, int64_t stride,
                                      int threads = 1, std::vector<double> all_log_denominators = {}) {
  Context context(threads);
  context.reserve(streaming_scratch(p));
  const auto& cpu = std::get<CpuExec>(context.exec());
  const auto spoil = [&] {
    std::fill_n(reinterpret_cast<float*>(cpu.workspace), cpu.workspace_bytes / 4, kNan);
    std::fill_n(reinterpret_cast<float*>(cpu.thread_scratch),
                cpu.thread_scratch_bytes / 4 * static_cast<size_t>(threads), kNan);
  };
  Buffer memory(streaming_saved_bytes(p));
  std::ranges::fill(memory.as<double>(), NAN);
  const StreamingSaved saved = streaming_saved(p, memory.as<std::byte>());
  TestMatrix e_all(e, p.keys(), p.columns, stride), grad_e(p.anchors(), p.columns, stride);
  std::vector<double> shard_loss(p.shards, NAN);
  spoil();
  streaming_forward(context.exec(), e_all.view(), p, saved, shard_loss);
  const std::vector<double> own(saved.log_denominators, saved.log_denominators + p.anchors());
  if (all_log_denominators.empty()) all_log_denominators = own;
  spoil();
  streaming_backward(context.exec(), e_all.view(), p, saved, all_log_denominators, grad_e.view());
  return {shard_loss, {saved.losses, saved.losses + p.anchors()}, own, grad_e.dense(), grad_e.padding_is_zero()};
}

}  // namespace simclr::test
