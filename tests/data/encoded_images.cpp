#include "tests/data/encoded_images.h"

#include <cstdio>  // jpeglib.h needs it
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <jpeglib.h>
#include <png.h>

namespace simclr::test {
namespace {

// The TIFF structure with this one entry, big-endian.
Bytes exif_with(int orientation) {
  return {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, static_cast<uint8_t>(orientation),
          0,   0,   0, 0,  0, 0};
}

}  // namespace

RawImage filled(int64_t height, int64_t width, const Bytes& pixel) {
  RawImage image{height, width, static_cast<int64_t>(pixel.size()), {}};
  for (int64_t i = 0; i < height * width; ++i) image.values.insert(image.values.end(), pixel.begin(), pixel.end());
  return image;
}

RawImage red_corner(int64_t height, int64_t width) {
  RawImage image = filled(height, width, {0, 0, 255});
  for (int64_t y = 0; y < height / 2; ++y) {
    for (int64_t x = 0; x < width / 2; ++x) {
      uint8_t* pixel = image.values.data() + 3 * (y * width + x);
      pixel[0] = 255;
      pixel[2] = 0;
    }
  }
  return image;
}

RawImage gradient(int64_t height, int64_t width, int64_t channels) {
  RawImage image{height, width, channels, {}};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c)
        image.values.push_back(static_cast<uint8_t>(20 + (c + 1) * 30 + 40 * y / height + 60 * x / width));
    }
  }
  return image;
}

Bytes encode_jpeg(const RawImage& image, const JpegOptions& options) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);  // ends the test on an error
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long bytes = 0;
  jpeg_mem_dest(&jpeg, &memory, &bytes);
  jpeg.image_height = static_cast<JDIMENSION>(image.height);
  jpeg.image_width = static_cast<JDIMENSION>(image.width);
  jpeg.input_components = static_cast<int>(image.channels);
  jpeg.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : image.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  if (options.adobe_ycck) jpeg_set_colorspace(&jpeg, JCS_YCCK);
  if (!options.adobe_ycck) jpeg.write_Adobe_marker = FALSE;
  jpeg_set_quality(&jpeg, 95, TRUE);
  if (options.progressive) jpeg_simple_progression(&jpeg);
  // DC first, then the same band of one coefficient refined from bit to bit, over and over for another band.
  std::vector<jpeg_scan_info> scans;
  if (options.scans_of_one_kind > 0) {
    scans.push_back({1, {0}, 0, 0, 0, 0});
    for (int i = 1; i < options.scans_of_one_kind && i < 64; ++i) scans.push_back({1, {0}, i, i, 0, 1});
    for (int i = 64; i < options.scans_of_one_kind; ++i) scans.push_back({1, {0}, i - 63, i - 63, 1, 0});
    jpeg.scan_info = scans.data();
    jpeg.num_scans = static_cast<int>(scans.size());
  }
  jpeg_start_compress(&jpeg, TRUE);
  if (options.orientation > 0) {
    Bytes exif = exif_with(options.orientation);
    const Bytes start = {'E', 'x', 'i', 'f', 0, 0};
    exif.insert(exif.begin(), start.begin(), start.end());
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, exif.data(), static_cast<unsigned>(exif.size()));
  }
  while (jpeg.next_scanline < jpeg.image_height) {
    Bytes row(image.values.begin() + static_cast<int64_t>(jpeg.next_scanline) * image.width * image.channels,
              image.values.begin() + (static_cast<int64_t>(jpeg.next_scanline) + 1) * image.width * image.channels);
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&jpeg, &pointer, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  Bytes result(memory, memory + bytes);
  std::free(memory);
  return result;
}

Bytes encode_png(const RawImage& image, const PngOptions& options) {
  Bytes result;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);  // ends on an error
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &result,
      [](png_structp p, png_bytep data, size_t bytes) {
        auto& to = *static_cast<Bytes*>(png_get_io_ptr(p));
        to.insert(to.end(), data, data + bytes);
      },
      [](png_structp) {});
  const int kinds[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height),
               options.bit_depth, options.palette ? PNG_COLOR_TYPE_PALETTE : kinds[image.channels],
               options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (options.palette) {
    std::vector<png_color> colors(size_t{1} << options.bit_depth);
    for (size_t i = 0; i < colors.size(); ++i)
      colors[i] = {static_cast<png_byte>(255 - i), static_cast<png_byte>(i), 7};
    png_set_PLTE(png, info, colors.data(), static_cast<int>(colors.size()));
  }
  Bytes exif = exif_with(options.orientation);
  if (options.orientation > 0) png_set_eXIf_1(png, info, static_cast<png_uint_32>(exif.size()), exif.data());
  png_write_info(png, info);
  png_set_packing(png);  // values of less than 8 bits come one a byte
  const int passes = png_set_interlace_handling(png);
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t y = 0; y < image.height; ++y) {
      Bytes row;
      for (int64_t i = 0; i < image.width * image.channels; ++i) {
        const uint8_t value = image.values[y * image.width * image.channels + i];
        row.insert(row.end(), options.bit_depth == 16 ? 2 : 1, value);
      }
      png_write_row(png, row.data());
    }
  }
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return result;
}

void write_file(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

Bytes read_bytes(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace simclr::test
