#include "src/runtime/device_choice.h"

#include "src/comm/agreement.h"
#include "src/config/enum_names.h"
#include "src/device/choose_device.h"

namespace simclr {

DeviceDecision choose_device(const Settings& settings, const Topology& topology, Collectives& host) {
  const DeviceDecision decision = agree_on_device(host, topology, settings.run.device);
  if (decision.cuda) return decision;
  if (settings.run.precision == Precision::kTf32) {
    throw AgreedError(
        ExitCode::kUsage,
        "run.precision: tf32 is not available on the CPU, on which this run computes; write fp32 or bf16");
  }
  if (settings.run.precision == Precision::kBf16) {
    agree_on(host, [] {
      const std::string reason = why_no_bfloat16();
      if (!reason.empty())
        fail(ExitCode::kUsage,
             "run.precision: bf16 is not available on the CPU, on which this run computes: {}; "
             "write fp32",
             reason);
    });
  }
  if (settings.loss.products != DataType::kFloat32) {
    throw AgreedError(
        ExitCode::kUsage,
        fmt::format("loss.products: {} is not available on the CPU, on which this run computes; write fp32",
                    enum_name(settings.loss.products)));
  }
  return decision;
}

}  // namespace simclr
