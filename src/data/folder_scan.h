// The files of a folder tree in one fixed order. Opens folders, never files.
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
  std::vector<FoundFile> files;       // sorted by name as bytes; regular files, or links to such
  std::vector<std::string> oddities;  // one sentence each: loops, dangling links, what is no file; sorted
};

// All files below `folder`, which exists. Names that start with a dot are passed over, links followed; a link to a
// folder that it lies in is a loop and not followed. around: folders that `folder` itself lies in, for the same reason.
// Error(kData) for a folder that cannot be read.
FolderScan scan_folder(const std::string& folder, const std::vector<std::string>& around, const Beat& beat);

// Names of the sub folders (links to folders too), sorted as bytes, and the number of other entries; hidden ones do not
// count. Error(kData) if the folder cannot be read.
struct FolderListing {
  std::vector<std::string> folders;
  int64_t others = 0;
};
FolderListing list_folder(const std::string& folder);

bool is_folder(const std::string& path);

}  // namespace simclr
