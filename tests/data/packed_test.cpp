// Packed files: what was written is read back, and no damaged or hostile description is believed.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "src/data/packed_dataset.h"
#include "src/data/packed_file.h"
#include "tests/data/data_set_support.h"

namespace simclr {
namespace {

using test::refusal;
using test::write_bytes;
using testing::HasSubstr;

std::vector<uint8_t> pixels_of(int64_t height, int64_t width, int seed) {
  std::vector<uint8_t> pixels(3 * height * width);
  for (size_t k = 0; k < pixels.size(); ++k) pixels[k] = static_cast<uint8_t>(static_cast<size_t>(seed) + k);
  return pixels;
}

class Packed : public testing::Test {
 protected:
  void SetUp() override { write({"cat", "d\no\xffg"}, /*train_labels=*/true); }
  void write(std::vector<std::string> names, bool train_labels) {
    PackedWriter writer(path_, std::move(names));
    const auto a = pixels_of(2, 3, 10), b = pixels_of(5, 1, 20), c = pixels_of(1, 1, 30);
    writer.start(Split::kTrain, train_labels);
    writer.add({a.data(), 2, 3}, train_labels ? 1 : -1);
    writer.add({b.data(), 5, 1}, train_labels ? 0 : -1);
    writer.start(Split::kTest, true);
    writer.add({c.data(), 1, 1}, 1);
    if (!train_labels) {
      writer.start(Split::kBank, true);
      writer.add({b.data(), 5, 1}, 0);
    }
    writer.finish();
    bytes_ = read_file(path_, 1 << 20);
    std::memcpy(&tail_, bytes_.data() + bytes_.size() - sizeof tail_, sizeof tail_);
  }
  // The refusal of a file whose tail or entries were changed and whose checksum was corrected accordingly.
  std::string refused_with(const PackedTail& tail) {
    PackedTail changed = tail;
    const size_t end = bytes_.size() - sizeof tail;
    Sha256 hash;
    if (changed.entries_at <= end) hash.update(bytes_.data() + changed.entries_at, end - changed.entries_at);
    hash.update(&changed, offsetof(PackedTail, described));
    const std::string hex = hash.hex();
    std::copy(hex.begin(), hex.end(), changed.described.begin());
    std::string bytes = bytes_;
    std::memcpy(bytes.data() + end, &changed, sizeof changed);
    write_bytes(path_, bytes);
    return refused();
  }
  std::string refused_with(size_t entry, const PackedEntry& changed) {
    std::memcpy(bytes_.data() + tail_.entries_at + entry * sizeof changed, &changed, sizeof changed);
    return refused_with(tail_);
  }
  std::string refused() {
    return refusal([&] { open_packed(path_.string(), Split::kTrain); });
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "set.packed";
  std::string bytes_;
  PackedTail tail_;
};

TEST_F(Packed, ReadsBackWhatWasWritten) {
  const auto train = open_packed(path_.string(), Split::kTrain), test = open_packed(path_.string(), Split::kTest);
  EXPECT_EQ(train->count(), 2);
  EXPECT_EQ(train->class_names(), (std::vector<std::string>{"cat", "d\no\xffg"}));
  EXPECT_EQ(train->label(0), 1);
  EXPECT_EQ(train->label(1), 0);
  EXPECT_EQ(test->count(), 1);
  EXPECT_EQ(test->label(0), 1);
  std::vector<uint8_t> none;
  const PlanarImage image = train->image(1, none);
  EXPECT_EQ(image.height, 5);
  EXPECT_EQ(image.width, 1);
  const std::vector<uint8_t> expected = pixels_of(5, 1, 20);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), image.pixels));
  EXPECT_EQ(open_packed_bank(path_.string()), nullptr);
}

TEST_F(Packed, KeepsABankForTrainingWithoutLabels) {
  write({"cat", "dog"}, /*train_labels=*/false);
  DataSettings settings;
  settings.format = DataFormat::kPacked;
  settings.path = path_.string();
  EXPECT_FALSE(open_dataset(settings, Split::kTrain)->has_labels());
  const auto bank = open_bank(settings);
  ASSERT_NE(bank, nullptr);
  EXPECT_TRUE(bank->has_labels());
  std::vector<uint8_t> none;
  EXPECT_EQ(bank->image(0, none).height, 5);
}

TEST_F(Packed, FingerprintsByContentAndFindsDamagedPixels) {
  const std::string before = open_packed(path_.string(), Split::kTrain)->fingerprint(no_beat);
  EXPECT_EQ(before.size(), 64u);
  write({"a", "b"}, /*train_labels=*/true);  // class names are not part of the content
  EXPECT_EQ(open_packed(path_.string(), Split::kTrain)->fingerprint(no_beat), before);
  EXPECT_NE(open_packed(path_.string(), Split::kTest)->fingerprint(no_beat), before);
  EXPECT_TRUE(PackedFile(path_).matches_content(Split::kTrain, no_beat));
  bytes_[16 + 3] ^= 1;
  write_bytes(path_, bytes_);
  EXPECT_FALSE(PackedFile(path_).matches_content(Split::kTrain, no_beat));
  EXPECT_TRUE(PackedFile(path_).matches_content(Split::kTest, no_beat));
}

TEST_F(Packed, LeavesNothingWithoutFinish) {
  std::filesystem::remove(path_);
  { PackedWriter writer(path_, {"a"}); }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(Packed, RefusesOtherFiles) {
  write_bytes(path_, "a JPEG, say, of some length");
  EXPECT_THAT(refused(), HasSubstr("is not a packed data set"));
  write_bytes(path_, "");
  EXPECT_THAT(refused(), HasSubstr("is not a packed data set"));
  write_bytes(path_, bytes_.substr(0, bytes_.size() - 1));
  EXPECT_THAT(refused(), HasSubstr("cut off"));
  write_bytes(path_, bytes_.substr(0, 30));
  EXPECT_THAT(refused(), HasSubstr("cut off"));
  bytes_[8] = 2;
  write_bytes(path_, bytes_);
  EXPECT_THAT(refused(), HasSubstr("has version 2, this program reads 1"));
  EXPECT_THAT(refusal([&] { open_packed(folder_.path().string(), Split::kTrain); }),
              HasSubstr("it is not a regular file; give the file"));
}

TEST_F(Packed, FindsAFlippedBitOfTheDescription) {
  const std::string good = bytes_;
  for (const size_t at : {tail_.entries_at, tail_.entries_at + 20, tail_.names_at, bytes_.size() - 100}) {
    bytes_ = good;
    bytes_[at] ^= 1;
    write_bytes(path_, bytes_);
    EXPECT_THAT(refused(), HasSubstr("checksum of its description")) << at;
  }
}

TEST_F(Packed, BelievesNoNumberThatDoesNotFit) {
  const auto changed = [&](auto change) {
    PackedTail tail = tail_;
    change(tail);
    return refused_with(tail);
  };
  EXPECT_THAT(changed([](PackedTail& t) { t.counts[0] = ~0ULL; }), HasSubstr("offsets do not match"));
  EXPECT_THAT(changed([](PackedTail& t) { t.counts[2] = 1; }), HasSubstr("offsets do not match"));
  EXPECT_THAT(changed([](PackedTail& t) { t.entries_at = ~0ULL << 3; }), HasSubstr("offsets do not match"));
  EXPECT_THAT(changed([](PackedTail& t) { t.entries_at += 4, t.names_at += 4; }), HasSubstr("offsets do not match"));
  EXPECT_THAT(changed([](PackedTail& t) { t.names_at = t.entries_at - 8; }), HasSubstr("offsets do not match"));
  EXPECT_THAT(changed([](PackedTail& t) { t.classes = 3; }), HasSubstr("names for 2 of 3 classes"));
  EXPECT_THAT(changed([](PackedTail& t) { t.classes = 1; }), HasSubstr("bytes after its class names"));
  EXPECT_THAT(changed([](PackedTail& t) { t.labeled = 0; }), HasSubstr("train image 0 has label 1"));
}

TEST_F(Packed, BelievesNoEntryOutsideThePixels) {
  const PackedEntry good{.offset = 16, .height = 2, .width = 3, .label = 1};
  const auto with = [&](auto change) {
    PackedEntry entry = good;
    change(entry);
    return refused_with(0, entry);
  };
  EXPECT_EQ(with([](PackedEntry&) {}), "read without an error");
  EXPECT_THAT(with([](PackedEntry& e) { e.offset = 15; }), HasSubstr("train image 0 (2x3 at 15) is outside"));
  EXPECT_THAT(with([](PackedEntry& e) { e.offset = ~0ULL - 3; }), HasSubstr("is outside"));
  EXPECT_THAT(with([](PackedEntry& e) { e.height = 0; }), HasSubstr("is outside"));
  EXPECT_THAT(with([](PackedEntry& e) { e.width = e.height = ~0U; }), HasSubstr("is outside"));
  EXPECT_THAT(with([&](PackedEntry& e) { e.offset = tail_.entries_at - 17; }), HasSubstr("is outside"));
  EXPECT_EQ(with([&](PackedEntry& e) { e.offset = tail_.entries_at - 18; }), "read without an error");
  EXPECT_THAT(with([](PackedEntry& e) { e.label = 2; }), HasSubstr("has label 2 of 2 classes"));
  EXPECT_THAT(with([](PackedEntry& e) { e.label = -1; }), HasSubstr("has label -1"));
}

}  // namespace
}  // namespace simclr
