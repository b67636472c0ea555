// Helpers shared by the readers of published data sets: finding the folder, sizes of files, names of classes. Each
// format has a file of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace simclr {

// Where to search for the files of a data set, and what to report if they are missing.
struct FolderSearch {
  struct Other {
    std::string file, what;  // a file of another distribution, relative to data.path; its description
  };

  std::string_view set;                 // "CIFAR-10"
  std::vector<std::string> files;       // any of them identifies the folder; messages name the first
  std::vector<std::string> subfolders;  // usual places below data.path
  std::vector<Other> others;
  std::string_view download;  // "download ... and unpack it"
};

// data.path or one of its usual subfolders. Error(kData): what was found instead, what to do.
std::filesystem::path find_data_folder(const std::string& path, const FolderSearch& search);

// Bytes of a regular file. Error(kData), ending with `advice`.
int64_t file_size_of(const std::filesystem::path& file, std::string_view advice);

// The non-empty lines of `file`, or `usual` if the file does not exist. Error(kData) if their number differs from
// usual.size().
std::vector<std::string> read_class_names(const std::filesystem::path& file, std::vector<std::string> usual);

}  // namespace simclr
