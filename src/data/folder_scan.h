// Lists the files of a folder tree in one fixed order. Opens folders only, never a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/beat.h"

namespace simclr {

struct FoundFile {
  std::string name;  // relative to the folder that was scanned, any bytes
  int64_t bytes = 0;
};

struct FolderScan {
  std::vector<FoundFile> files;       // regular files and links to them, sorted by the bytes of their names
  std::vector<std::string> oddities;  // one sentence each on loops, dangling links, FIFOs and devices; sorted
};

// All files below `folder`, which must exist. Names that start with a dot are ignored. Links are followed, except a
// link to a folder that contains it (a loop). around: folders that contain `folder`, for the same check.
// Error(kData) for a folder that cannot be read.
FolderScan scan_folder(const std::string& folder, const std::vector<std::string>& around, const Beat& beat);

// Names of the subfolders (and links to folders), sorted as bytes, and the number of other entries; hidden entries do
// not count. Error(kData) if the folder cannot be read.
struct FolderListing {
  std::vector<std::string> folders;
  int64_t others = 0;
};
FolderListing list_folder(const std::string& folder);

bool is_folder(const std::string& path);

}  // namespace simclr
