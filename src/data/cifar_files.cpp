#include "src/data/cifar_files.h"

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "kernels/common/error.h"
#include "src/base/file.h"
#include "src/config/config_errors.h"

namespace simclr {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSide = 32, kPixels = 3 * kSide * kSide;

int64_t record_bytes(const CifarLayout& layout) {
  return std::ssize(layout.labels) + kPixels;
}

// Records of one file, from its size alone.
int64_t count_records(const CifarLayout& layout, const fs::path& file) {
  const std::string_view download = layout.search.download;
  const int64_t bytes = file_size_of(file, fmt::format("{}: {}", layout.all_needed, download));
  if (bytes == 0 || bytes % record_bytes(layout) != 0) {
    fail(ExitCode::kData,
         "{} has {} bytes, expected a non-zero multiple of {} ({} label byte{} + {} pixel bytes a record): damaged or "
         "incomplete, {}",
         shown_path(file.string()), bytes, record_bytes(layout), layout.labels.size(),
         layout.labels.size() == 1 ? "" : "s", kPixels, download);
  }
  return bytes / record_bytes(layout);
}

void check_files(const CifarLayout& layout, const fs::path& folder) {
  for (const std::string& name : layout.test_files) count_records(layout, folder / name);
  const std::string& first = layout.train_files.front();
  const int64_t expected = count_records(layout, folder / first);
  for (const std::string& name : layout.train_files) {
    const int64_t found = count_records(layout, folder / name);
    if (found != expected) {
      fail(ExitCode::kData, "{} has {} records, expected {} as in {}: cut off or mixed from two copies, {}",
           shown_path((folder / name).string()), found, expected, first, layout.search.download);
    }
  }
}

void append_file(const CifarLayout& layout, const fs::path& file, ImageSet& set) {
  const int64_t records = count_records(layout, file);
  std::vector<char> content(records * record_bytes(layout));
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(content.data(), std::ssize(content))) {
    fail(ExitCode::kData, "cannot read {} bytes of {}: {}", content.size(), shown_path(file.string()),
         errno != 0 ? errno_text(errno) : "the file was cut off");
  }
  for (int64_t r = 0; r < records; ++r) {
    const char* record = content.data() + r * record_bytes(layout);
    uint8_t label = 0;
    for (const CifarLayout::Label& kind : layout.labels) {
      label = static_cast<uint8_t>(*record++);
      if (label >= kind.classes) {
        fail(ExitCode::kData, "{} record {} has {} {}, expected 0 to {}: damaged or not {}, {}",
             shown_path(file.string()), r, kind.name, label, kind.classes - 1, layout.search.set,
             layout.search.download);
      }
    }
    set.labels.push_back(label);
    set.pixels.insert(set.pixels.end(), record, record + kPixels);
  }
  set.count += records;
}

}  // namespace

ImageSet read_cifar(const CifarLayout& layout, const std::string& path, Split split, const Beat& beat) {
  const fs::path folder = find_data_folder(path, layout.search);
  check_files(layout, folder);
  ImageSet set{.count = 0,
               .height = kSide,
               .width = kSide,
               .pixels = {},
               .labels = {},
               .class_names = read_class_names(folder / layout.names_file, layout.class_names)};
  const std::vector<std::string>& names = split == Split::kTest ? layout.test_files : layout.train_files;
  const int64_t records = count_records(layout, folder / names.front()) * std::ssize(names);
  set.pixels.reserve(records * kPixels);
  set.labels.reserve(records);
  for (const std::string& name : names) {
    append_file(layout, folder / name, set);
    beat();
  }
  return set;
}

}  // namespace simclr
