// Decoding: each feature on a tiny image that libjpeg or libpng wrote here, then every row of the odd images.
#include "src/data/image_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/data/encoded_images.h"

namespace simclr {
namespace {

using test::Bytes;
using test::encode_jpeg;
using test::encode_png;
using test::filled;
using test::gradient;
using test::RawImage;
using test::red_corner;

constexpr int64_t kMostPixels = 100'000'000;

struct Decoded {
  ImageInfo info;
  int64_t height = 0, width = 0;
  Bytes pixels;  // [3, height, width]
  int at(int64_t c, int64_t y, int64_t x) const { return pixels[(c * height + y) * width + x]; }
  std::array<double, 3> mean() const {
    std::array<double, 3> result{};
    const auto plane = static_cast<size_t>(height * width);
    for (size_t i = 0; i < pixels.size(); ++i) result[i / plane] += pixels[i] / static_cast<double>(plane);
    return result;
  }
};

Decoded decode(const Bytes& file, int reduction = 1) {
  Decoded d{.info = read_image_info(file, kMostPixels), .pixels = {}};
  const PlanarImage view = decode_image(file, d.info, reduction, d.pixels);
  d.height = view.height;
  d.width = view.width;
  EXPECT_EQ(static_cast<int64_t>(d.pixels.size()), view.bytes());
  return d;
}

std::string refusal(const Bytes& file) {
  try {
    decode(file);
  } catch (const BadImage& e) {
    return e.what();
  }
  return "";
}

void expect_color(const Decoded& d, int64_t y, int64_t x, const std::array<int, 3>& color, int tolerance) {
  for (int64_t c = 0; c < 3; ++c) EXPECT_NEAR(d.at(c, y, x), color[c], tolerance) << c;
}

TEST(ImageFile, PutsEveryOrientationUpright) {
  // Where the red corner of the stored image comes to lie: (bottom, right).
  const std::array<std::array<bool, 2>, 8> corner = {{{false, false},
                                                      {false, true},
                                                      {true, true},
                                                      {true, false},
                                                      {false, false},
                                                      {false, true},
                                                      {true, true},
                                                      {true, false}}};
  for (int o = 1; o <= 8; ++o) {
    SCOPED_TRACE(o);
    for (const Bytes& file :
         {encode_jpeg(red_corner(), {.orientation = o}), encode_png(red_corner(), {.orientation = o})}) {
      const Decoded d = decode(file);
      EXPECT_EQ(d.info.orientation, o);
      EXPECT_EQ(d.height, o >= 5 ? 48 : 32);
      EXPECT_EQ(d.width, o >= 5 ? 32 : 48);
      EXPECT_EQ(d.info.height, d.height);
      EXPECT_EQ(d.info.width, d.width);
      const auto [bottom, right] = corner[o - 1];
      for (const bool low : {false, true}) {
        for (const bool far : {false, true}) {
          const bool red = low == bottom && far == right;
          expect_color(d, low ? d.height - 2 : 1, far ? d.width - 2 : 1, {red ? 255 : 0, 0, red ? 0 : 255}, 3);
        }
      }
    }
  }
}

// The two transposing orientations, which red_corner cannot distinguish from flips.
TEST(ImageFile, KeepsTheOrderWithinRows) {
  const RawImage two_by_one{1, 2, 3, {200, 0, 0, 0, 0, 100}};  // stored: red, blue
  const Decoded clockwise = decode(encode_png(two_by_one, {.orientation = 6}));
  EXPECT_EQ(clockwise.pixels, (Bytes{200, 0, 0, 0, 0, 100}));  // red above blue
  const Decoded anticlockwise = decode(encode_png(two_by_one, {.orientation = 8}));
  EXPECT_EQ(anticlockwise.pixels, (Bytes{0, 200, 0, 0, 100, 0}));
}

TEST(ImageFile, TakesNonsenseForNoOrientation) {
  EXPECT_EQ(decode(encode_jpeg(red_corner(), {.orientation = 9})).info.orientation, 1);
}

TEST(ImageFile, RepeatsGray) {
  for (const Bytes& file : {encode_jpeg(filled(3, 5, {77})), encode_png(filled(3, 5, {77})),
                            encode_png(filled(3, 5, {77, 9})), encode_png(filled(3, 5, {77}), {.bit_depth = 16})}) {
    EXPECT_EQ(decode(file).pixels, Bytes(45, 77));
  }
  EXPECT_EQ(decode(encode_png(filled(2, 2, {5}), {.bit_depth = 4})).pixels, Bytes(12, 85));  // 5/15 of 255
  EXPECT_EQ(decode(encode_png(filled(2, 2, {1}), {.bit_depth = 1})).pixels, Bytes(12, 255));
}

TEST(ImageFile, DropsAlphaAndLooksUpPalettes) {
  EXPECT_EQ(decode(encode_png(filled(1, 2, {10, 20, 30, 0}))).pixels, (Bytes{10, 10, 20, 20, 30, 30}));
  for (const int depth : {2, 8})
    EXPECT_EQ(decode(encode_png(filled(1, 2, {3}), {.bit_depth = depth, .palette = true})).pixels,
              (Bytes{252, 252, 3, 3, 7, 7}));
}

TEST(ImageFile, ReadsInterlacedImagesAsTheOthers) {
  for (const int64_t side : {1, 5, 9}) {
    const RawImage image = gradient(side, side + 1);
    EXPECT_EQ(decode(encode_png(image, {.interlaced = true})).pixels, decode(encode_png(image)).pixels);
  }
  const Decoded deep = decode(encode_png(gradient(4, 4), {.bit_depth = 16}));
  EXPECT_EQ(deep.pixels, decode(encode_png(gradient(4, 4))).pixels);
}

TEST(ImageFile, ReadsProgressiveJpegAsTheOthers) {
  EXPECT_EQ(decode(encode_jpeg(gradient(33, 47), {.progressive = true})).pixels,
            decode(encode_jpeg(gradient(33, 47))).pixels);
}

TEST(ImageFile, ConvertsCmyk) {
  // Plain: C = 40 of 255 takes so much red away, K = 51 a fifth of the light.
  expect_color(decode(encode_jpeg(filled(16, 16, {40, 0, 255, 51}))), 8, 8, {172, 204, 0}, 3);
  // Adobe's: inverted.
  expect_color(decode(encode_jpeg(filled(16, 16, {215, 255, 0, 204}), {.adobe_ycck = true})), 8, 8, {172, 204, 0}, 3);
}

TEST(ImageFile, DecodesJpegAtAFractionOfItsSize) {
  const Bytes file = encode_jpeg(gradient(61, 90), {.orientation = 6});
  const Bytes whole_blocks = encode_jpeg(gradient(64, 96));
  for (const int reduction : {2, 4, 8}) {
    const Decoded part = decode(file, reduction);
    EXPECT_EQ(part.height, (90 + reduction - 1) / reduction);
    EXPECT_EQ(part.width, (61 + reduction - 1) / reduction);
    EXPECT_EQ(part.info.height, 90) << "the header has the whole size";
    for (size_t c = 0; c < 3; ++c)
      EXPECT_NEAR(decode(whole_blocks, reduction).mean()[c], decode(whole_blocks).mean()[c], 1) << reduction;
  }
  EXPECT_EQ(decode(encode_png(gradient(9, 9)), 4).height, 9);
}

TEST(ImageFile, RefusesOtherFiles) {
  EXPECT_EQ(refusal({}), "the file is empty");
  EXPECT_EQ(refusal({'G', 'I', 'F', '8'}), "it is neither JPEG nor PNG by its first bytes");
  EXPECT_EQ(refusal({0xff, 0xd8, 0xff, 0xd9}), "libjpeg cannot read it: JPEG datastream contains no image");
}

TEST(ImageFile, RefusesWhatEndsEarly) {
  for (const bool progressive : {false, true}) {
    Bytes jpeg = encode_jpeg(gradient(64, 64), {.progressive = progressive});
    for (const size_t left : {jpeg.size() / 2, jpeg.size() / 8}) {
      jpeg.resize(left);
      EXPECT_EQ(refusal(jpeg), "libjpeg cannot read it: Premature end of JPEG file");
    }
  }
  Bytes png = encode_png(gradient(64, 64));
  png.resize(png.size() / 2);
  EXPECT_EQ(refusal(png), "libpng cannot read it: the file ends early");
}

// Some libraries take a chunk's memory before they look for its bytes.
TEST(ImageFile, RefusesAPngChunkLongerThanTheFile) {
  Bytes png = encode_png(gradient(4, 4), {.orientation = 3});
  const std::string name = "eXIf";
  const auto at = std::search(png.begin(), png.end(), name.begin(), name.end());
  ASSERT_NE(at, png.end());
  *(at - 4) = 0x40;  // 1 GiB
  EXPECT_EQ(refusal(png), "libpng cannot read it: the file ends early");
}

TEST(ImageFile, HoldsThePixelLimitByTheHeaderAlone) {
  const Bytes file = encode_jpeg(gradient(30, 40), {.orientation = 5});
  EXPECT_EQ(read_image_info(file, 1200).height, 40);
  try {
    read_image_info(file, 1199);
    FAIL() << "1200 pixels were let through";
  } catch (const BadImage& e) {
    EXPECT_STREQ(e.what(), "30x40 pixels exceed data.max_pixels: 1199");
  }
}

TEST(ImageFile, RefusesAJpegOfManyScans) {
  EXPECT_EQ(refusal(encode_jpeg(gradient(16, 16, 1), {.scans_of_one_kind = 100})), "");
  EXPECT_EQ(refusal(encode_jpeg(gradient(16, 16, 1), {.scans_of_one_kind = 101})),
            "libjpeg cannot read it: it has more than 100 scans");
}

// The numbers after `key` in `text`, separated by any of "x,(". Empty if the key is not there.
std::vector<double> numbers_after(const std::string& text, const std::string& key) {
  const size_t at = text.find(key);
  std::vector<double> numbers;
  if (at == std::string::npos) return numbers;
  const char* place = text.c_str() + at + key.size();
  for (char* end = nullptr;; place = end) {
    while (*place == 'x' || *place == ',' || *place == '(' || (*place == ' ' && !numbers.empty())) ++place;
    const double value = std::strtod(place, &end);
    if (end == place) return numbers;
    numbers.push_back(value);
    if (*end == ' ' || *end == ')') return numbers;
  }
}

bool means_agree(const std::array<double, 3>& mean, const std::vector<double>& expected) {
  if (expected.size() < 3) return false;
  for (size_t c = 0; c < 3; ++c) {
    if (std::abs(mean[c] - expected[c]) > 1.5) return false;
  }
  return true;
}

// Sizes upright, and the mean color of PIL or of the libraries' own convention (they differ in what they do with
// gamma and CMYK). For 16-bit gray there is no expected value: PIL clips it at 255, and the libraries apply gamma.
TEST(OddImages, AllGetTheirVerdict) {
  const char* shared = std::getenv("SIMCLR_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "SIMCLR_SHARED is not set: no odd images to read";
  const std::filesystem::path folder = std::filesystem::path(shared) / "data/odd-images";
  std::ifstream manifest(folder / "MANIFEST.tsv");
  std::string line;
  ASSERT_TRUE(std::getline(manifest, line)) << "no MANIFEST.tsv in " << folder;
  int rows = 0, decoded = 0, refused = 0;
  while (std::getline(manifest, line)) {
    ++rows;
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, '\t');) cells.push_back(cell);
    ASSERT_EQ(cells.size(), 6u) << line;
    SCOPED_TRACE(cells[0]);
    const Bytes file = test::read_bytes(folder / cells[0]);
    std::string reason;
    Decoded d;
    try {
      d = decode(file);
      ++decoded;
    } catch (const BadImage& e) {
      reason = e.what();
      ++refused;
      EXPECT_EQ(reason.find('\n'), std::string::npos);
    }
    if (cells[1] == "refuse") {
      EXPECT_NE(reason, "");
    }
    if (cells[1].starts_with("decode")) {
      EXPECT_EQ(reason, "");
      const auto size = numbers_after(cells[5], "upright=");
      if (size.size() == 2) {
        EXPECT_EQ(d.width, static_cast<int64_t>(size[0]));
        EXPECT_EQ(d.height, static_cast<int64_t>(size[1]));
      }
      if (reason.empty() && cells[5].find("PNG I ") == std::string::npos) {
        EXPECT_TRUE(means_agree(d.mean(), numbers_after(cells[5], "meanRGB=")) ||
                    means_agree(d.mean(), numbers_after(cells[3], "mean=")))
            << d.mean()[0] << " " << d.mean()[1] << " " << d.mean()[2] << "\n"
            << cells[3] << "\n"
            << cells[5];
      }
    }
  }
  EXPECT_EQ(rows, 244);
  RecordProperty("decoded", decoded);
  RecordProperty("refused", refused);
}

}  // namespace
}  // namespace simclr
