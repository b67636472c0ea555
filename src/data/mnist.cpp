// The files of a split of MNIST, and gray to RGB; idx_file reads the files.
#include "src/data/mnist.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "kernels/common/error.h"
#include "src/config/config_errors.h"
#include "src/data/data_files.h"
#include "src/data/idx_file.h"

namespace simclr {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSide = 28, kPixels = kSide * kSide;
constexpr int kClasses = 10;
constexpr const char* kDownload =
    "download the four files, e.g. train-images-idx3-ubyte.gz, from https://ossci-datasets.s3.amazonaws.com/mnist/ (or "
    "those of Fashion-MNIST)";

// File names as distributed, unpacked, or unpacked by a tool that replaces the last dash by a dot.
std::vector<std::string> spellings(std::string_view part, std::string_view kind, int dimensions) {
  std::vector<std::string> names;
  for (const char* suffix : {"", ".gz"}) {
    for (const char* mark : {"-", "."})
      names.push_back(fmt::format("{}-{}{}idx{}-ubyte{}", part, kind, mark, dimensions, suffix));
  }
  return names;
}

IdxFile open_file(const fs::path& folder, std::string_view part, std::string_view kind, size_t dimensions) {
  const std::vector<std::string> names = spellings(part, kind, static_cast<int>(dimensions));
  const std::string advice = fmt::format("all four files of MNIST are needed: {}", kDownload);
  std::error_code ignored;
  for (const std::string& name : names)
    if (fs::exists(folder / name, ignored)) return {folder / name, dimensions, advice};
  fail(ExitCode::kData, "{} does not exist, with or without .gz; {}", shown_path((folder / names.front()).string()),
       advice);
}

struct SplitFiles {
  IdxFile images, labels;  // [count, 28, 28], [count]
};

SplitFiles open_split(const fs::path& folder, Split split) {
  const char* part = split == Split::kTest ? "t10k" : "train";
  SplitFiles files{open_file(folder, part, "images", 3), open_file(folder, part, "labels", 1)};
  const std::vector<int64_t>& shape = files.images.shape();
  const std::string images = shown_path(files.images.path().string());
  if (shape[1] != kSide || shape[2] != kSide)
    fail(ExitCode::kData, "{} has images of {}x{} pixels, expected {}x{}; {}", images, shape[1], shape[2], kSide, kSide,
         kDownload);
  if (shape[0] == 0) fail(ExitCode::kData, "{} has no images; {}", images, kDownload);
  if (files.labels.shape()[0] != shape[0])
    fail(ExitCode::kData, "{} has {} labels, {} has {} images: mixed from two sets; {}",
         shown_path(files.labels.path().string()), files.labels.shape()[0], images, shape[0], kDownload);
  return files;
}

std::vector<int32_t> checked_labels(const std::vector<uint8_t>& bytes, const fs::path& file) {
  const auto wrong = std::find_if(bytes.begin(), bytes.end(), [](uint8_t label) { return label >= kClasses; });
  if (wrong != bytes.end())
    fail(ExitCode::kData, "{} record {} has label {}, expected 0 to {}: damaged or not MNIST; {}",
         shown_path(file.string()), wrong - bytes.begin(), *wrong, kClasses - 1, kDownload);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

ImageSet read_mnist(const std::string& path, Split split, const Beat& beat) {
  FolderSearch search{
      .set = "MNIST", .files = {}, .subfolders = {"raw", "MNIST/raw"}, .others = {}, .download = kDownload};
  for (const char* part : {"train", "t10k"})
    for (const std::string& name : spellings(part, "images", 3)) search.files.push_back(name);
  const fs::path folder = find_data_folder(path, search);
  open_split(folder, split == Split::kTest ? Split::kTrain : Split::kTest);  // only checks the other split
  SplitFiles files = open_split(folder, split);

  ImageSet set{
      .count = files.images.shape()[0],
      .height = kSide,
      .width = kSide,
      .pixels = {},
      .labels = checked_labels(files.labels.read(beat), files.labels.path()),
      .class_names = read_class_names(folder / "class_names.txt", {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"})};
  const std::vector<uint8_t> gray = files.images.read(beat);  // [count, 28, 28]
  set.pixels.resize(gray.size() * 3);
  auto out = set.pixels.begin();
  for (auto image = gray.begin(); image != gray.end(); image += kPixels) {
    for (int channel = 0; channel < 3; ++channel) out = std::copy(image, image + kPixels, out);
  }
  return set;
}

}  // namespace simclr
