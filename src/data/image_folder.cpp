#include "src/data/image_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "kernels/common/error.h"
#include "src/base/log.h"
#include "src/base/sha256.h"
#include "src/config/config_errors.h"
#include "src/data/bad_files.h"
#include "src/data/folder_scan.h"
#include "src/data/image_file.h"

namespace simclr {
namespace {

constexpr size_t kMostWarnings = 20;
constexpr int64_t kMostImages = int64_t{1} << 31;

// Descriptor of an open file.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void cannot_read(const std::string& path, const char* reason) {
  fail(ExitCode::kData, "cannot read {}: {}; restore the file, or start a new run without it", shown_path(path),
       reason);
}

std::vector<uint8_t> read_image_bytes(const std::string& path, int64_t max_pixels) {
  const OpenFile file(path);
  if (file.fd() < 0 && errno == EACCES) throw BadImage("access is denied");
  if (file.fd() < 0) cannot_read(path, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.fd(), &status) != 0) cannot_read(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) cannot_read(path, "it is no longer a regular file");
  // A PNG has at most eight bytes a pixel before compression; the 64 MB more are for profiles and the like.
  if (status.st_size / 8 > max_pixels + (int64_t{8} << 20))
    throw BadImage(
        fmt::format("its {} bytes exceed those of an image of data.max_pixels: {}", status.st_size, max_pixels));
  std::vector<uint8_t> bytes(status.st_size);
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = ::read(file.fd(), bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) cannot_read(path, std::strerror(errno));
    if (got == 0) cannot_read(path, "it was cut off while it was read");
    at += got;
  }
  return bytes;
}

// Millions of names in one string.
class NameTable {
 public:
  void add(std::string_view name) {
    text_.append(name);
    ends_.push_back(text_.size());
  }
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string text_;
  std::vector<size_t> ends_;
};

class ImageFolder final : public Dataset {
 public:
  ImageFolder(std::string root, std::vector<std::string> classes, const DataSettings& settings)
      : root_(std::move(root)), classes_(std::move(classes)), settings_(settings) {}

  int64_t count() const override { return count_; }
  bool has_labels() const override { return !classes_.empty(); }
  int32_t label(int64_t i) const override {
    const auto after = std::upper_bound(first_of_.begin(), first_of_.end(), i);
    return static_cast<int32_t>(after - first_of_.begin()) - 1;
  }
  const std::vector<std::string>& class_names() const override { return classes_; }
  bool decodes() const override { return true; }

  PlanarImage image(int64_t i, std::vector<uint8_t>& storage) const override {
    return image_for(
        i, [](int64_t, int64_t) { return 1; }, storage);
  }
  PlanarImage image_for(int64_t i, const ChooseReduction& choose, std::vector<uint8_t>& storage) const override;
  std::string fingerprint(const Beat& beat) const override;
  BadFiles* bad_files() const override { return &bad_files_; }

  // Adds the images of the next class, or of a set without labels. Returns their number.
  int64_t add_class(const std::string& folder, std::vector<std::string>& oddities, const Beat& beat);
  // Adds a class whose folder does not exist.
  int64_t add_empty_class() {
    first_of_.push_back(count_);
    return 0;
  }
  // Call it after the last class.
  void finish() {
    is_bad_ = std::vector<std::atomic<bool>>(count_);
    first_of_.push_back(count_);
  }

 private:
  std::string path_of(int64_t i) const;
  PlanarImage decode(int64_t i, const ChooseReduction& choose, std::vector<uint8_t>& storage) const;

  std::string root_;
  std::vector<std::string> classes_;  // empty: no labels
  DataSettings settings_;
  int64_t count_ = 0;
  std::vector<int64_t> first_of_;  // [classes + 1], index of each class's first image; without labels [2]
  NameTable names_;                // paths relative to root_
  std::vector<int64_t> bytes_;
  mutable std::vector<std::atomic<bool>> is_bad_;  // [images], unusable ones found so far
  mutable BadFiles bad_files_;
};

int64_t ImageFolder::add_class(const std::string& folder, std::vector<std::string>& oddities, const Beat& beat) {
  std::vector<std::string> around = {settings_.path};
  if (!folder.empty()) around.push_back(root_);
  const FolderScan scan = scan_folder(folder.empty() ? root_ : root_ + "/" + folder, around, beat);
  oddities.insert(oddities.end(), scan.oddities.begin(), scan.oddities.end());
  first_of_.push_back(count_);
  for (const FoundFile& file : scan.files) {
    names_.add(folder.empty() ? file.name : folder + "/" + file.name);
    bytes_.push_back(file.bytes);
  }
  count_ += std::ssize(scan.files);
  if (count_ >= kMostImages)
    fail(ExitCode::kData, "{} has 2^31 images or more, the limit; split the data set", shown_path(root_));
  return std::ssize(scan.files);
}

std::string ImageFolder::path_of(int64_t i) const {
  return fmt::format("{}/{}", root_, names_[i]);
}

PlanarImage ImageFolder::decode(int64_t i, const ChooseReduction& choose, std::vector<uint8_t>& storage) const {
  const std::vector<uint8_t> file = read_image_bytes(path_of(i), settings_.max_pixels);
  const ImageInfo info = read_image_info(file, settings_.max_pixels);
  return decode_image(file, info, choose(info.height, info.width), storage);
}

PlanarImage ImageFolder::image_for(int64_t i, const ChooseReduction& choose, std::vector<uint8_t>& storage) const {
  const int64_t first = first_of_[label(i)], end = first_of_[label(i) + 1];
  for (int64_t tried = 0; tried < end - first; ++tried) {
    const int64_t k = first + (i - first + tried) % (end - first);
    std::atomic<bool>& is_bad = is_bad_[k];
    if (is_bad.load(std::memory_order_relaxed)) continue;
    try {
      return decode(k, choose, storage);
    } catch (const BadImage& e) {
      if (settings_.on_error == OnDataError::kFail) {
        fail(ExitCode::kData, "{}: {}; remove or replace the file, or skip such files with data.on_error: skip",
             shown_path(path_of(k)), e.what());
      }
      if (!is_bad.exchange(true)) bad_files_.add(fmt::format("{}: {}", shown_path(path_of(k)), e.what()));
    }
  }
  fail(ExitCode::kData,
       "none of the {} files {} is a readable image, such as {}; put images there or remove the folder", end - first,
       classes_.empty() ? "of " + shown_path(root_) : "of class " + shown(classes_[label(i)]), shown_path(path_of(i)));
}

std::string ImageFolder::fingerprint(const Beat& beat) const {
  Sha256 hash;
  hash.update("image_folder");
  for (const std::string& name : classes_) hash.update(name.data(), name.size() + 1);
  hash.update(first_of_.data(), first_of_.size() * sizeof(int64_t));
  for (int64_t i = 0; i < count_; ++i) {
    hash.update(names_[i]);
    hash.update("\0", 1);
    if (i % 4096 == 0) beat();
  }
  hash.update(bytes_.data(), bytes_.size() * sizeof(int64_t));
  return hash.hex();
}

// The folders of the splits; "" for a missing test split.
struct SplitFolders {
  std::string train, test;
};

SplitFolders find_splits(const std::string& path) {
  if (!is_folder(path)) {
    fail(ExitCode::kData,
         "data.path {} is not a folder; set it to the folder that holds train and val, or one folder per class",
         shown_path(path));
  }
  const std::string train = path + "/train";
  std::string test;
  for (const char* name : {"/val", "/test"}) {
    if (test.empty() && is_folder(path + name)) test = path + name;
  }
  // A folder "train" next to other classes, without subfolders and without val or test, is a class of trains.
  if (is_folder(train) && (!test.empty() || !list_folder(train).folders.empty())) return {train, test};
  return {path, ""};
}

void warn_of(std::vector<std::string> oddities, const std::string& root) {
  for (size_t i = 0; i < std::min(oddities.size(), kMostWarnings); ++i) log_warning("{}", oddities[i]);
  if (oddities.size() > kMostWarnings)
    log_warning("{}: {} more such entries", shown_path(root), oddities.size() - kMostWarnings);
}

std::unique_ptr<Dataset> open_split(const std::string& root, const std::string& test_root, Split split,
                                    const DataSettings& settings, const Beat& beat) {
  const FolderListing top = list_folder(root);
  const std::string& mine = split == Split::kTrain ? root : test_root;
  std::vector<std::string> oddities, classes = top.folders;
  if (mine.empty()) classes.clear();
  if (split == Split::kTest && !mine.empty()) {
    const FolderListing test = list_folder(mine);
    if (test.folders.empty()) classes.clear();
    for (const std::string& name : test.folders) {
      if (classes.empty() || std::binary_search(classes.begin(), classes.end(), name)) continue;
      fail(ExitCode::kData,
           "{}/{} is a test class that the training folder {} does not have; add it there or remove it here",
           shown_path(mine), shown_path(name), shown_path(root));
    }
  }
  auto set = std::make_unique<ImageFolder>(mine, classes, settings);
  if (!mine.empty() && classes.empty()) set->add_class("", oddities, beat);
  for (const std::string& name : classes) {
    const bool is_there = split == Split::kTrain || is_folder(fmt::format("{}/{}", mine, name));
    const int64_t found = is_there ? set->add_class(name, oddities, beat) : set->add_empty_class();
    if (found == 0) oddities.push_back(fmt::format("class {} has no images in {}", shown(name), shown_path(mine)));
  }
  set->finish();
  if (!classes.empty() && split == Split::kTrain && top.others > 0)
    oddities.push_back(
        fmt::format("{} files in {} next to the class folders are ignored", top.others, shown_path(root)));
  if (split == Split::kTrain && set->count() == 0)
    fail(ExitCode::kData, "{} holds no images; put JPEG or PNG files there, in one folder per class or without",
         shown_path(root));
  warn_of(std::move(oddities), mine);
  return set;
}

}  // namespace

std::unique_ptr<Dataset> open_image_folder(const DataSettings& settings, Split split, const Beat& beat) {
  const SplitFolders folders = find_splits(settings.path);
  return open_split(folders.train, folders.test, split, settings, beat);
}

}  // namespace simclr
