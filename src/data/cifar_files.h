// What the binary versions of CIFAR-10 and CIFAR-100 have in common: files of records of one length, label bytes and
// then 3072 bytes [3, 32, 32].
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
    int classes;            // the byte is below
  };

  FolderSearch search;
  std::vector<std::string> train_files, test_files;
  std::string_view all_needed;  // "all six files of CIFAR-10 are needed"
  std::vector<Label> labels;    // a byte each, at the start of a record; the last one is used
  std::string names_file;       // of the classes of the last label
  std::vector<std::string> class_names;
};

// Reads one split from folder `path` or a usual subfolder. All files are checked first, whichever split is read: there,
// whole records, the same number of records in each training file; then every label of the split. Any record count is
// read, so cut-down copies work. Error(kData): file, expected, found, what to do.
ImageSet read_cifar(const CifarLayout& layout, const std::string& path, Split split, const Beat& beat);

}  // namespace simclr
