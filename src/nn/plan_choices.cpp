#include "src/nn/plan_choices.h"

#include <string_view>

namespace simclr {

PlanNames read_plan_names(const std::string& text) {
  constexpr std::string_view kBetween = "; ", kAfterName = ": ";
  PlanNames names;
  std::string* plans = nullptr;  // of the convolution that was named last
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

}  // namespace simclr
