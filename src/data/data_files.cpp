#include "src/data/data_files.h"

#include <sstream>
#include <system_error>

#include "kernels/common/error.h"
#include "src/base/file.h"
#include "src/config/config_errors.h"

namespace simclr {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostNameBytes = 1 << 16;

std::string shown(const fs::path& path) {
  return shown_path(path.string());
}

}  // namespace

fs::path find_data_folder(const std::string& path, const FolderSearch& search) {
  const std::string& mark = search.files.front();
  if (path.empty())
    fail(ExitCode::kData, "data.path is empty; set it to the folder that holds {} of {}", mark, search.set);
  std::error_code ignored;  // a folder that cannot be read counts as missing
  const fs::path folder(path);
  if (!fs::exists(folder, ignored))
    fail(ExitCode::kData, "data.path {} does not exist; {}", shown(folder), search.download);
  if (!fs::is_directory(folder, ignored)) {
    fail(ExitCode::kData, "data.path {} is not a folder; set it to the folder that holds {} (unpack the archive first)",
         shown(folder), mark);
  }
  std::vector<fs::path> candidates = {folder};
  for (const std::string& subfolder : search.subfolders) candidates.push_back(folder / subfolder);
  for (const fs::path& candidate : candidates) {
    for (const std::string& file : search.files)
      if (fs::exists(candidate / file, ignored)) return candidate;
  }
  for (const FolderSearch::Other& other : search.others) {
    const fs::path file = folder / other.file;
    if (fs::is_regular_file(file, ignored))
      fail(ExitCode::kData, "{} holds {}; {}", shown(file.parent_path()), other.what, search.download);
  }
  std::string places;
  for (size_t i = 1; i < candidates.size(); ++i) places += fmt::format(" or {}", shown(candidates[i]));
  fail(ExitCode::kData, "there is no {} in {}{}; {}", mark, shown(folder), places, search.download);
}

int64_t file_size_of(const fs::path& file, std::string_view advice) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(file, error);
  if (error) fail(ExitCode::kData, "cannot read {}: {}; {}", shown(file), error.message(), advice);
  return bytes;
}

std::vector<std::string> read_class_names(const fs::path& file, std::vector<std::string> usual) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return usual;
  file_size_of(file, "correct it, or delete it to use the default names");  // opens regular files only
  std::istringstream lines(read_file(file, kMostNameBytes, ExitCode::kData));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (names.size() != usual.size()) {
    fail(ExitCode::kData, "{} has {} class names, expected {}; correct it, or delete it to use the default names",
         shown(file), names.size(), usual.size());
  }
  return names;
}

}  // namespace simclr
