#include "src/nn/plan_choices.h"

#include <fmt/format.h>

#include <string_view>

namespace simclr {

PlanNames read_plan_names(const std::string& text) {
  constexpr std::string_view kBetween = "; ", kAfterName = ": ";
  PlanNames names;
  std::string* plans = nullptr;  // those of the convolution that was named last
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = rest.find(kBetween);
    std::string_view part = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + kBetween.size());
    if (const size_t colon = part.find(kAfterName); colon != std::string_view::npos) {
      plans = &names[std::string(part.substr(0, colon))];
      part.remove_prefix(colon + kAfterName.size());
    } else if (plans) {
      *plans += kBetween;
    }
    if (plans) *plans += part;
  }
  return names;
}

std::string summarize_cpu_plans(const std::string& text) {
  const auto count = [&](std::string_view word) {
    int found = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + word.size())) ++found;
    return found;
  };
  const int winograd = count("winograd"), gemm = count("gemm"), all = winograd + gemm + count("direct");
  std::string summary;
  if (winograd > 0) summary += fmt::format("Winograd F(4x4, 3x3) in {} of {} passes, ", winograd, all);
  if (gemm > 0) summary += fmt::format("im2col and a matrix product in {} of {} passes, ", gemm, all);
  return summary.empty() ? "direct" : summary + "direct in the others";
}

}  // namespace simclr
