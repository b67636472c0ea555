// idx files, plain and compressed: read right, and each way of being wrong named in one line.
#include "src/data/mnist.h"

#include <zlib.h>

#include "src/data/idx_file.h"
#include "tests/data/data_set_support.h"

namespace simclr {
namespace {

namespace fs = std::filesystem;
using test::refusal;
using test::write_bytes;
using testing::HasSubstr;

std::string big_endian(uint32_t v) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(v >> shift));
  return bytes;
}

std::string labels_file(const std::vector<int>& labels) {
  std::string bytes = big_endian(0x801) + big_endian(static_cast<uint32_t>(labels.size()));
  for (const int label : labels) bytes.push_back(static_cast<char>(label));
  return bytes;
}

// Pixel k of image i is (seed + 100 i + k) % 256.
std::string images_file(uint32_t count, int seed, uint32_t side = 28) {
  std::string bytes = big_endian(0x803) + big_endian(count) + big_endian(side) + big_endian(side);
  for (uint32_t i = 0; i < count; ++i)
    for (uint32_t k = 0; k < side * side; ++k)
      bytes.push_back(static_cast<char>(static_cast<uint32_t>(seed) + 100 * i + k));
  return bytes;
}

std::string compressed(const std::string& bytes) {
  std::string out(compressBound(bytes.size()) + 64, '\0');
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

class Mnist : public testing::Test {
 protected:
  void SetUp() override { fill(folder_.path(), ""); }
  static void fill(const fs::path& folder, const std::string& suffix) {
    const auto put = [&](const std::string& name, const std::string& bytes) {
      write_bytes(folder / (name + suffix), suffix.empty() ? bytes : compressed(bytes));
    };
    put("train-images-idx3-ubyte", images_file(3, 7));
    put("train-labels-idx1-ubyte", labels_file({5, 0, 9}));
    put("t10k-images-idx3-ubyte", images_file(2, 50));
    put("t10k-labels-idx1-ubyte", labels_file({1, 2}));
  }
  void put(const std::string& name, const std::string& bytes) { write_bytes(folder_.path() / name, bytes); }
  std::string refused(Split split = Split::kTrain) {
    return refusal([&] { read_mnist(folder_.path().string(), split); });
  }

  TemporaryFolder folder_;
};

TEST_F(Mnist, RepeatsGrayInThreeChannels) {
  const ImageSet train = read_mnist(folder_.path().string(), Split::kTrain);
  EXPECT_EQ(train.count, 3);
  EXPECT_EQ(train.height, 28);
  EXPECT_EQ(train.width, 28);
  EXPECT_EQ(train.labels, (std::vector<int32_t>{5, 0, 9}));
  ASSERT_EQ(train.pixels.size(), 3u * 3 * 784);
  for (size_t i = 0; i < 3; ++i)
    for (size_t c = 0; c < 3; ++c)
      for (size_t k = 0; k < 784; ++k) ASSERT_EQ(train.pixels[(i * 3 + c) * 784 + k], (7 + 100 * i + k) % 256);
  const ImageSet test = read_mnist(folder_.path().string(), Split::kTest);
  EXPECT_EQ(test.labels, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(test.class_names[9], "9");
}

TEST_F(Mnist, ReadsCompressedFilesWhereTorchvisionPutsThem) {
  const TemporaryFolder other;
  fill(other.path() / "MNIST" / "raw", ".gz");
  const ImageSet plain = read_mnist(folder_.path().string(), Split::kTrain);
  const ImageSet gz = read_mnist(other.path().string(), Split::kTrain);
  EXPECT_EQ(gz.pixels, plain.pixels);
  EXPECT_EQ(gz.labels, plain.labels);
}

TEST_F(Mnist, TakesNamesOfClassesFromAFile) {
  put("class_names.txt", "top\ntrouser\npullover\ndress\ncoat\nsandal\nshirt\nsneaker\nbag\nboot\n");
  EXPECT_EQ(read_mnist(folder_.path().string(), Split::kTest).class_names[9], "boot");
}

TEST_F(Mnist, NamesAMissingFileOfEitherSplit) {
  for (const std::string name : {"train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    fill(folder_.path(), "");
    fs::remove(folder_.path() / name);
    EXPECT_THAT(refused(), HasSubstr(name + " does not exist, with or without .gz; all four files")) << name;
  }
  EXPECT_THAT(refusal([] { read_mnist("/nonexistent", Split::kTrain); }), HasSubstr("does not exist"));
}

TEST_F(Mnist, NamesAWrongHeader) {
  put("t10k-images-idx3-ubyte", labels_file({1, 2}) + std::string(8, '\0'));
  EXPECT_THAT(refused(), HasSubstr("t10k-images-idx3-ubyte starts with 0x00000801, expected 0x00000803"));
  put("t10k-images-idx3-ubyte", std::string("\0\0\x08", 3));
  EXPECT_THAT(refused(), HasSubstr("an idx header has 16"));
  put("t10k-images-idx3-ubyte", images_file(2, 0, 32));
  EXPECT_THAT(refused(), HasSubstr("images of 32x32 pixels, expected 28x28"));
  put("t10k-images-idx3-ubyte", images_file(0, 0));
  EXPECT_THAT(refused(), HasSubstr("has no images"));
  put("t10k-images-idx3-ubyte", images_file(3, 0));
  EXPECT_THAT(refused(), HasSubstr("t10k-labels-idx1-ubyte has 2 labels"));
}

TEST_F(Mnist, TakesNoMemoryByAHeadersWord) {
  std::string huge = images_file(2, 0);
  huge.replace(4, 4, big_endian(0xffffffff));
  put("train-images-idx3-ubyte", huge);
  EXPECT_THAT(refused(), HasSubstr("has a header for [4294967295] values, more than its 1584 bytes can hold"));
  fs::remove(folder_.path() / "train-images-idx3-ubyte");
  put("train-images-idx3-ubyte.gz", compressed(huge));
  EXPECT_THAT(refused(), HasSubstr("has a header for [4294967295] values, more than its"));
}

TEST_F(Mnist, NamesWhatIsMissingOrTooMuch) {
  const std::string images = images_file(3, 7);
  put("train-images-idx3-ubyte", images + "x");
  EXPECT_THAT(refused(), HasSubstr("has more than the 2352 values"));
  put("train-images-idx3-ubyte", images.substr(0, images.size() - 1));
  EXPECT_THAT(refused(), HasSubstr("train-images-idx3-ubyte ends after 2351 of 2352 values"));
  fs::remove(folder_.path() / "train-images-idx3-ubyte");
  std::string gz = compressed(images);
  put("train-images-idx3-ubyte.gz", gz.substr(0, gz.size() / 2));
  EXPECT_THAT(refused(), HasSubstr("ends in the middle of its compressed data"));
  put("train-images-idx3-ubyte.gz", gz.substr(0, gz.size() - 4));  // the length that ends it
  EXPECT_THAT(refused(), HasSubstr("ends in the middle of its compressed data"));
  gz[gz.size() - 8] = static_cast<char>(gz[gz.size() - 8] ^ 1);  // the checksum
  put("train-images-idx3-ubyte.gz", gz);
  EXPECT_THAT(refused(), HasSubstr("is damaged: zlib reports"));
  // A decompression bomb has far more values than its header states: they are never unpacked.
  put("train-images-idx3-ubyte.gz", compressed(images + std::string(10 << 20, '\0')));
  EXPECT_THAT(refused(), HasSubstr("has more than the 2352 values"));
}

TEST_F(Mnist, NamesAWrongLabel) {
  put("train-labels-idx1-ubyte", labels_file({5, 10, 9}));
  EXPECT_THAT(refused(), HasSubstr("train-labels-idx1-ubyte record 1 has label 10, expected 0 to 9"));
  EXPECT_EQ(read_mnist(folder_.path().string(), Split::kTest).count, 2);
}

}  // namespace
}  // namespace simclr
