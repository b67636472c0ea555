// The values of a configuration file, independent of the YAML library, and how a scalar becomes a number, bool or text.
// or a string. Strict where YAML versions differ: 064, "64", yes, 1_000 and the like are refused with the reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace simclr {

struct ConfigValue {
  enum class Kind { kNull, kScalar, kList, kSection };
  Kind kind = Kind::kNull;
  std::string text{};                // kScalar
  bool quoted = false;               // kScalar: written in quotes or as a block
  std::vector<ConfigValue> items{};  // kList
};

// A value, or what is wrong with it: problem is empty if the value is valid. It follows "file:line: key: " in messages.
template <typename T>
struct Parsed {
  T value{};
  std::string problem{};
};

// [+-]digits, no leading zero. 1e3 and 64.0 are refused: integers are written in full.
Parsed<int64_t> parse_integer(const ConfigValue& value);
// As parse_integer, 0..2^64-1.
Parsed<uint64_t> parse_unsigned(const ConfigValue& value);
// Decimal number, finite: 1, 1.5, .5, 5., 1e-3, 1E-3. Underflow to 0 and overflow are refused.
Parsed<double> parse_number(const ConfigValue& value);
// true or false only.
Parsed<bool> parse_bool(const ConfigValue& value);
// Any scalar, quoted or not, without control characters.
Parsed<std::string> parse_text(const ConfigValue& value);

// "a list", "a section", "no value" or the scalar's own text, for messages.
std::string found(const ConfigValue& value);

}  // namespace simclr
