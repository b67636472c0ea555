// Reader of the binary versions of CIFAR-10 and CIFAR-100: files of fixed-length records, label bytes and then 3072
// bytes [3, 32, 32]. The two layouts are in cifar10.cpp and cifar100.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/data/data_files.h"
#include "src/data/dataset.h"

namespace simclr {

struct CifarLayout {
  struct Label {
    std::string_view name;  // "fine label"
    int classes;            // valid bytes: [0, classes)
  };

  FolderSearch search;
  std::vector<std::string> train_files, test_files;
  std::string_view all_needed;  // "all six files of CIFAR-10 are needed"
  std::vector<Label> labels;    // one byte each, at the start of a record; the last one is used
  std::string names_file;       // names the classes of the last label
  std::vector<std::string> class_names;
};

// Reads one split from folder `path` or a usual subfolder. First all files of both splits are checked: they exist, hold
// whole records, and the training files hold the same number of them. Then every label of the split is checked. Any
// number of records is accepted, so reduced copies work. Error(kData): file, expected, found, what to do.
ImageSet read_cifar(const CifarLayout& layout, const std::string& path, Split split, const Beat& beat);

}  // namespace simclr
