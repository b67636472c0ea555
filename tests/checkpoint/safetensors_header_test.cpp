// Headers that a damaged or hostile file could hold, each with the cause that must be named.
#include "src/checkpoint/safetensors_header.h"

#include <gmock/gmock.h>

#include "tests/checkpoint/checkpoint_support.h"

namespace simclr {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& json, int64_t data_bytes = 8) {
  return error_text([&] { parse_safetensors_header(json, data_bytes); });
}

TEST(SafetensorsHeader, FormatsByHand) {
  const SafetensorsHeader header{
      .metadata = {{"b", "2"}, {"a", "\"\n"}},
      .entries = {{"zz", TensorType::kFloat64, {}, 0, 8}, {"a", TensorType::kInt64, {0, 3}, 8, 8}}};
  EXPECT_EQ(format_safetensors_header(header),
            R"({"__metadata__":{"a":"\"\n","b":"2"},"zz":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
            R"("a":{"dtype":"I64","shape":[0,3],"data_offsets":[8,8]}})"
            "       ");  // 145 bytes to 152
}

TEST(SafetensorsHeader, ReadsWhatItWrites) {
  const SafetensorsHeader header{.metadata = {{"k", "v"}},
                                 .entries = {{"a", TensorType::kFloat32, {2, 3}, 0, 24},
                                             {"none", TensorType::kUint8, {4, 0}, 24, 24},
                                             {"b", TensorType::kUint8, {5}, 24, 29}}};
  const SafetensorsHeader read = parse_safetensors_header(format_safetensors_header(header), 29);
  EXPECT_EQ(read.metadata, header.metadata);
  ASSERT_EQ(read.entries.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read.entries[i].name, header.entries[i].name);
    EXPECT_EQ(read.entries[i].type, header.entries[i].type);
    EXPECT_EQ(read.entries[i].shape, header.entries[i].shape);
    EXPECT_EQ(read.entries[i].begin, header.entries[i].begin);
    EXPECT_EQ(read.entries[i].end, header.entries[i].end);
  }
}

TEST(SafetensorsHeader, SortsEntriesByTheirBytes) {
  const SafetensorsHeader read = parse_safetensors_header(R"({"late":{"dtype":"U8","shape":[4],"data_offsets":[4,8]},
                                   "early":{"data_offsets":[0,4],"shape":[4],"dtype":"U8"}})",
                                                          8);
  EXPECT_EQ(read.entries[0].name, "early");
}

TEST(SafetensorsHeader, AnEmptyFileOfTensorsIsLegal) {
  EXPECT_TRUE(parse_safetensors_header("{}      ", 0).entries.empty());
  EXPECT_EQ(format_safetensors_header({}), "{}      ");
}

TEST(SafetensorsHeader, RefusesWrongJson) {
  EXPECT_THAT(refusal(""), HasSubstr("does not start with '{'"));
  EXPECT_THAT(refusal("[]"), HasSubstr("does not start with '{'"));
  EXPECT_THAT(refusal("\xEF\xBB\xBF{}"), HasSubstr("does not start with '{'"));
  EXPECT_THAT(refusal(std::string("{}\0x", 4)), HasSubstr("NUL"));
  EXPECT_THAT(refusal("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{} x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{}{}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{\"a\xFF\":{}}"), HasSubstr("not valid JSON"));  // not UTF-8
  EXPECT_THAT(refusal("{/**/}"), HasSubstr("not valid JSON"));
}

TEST(SafetensorsHeader, RefusesWhatTheFormatDoesNotHave) {
  const std::string start = R"({"a":{"dtype":"F32","data_offsets":[0,8],"shape":)";
  EXPECT_THAT(refusal(start + R"([2],"more":1}})"), HasSubstr("'a' holds a field 'more'"));
  EXPECT_THAT(refusal(start + R"([2],"shape":[2]}})"), HasSubstr("the field 'shape' twice"));
  EXPECT_THAT(refusal(start + R"([-2]}})"), HasSubstr("a negative number"));
  EXPECT_THAT(refusal(start + R"([2.0]}})"), HasSubstr("not an integer"));
  EXPECT_THAT(refusal(start + R"([true]}})"), HasSubstr("true or false"));
  EXPECT_THAT(refusal(start + R"([null]}})"), HasSubstr("null"));
  EXPECT_THAT(refusal(start + R"(["2"]}})"), HasSubstr("a text"));
  EXPECT_THAT(refusal(start + R"([[2]]}})"), HasSubstr("a list"));
  EXPECT_THAT(refusal(start + R"({}}})"), HasSubstr("an object"));
  EXPECT_THAT(refusal(start + R"(2}})"), HasSubstr("a number"));
  EXPECT_THAT(refusal(start + R"([1,1,1,1,1,1,1,1,2]}})"), HasSubstr("8 dimensions"));
  EXPECT_THAT(refusal(start + R"([9223372036854775808]}})"), HasSubstr("63 bits"));
  EXPECT_THAT(refusal(start + R"([99999999999999999999]}})"), HasSubstr("not an integer"));
  EXPECT_THAT(refusal(R"({"a":1})"), HasSubstr("'a' holds a number"));
  EXPECT_THAT(refusal(R"({"a":[1]})"), HasSubstr("'a' holds a list"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":["F32"]}})"), HasSubstr("a list"));
  EXPECT_THAT(refusal(R"({"a":{}})"), HasSubstr("lacks one of"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","shape":[2]}})"), HasSubstr("lacks one of"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"k":1}})"), HasSubstr("'k' holds a number"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"k":{}}})"), HasSubstr("'k' holds an object"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"k":"1","k":"2"}})"), HasSubstr("a key that is repeated"));
  EXPECT_THAT(refusal(R"({"__metadata__":{},"__metadata__":{}})"), HasSubstr("is repeated"));
}

TEST(SafetensorsHeader, RefusesNamesAndTypes) {
  const std::string tensor = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_THAT(refusal(R"({"a":)" + tensor + R"(,"a":)" + tensor + "}", 4), HasSubstr("'a' is repeated"));
  EXPECT_THAT(refusal(R"({"":)" + tensor + "}", 4), HasSubstr("name is empty"));
  EXPECT_THAT(refusal(R"({"a\nb":)" + tensor + "}", 4), HasSubstr("control characters"));
  EXPECT_THAT(refusal("{\"" + std::string(501, 'n') + "\":" + tensor + "}", 4), HasSubstr("longer than 500 bytes"));
  for (const char* type : {"f32", "F16", "F320", "", "BF16"}) {
    EXPECT_THAT(refusal(fmt::format(R"({{"a":{{"dtype":"{}","shape":[2],"data_offsets":[0,8]}}}})", type)),
                HasSubstr(fmt::format("dtype '{}' is not supported", type)));
  }
}

TEST(SafetensorsHeader, RefusesOffsets) {
  const auto one = [](const char* shape, const char* offsets) {
    return refusal(fmt::format(R"({{"a":{{"dtype":"F32","shape":{},"data_offsets":{}}}}})", shape, offsets));
  };
  EXPECT_THAT(one("[2]", "[0,8,8]"), HasSubstr("3 numbers, not 2"));
  EXPECT_THAT(one("[2]", "[]"), HasSubstr("0 numbers, not 2"));
  EXPECT_THAT(one("[2]", "[-8,0]"), HasSubstr("negative"));
  EXPECT_THAT(one("[2]", "[8,0]"), HasSubstr("expected 0: a gap"));
  EXPECT_THAT(one("[2]", "[0,7]"), HasSubstr("do not match"));
  EXPECT_THAT(one("[3]", "[0,12]"), HasSubstr("do not match"));
  EXPECT_THAT(one("[1]", "[0,4]"), HasSubstr("take 4 bytes of data, the file has 8"));
  EXPECT_THAT(one("[1]", "[4,8]"), HasSubstr("a gap"));
  EXPECT_THAT(one("[0]", "[0,0]"), HasSubstr("take 0 bytes"));
  // 2^62 * 2^62 * 4 is 0 in 64 bits, 2^62 * 4 is 0 as well; neither may pass as an empty tensor.
  EXPECT_THAT(one("[4611686018427387904,4611686018427387904]", "[0,0]"), HasSubstr("too large"));
  EXPECT_THAT(one("[4611686018427387904]", "[0,8]"), HasSubstr("too large"));
  EXPECT_THAT(one("[2]", "[0,9223372036854775807]"), HasSubstr("do not match"));
  const std::string two =
      R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})";
  EXPECT_THAT(refusal(two), HasSubstr("tensors overlap"));
}

// An array of 16 MiB opening brackets: refused at the first, without memory or stack in proportion to the depth.
TEST(SafetensorsHeader, RefusesDeepNesting) {
  EXPECT_THAT(refusal(R"({"a":)" + std::string(size_t{16} << 20, '[')), HasSubstr("'a' holds a list"));
  std::string objects = "{";
  for (int i = 0; i < 100000; ++i) objects += R"("shape":{)";
  EXPECT_THAT(refusal(objects), HasSubstr("holds an object"));
}

TEST(SafetensorsHeader, AZeroSizeHasNoBytesWhateverTheOthersAre) {
  const char* json =
      R"({"a":{"dtype":"F32","shape":[4611686018427387904,4611686018427387904,0],"data_offsets":[0,0]}})";
  EXPECT_EQ(elements_of(parse_safetensors_header(json, 0).entries[0].shape), 0);
}

TEST(SafetensorsHeader, WritesOnlyUtf8) {
  EXPECT_THAT(error_text([] {
                format_safetensors_header({.metadata = {{"k", "\xFF"}}, .entries = {}});
              }),
              HasSubstr("not UTF-8"));
}

}  // namespace
}  // namespace simclr
