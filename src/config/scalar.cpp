#include "src/config/scalar.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>

#include "kernels/common/error.h"
#include "src/config/config_errors.h"

namespace simclr {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
  return text;
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// Sign, at least one digit with at most one point, optional exponent: the forms that are passed to std::from_chars.
bool is_decimal(std::string_view text) {
  text = without_sign(text);
  const size_t exponent_at = text.find_first_of("eE");
  if (exponent_at != std::string_view::npos && !all_digits(without_sign(text.substr(exponent_at + 1)))) return false;
  std::string mantissa(text.substr(0, exponent_at));
  if (const size_t point = mantissa.find('.'); point != std::string::npos) mantissa.erase(point, 1);
  return all_digits(mantissa);
}

// Why a scalar is not a number; "" if it may be one.
std::string number_problem(const ConfigValue& value) {
  if (value.kind != ConfigValue::Kind::kScalar) return found(value);
  const std::string text = shown(value.text);
  if (value.quoted) return fmt::format("found \"{}\" in quotes, which makes it a string; remove the quotes", text);
  const std::string_view digits = without_sign(value.text);
  if (digits.size() > 1 && digits[0] == '0' && is_digit(digits[1])) {
    const std::string_view rest = digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1));
    return fmt::format("found {} with a leading zero (octal or decimal?); write {}{}", text,
                       value.text[0] == '-' ? "-" : "", shown(rest));
  }
  std::string plain = value.text;
  std::erase(plain, '_');
  if (plain != value.text && is_decimal(plain)) {
    return fmt::format("found {} with an underscore; write {}", text, shown(plain));
  }
  std::string lower(digits);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "nan" || lower == ".nan" || lower == "inf" || lower == ".inf" || lower == "infinity") {
    return fmt::format("found {}, which is not a finite number", text);
  }
  if (!is_decimal(value.text)) return fmt::format("found {}", text.empty() ? "an empty string" : text);
  return "";
}

template <typename T>
Parsed<T> parse_whole(const ConfigValue& value) {
  if (std::string problem = number_problem(value); !problem.empty()) return {.problem = problem};
  std::string_view text = value.text;
  if (!all_digits(without_sign(text))) {
    const double number = parse_number(value).value;
    if (number != std::floor(number) || std::abs(number) > 1e15) return {.problem = "found " + shown(text)};
    return {.problem = fmt::format("found {}; write the integer in full: {:.0f}", shown(text), number)};
  }
  if (text[0] == '+') text.remove_prefix(1);
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {.problem = "found " + shown(text)};
  return {.value = number};
}

}  // namespace

std::string found(const ConfigValue& value) {
  switch (value.kind) {
    case ConfigValue::Kind::kNull:
      return "has no value; remove the line or give one";
    case ConfigValue::Kind::kList:
      return "found a list";
    case ConfigValue::Kind::kSection:
      return "found a section";
    case ConfigValue::Kind::kScalar:
      break;
  }
  return value.quoted ? "found \"" + shown(value.text) + "\"" : "found " + shown(value.text);
}

Parsed<int64_t> parse_integer(const ConfigValue& value) {
  return parse_whole<int64_t>(value);
}

Parsed<uint64_t> parse_unsigned(const ConfigValue& value) {
  return parse_whole<uint64_t>(value);
}

Parsed<double> parse_number(const ConfigValue& value) {
  if (std::string problem = number_problem(value); !problem.empty()) return {.problem = problem};
  std::string_view text = value.text;
  if (text[0] == '+') text.remove_prefix(1);
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) {
    return {.problem = fmt::format("found {}, out of the range of a double", shown(text))};
  }
  if (error != std::errc() || end != text.data() + text.size()) return {.problem = "found " + shown(text)};
  return {.value = number + 0.0};  // -0 becomes 0: equal settings print alike
}

Parsed<bool> parse_bool(const ConfigValue& value) {
  if (value.kind == ConfigValue::Kind::kScalar && !value.quoted) {
    if (value.text == "true") return {.value = true};
    if (value.text == "false") return {.value = false};
  }
  return {.problem = found(value) + (value.kind == ConfigValue::Kind::kScalar ? "; write true or false" : "")};
}

Parsed<std::string> parse_text(const ConfigValue& value) {
  if (value.kind != ConfigValue::Kind::kScalar) return {.problem = found(value)};
  for (const char c : value.text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return {.problem = fmt::format("found {} with a control character (0x{:02x})", found(value).substr(6), c)};
    }
  }
  return {.value = value.text};
}

}  // namespace simclr
