#include "src/data/stl10.h"

#include <array>
#include <filesystem>
#include <utility>

#include "kernels/common/error.h"
#include "src/base/sha256.h"
#include "src/config/config_errors.h"
#include "src/data/data_files.h"
#include "src/data/mapped_file.h"

namespace simclr {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSide = 96, kPlane = kSide * kSide, kImageBytes = 3 * kPlane;
constexpr int kClasses = 10;
constexpr const char* kAllNeeded =
    "all five .bin files of STL-10 are needed: download stl10_binary.tar.gz from "
    "https://cs.stanford.edu/~acoates/stl10/, and unpack it";

struct Images {
  MappedFile file;
  int64_t count = 0;
};

Images open_images(const fs::path& path) {
  Images images{MappedFile(path, kAllNeeded)};
  const int64_t bytes = images.file.size();
  if (bytes == 0 || bytes % kImageBytes != 0) {
    fail(ExitCode::kData,
         "{} has {} bytes, expected a non-zero multiple of {} (3 planes of {}x{} bytes): damaged or incomplete; {}",
         shown_path(path.string()), bytes, kImageBytes, kSide, kSide, kAllNeeded);
  }
  images.count = bytes / kImageBytes;
  return images;
}

MappedFile open_labels(const fs::path& path, const fs::path& images, int64_t count) {
  MappedFile labels(path, kAllNeeded);
  if (labels.size() != count) {
    fail(ExitCode::kData, "{} has {} labels, {} has {} images: mixed from two copies or incomplete; {}",
         shown_path(path.string()), labels.size(), images.filename().string(), count, kAllNeeded);
  }
  return labels;
}

std::vector<int32_t> checked_labels(const MappedFile& bytes, const fs::path& path) {
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < bytes.size(); ++i) {
    const int label = bytes.data()[i];
    if (label < 1 || label > kClasses) {
      fail(ExitCode::kData, "{} record {} has label {}, expected 1 to {}: damaged or not STL-10; {}",
           shown_path(path.string()), i, label, kClasses, kAllNeeded);
    }
    labels.push_back(label - 1);
  }
  return labels;
}

class Stl10 final : public Dataset {
 public:
  Stl10(std::vector<Images> parts, std::vector<int32_t> labels, std::vector<std::string> class_names)
      : parts_(std::move(parts)), labels_(std::move(labels)), class_names_(std::move(class_names)) {
    for (const Images& part : parts_) count_ += part.count;
  }
  int64_t count() const override { return count_; }
  bool has_labels() const override { return !labels_.empty(); }
  int32_t label(int64_t i) const override { return labels_.at(i); }
  const std::vector<std::string>& class_names() const override { return class_names_; }

  PlanarImage image(int64_t i, std::vector<uint8_t>& storage) const override {
    if (storage.size() < kImageBytes) storage.resize(kImageBytes);
    const uint8_t* by_columns = stored(i);
    for (int64_t c = 0; c < 3; ++c) transpose(by_columns + c * kPlane, storage.data() + c * kPlane);
    return {storage.data(), kSide, kSide};
  }

  std::string fingerprint(const Beat& beat) const override {
    Sha256 hash;
    hash.update(fmt::format("stl10 {} {};", count_, labels_.size()));
    const auto update = [&](const std::byte* piece, size_t bytes) { hash.update(piece, bytes); };
    for (const Images& part : parts_) in_pieces(part.file.data(), part.file.size(), beat, update);
    in_pieces(labels_.data(), labels_.size() * sizeof(int32_t), beat, update);
    return hash.hex();
  }

 private:
  const uint8_t* stored(int64_t i) const {
    for (const Images& part : parts_) {
      if (i < part.count) return part.file.data() + i * kImageBytes;
      i -= part.count;
    }
    fail(ExitCode::kOther, "internal error: STL-10 index {} is out of range; please report it", i);
  }

  // In tiles, so that all bytes of a cache line are used while it is loaded.
  static void transpose(const uint8_t* in, uint8_t* out) {
    constexpr int64_t kTile = 16;
    static_assert(kSide % kTile == 0);
    for (int64_t y0 = 0; y0 < kSide; y0 += kTile)
      for (int64_t x0 = 0; x0 < kSide; x0 += kTile)
        for (int64_t y = y0; y < y0 + kTile; ++y)
          for (int64_t x = x0; x < x0 + kTile; ++x) out[y * kSide + x] = in[x * kSide + y];
  }

  std::vector<Images> parts_;
  std::vector<int32_t> labels_;  // [count], or empty
  std::vector<std::string> class_names_;
  int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Dataset> open_stl10(const std::string& path, Split split) {
  const fs::path folder =
      find_data_folder(path, {.set = "STL-10",
                              .files = {"train_X.bin", "test_X.bin", "unlabeled_X.bin"},
                              .subfolders = {"stl10_binary"},
                              .others = {{"train.mat", "the Matlab version of STL-10"},
                                         {"stl10_matlab/train.mat", "the Matlab version of STL-10"}},
                              .download = "download stl10_binary.tar.gz from https://cs.stanford.edu/~acoates/stl10/, "
                                          "and unpack it"});
  Images train = open_images(folder / "train_X.bin"), test = open_images(folder / "test_X.bin"),
         unlabeled = open_images(folder / "unlabeled_X.bin");
  const MappedFile train_labels = open_labels(folder / "train_y.bin", "train_X.bin", train.count),
                   test_labels = open_labels(folder / "test_y.bin", "test_X.bin", test.count);
  std::vector<std::string> names =
      read_class_names(folder / "class_names.txt",
                       {"airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck"});
  std::vector<Images> parts;
  std::vector<int32_t> labels;
  if (split == Split::kTest) {
    labels = checked_labels(test_labels, folder / "test_y.bin");
    parts.push_back(std::move(test));
  } else {
    parts.push_back(std::move(train));
    if (split == Split::kBank)
      labels = checked_labels(train_labels, folder / "train_y.bin");
    else
      parts.push_back(std::move(unlabeled));
  }
  return std::make_unique<Stl10>(std::move(parts), std::move(labels), std::move(names));
}

}  // namespace simclr
