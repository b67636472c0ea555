// CIFAR-100 differs from CIFAR-10 in files, labels and names; what both share is tested in cifar10_test.
#include "src/data/cifar100.h"

#include <algorithm>
#include <set>

#include "tests/data/data_set_support.h"

namespace simclr {
namespace {

using test::refusal;
using test::write_bytes;
using testing::HasSubstr;

// Pixel k is (first + k) % 256.
std::string record(int coarse, int fine, int first) {
  std::string bytes{static_cast<char>(coarse), static_cast<char>(fine)};
  for (int k = 0; k < 3072; ++k) bytes.push_back(static_cast<char>((first + k) % 256));
  return bytes;
}

class Cifar100 : public testing::Test {
 protected:
  void SetUp() override {
    write_bytes(inner_ / "train.bin", record(19, 99, 5) + record(0, 0, 6) + record(7, 42, 7));
    write_bytes(inner_ / "test.bin", record(3, 1, 8));
  }
  std::string read_refused(Split split) {
    return refusal([&] { read_cifar100(folder_.path().string(), split); });
  }

  TemporaryFolder folder_;
  std::filesystem::path inner_ = folder_.path() / "cifar-100-binary";
};

TEST_F(Cifar100, TakesTheFineLabelAndThePixelsBehindIt) {
  const ImageSet train = read_cifar100(folder_.path().string(), Split::kTrain);
  const ImageSet test = read_cifar100(inner_.string(), Split::kTest);
  EXPECT_EQ(train.count, 3);
  EXPECT_EQ(train.height, 32);
  EXPECT_EQ(train.labels, (std::vector<int32_t>{99, 0, 42}));
  EXPECT_EQ(test.labels, (std::vector<int32_t>{1}));
  for (int k = 0; k < 3072; ++k) ASSERT_EQ(train.pixels[2 * 3072 + k], (7 + k) % 256);
}

TEST_F(Cifar100, KnowsTheClassesAndTakesOtherNamesForThem) {
  const std::vector<std::string> names = read_cifar100(folder_.path().string(), Split::kTest).class_names;
  EXPECT_EQ(names.size(), 100u);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));  // as the official file lists them
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 100u);
  EXPECT_EQ(names[42], "leopard");
  std::string file;
  for (int i = 0; i < 100; ++i) file += "name " + std::to_string(i) + "\n";
  write_bytes(inner_ / "fine_label_names.txt", file + "\n");
  EXPECT_EQ(read_cifar100(folder_.path().string(), Split::kTest).class_names[99], "name 99");
  write_bytes(inner_ / "fine_label_names.txt", file + "one more");
  EXPECT_THAT(read_refused(Split::kTest), HasSubstr("101 class names, expected 100"));
}

TEST_F(Cifar100, NamesWhatIsWrong) {
  write_bytes(inner_ / "test.bin", record(20, 1, 0));
  EXPECT_THAT(read_refused(Split::kTest), HasSubstr("test.bin record 0 has coarse label 20, expected 0 to 19"));
  write_bytes(inner_ / "test.bin", record(2, 1, 0) + record(2, 100, 0));
  EXPECT_THAT(read_refused(Split::kTest), HasSubstr("test.bin record 1 has fine label 100, expected 0 to 99"));
  write_bytes(inner_ / "test.bin", record(2, 1, 0).substr(1));
  EXPECT_THAT(read_refused(Split::kTrain),
              HasSubstr("test.bin has 3073 bytes, expected a non-zero multiple of 3074 (2 label bytes + 3072"));
  std::filesystem::remove(inner_ / "test.bin");
  EXPECT_THAT(read_refused(Split::kTrain), HasSubstr("test.bin: No such file or directory; train.bin and test.bin"));
  std::filesystem::remove(inner_ / "train.bin");
  EXPECT_THAT(read_refused(Split::kTrain), HasSubstr("there is no train.bin in "));
  write_bytes(folder_.path() / "cifar-100-python" / "train", "pickle");
  EXPECT_THAT(read_refused(Split::kTrain), HasSubstr("cifar-100-python holds the Python version of CIFAR-100"));
}

}  // namespace
}  // namespace simclr
