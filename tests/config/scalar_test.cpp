// The value of each accepted spelling of a scalar, and the reason with which each other one is refused.
#include "src/config/scalar.h"

#include <cmath>

#include "tests/config/config_support.h"

namespace simclr {
namespace {

using testing::HasSubstr;

ConfigValue plain(const std::string& text) {
  return {.kind = ConfigValue::Kind::kScalar, .text = text};
}
ConfigValue quoted(const std::string& text) {
  return {.kind = ConfigValue::Kind::kScalar, .text = text, .quoted = true};
}

TEST(Scalar, SpellingsOfOneNumberAreTheSameDouble) {
  for (const char* text : {"1e-3", "1E-3", ".001", "0.001", "+.001", "1.e-3", "10e-4", "0.1e-02"}) {
    const Parsed<double> parsed = parse_number(plain(text));
    EXPECT_EQ(parsed.problem, "") << text;
    EXPECT_EQ(parsed.value, 0.001) << text;
  }
  EXPECT_EQ(parse_number(plain("-5.")).value, -5.0);
  EXPECT_FALSE(std::signbit(parse_number(plain("-0.0")).value));
}

TEST(Scalar, InvalidNumbersAreRefusedWithTheReason) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"064", "leading zero (octal or decimal?); write 64"},
      {"-007.5", "write -7.5"},
      {"00", "leading zero (octal or decimal?); write 0"},
      {"1_000", "underscore; write 1000"},
      {".nan", "not a finite number"},
      {"NaN", "not a finite number"},
      {"-.inf", "not a finite number"},
      {"inf", "not a finite number"},
      {"1e999", "out of the range of a double"},
      {"1e-999", "out of the range of a double"},
      {"0x10", "found 0x10"},
      {"0o17", "found 0o17"},
      {"1,5", "found 1,5"},
      {"1.2.3", "found 1.2.3"},
      {"1e", "found 1e"},
      {".", "found ."},
      {"e5", "found e5"},
      {"--1", "found --1"},
      {"5 %", "found 5 %"},
      {"12abc", "found 12abc"},
      {"true", "found true"},
  };
  for (const auto& [text, reason] : cases) {
    EXPECT_THAT(parse_number(plain(text)).problem, HasSubstr(reason)) << text;
    EXPECT_THAT(parse_integer(plain(text)).problem, testing::Not("")) << text;
  }
  EXPECT_THAT(parse_number(quoted("64")).problem,
              HasSubstr("\"64\" in quotes, which makes it a string; remove the quotes"));
  EXPECT_THAT(parse_integer(quoted("64")).problem, HasSubstr("remove the quotes"));
  EXPECT_THAT(parse_number({.kind = ConfigValue::Kind::kList}).problem, HasSubstr("found a list"));
  EXPECT_THAT(parse_number({}).problem, HasSubstr("has no value"));
}

TEST(Scalar, IntegersAreWrittenInFull) {
  EXPECT_EQ(parse_integer(plain("64")).value, 64);
  EXPECT_EQ(parse_integer(plain("+64")).value, 64);
  EXPECT_EQ(parse_integer(plain("-3")).value, -3);
  EXPECT_EQ(parse_integer(plain("9223372036854775807")).value, INT64_MAX);
  EXPECT_EQ(parse_unsigned(plain("18446744073709551615")).value, UINT64_MAX);
  EXPECT_THAT(parse_integer(plain("1e3")).problem, HasSubstr("in full: 1000"));
  EXPECT_THAT(parse_integer(plain("64.0")).problem, HasSubstr("in full: 64"));
  EXPECT_EQ(parse_integer(plain("1.5")).problem, "found 1.5");
  EXPECT_EQ(parse_integer(plain("1e300")).problem, "found 1e300");
  EXPECT_EQ(parse_integer(plain("9223372036854775808")).problem, "found 9223372036854775808");
  EXPECT_EQ(parse_unsigned(plain("18446744073709551616")).problem, "found 18446744073709551616");
  EXPECT_EQ(parse_unsigned(plain("-1")).problem, "found -1");
}

TEST(Scalar, SwitchesAreTrueOrFalse) {
  EXPECT_TRUE(parse_bool(plain("true")).value);
  EXPECT_EQ(parse_bool(plain("false")).problem, "");
  for (const char* text : {"yes", "no", "on", "off", "y", "True", "FALSE", "1", "0"}) {
    EXPECT_EQ(parse_bool(plain(text)).problem, std::string("found ") + text + "; write true or false");
  }
  EXPECT_THAT(parse_bool(quoted("true")).problem, HasSubstr("found \"true\"; write true or false"));
}

TEST(Scalar, TextIsTakenAsItStands) {
  for (const char* text : {"yes", "064", "a b",
                           "Gr\xc3\xbc\xc3\x9f"
                           "e"}) {
    EXPECT_EQ(parse_text(plain(text)).value, text);
    EXPECT_EQ(parse_text(quoted(text)).value, text);
  }
  EXPECT_EQ(parse_text(quoted("")).problem, "");
  EXPECT_THAT(parse_text(quoted("a\nb")).problem, HasSubstr("control character (0x0a)"));
  EXPECT_THAT(parse_text(quoted("a\x7f")).problem, HasSubstr("control character (0x7f)"));
  EXPECT_THAT(parse_text({}).problem, HasSubstr("has no value"));
}

}  // namespace
}  // namespace simclr
