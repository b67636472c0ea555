// STL-10: columns to rows, labels from 1, three splits; each way of being wrong named in one line.
#include "src/data/stl10.h"

#include "tests/data/data_set_support.h"

namespace simclr {
namespace {

using test::refusal;
using test::write_bytes;
using testing::HasSubstr;

// The value of row y, column x of channel c.
int value(int seed, int c, int y, int x) {
  return (seed + 50 * c + 3 * y + x) % 256;
}

// One image as stored: channel by channel, column by column.
std::string stored(int seed) {
  std::string bytes;
  for (int c = 0; c < 3; ++c)
    for (int x = 0; x < 96; ++x)
      for (int y = 0; y < 96; ++y) bytes.push_back(static_cast<char>(value(seed, c, y, x)));
  return bytes;
}

class Stl10 : public testing::Test {
 protected:
  void SetUp() override {
    put("train_X.bin", stored(1) + stored(2));
    put("train_y.bin", "\x0a\x01");
    put("test_X.bin", stored(3));
    put("test_y.bin", "\x03");
    put("unlabeled_X.bin", stored(4) + stored(5) + stored(6));
  }
  void put(const std::string& name, const std::string& bytes) {
    write_bytes(folder_.path() / "stl10_binary" / name, bytes);
  }
  std::unique_ptr<Dataset> open(Split split) { return open_stl10(folder_.path().string(), split); }
  std::string refused(Split split = Split::kTrain) {
    return refusal([&] { open(split); });
  }
  DataSettings settings() {
    DataSettings s;
    s.format = DataFormat::kStl10;
    s.path = folder_.path().string();
    return s;
  }

  TemporaryFolder folder_;
};

TEST_F(Stl10, TurnsColumnsIntoRows) {
  const auto test = open(Split::kTest);
  std::vector<uint8_t> storage;
  const PlanarImage image = test->image(0, storage);
  EXPECT_EQ(image.height, 96);
  EXPECT_EQ(image.width, 96);
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < 96; ++y)
      for (int x = 0; x < 96; ++x) ASSERT_EQ(image.row(c, y)[x], value(3, c, y, x)) << c << " " << y << " " << x;
}

TEST_F(Stl10, TrainsOnAllImagesWithoutLabelsAndEvaluatesWithThem) {
  const auto train = open_dataset(settings(), Split::kTrain), test = open_dataset(settings(), Split::kTest);
  const auto bank = open_bank(settings());
  ASSERT_NE(bank, nullptr);
  EXPECT_EQ(train->count(), 5);
  EXPECT_FALSE(train->has_labels());
  std::vector<uint8_t> storage;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(train->image(i, storage).row(0, 0)[0], (i < 2 ? 1 : 2) + i) << i;
  EXPECT_EQ(bank->count(), 2);
  EXPECT_TRUE(bank->has_labels());
  EXPECT_EQ(bank->label(0), 9);
  EXPECT_EQ(bank->label(1), 0);
  EXPECT_EQ(bank->image(1, storage).row(0, 0)[0], 2);
  EXPECT_EQ(test->label(0), 2);
  EXPECT_EQ(test->class_names().at(2), "car");
  EXPECT_EQ(open_bank(DataSettings{}), nullptr) << "synthetic: the training split is the bank";
}

TEST_F(Stl10, FingerprintsEverySplit) {
  const std::string train = open(Split::kTrain)->fingerprint(no_beat), bank = open(Split::kBank)->fingerprint(no_beat);
  EXPECT_EQ(open(Split::kTrain)->fingerprint(no_beat), train);
  EXPECT_NE(bank, train);
  put("unlabeled_X.bin", stored(4) + stored(5) + stored(7));
  EXPECT_NE(open(Split::kTrain)->fingerprint(no_beat), train);
  EXPECT_EQ(open(Split::kBank)->fingerprint(no_beat), bank);
  put("train_y.bin", "\x0a\x02");
  EXPECT_NE(open(Split::kBank)->fingerprint(no_beat), bank);
}

TEST_F(Stl10, NamesWhatIsWrong) {
  put("test_y.bin", "\x0b");
  EXPECT_THAT(refused(Split::kTest), HasSubstr("test_y.bin record 0 has label 11, expected 1 to 10"));
  put("test_y.bin", std::string(1, '\0'));
  EXPECT_THAT(refused(Split::kTest), HasSubstr("test_y.bin record 0 has label 0, expected 1 to 10"));
  put("test_y.bin", "\x01\x02");
  EXPECT_THAT(refused(), HasSubstr("test_y.bin has 2 labels, test_X.bin has 1 images"));
  put("unlabeled_X.bin", stored(1) + "x");
  EXPECT_THAT(refused(Split::kTest),
              HasSubstr("unlabeled_X.bin has 27649 bytes, expected a non-zero multiple of 27648"));
  put("unlabeled_X.bin", "");
  EXPECT_THAT(refused(), HasSubstr("unlabeled_X.bin has 0 bytes"));
  std::filesystem::remove(folder_.path() / "stl10_binary" / "unlabeled_X.bin");
  EXPECT_THAT(refused(), HasSubstr("unlabeled_X.bin: No such file or directory; all five .bin files"));
  std::filesystem::create_directory(folder_.path() / "stl10_binary" / "unlabeled_X.bin");
  EXPECT_THAT(refused(), HasSubstr("unlabeled_X.bin: it is not a regular file"));
}

}  // namespace
}  // namespace simclr
