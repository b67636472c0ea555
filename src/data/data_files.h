// What readers of published data sets share: finding the folder, sizes of files, names of classes. Not for formats;
// each has its own file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace simclr {

// Where the files of a set are looked for, and what to say when they are not there.
struct FolderSearch {
  struct Other {
    std::string file, what;  // a file of another distribution, relative to a folder that is looked into; what it is
  };

  std::string_view set;                 // "CIFAR-10"
  std::vector<std::string> files;       // any of them marks the folder; messages name the first
  std::vector<std::string> subfolders;  // usual places below data.path
  std::vector<Other> others;
  std::string_view download;  // "download ... and unpack it"
};

// data.path itself or one of its usual subfolders. Error(kData): what is there instead, what to do.
std::filesystem::path find_data_folder(const std::string& path, const FolderSearch& search);

// Of a regular file. Error(kData) with `advice` at its end.
int64_t file_size_of(const std::filesystem::path& file, std::string_view advice);

// Lines of `file` that are not empty, or `usual` where there is no such file. Error(kData) unless they are as many as
// `usual`.
std::vector<std::string> read_class_names(const std::filesystem::path& file, std::vector<std::string> usual);

}  // namespace simclr
