// Image folders made by the test: layouts, names, links, unusable files and the images that replace them.
#include "src/data/image_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "kernels/common/error.h"
#include "src/data/folder_scan.h"
#include "tests/base/temporary_folder.h"
#include "tests/data/encoded_images.h"

namespace simclr {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::encode_jpeg;
using test::encode_png;
using test::filled;

class ImageFolderTest : public testing::Test {
 protected:
  // A gray image of one value, so that one pixel says which it is.
  void add(const std::string& name, int value) {
    const auto gray = static_cast<uint8_t>(value);
    add(name, value % 2 == 0 ? encode_png(filled(2, 3, {gray})) : encode_jpeg(filled(2, 3, {gray})));
  }
  void add(const std::string& name, const Bytes& bytes) {
    const fs::path path = folder_.path() / name;
    fs::create_directories(path.parent_path());
    test::write_file(path, bytes);
  }
  std::unique_ptr<Dataset> open(Split split = Split::kTrain) { return open_image_folder(settings(), split); }
  DataSettings settings() const {
    DataSettings s;
    s.format = DataFormat::kImageFolder;
    s.path = folder_.path();
    s.on_error = on_error_;
    return s;
  }
  static int value(const Dataset& set, int64_t i) {
    std::vector<uint8_t> storage;
    return set.image(i, storage).pixels[0];
  }
  static std::vector<int> values(const Dataset& set) {
    std::vector<int> all;
    for (int64_t i = 0; i < set.count(); ++i) all.push_back(value(set, i));
    return all;
  }
  static std::vector<int> labels(const Dataset& set) {
    std::vector<int> all;
    for (int64_t i = 0; i < set.count(); ++i) all.push_back(set.label(i));
    return all;
  }
  template <typename Work>
  static std::string reason(Work&& work) {
    try {
      work();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::kData);
      return e.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  OnDataError on_error_ = OnDataError::kFail;
};

TEST_F(ImageFolderTest, ReadsSplitsOfClassFoldersInOrderOfTheirBytes) {
  add("train/b/1.png", 10);
  add("train/b/deep/er/0.jpg", 11);
  add("train/B/x", 12);  // no suffix
  add("train/b/0", 13);
  add("train/\xff\xfe\n/1.png", 14);  // any bytes
  add("train/b/.hidden.png", 99);
  add("val/b/9.png", 20);
  add("test/b/9.png", 99);  // val comes first
  const auto train = open(), test = open(Split::kTest);
  EXPECT_EQ(train->class_names(), (std::vector<std::string>{"B", "b", "\xff\xfe\n"}));
  EXPECT_EQ(values(*train), (std::vector<int>{12, 13, 10, 11, 14}));
  EXPECT_EQ(labels(*train), (std::vector<int>{0, 1, 1, 1, 2}));
  EXPECT_EQ(values(*test), (std::vector<int>{20}));
  EXPECT_EQ(labels(*test), (std::vector<int>{1})) << "in the numbering of training";
  EXPECT_TRUE(train->decodes());
}

TEST_F(ImageFolderTest, ReadsClassFoldersWithoutSplitsAndFlatFolders) {
  add("cars/1.png", 10);
  add("train/1.png", 12);  // a class of trains next to a class of cars
  EXPECT_EQ(open()->class_names(), (std::vector<std::string>{"cars", "train"}));
  EXPECT_EQ(open(Split::kTest)->count(), 0);
  fs::remove_all(folder_.path() / "cars");
  fs::remove_all(folder_.path() / "train");
  add("1.png", 10);
  add("0.png", 12);
  const auto flat = open();
  EXPECT_FALSE(flat->has_labels());
  EXPECT_EQ(values(*flat), (std::vector<int>{12, 10}));
  EXPECT_FALSE(open(Split::kTest)->has_labels());
}

TEST_F(ImageFolderTest, FollowsLinksButNoLoopsAndOpensNoFifo) {
  add("train/a/1.png", 10);
  add("train/b/1.png", 12);
  add("elsewhere/2.png", 14);
  fs::create_directory_symlink("../../elsewhere", folder_.path() / "train/a/link");
  fs::create_directory_symlink("..", folder_.path() / "train/a/loop");
  fs::create_symlink("nowhere", folder_.path() / "train/a/dangling");
  ASSERT_EQ(::mkfifo((folder_.path() / "train/a/fifo").c_str(), 0600), 0);
  EXPECT_EQ(values(*open()), (std::vector<int>{10, 14, 12}));
  const FolderScan scan = scan_folder(folder_.path() / "train", {}, no_beat);
  ASSERT_EQ(scan.oddities.size(), 3u);
  EXPECT_TRUE(scan.oddities[0].ends_with("dangling is ignored: No such file or directory")) << scan.oddities[0];
  EXPECT_TRUE(scan.oddities[1].ends_with("fifo is ignored: it is not a file, but a FIFO, a socket or a device"));
  EXPECT_TRUE(scan.oddities[2].ends_with("loop is ignored: it links to a folder that contains it"));
}

TEST_F(ImageFolderTest, FailsAtABadFileByItsName) {
  add("train/a/1.png", 10);
  add("train/a/2\n.jpg", Bytes{'G', 'I', 'F'});
  add("val/a/1.png", 10);
  const auto set = open();
  EXPECT_EQ(
      reason([&] { value(*set, 1); }),
      folder_.path().string() +
          "/train/a/2?.jpg: it is neither JPEG nor PNG by its first bytes; remove or replace the file, or skip such "
          "files with data.on_error: skip");
}

TEST_F(ImageFolderTest, ReplacesABadFileByTheNextGoodImageOfItsClass) {
  on_error_ = OnDataError::kSkip;
  for (const char* bad : {"train/a/0", "train/a/2", "train/a/3", "train/a/5"}) add(bad, Bytes{});
  add("train/a/1", 10);
  add("train/a/4", 12);
  add("train/b/0", 14);
  add("train/b/1", Bytes{'x'});
  add("val/a/0", 10);
  const auto set = open();
  EXPECT_EQ(set->count(), 8) << "so the number of steps stays";
  const std::vector<int> expected = {10, 10, 12, 12, 12, 10, 14, 14};
  EXPECT_EQ(values(*set), expected);
  EXPECT_EQ(values(*set), expected);
  const auto again = open();
  for (int64_t i = 7; i >= 0; --i) EXPECT_EQ(value(*again, i), expected[i]) << "in any order";
  const std::vector<std::string> names = set->bad_files()->take_new();
  ASSERT_EQ(names.size(), 5u) << "each once";
  EXPECT_EQ(names[0], folder_.path().string() + "/train/a/0: the file is empty");
  EXPECT_TRUE(set->bad_files()->take_new().empty());
}

TEST_F(ImageFolderTest, RefusesAClassWithoutAnyGoodImageAndAFileThatVanished) {
  on_error_ = OnDataError::kSkip;
  add("train/a/0", Bytes{});
  add("train/b/0", 10);
  add("val/b/0", 10);
  const auto set = open();
  EXPECT_EQ(reason([&] { value(*set, 0); }), "none of the 1 files of class a is a readable image, such as " +
                                                 folder_.path().string() +
                                                 "/train/a/0; put images there or remove the folder");
  fs::remove(folder_.path() / "train/b/0");
  EXPECT_NE(reason([&] { value(*set, 1); }).find("No such file"), std::string::npos);
}

TEST_F(ImageFolderTest, RefusesWhatCannotBeTrainedOn) {
  EXPECT_NE(reason([&] { open(); }).find("holds no images; put JPEG or PNG files there"), std::string::npos);
  add("train/a/0", 10);
  add("val/c/0", 10);
  EXPECT_NE(reason([&] { open(Split::kTest); }).find("val/c is a test class that the training folder"),
            std::string::npos);
  DataSettings s = settings();
  s.path += "/nowhere";
  EXPECT_NE(reason([&] { open_image_folder(s, Split::kTrain); }).find("is not a folder"), std::string::npos);
}

TEST_F(ImageFolderTest, FingerprintKnowsNamesClassesAndSizes) {
  add("a/1", 10);
  add("b/2", 12);
  const std::string before = open()->fingerprint(no_beat);
  EXPECT_EQ(open()->fingerprint(no_beat), before);
  fs::last_write_time(folder_.path() / "a/1", fs::file_time_type{});
  EXPECT_EQ(open()->fingerprint(no_beat), before) << "a copy is the same set";
  fs::rename(folder_.path() / "a/1", folder_.path() / "b/1");
  EXPECT_NE(open()->fingerprint(no_beat), before);
  fs::rename(folder_.path() / "b/1", folder_.path() / "a/1");
  add("a/1", Bytes(100, 'x'));
  EXPECT_NE(open()->fingerprint(no_beat), before);
}

TEST_F(ImageFolderTest, AsksForTheReductionOnce) {
  add("big.jpg", encode_jpeg(test::gradient(64, 96)));
  const auto set = open();
  std::vector<uint8_t> storage;
  int asked = 0;
  const PlanarImage view = set->image_for(
      0,
      [&](int64_t height, int64_t width) {
        EXPECT_EQ(height, 64);
        EXPECT_EQ(width, 96);
        return ++asked * 4;
      },
      storage);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(view.height, 16);
  EXPECT_EQ(view.width, 24);
}

}  // namespace
}  // namespace simclr
