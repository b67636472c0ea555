// Headers as NumPy writes them, the message for each fault, and arbitrary bytes.
#include "src/data/npy_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/checkpoint/checkpoint_support.h"
#include "tests/data/npy_support.h"

namespace simclr {
namespace {

using test::npy_start;
using test::npy_text;
using testing::HasSubstr;

// A file of `start` and data_bytes bytes of data; the parser gets as much of it as its contract requires.
NpyHeader parse(const std::string& start, int64_t data_bytes) {
  const std::string seen = start + std::string(std::min(data_bytes, kMostNpyHeaderBytes), '\0');
  return parse_npy_header(test::as_bytes(seen), static_cast<int64_t>(start.size()) + data_bytes);
}

std::string refusal(const std::string& start, int64_t data_bytes) {
  return error_text([&] { parse(start, data_bytes); }, ExitCode::kData);
}

// What numpy.save(path, numpy.zeros((3, 2), numpy.float32)) begins with, byte for byte.
TEST(NpyHeader, ReadsWhatNumpyWrites) {
  const std::string start = std::string("\x93NUMPY\x01\x00\x76\x00", 10) +
                            "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }" + std::string(58, ' ') + "\n";
  ASSERT_EQ(start.size(), 128U);
  const NpyHeader header = parse(start, 24);
  EXPECT_EQ(header.type, NpyType::kFloat32);
  EXPECT_EQ(header.rows, 3);
  EXPECT_EQ(header.columns, 2);
  EXPECT_EQ(header.data_start, 128);
  EXPECT_EQ(header.data_bytes(), 24);
}

TEST(NpyHeader, ReadsAllVersionsAndSpellings) {
  for (const char major : {'\1', '\2', '\3'}) {
    const std::string start = npy_start(npy_text("'<f8'", "False", "(5, 7)"), major);
    const NpyHeader header = parse(start, 5 * 7 * 8);
    EXPECT_EQ(header.type, NpyType::kFloat64);
    EXPECT_EQ(header.rows, 5);
    EXPECT_EQ(header.columns, 7);
    EXPECT_EQ(header.data_start, static_cast<int64_t>(start.size()));
  }
  for (const char* text : {"{\"shape\":(5,7),\"fortran_order\":False,\"descr\":\"<f4\"}",  // other order and quotes
                           "{ 'shape' : ( 5L , 7L ,) , 'descr':'<f4','fortran_order' : False }"}) {  // Python 2
    const NpyHeader header = parse(npy_start(text), 5 * 7 * 4);
    EXPECT_EQ(header.rows, 5) << text;
    EXPECT_EQ(header.columns, 7) << text;
  }
}

TEST(NpyHeader, WhatItWritesItReads) {
  for (const NpyType type : {NpyType::kFloat32, NpyType::kFloat64}) {
    for (const int64_t rows : {int64_t{1}, int64_t{50000}, int64_t{1} << 40}) {
      const std::string start = format_npy_header({.type = type, .rows = rows, .columns = 128});
      EXPECT_EQ(start.size() % 64, 0U);
      EXPECT_EQ(start.back(), '\n');
      const NpyHeader header = parse(start, rows * 128 * bytes_of(type));
      EXPECT_EQ(header.type, type);
      EXPECT_EQ(header.rows, rows);
      EXPECT_EQ(header.columns, 128);
    }
  }
}

TEST(NpyHeader, RefusesOtherFiles) {
  EXPECT_THAT(refusal("", 0), HasSubstr("it is empty"));
  EXPECT_THAT(refusal("PK\3\4 a zip archive", 100), HasSubstr("not a .npy file"));
  EXPECT_THAT(refusal("\x93NUM", 0), HasSubstr("cut off: only 4 bytes"));
  EXPECT_THAT(refusal("\x93NUMPZ......", 0), HasSubstr("not a .npy file"));
  EXPECT_THAT(refusal(npy_start("{}", 4), 0), HasSubstr("version 4.0, expected 1.0, 2.0 or 3.0"));
  EXPECT_THAT(refusal(npy_start("{}", 1, 1), 0), HasSubstr("version 1.1"));
  EXPECT_THAT(refusal(npy_start("{}", 0), 0), HasSubstr("version 0.0"));
}

TEST(NpyHeader, RefusesALengthThatCannotBe) {
  std::string start = npy_start(npy_text("'<f4'", "False", "(1, 1)"));
  start[8] = '\xFF';  // 255 bytes of text
  EXPECT_THAT(refusal(start, 4), HasSubstr("claims 255 bytes, the file has"));
  std::string huge = npy_start("{}", 2);
  huge[8] = huge[9] = huge[10] = huge[11] = '\xFF';
  EXPECT_THAT(refusal(huge, 0), HasSubstr("claims 4294967295 bytes, the file has"));
  huge += std::string(kMostNpyHeaderBytes, ' ');
  huge[8] = huge[9] = huge[11] = '\0';
  huge[10] = '\1';  // 65,536 bytes: they are there, and still too many
  EXPECT_THAT(refusal(huge, 0), HasSubstr("claims 65536 bytes, more than a matrix needs"));
}

TEST(NpyHeader, RefusesADamagedDictionary) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "no '{'"},
      {"[1, 2]", "no '{'"},
      {"{'descr': '<f4'", "no ','"},
      {"{'descr' '<f4'}", "no ':'"},
      {"{'descr': }", "no value"},
      {"{'descr': '<f4}", "no closing quote"},
      {"{descr: '<f4'}", "no quoted key"},
      {"{'descr': '<f4', 'descr': '<f4'}", "'descr' is repeated"},
      {"{'color': 'red'}", "unknown key 'color'"},
      {"{'shape': ((1, 2)}", "no value"},
      {"{'shape': (1, 2)} 'more'", "bytes after its dictionary"},
      {"{}", "no 'descr'"},
      {"{'descr': '<f4', 'shape': (1, 2)}", "no 'fortran_order'"},
      {"{'descr': '<f4', 'fortran_order': False}", "no 'shape'"},
  };
  for (const auto& [text, part] : cases) EXPECT_THAT(refusal(npy_start(text), 8), HasSubstr(part)) << text;
  // Nothing that a terminal would obey reaches it.
  EXPECT_THAT(refusal(npy_start("{'\x1b[2J': 1}"), 8), HasSubstr("'?[2J'"));
}

TEST(NpyHeader, SaysWhichTypeItFoundAndHowToConvert) {
  for (const char* descr : {"'<f2'", "'<i8'", "'|b1'", "'<c8'", "'|O'", "'=f4'", "[('a', '<f4')]", "'<f16'", "None"}) {
    const std::string text = refusal(npy_start(npy_text(descr, "False", "(1, 2)")), 8);
    EXPECT_THAT(text, HasSubstr(std::string("its dtype is ") + descr));
    EXPECT_THAT(text, HasSubstr(".astype(np.float32)"));
  }
  const std::string big = refusal(npy_start(npy_text("'>f8'", "False", "(1, 2)")), 16);
  EXPECT_THAT(big, HasSubstr("big-endian"));
  EXPECT_THAT(big, HasSubstr(".astype('<f8')"));
}

TEST(NpyHeader, RefusesOrderAndShapes) {
  EXPECT_THAT(refusal(npy_start(npy_text("'<f4'", "True", "(1, 2)")), 8), HasSubstr("np.ascontiguousarray(z)"));
  EXPECT_THAT(refusal(npy_start(npy_text("'<f4'", "0", "(1, 2)")), 8), HasSubstr("fortran_order is 0"));
  for (const char* shape : {"()", "(8,)", "(2, 2, 2)"}) {
    const std::string text = refusal(npy_start(npy_text("'<f4'", "False", shape)), 32);
    EXPECT_THAT(text, HasSubstr(std::string("its shape is ") + shape + ", expected a matrix [N, C]"));
  }
  for (const char* shape : {"(0, 8)", "(8, 0)"})
    EXPECT_THAT(refusal(npy_start(npy_text("'<f4'", "False", shape)), 0), HasSubstr("it holds no numbers"));
  for (const char* shape : {"(-1, 8)", "(1.5, 2)", "(2 2)", "(,)", "8", "(9223372036854775808, 1)", "(x, y)"})
    EXPECT_THAT(refusal(npy_start(npy_text("'<f4'", "False", shape)), 32), HasSubstr("the shape is")) << shape;
}

TEST(NpyHeader, HoldsTheShapeToTheSizeOfTheFile) {
  const std::string start = npy_start(npy_text("'<f4'", "False", "(3, 2)"));
  EXPECT_THAT(refusal(start, 23), HasSubstr("needs 24 bytes of data, there are 23: cut off"));
  EXPECT_THAT(refusal(start, 0), HasSubstr("there are 0: cut off"));
  EXPECT_THAT(refusal(start, 25), HasSubstr("there are 25: there are extra bytes"));
  // 2^60 elements; 2^62 elements, whose bytes no int64 counts; 2^64 elements.
  EXPECT_THAT(refusal(npy_start(npy_text("'<f4'", "False", "(1073741824, 1073741824)")), 8),
              HasSubstr("needs 4611686018427387904 bytes"));
  EXPECT_THAT(refusal(npy_start(npy_text("'<f4'", "False", "(2147483648, 2147483648)")), 8),
              HasSubstr("exceeds the size of any file"));
  EXPECT_THAT(refusal(npy_start(npy_text("'<f8'", "False", "(4294967296, 4294967296)")), 8),
              HasSubstr("exceeds the size of any file"));
}

// Whatever bytes come, the answer is a header that fits them or an Error(kData).
TEST(NpyHeader, AnyBytesAreAnswered) {
  const std::string good = npy_start(npy_text("'<f4'", "False", "(3, 2)"));
  const auto try_bytes = [&](const std::string& bytes) {
    try {
      const NpyHeader header = parse(bytes, 24);
      EXPECT_GE(header.rows, 1);
      EXPECT_EQ(header.data_start + header.data_bytes(), static_cast<int64_t>(bytes.size()) + 24);
      return 1;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kData) << error.what();
      return 0;
    }
  };
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_THROW(parse(good.substr(0, length), 0), Error) << length << " bytes";
  int accepted = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(value);
      accepted += try_bytes(bytes);
    }
  }
  EXPECT_GE(accepted, static_cast<int>(good.size()));  // the unchanged ones, at least
  EXPECT_LT(accepted, 4 * static_cast<int>(good.size()) + 200);
}

}  // namespace
}  // namespace simclr
