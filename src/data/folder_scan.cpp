#include "src/data/folder_scan.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "kernels/common/error.h"
#include "src/config/config_errors.h"

namespace simclr {
namespace {

constexpr size_t kMostDepth = 64;  // nested folders; the recursion holds one frame for each

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

// Names of a folder's visible entries, sorted as bytes.
std::vector<std::string> entries_of(const std::string& folder) {
  const std::unique_ptr<DIR, CloseFolder> stream(::opendir(folder.c_str()));
  if (!stream) {
    fail(ExitCode::kData, "cannot read the folder {}: {}; grant access or remove it", shown_path(folder),
         std::strerror(errno));
  }
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  if (errno != 0)
    fail(ExitCode::kData, "cannot read the folder {}: {}; check the disk", shown_path(folder), std::strerror(errno));
  std::sort(names.begin(), names.end());  // std::string compares as unsigned bytes
  return names;
}

class Scanner {
 public:
  Scanner(std::string root, const Beat& beat) : root_(std::move(root)), beat_(beat) {}

  FolderScan scan(const std::vector<std::string>& around) {
    struct stat status {};
    for (const std::string& folder : around) {
      if (::stat(folder.c_str(), &status) == 0) above_.emplace_back(status.st_dev, status.st_ino);
    }
    if (::stat(root_.c_str(), &status) == 0) enter("", status);
    std::sort(result_.files.begin(), result_.files.end(),
              [](const FoundFile& a, const FoundFile& b) { return a.name < b.name; });
    std::sort(result_.oddities.begin(), result_.oddities.end());
    return std::move(result_);
  }

 private:
  using Identity = std::pair<dev_t, ino_t>;

  // prefix: "" or "a/b/", of the folder within the root.
  void enter(const std::string& prefix, const struct stat& status) {
    if (above_.size() >= kMostDepth)
      fail(ExitCode::kData, "{}{} is more than {} folders deep; move its images up", shown_path(root_ + "/"),
           shown_path(prefix), kMostDepth);
    above_.emplace_back(status.st_dev, status.st_ino);
    for (const std::string& name : entries_of(root_ + "/" + prefix)) add(prefix + name);
    above_.pop_back();
    beat_();
  }

  void add(const std::string& name) {
    const std::string path = root_ + "/" + name;
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
      note(path, std::strerror(errno));
    } else if (S_ISREG(status.st_mode)) {
      result_.files.push_back({name, status.st_size});
    } else if (!S_ISDIR(status.st_mode)) {
      note(path, "it is not a file, but a FIFO, a socket or a device");
    } else if (std::find(above_.begin(), above_.end(), Identity(status.st_dev, status.st_ino)) != above_.end()) {
      note(path, "it links to a folder that contains it");
    } else {
      enter(name + "/", status);
    }
  }

  void note(const std::string& path, const char* reason) {
    result_.oddities.push_back(fmt::format("{} is ignored: {}", shown_path(path), reason));
  }

  const std::string root_;
  const Beat& beat_;
  std::vector<Identity> above_;  // the folder being read and those that contain it
  FolderScan result_;
};

}  // namespace

FolderScan scan_folder(const std::string& folder, const std::vector<std::string>& around, const Beat& beat) {
  return Scanner(folder, beat).scan(around);
}

FolderListing list_folder(const std::string& folder) {
  FolderListing listing;
  for (std::string& name : entries_of(folder)) {
    if (is_folder(fmt::format("{}/{}", folder, name))) {
      listing.folders.push_back(std::move(name));
    } else {
      ++listing.others;
    }
  }
  return listing;
}

bool is_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace simclr
