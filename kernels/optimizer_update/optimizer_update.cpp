#include "kernels/optimizer_update/optimizer_update.h"

#include "kernels/optimizer_update/optimizer_update_device.h"

namespace simclr {

void sgd_update(const Exec& exec, const ParameterTable& table, const SgdUpdate& how, const int* skip) {
  for (const auto& r : table.runs)
    SIMCLR_CHECK(r.weight && r.grad && r.first, "SGD needs weight, gradient and momentum");
  std::visit([&](const auto& device) { optimizer_update::sgd(device, table, how, skip); }, exec);
}

void adamw_update(const Exec& exec, const ParameterTable& table, const AdamWUpdate& how, const int* skip) {
  for (const auto& r : table.runs) SIMCLR_CHECK(r.weight && r.grad && r.first && r.second, "AdamW needs both moments");
  SIMCLR_CHECK(how.t >= 1, "AdamW counts steps from 1, got {}", how.t);
  std::visit([&](const auto& device) { optimizer_update::adamw(device, table, how, skip); }, exec);
}

void lars_update(const Exec& exec, const ParameterTable& table, const LarsUpdate& how, const double* squares,
                 float* rates, const int* skip) {
  for (const auto& r : table.runs)
    SIMCLR_CHECK(r.weight && r.grad && r.first, "LARS needs weight, gradient and momentum");
  SIMCLR_CHECK(table.runs.empty() || (squares && rates), "LARS needs the squared norms and memory for the rates");
  std::visit([&](const auto& device) { optimizer_update::lars(device, table, how, squares, rates, skip); }, exec);
}

void flag_non_finite(const Exec& exec, std::span<const float> values, int* flag) {
  std::visit([&](const auto& device) { optimizer_update::flag_non_finite(device, values, flag); }, exec);
}

void flag_non_finite(const Exec& exec, std::span<const double> values, int* flag) {
  std::visit([&](const auto& device) { optimizer_update::flag_non_finite(device, values, flag); }, exec);
}

}  // namespace simclr
