#include "src/train/divergence.h"

#include "kernels/common/numbers.h"
#include "kernels/optimizer_update/optimizer_update.h"
#include "src/comm/heartbeat.h"

namespace simclr {
namespace {

const std::string& or_none(const std::string& checkpoint) {
  static const std::string none = "none";
  return checkpoint.empty() ? none : checkpoint;
}

}  // namespace

void NonFiniteFlag::check(const double* loss, std::span<const float> gradients) {
  const ProfileSpan span(run_.context.profiler(), {OpKind::kOptimizer, "gradients", "finite"},
                         [&] { return Work{.bytes = as_double(gradients.size_bytes())}; });
  const Exec& exec = run_.context.exec();
  int* flag = flag_.as<int>().data();
  flag_non_finite(exec, std::span(loss, 1), flag);
  flag_non_finite(exec, gradients, flag);
}

bool NonFiniteFlag::read() const {
  int flag = 0;
  const InsideCollective waiting(&run_.heartbeat);
  run_.context.device().download(&flag, flag_.data(), sizeof flag);
  return flag != 0;
}

AgreedError divergence_error(int64_t step, LossType loss, const std::string& checkpoint) {
  return {ExitCode::kDiverged,
          fmt::format("step {}: the loss or a gradient is not finite; the weights are those before this step, the last "
                      "checkpoint is {}; lower optimizer.base_lr, warm up longer or {}",
                      step, or_none(checkpoint),
                      loss == LossType::kInfoNce ? "raise loss.temperature" : "lower loss.scale")};
}

AgreedError non_finite_state_error(int64_t step, const std::string& checkpoint) {
  return {ExitCode::kDiverged,
          fmt::format("step {}: a weight or the optimizer's state is no longer finite; not saved, the last checkpoint "
                      "is {}; lower optimizer.base_lr or warm up longer",
                      step, or_none(checkpoint))};
}

AgreedError drift_error(const Decision& decision, const std::string& drift, const std::string& checkpoint) {
  return {ExitCode::kDevice,
          fmt::format("{}; tensors that differ from rank 0's: {}; a host or device probably computes wrongly: leave it "
                      "out and resume from {}",
                      decision.describe_hashes(), drift.empty() ? "none any longer" : drift, or_none(checkpoint))};
}

}  // namespace simclr
