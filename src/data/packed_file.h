// A data set as one file of decoded images, for runs whose loader is the bottleneck: `simclr_train pack` writes it,
// data.format: packed reads it. Here are the layout, its writer and its checks; packed_dataset.h makes it a Dataset.
//
//   "SIMCLRPK", version (u32), 0 (u32)
//   pixels            of each image, planar RGB [3, height, width], without gaps
//   0 to 7 bytes      of zeros, up to a multiple of 8
//   entries           24 bytes an image: offset (u64), height, width (u32), label (i32, -1: none), 0 (u32);
//                     train, then test, then bank
//   class names       length (u32) and bytes of each
//   tail              PackedTail
//
// Numbers are little-endian. A file that was cut off has no tail, so it is never mistaken for a complete one.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "kernels/augment/planar_image.h"
#include "src/base/file.h"
#include "src/base/sha256.h"
#include "src/data/dataset.h"
#include "src/data/mapped_file.h"

namespace simclr {

inline constexpr size_t kPackedSplits = 3;  // in the order of Split

struct PackedEntry {
  uint64_t offset = 0;
  uint32_t height = 0, width = 0;
  int32_t label = -1;
  uint32_t zero = 0;
};

struct PackedTail {
  std::array<uint64_t, kPackedSplits> counts{};
  uint64_t entries_at = 0, names_at = 0;  // offsets in the file
  uint32_t classes = 0;
  uint32_t labeled = 0;                                        // bit s: split s has labels
  std::array<std::array<char, 64>, kPackedSplits> contents{};  // SHA-256 of a split's sizes, labels, pixels; hex digits
  std::array<char, 64> described{};                            // SHA-256 of entries, names and the fields above
  std::array<char, 8> mark{};                                  // "SIMCLRPK"
};

class PackedWriter {
 public:
  // Writes a temporary file next to `path`, which finish() renames; without finish() it is removed. Error(kOutput).
  PackedWriter(const std::filesystem::path& path, std::vector<std::string> class_names);

  void start(Split split, bool has_labels);  // in the order of Split, each at most once
  void add(const PlanarImage& image, int32_t label);
  void finish();

 private:
  void end_split();

  DurableFile file_;
  std::vector<std::string> class_names_;
  std::vector<PackedEntry> entries_;
  PackedTail tail_;
  Sha256 content_;
  size_t split_ = 0;
  uint64_t written_ = 0;
};

// A packed file whose description has been checked: every entry is within the pixels, every label has a name. The
// pixels are not read for that; matches_content() checks them.
class PackedFile {
 public:
  // Error(kData): what is wrong, what to do.
  explicit PackedFile(const std::filesystem::path& path);

  std::span<const PackedEntry> entries(Split split) const;
  bool has_labels(Split split) const { return (tail_.labeled >> static_cast<unsigned>(split) & 1) != 0; }
  const std::vector<std::string>& class_names() const { return class_names_; }
  PlanarImage image(const PackedEntry& entry) const;
  std::string content_hash(Split split) const;  // as stored in the file
  bool matches_content(Split split, const Beat& beat) const;

 private:
  void check_tail();
  void check_entries();
  void read_names();
  [[noreturn]] void refuse(const std::string& what) const;

  std::filesystem::path path_;
  MappedFile file_;
  PackedTail tail_;
  std::vector<std::string> class_names_;
};

}  // namespace simclr
