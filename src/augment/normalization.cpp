#include "src/augment/normalization.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace simclr {
namespace {

// Removes `expected` from the front of text; false if text starts otherwise.
bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

// Removes "a, b, c" from the front of text.
bool take_numbers(std::string_view& text, std::array<float, 3>& numbers) {
  for (size_t c = 0; c < 3; ++c) {
    if (c > 0 && !take(text, ", ")) return false;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), numbers[c]);
    if (error != std::errc() || !std::isfinite(numbers[c])) return false;
    text.remove_prefix(end - text.data());
  }
  return true;
}

}  // namespace

std::string print_normalization(const ViewParams& params) {
  const auto& m = params.mean;
  const auto& i = params.inverse_std;
  return fmt::format("(value - [{}, {}, {}]) * [{}, {}, {}]", m[0], m[1], m[2], i[0], i[1], i[2]);
}

bool read_normalization(std::string_view text, ViewParams& params) {
  std::array<float, 3> mean{}, inverse_std{};
  if (!take(text, "(value - [") || !take_numbers(text, mean) || !take(text, "]) * [") ||
      !take_numbers(text, inverse_std) || text != "]")
    return false;
  params.mean = mean;
  params.inverse_std = inverse_std;
  return true;
}

}  // namespace simclr
