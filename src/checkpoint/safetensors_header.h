// The header of a safetensors file (https://github.com/huggingface/safetensors, "Format"):
//   8 bytes little-endian N | N bytes of JSON, padded with spaces to a multiple of 8 | data of the tensors
//   {"__metadata__": {text: text}, NAME: {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}
// Converts text to a struct and back and checks every field. Files: safetensors.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace simclr {

enum class TensorType { kFloat32, kFloat64, kInt64, kUint8 };
int64_t bytes_of(TensorType type);          // of one element
std::string_view name_of(TensorType type);  // "F32", "F64", "I64", "U8"

using TensorShape = std::vector<int64_t>;            // {} is a scalar
std::string format_shape(const TensorShape& shape);  // "[64, 3, 7, 7]"
int64_t elements_of(const TensorShape& shape);       // 1 for a scalar; the product must fit 63 bits

struct SafetensorsEntry {
  std::string name;  // no control characters
  TensorType type = TensorType::kFloat32;
  TensorShape shape;
  int64_t begin = 0, end = 0;  // bytes from the start of the data
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes, without gap or overlap, from 0 to the end
};

// The JSON, padded to a multiple of 8 bytes: metadata first, by key, then the entries in their order; the same struct
// gives the same bytes. Error(kOutput) when a text is not UTF-8.
std::string format_safetensors_header(const SafetensorsHeader& header);

// Throws Error(kOutput) with the cause ("tensor 'a': ..."); the caller adds the path.
// data_bytes: number of bytes after the header in the file.
SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_bytes);

}  // namespace simclr
