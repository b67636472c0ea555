// Writes and reads safetensors files (header: safetensors_header.h) with a content checksum in the metadata.
// The meaning of the tensors is in training_state.h.
//
// Checksum: SHA-256 over the whole file, length field included, with the 64 digits of the checksum itself replaced by
// '0'. It detects a change of any single bit, in the header as in the data.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "src/base/beat.h"
#include "src/base/file_handle.h"
#include "src/checkpoint/safetensors_header.h"

namespace simclr {

inline constexpr std::string_view kChecksumKey = "content_sha256";
inline constexpr int64_t kMostHeaderBytes = int64_t{16} << 20;

// A named view of memory that the caller owns, row-major without gaps. The writer only reads it.
struct NamedTensor {
  std::string name;
  TensorType type = TensorType::kFloat32;
  TensorShape shape;
  void* data = nullptr;

  int64_t bytes() const { return elements_of(shape) * bytes_of(type); }
};

// Durable on return; an earlier file at the path stays intact until then (base/file.h). The checksum is added to
// metadata. The bytes are a function of the arguments. Throws Error(kOutput) with the path and the cause. Names must be
// unique (checked).
void write_safetensors(const std::filesystem::path& path, const std::map<std::string, std::string>& metadata,
                       std::span<const NamedTensor> tensors, const Beat& beat = no_beat);

// An open file whose header has been checked: names, types, shapes, offsets. Everything throws Error(kOutput) with the
// path and the cause. The file stays open, so a rename by another process has no effect.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::filesystem::path path);  // memory: proportional to the header, at most 16 MiB

  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  const std::vector<SafetensorsEntry>& entries() const { return header_.entries; }
  const SafetensorsEntry* find(std::string_view name) const;  // nullptr if there is no such tensor

  bool has_checksum() const { return header_.metadata.count(std::string(kChecksumKey)) > 0; }
  void verify_checksum(const Beat& beat = no_beat) const;  // reads the whole file; without a checksum an error

  // The bytes of one tensor, [end - begin].
  void read(const SafetensorsEntry& entry, void* data, const Beat& beat = no_beat) const;
  // The same in pieces of a megabyte: use(data, bytes), in order.
  template <typename Use>
  void read_in_pieces(const SafetensorsEntry& entry, Use&& use) const {
    std::vector<char> piece(kPieceBytes);
    for (int64_t at = entry.begin; at < entry.end; at += kPieceBytes) {
      const int64_t bytes = std::min(kPieceBytes, entry.end - at);
      read_at(data_start_ + at, piece.data(), bytes);
      use(piece.data(), bytes);
    }
  }

 private:
  static constexpr int64_t kPieceBytes = int64_t{1} << 20;

  [[noreturn]] void fail_with(const std::string& cause) const;
  void read_prefix();
  void read_at(int64_t position, void* data, int64_t bytes) const;

  std::filesystem::path path_;
  FileHandle file_;
  std::string prefix_;      // length field and header text, byte for byte
  int64_t data_start_ = 0;  // == prefix_.size()
  int64_t file_bytes_ = 0;
  SafetensorsHeader header_;
};

}  // namespace simclr
