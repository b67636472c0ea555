// How each C++ type of a setting is parsed, range-checked and printed. Used by key_table.cpp only.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"
#include "src/config/enum_names.h"
#include "src/config/key_table.h"

namespace simclr {

// The attributes of a key in addition to its path and member.
struct KeyOptions {
  ValueRange range = {};
  std::string unit = "";
  KeyEffect effect = KeyEffect::kMathematics;
  std::optional<int> auto_value = {};  // an integer whose YAML spelling is `auto`
  bool ordered = false;                // a pair [low, high] with low <= high, or an ascending list
  bool any_length = false;             // a list of any length; else of 3 numbers or none
};

template <typename T>
std::string print_number(T value) {
  return fmt::format("{}", value);  // the shortest text that parses to the same double
}

template <typename List>
std::string print_list(const List& list) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "" : ", ") + print_number(list[i]);
  return text + "]";
}

// Appends a list of numbers to values; returns what is wrong, with the element.
inline std::string parse_list(const ConfigValue& value, std::vector<double>& values) {
  if (value.kind != ConfigValue::Kind::kList) return found(value);
  for (size_t i = 0; i < value.items.size(); ++i) {
    const Parsed<double> item = parse_number(value.items[i]);
    if (!item.problem.empty()) return fmt::format("element {}: {}", i + 1, item.problem);
    values.push_back(item.value);
  }
  return "";
}

// One specialization per type of setting. Contracts of expected(), assign(), check(), print(): see Key.
template <typename T>
struct KeyType {  // the primary template is for integers
  static_assert(std::is_integral_v<T> && std::is_signed_v<T>);
  static std::string expected(const KeyOptions& o) {
    return "integer" + (o.range.text().empty() ? "" : " " + o.range.text()) + (o.auto_value ? " or auto" : "");
  }
  static std::string assign(const ConfigValue& value, T& to, const KeyOptions& o) {
    if (o.auto_value && value.kind == ConfigValue::Kind::kScalar && value.text == "auto") {
      to = static_cast<T>(*o.auto_value);
      return "";
    }
    const Parsed<int64_t> parsed = parse_integer(value);
    if (!parsed.problem.empty()) return parsed.problem;
    if (!std::in_range<T>(parsed.value) || (o.auto_value && parsed.value == *o.auto_value)) return found(value);
    to = static_cast<T>(parsed.value);
    return "";
  }
  static std::string check(T value, const KeyOptions& o) {
    if ((o.auto_value && value == *o.auto_value) || o.range.contains(as_double(value))) return "";
    return fmt::format("found {}", value);
  }
  static std::string print(T value, const KeyOptions& o) {
    return o.auto_value && value == *o.auto_value ? "auto" : print_number(value);
  }
};

template <>
struct KeyType<uint64_t> {
  static std::string expected(const KeyOptions&) { return "integer 0..18446744073709551615"; }
  static std::string assign(const ConfigValue& value, uint64_t& to, const KeyOptions&) {
    const Parsed<uint64_t> parsed = parse_unsigned(value);
    if (parsed.problem.empty()) to = parsed.value;
    return parsed.problem;
  }
  static std::string check(uint64_t, const KeyOptions&) { return ""; }
  static std::string print(uint64_t value, const KeyOptions&) { return print_number(value); }
};

template <>
struct KeyType<double> {
  static std::string expected(const KeyOptions& o) {
    return "number" + (o.range.text().empty() ? "" : " " + o.range.text());
  }
  static std::string assign(const ConfigValue& value, double& to, const KeyOptions&) {
    const Parsed<double> parsed = parse_number(value);
    if (parsed.problem.empty()) to = parsed.value;
    return parsed.problem;
  }
  static std::string check(double value, const KeyOptions& o) {
    return std::isfinite(value) && o.range.contains(value) ? "" : "found " + print_number(value);
  }
  static std::string print(double value, const KeyOptions&) { return print_number(value); }
};

template <>
struct KeyType<bool> {
  static std::string expected(const KeyOptions&) { return "true | false"; }
  static std::string assign(const ConfigValue& value, bool& to, const KeyOptions&) {
    const Parsed<bool> parsed = parse_bool(value);
    if (parsed.problem.empty()) to = parsed.value;
    return parsed.problem;
  }
  static std::string check(bool, const KeyOptions&) { return ""; }
  static std::string print(bool value, const KeyOptions&) { return value ? "true" : "false"; }
};

template <>
struct KeyType<std::string> {
  static std::string expected(const KeyOptions&) { return "text"; }
  static std::string assign(const ConfigValue& value, std::string& to, const KeyOptions&) {
    Parsed<std::string> parsed = parse_text(value);
    if (parsed.problem.empty()) to = std::move(parsed.value);
    return parsed.problem;
  }
  static std::string check(const std::string&, const KeyOptions&) { return ""; }
  // A JSON string is a double-quoted YAML scalar.
  static std::string print(const std::string& value, const KeyOptions&) { return nlohmann::json(value).dump(); }
};

template <>
struct KeyType<std::array<double, 2>> {
  static std::string expected(const KeyOptions& o) {
    return "[number, number] " + o.range.text() + (o.ordered ? ", in order" : "");
  }
  static std::string assign(const ConfigValue& value, std::array<double, 2>& to, const KeyOptions&) {
    std::vector<double> values;
    if (std::string problem = parse_list(value, values); !problem.empty()) return problem;
    if (values.size() != 2) return fmt::format("found a list of length {}", values.size());
    to = {values[0], values[1]};
    return "";
  }
  static std::string check(const std::array<double, 2>& value, const KeyOptions& o) {
    const bool good = o.range.contains(value[0]) && o.range.contains(value[1]) && !(o.ordered && value[0] > value[1]);
    return good ? "" : "found " + print_list(value);
  }
  static std::string print(const std::array<double, 2>& value, const KeyOptions&) { return print_list(value); }
};

template <>
struct KeyType<std::vector<double>> {
  static std::string expected(const KeyOptions& o) {
    return (o.any_length ? "[] or [number, number, ...] " : "[] or [number, number, number] ") + o.range.text() +
           (o.ordered ? ", ascending" : "");
  }
  static std::string assign(const ConfigValue& value, std::vector<double>& to, const KeyOptions&) {
    std::vector<double> values;
    std::string problem = parse_list(value, values);
    if (problem.empty()) to = std::move(values);
    return problem;
  }
  static std::string check(const std::vector<double>& value, const KeyOptions& o) {
    const bool inside = std::all_of(value.begin(), value.end(), [&](double x) { return o.range.contains(x); });
    if (!o.any_length && !value.empty() && value.size() != 3)
      return fmt::format("found a list of length {}", value.size());
    const bool ascends = std::adjacent_find(value.begin(), value.end(), std::greater_equal<>()) == value.end();
    return inside && (!o.ordered || ascends) ? "" : "found " + print_list(value);
  }
  static std::string print(const std::vector<double>& value, const KeyOptions&) { return print_list(value); }
};

template <>
struct KeyType<std::vector<std::string>> {
  static std::string expected(const KeyOptions&) { return "[] or [text, text, ...]"; }
  static std::string assign(const ConfigValue& value, std::vector<std::string>& to, const KeyOptions&) {
    if (value.kind != ConfigValue::Kind::kList) return found(value);
    std::vector<std::string> values;
    for (size_t i = 0; i < value.items.size(); ++i) {
      Parsed<std::string> item = parse_text(value.items[i]);
      if (!item.problem.empty()) return fmt::format("element {}: {}", i + 1, item.problem);
      values.push_back(std::move(item.value));
    }
    to = std::move(values);
    return "";
  }
  static std::string check(const std::vector<std::string>&, const KeyOptions&) { return ""; }
  static std::string print(const std::vector<std::string>& value, const KeyOptions&) {
    std::string text = "[";
    for (const std::string& item : value) text += (text.size() == 1 ? "" : ", ") + item;
    return text + "]";
  }
};

template <typename E>
requires std::is_enum_v<E>
struct KeyType<E> {
  static std::string expected(const KeyOptions&) {
    std::string text;
    for (const EnumName<E>& entry : kEnumNames<E>) text += (text.empty() ? "" : " | ") + std::string(entry.name);
    return text;
  }
  static std::string assign(const ConfigValue& value, E& to, const KeyOptions&) {
    for (const EnumName<E>& entry : kEnumNames<E>) {
      if (value.kind != ConfigValue::Kind::kScalar || value.text != entry.name) continue;
      to = entry.value;
      return "";
    }
    return found(value);
  }
  static std::string check(E, const KeyOptions&) { return ""; }
  static std::string print(E value, const KeyOptions&) { return std::string(enum_name(value)); }
};

// place: a generic lambda that returns the member of (const) Settings&.
template <typename Place>
Key make_key(const std::string& path, Place place, const KeyOptions& options = {}) {
  using T = std::remove_cvref_t<decltype(place(std::declval<Settings&>()))>;
  return {.path = path,
          .expected = KeyType<T>::expected(options),
          .unit = options.unit,
          .effect = options.effect,
          .assign = [=](const ConfigValue& value, Settings& s) { return KeyType<T>::assign(value, place(s), options); },
          .check = [=](const Settings& s) { return KeyType<T>::check(place(s), options); },
          .print = [=](const Settings& s) { return KeyType<T>::print(place(s), options); }};
}

}  // namespace simclr
