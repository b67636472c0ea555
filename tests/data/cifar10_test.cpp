// CIFAR-10 files: read right, and each way of being wrong named in one line. The files are made here, two records each;
// the real cut-down set is read when SIMCLR_SHARED names the folder with it.
#include "src/data/cifar10.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "kernels/common/error.h"
#include "tests/data/pixel_knn.h"

namespace simclr {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Cifar10 : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "cifar10_test_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fill(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  // Record r of file f: label (f + r) % 10, pixel k has value (f * 50 + r * 7 + k) % 256; f = 0 is the test file.
  static std::string record(int f, int r) {
    std::string bytes(1, static_cast<char>((f + r) % 10));
    for (int k = 0; k < 3072; ++k) bytes.push_back(static_cast<char>((f * 50 + r * 7 + k) % 256));
    return bytes;
  }
  static fs::path file(const fs::path& folder, int f) {
    return folder / (f == 0 ? std::string("test_batch.bin") : "data_batch_" + std::to_string(f) + ".bin");
  }
  static void write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  static void fill(const fs::path& folder) {
    for (int f = 0; f <= 5; ++f) write(file(folder, f), record(f, 0) + record(f, 1));
  }
  // The message of the Error(kData) that reading gives; one line.
  static std::string refusal(const std::string& path, Split split = Split::kTrain) {
    try {
      read_cifar10(path, split);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kData);
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return error.what();
    }
    return "read without an error";
  }

  fs::path root_;
};

TEST_F(Cifar10, ReadsRecordsInOrder) {
  const ImageSet train = read_cifar10(root_, Split::kTrain), test = read_cifar10(root_, Split::kTest);
  EXPECT_EQ(train.count, 10);
  EXPECT_EQ(test.count, 2);
  EXPECT_EQ(train.height, 32);
  EXPECT_EQ(train.labels, (std::vector<int32_t>{1, 2, 2, 3, 3, 4, 4, 5, 5, 6}));
  EXPECT_EQ(test.labels, (std::vector<int32_t>{0, 1}));
  for (int k = 0; k < 3072; ++k) ASSERT_EQ(train.pixels[5 * 3072 + k], (3 * 50 + 7 + k) % 256);  // file 3, record 1
  EXPECT_EQ(train.class_names[3], "cat");
}

TEST_F(Cifar10, ReadsTheUsualSubfolderAndTheClassNames) {
  const fs::path inner = root_ / "parent" / "cifar-10-batches-bin";
  fs::create_directories(inner);
  fill(inner);
  write(inner / "batches.meta.txt", "a\r\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  const ImageSet set = read_cifar10((root_ / "parent").string(), Split::kTest);
  EXPECT_EQ(set.class_names, (std::vector<std::string>{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}));
  write(inner / "batches.meta.txt", "a\nb\n");
  EXPECT_THAT(refusal((root_ / "parent").string()), HasSubstr("2 class names, expected 10"));
}

TEST_F(Cifar10, NamesAMissingFile) {
  fs::remove(file(root_, 4));
  EXPECT_THAT(refusal(root_), HasSubstr("data_batch_4.bin: No such file"));
  fill(root_);
  fs::remove(file(root_, 0));
  EXPECT_THAT(refusal(root_), HasSubstr("test_batch.bin: No such file"));  // for the training split as well
  fill(root_);
  fs::remove(file(root_, 1));
  EXPECT_THAT(refusal(root_), HasSubstr("data_batch_1.bin: No such file"));
}

TEST_F(Cifar10, NamesAWrongSize) {
  write(file(root_, 2), record(2, 0) + "x");
  EXPECT_THAT(refusal(root_), HasSubstr("data_batch_2.bin has 3074 bytes, expected a non-zero multiple of 3073"));
  write(file(root_, 2), "");
  EXPECT_THAT(refusal(root_), HasSubstr("data_batch_2.bin has 0 bytes"));
  write(file(root_, 2), record(2, 0));
  EXPECT_THAT(refusal(root_), HasSubstr("data_batch_2.bin has 1 records, expected 2 as in data_batch_1.bin"));
  fill(root_);
  write(file(root_, 0), record(0, 0) + record(0, 1) + record(0, 2));  // the test file may have its own count
  EXPECT_EQ(read_cifar10(root_, Split::kTest).count, 3);
}

TEST_F(Cifar10, NamesAWrongLabel) {
  std::string bytes = record(5, 0) + record(5, 1);
  bytes[3073] = 10;
  write(file(root_, 5), bytes);
  EXPECT_THAT(refusal(root_), HasSubstr("data_batch_5.bin record 1 has label 10, expected 0 to 9"));
  EXPECT_EQ(read_cifar10(root_, Split::kTest).count, 2);
}

TEST_F(Cifar10, SaysWhatIsThereInstead) {
  const fs::path other = root_ / "other";
  EXPECT_THAT(refusal(other), HasSubstr("does not exist"));
  fs::create_directories(other / "cifar-10-batches-py");
  EXPECT_THAT(refusal(other), HasSubstr("there is no data_batch_1.bin in "));
  write(other / "cifar-10-batches-py" / "data_batch_1", "pickle");
  EXPECT_THAT(refusal(other), HasSubstr("Python version"));
  write(root_ / "cifar-10-binary.tar.gz", "archive");
  EXPECT_THAT(refusal(root_ / "cifar-10-binary.tar.gz"), HasSubstr("is not a folder"));
  EXPECT_THAT(refusal(""), HasSubstr("data.path is empty"));
  fs::remove(file(root_, 2));
  fs::create_directory(file(root_, 2));
  EXPECT_THAT(refusal(root_), HasSubstr("data_batch_2.bin"));
}

// shared/data/README.md: mean, std and the accuracy of raw pixels of the cut-down set.
TEST(Cifar10Small, HasThePublishedStatistics) {
  const char* shared = std::getenv("SIMCLR_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "SIMCLR_SHARED does not name the folder with data/cifar10-small";
  const std::string path = std::string(shared) + "/data/cifar10-small";
  const ImageSet train = read_cifar10(path, Split::kTrain), test = read_cifar10(path, Split::kTest);
  ASSERT_EQ(train.count, 5000);
  ASSERT_EQ(test.count, 1000);
  const ChannelStatistics s = channel_statistics(InMemoryDataset(train));
  const double mean[3] = {0.49126, 0.48086, 0.44436}, std[3] = {0.24811, 0.24514, 0.26317};
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(s.mean[c], mean[c], 6e-6);
    EXPECT_NEAR(s.std[c], std[c], 6e-6);
  }
  EXPECT_NEAR(test::pixel_knn_accuracy(train, test, 20), 0.377, 0.003);
}

TEST_F(Cifar10, BeatsAfterEachFile) {
  int beats = 0;
  read_cifar10(root_, Split::kTrain, [&] { ++beats; });
  EXPECT_EQ(beats, 5);
}

}  // namespace
}  // namespace simclr
