// The parser handles JSON events instead of a tree: repeated keys, numbers of another kind and nesting that the format
// does not have are refused where they occur, and memory stays proportional to the text.
#include "src/checkpoint/safetensors_header.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/common/error.h"

namespace simclr {
namespace {

constexpr size_t kMostDimensions = 8;
constexpr size_t kMostNameBytes = 500;
constexpr std::string_view kMetadataKey = "__metadata__";

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

// Bytes of the tensor's data; Error if they exceed 63 bits.
int64_t checked_bytes(const SafetensorsEntry& entry) {
  int64_t bytes = bytes_of(entry.type);
  if (std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end()) return 0;
  bool overflow = false;
  for (int64_t size : entry.shape) overflow = __builtin_mul_overflow(bytes, size, &bytes) || overflow;
  if (overflow) fail(ExitCode::kOutput, "tensor '{}': shape {} is too large", entry.name, format_shape(entry.shape));
  return bytes;
}

// The parser's position; an opening brace or bracket goes one level in, a closing one goes one level out.
enum class Place { kBefore, kTop, kMetadata, kTensor, kShape, kOffsets, kAfter };

class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader header;

  bool start_object(size_t) override {
    if (place_ == Place::kBefore) return go(Place::kTop);
    if (place_ != Place::kTop) refuse("an object");
    if (key_ == kMetadataKey) return go(Place::kMetadata);
    header.entries.push_back({.name = key_, .type = {}, .shape = {}, .begin = 0, .end = 0});
    seen_fields_.clear();
    return go(Place::kTensor);
  }

  bool end_object() override {
    if (place_ == Place::kTop) return go(Place::kAfter);
    if (place_ == Place::kTensor && seen_fields_.size() != 3) {
      fail(ExitCode::kOutput, "tensor '{}' lacks one of dtype, shape, data_offsets", header.entries.back().name);
    }
    return go(Place::kTop);
  }

  bool start_array(size_t) override {
    if (place_ == Place::kTensor && field_ == "shape") return go(Place::kShape);
    if (place_ == Place::kTensor && field_ == "data_offsets") return go(Place::kOffsets);
    refuse("a list");
  }

  bool end_array() override {
    const SafetensorsEntry& entry = header.entries.back();
    if (place_ == Place::kOffsets && offsets_ != 2) {
      fail(ExitCode::kOutput, "tensor '{}': data_offsets has {} numbers, not 2", entry.name, offsets_);
    }
    return go(Place::kTensor);
  }

  bool key(std::string& text) override {
    if (place_ == Place::kTop) {
      if (text.empty() || text.size() > kMostNameBytes || has_control_character(text)) {
        fail(ExitCode::kOutput, "a tensor's name is empty, longer than {} bytes or has control characters",
             kMostNameBytes);
      }
      if (!seen_names_.insert(text).second) fail(ExitCode::kOutput, "the name '{}' is repeated", text);
      key_ = text;
    } else if (place_ == Place::kMetadata) {
      if (text.size() > kMostNameBytes || has_control_character(text) || header.metadata.count(text) > 0) {
        fail(ExitCode::kOutput, "__metadata__ has a key that is repeated, too long or has control characters");
      }
      key_ = text;
    } else {  // kTensor: keys come only inside objects
      if (text != "dtype" && text != "shape" && text != "data_offsets") refuse("a field '" + printable(text) + "'");
      if (!seen_fields_.insert(text).second) refuse("the field '" + text + "' twice");
      field_ = text;
      offsets_ = 0;
    }
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::kMetadata) {
      header.metadata.emplace(key_, text);
      return true;
    }
    if (place_ != Place::kTensor || field_ != "dtype") refuse("a text");
    for (TensorType type : {TensorType::kFloat32, TensorType::kFloat64, TensorType::kInt64, TensorType::kUint8}) {
      if (text == name_of(type)) {
        header.entries.back().type = type;
        return true;
      }
    }
    fail(ExitCode::kOutput, "tensor '{}': dtype '{}' is not supported; F32, F64, I64 and U8 are",
         header.entries.back().name, printable(text));
  }

  bool number_unsigned(uint64_t value) override {
    if (place_ != Place::kShape && place_ != Place::kOffsets) refuse("a number");
    SafetensorsEntry& entry = header.entries.back();
    if (value > uint64_t{std::numeric_limits<int64_t>::max()}) refuse("a number of more than 63 bits");
    const int64_t number = value;
    if (place_ == Place::kShape) {
      if (entry.shape.size() == kMostDimensions) refuse("more than 8 dimensions");
      entry.shape.push_back(number);
    } else {
      (offsets_ == 0 ? entry.begin : entry.end) = number;
      ++offsets_;
    }
    return true;
  }

  bool null() override { refuse("a null"); }
  bool boolean(bool) override { refuse("a true or false"); }
  bool number_integer(int64_t) override { refuse("a negative number"); }
  bool number_float(double, const std::string&) override { refuse("a number that is not an integer"); }
  bool binary(nlohmann::json::binary_t&) override { refuse("binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    fail(ExitCode::kOutput, "the header is not valid JSON from byte {} on", position);
  }

 private:
  bool go(Place place) {
    place_ = place;
    return true;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    const bool in_tensor = place_ == Place::kTensor || place_ == Place::kShape || place_ == Place::kOffsets;
    fail(ExitCode::kOutput, "'{}' holds {}, which the format does not have",
         in_tensor ? header.entries.back().name : key_, what);
  }
  static std::string printable(const std::string& text) {
    return has_control_character(text) ? "?" : text.substr(0, 40);
  }

  Place place_ = Place::kBefore;
  std::string key_, field_;
  int offsets_ = 0;
  std::set<std::string> seen_names_, seen_fields_;
};

}  // namespace

int64_t bytes_of(TensorType type) {
  switch (type) {
    case TensorType::kFloat32:
      return 4;
    case TensorType::kFloat64:
      return 8;
    case TensorType::kInt64:
      return 8;
    case TensorType::kUint8:
      return 1;
  }
  SIMCLR_CHECK(false, "tensor type {}", static_cast<int>(type));
}

std::string_view name_of(TensorType type) {
  switch (type) {
    case TensorType::kFloat32:
      return "F32";
    case TensorType::kFloat64:
      return "F64";
    case TensorType::kInt64:
      return "I64";
    case TensorType::kUint8:
      return "U8";
  }
  SIMCLR_CHECK(false, "tensor type {}", static_cast<int>(type));
}

std::string format_shape(const TensorShape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

int64_t elements_of(const TensorShape& shape) {
  int64_t elements = 1;
  for (int64_t size : shape) {
    if (size == 0) return 0;  // before the others, whose product alone may be too large
  }
  for (int64_t size : shape) elements *= size;
  return elements;
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  nlohmann::ordered_json json;
  if (!header.metadata.empty()) json[std::string(kMetadataKey)] = header.metadata;
  for (const SafetensorsEntry& entry : header.entries) {
    nlohmann::ordered_json& field = json[entry.name];
    field["dtype"] = name_of(entry.type);
    field["shape"] = entry.shape;
    field["data_offsets"] = {entry.begin, entry.end};
  }
  try {
    std::string text = json.is_null() ? "{}" : json.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const nlohmann::json::exception&) {
    fail(ExitCode::kOutput, "a name or a text of the metadata is not UTF-8; use UTF-8 in paths and settings");
  }
}

SafetensorsHeader parse_safetensors_header(std::string_view json, int64_t data_bytes) {
  // The parser would skip a byte order mark and end at a NUL.
  if (json.empty() || json.front() != '{' || json.find('\0') != json.npos) {
    fail(ExitCode::kOutput, "the header does not start with '{{' or has a NUL: not a safetensors file, or damaged");
  }
  HeaderEvents events;
  nlohmann::json::sax_parse(json.begin(), json.end(), &events);
  std::vector<SafetensorsEntry>& entries = events.header.entries;
  std::stable_sort(entries.begin(), entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  int64_t position = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != position) {
      fail(ExitCode::kOutput, "tensor '{}': its data offset is {}, expected {}: {}", entry.name, entry.begin, position,
           entry.begin < position ? "tensors overlap" : "a gap");
    }
    const int64_t bytes = checked_bytes(entry);
    if (entry.end < entry.begin || entry.end > data_bytes || entry.end - entry.begin != bytes) {
      fail(ExitCode::kOutput, "tensor '{}': data_offsets [{}, {}] do not match {} {} in {} bytes of data", entry.name,
           entry.begin, entry.end, name_of(entry.type), format_shape(entry.shape), data_bytes);
    }
    position = entry.end;
  }
  if (position != data_bytes) {
    fail(ExitCode::kOutput, "the tensors take {} bytes of data, the file has {}", position, data_bytes);
  }
  return std::move(events.header);
}

}  // namespace simclr
