// Checks and reads the binary version of CIFAR-10.
#include "src/data/cifar10.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "kernels/common/error.h"

namespace simclr {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSide = 32, kPixels = 3 * kSide * kSide, kRecord = 1 + kPixels;
constexpr int kClasses = 10;
constexpr const char* kDownload =
    "download the binary version, cifar-10-binary.tar.gz, from https://www.cs.toronto.edu/~kriz/cifar.html, and unpack "
    "it";

std::vector<std::string> file_names(Split split) {
  if (split == Split::kTest) return {"test_batch.bin"};
  std::vector<std::string> names;
  for (int i = 1; i <= 5; ++i) names.push_back(fmt::format("data_batch_{}.bin", i));
  return names;
}

// The folder that holds the batches: path itself or its usual subfolder.
fs::path find_folder(const std::string& path) {
  if (path.empty())
    fail(ExitCode::kData, "data.path is empty: name the folder that holds data_batch_1.bin of CIFAR-10");
  std::error_code ignored;  // a folder that cannot be looked into counts as not there
  const fs::path folder(path);
  if (!fs::exists(folder, ignored)) fail(ExitCode::kData, "data.path {} does not exist: {}", path, kDownload);
  if (!fs::is_directory(folder, ignored)) {
    fail(ExitCode::kData,
         "data.path {} is not a folder: name the folder that holds data_batch_1.bin (unpack the archive first)", path);
  }
  for (const fs::path& candidate : {folder, folder / "cifar-10-batches-bin"}) {
    if (fs::exists(candidate / "data_batch_1.bin", ignored) || fs::exists(candidate / "test_batch.bin", ignored))
      return candidate;
  }
  for (const fs::path& candidate : {folder, folder / "cifar-10-batches-py"}) {
    if (fs::exists(candidate / "data_batch_1", ignored)) {
      fail(ExitCode::kData, "{} holds the Python version of CIFAR-10 (data_batch_1 without .bin): {}",
           candidate.string(), kDownload);
    }
  }
  fail(ExitCode::kData, "{} holds no data_batch_1.bin, nor does {}: {}", path,
       (folder / "cifar-10-batches-bin").string(), kDownload);
}

// Records of one file, from its size alone.
int64_t count_records(const fs::path& file) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(file, error);
  if (error)
    fail(ExitCode::kData, "cannot read {}: {}; all six files of CIFAR-10 are needed: {}", file.string(),
         error.message(), kDownload);
  if (bytes == 0 || bytes % kRecord != 0) {
    fail(ExitCode::kData,
         "{} has {} bytes, expected a non-zero multiple of {} (1 label byte + {} pixel bytes a record): damaged or "
         "incomplete, {}",
         file.string(), bytes, kRecord, kPixels, kDownload);
  }
  return static_cast<int64_t>(bytes) / kRecord;
}

void check_files(const fs::path& folder) {
  count_records(folder / "test_batch.bin");
  const std::vector<std::string> names = file_names(Split::kTrain);
  const int64_t expected = count_records(folder / names.front());
  for (const std::string& name : names) {
    const int64_t found = count_records(folder / name);
    if (found != expected) {
      fail(ExitCode::kData, "{} has {} records, expected {} as in {}: cut off or mixed from two copies, {}",
           (folder / name).string(), found, expected, names.front(), kDownload);
    }
  }
}

void append_file(const fs::path& file, PictureSet& set) {
  const int64_t records = count_records(file);
  std::vector<char> content(static_cast<size_t>(records * kRecord));
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(content.data(), static_cast<std::streamsize>(content.size()))) {
    fail(ExitCode::kData, "cannot read {} bytes of {}: {}", content.size(), file.string(),
         errno ? std::strerror(errno) : "the file is shorter");
  }
  for (int64_t r = 0; r < records; ++r) {
    const char* record = content.data() + r * kRecord;
    const auto label = static_cast<uint8_t>(record[0]);
    if (label >= kClasses) {
      fail(ExitCode::kData, "{} record {} has label {}, expected 0 to {}: damaged or not CIFAR-10, {}", file.string(),
           r, label, kClasses - 1, kDownload);
    }
    set.labels.push_back(label);
    set.pixels.insert(set.pixels.end(), record + 1, record + kRecord);
  }
  set.count += records;
}

std::vector<std::string> read_class_names(const fs::path& folder) {
  const fs::path file = folder / "batches.meta.txt";
  std::error_code ignored;
  if (!fs::exists(file, ignored))
    return {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  std::vector<std::string> names;
  std::ifstream stream(file);
  if (!stream) fail(ExitCode::kData, "cannot open {}: {}", file.string(), std::strerror(errno));
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (names.size() != kClasses) {
    fail(ExitCode::kData, "{} has {} class names, expected {}: correct it, or delete it to use the usual names",
         file.string(), names.size(), kClasses);
  }
  return names;
}

}  // namespace

PictureSet read_cifar10(const std::string& path, Split split, const Beat& beat) {
  const fs::path folder = find_folder(path);
  check_files(folder);
  PictureSet set{
      .count = 0, .height = kSide, .width = kSide, .pixels = {}, .labels = {}, .class_names = read_class_names(folder)};
  const std::vector<std::string> names = file_names(split);
  const auto records = static_cast<size_t>(count_records(folder / names.front())) * names.size();
  set.pixels.reserve(records * kPixels);
  set.labels.reserve(records);
  for (const std::string& name : names) {
    append_file(folder / name, set);
    beat();
  }
  return set;
}

}  // namespace simclr
