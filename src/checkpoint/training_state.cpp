// Converts the state to metadata and back, compares a file with the configured model, and computes the weight hash.
#include "src/checkpoint/training_state.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "kernels/common/error.h"
#include "src/base/sha256.h"

namespace simclr {
namespace {

constexpr std::string_view kFormat = "simclr_train checkpoint";
constexpr int64_t kFormatVersion = 1;
constexpr std::string_view kEnvironmentPrefix = "environment.";

// A text of the metadata; Error if it is missing.
const std::string& metadata_text(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) {
    fail(ExitCode::kOutput, "cannot read {}: its metadata has no '{}': damaged", file.path().string(), key);
  }
  return found->second;
}

int64_t metadata_count(const SafetensorsFile& file, const std::string& key) {
  const std::string& text = metadata_text(file, key);
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    fail(ExitCode::kOutput, "cannot read {}: '{}' of its metadata is not a count: damaged", file.path().string(), key);
  }
  return value;
}

// "missing in the file: a, b, c and 12 more"
void add_list(std::string& text, std::string_view title, const std::vector<std::string>& items) {
  constexpr size_t kMostListed = 8;
  if (items.empty()) return;
  const size_t listed = std::min(items.size(), kMostListed);
  text +=
      fmt::format("{}{}: {}", text.empty() ? "" : "; ", title, fmt::join(items.begin(), items.begin() + listed, ", "));
  if (items.size() > listed) text += fmt::format(" and {} more", items.size() - listed);
}

void compare_with_file(const SafetensorsFile& file, std::span<const NamedTensor> tensors, LoadWhat what) {
  std::vector<std::string> missing, extra, different;
  std::map<std::string_view, const SafetensorsEntry*> in_file;
  for (const SafetensorsEntry& entry : file.entries()) {
    if (what == LoadWhat::kEverything || is_weight(entry.name)) in_file[entry.name] = &entry;
  }
  for (const NamedTensor& tensor : tensors) {
    const auto found = in_file.find(tensor.name);
    if (found == in_file.end()) {
      missing.push_back(tensor.name);
      continue;
    }
    const SafetensorsEntry& entry = *found->second;
    if (entry.type != tensor.type || entry.shape != tensor.shape) {
      different.push_back(fmt::format("{} ({} {} in the file, {} {} expected)", tensor.name, name_of(entry.type),
                                      format_shape(entry.shape), name_of(tensor.type), format_shape(tensor.shape)));
    }
    in_file.erase(found);
  }
  for (const auto& [name, entry] : in_file) extra.emplace_back(name);

  std::string text;
  add_list(text, "of another shape", different);
  add_list(text, "missing in the file", missing);
  add_list(text, "only in the file", extra);
  if (!text.empty()) {
    fail(ExitCode::kOutput,
         "{} does not match the configured model and optimizer: {}; use the configuration that it was written with",
         file.path().string(), text);
  }
}

void hash_description(Sha256& hash, const std::string& name, TensorType type, const TensorShape& shape) {
  hash.update(fmt::format("{} {} {}\n", name, name_of(type), format_shape(shape)));
}

// Pointers to the weights among `items`, by name.
template <typename Item>
std::vector<const Item*> weights_by_name(std::span<const Item> items) {
  std::vector<const Item*> weights;
  for (const Item& item : items) {
    if (is_weight(item.name)) weights.push_back(&item);
  }
  std::sort(weights.begin(), weights.end(), [](const Item* a, const Item* b) { return a->name < b->name; });
  return weights;
}

}  // namespace

void write_checkpoint(const std::filesystem::path& path, const TrainingState& state, const Beat& beat) {
  const CheckpointHeader& header = state.header;
  std::map<std::string, std::string> metadata = {
      {"format", std::string(kFormat)},      {"format_version", std::to_string(kFormatVersion)},
      {"step", std::to_string(header.step)}, {"epoch", std::to_string(header.epoch)},
      {"config", header.config_yaml},        {"config_hash", header.config_hash},
  };
  for (const auto& [key, value] : header.environment) metadata[std::string(kEnvironmentPrefix) + key] = value;
  write_safetensors(path, metadata, state.tensors, beat);
}

CheckpointHeader read_checkpoint_header(const SafetensorsFile& file) {
  const auto format = file.metadata().find("format");
  if (format == file.metadata().end() || format->second != kFormat) {
    fail(ExitCode::kOutput, "cannot read {}: it is not a simclr_train checkpoint", file.path().string());
  }
  const int64_t version = metadata_count(file, "format_version");
  if (version != kFormatVersion) {
    fail(ExitCode::kOutput, "cannot read {}: its checkpoint format is version {}, this program reads version {}",
         file.path().string(), version, kFormatVersion);
  }
  CheckpointHeader header;
  header.step = metadata_count(file, "step");
  header.epoch = metadata_count(file, "epoch");
  header.config_yaml = metadata_text(file, "config");
  header.config_hash = metadata_text(file, "config_hash");
  for (const auto& [key, value] : file.metadata()) {
    if (key.starts_with(kEnvironmentPrefix)) header.environment[key.substr(kEnvironmentPrefix.size())] = value;
  }
  return header;
}

CheckpointHeader load_checkpoint(const SafetensorsFile& file, std::span<const NamedTensor> tensors, LoadWhat what,
                                 const Beat& beat) {
  CheckpointHeader header = read_checkpoint_header(file);
  file.verify_checksum(beat);
  compare_with_file(file, tensors, what);
  for (const NamedTensor& tensor : tensors) file.read(*file.find(tensor.name), tensor.data, beat);
  return header;
}

CheckpointHeader load_checkpoint(const std::filesystem::path& path, std::span<const NamedTensor> tensors, LoadWhat what,
                                 const Beat& beat) {
  return load_checkpoint(SafetensorsFile(path), tensors, what, beat);
}

std::string weights_sha256(std::span<const NamedTensor> tensors, const Beat& beat) {
  Sha256 hash;
  for (const NamedTensor* tensor : weights_by_name(tensors)) {
    hash_description(hash, tensor->name, tensor->type, tensor->shape);
    in_pieces(tensor->data, tensor->bytes(), beat,
              [&](const std::byte* piece, size_t bytes) { hash.update(piece, bytes); });
  }
  return hash.hex();
}

std::string weights_sha256(const SafetensorsFile& file) {
  Sha256 hash;
  for (const SafetensorsEntry* entry : weights_by_name(std::span(file.entries()))) {
    hash_description(hash, entry->name, entry->type, entry->shape);
    file.read_in_pieces(*entry, [&](const void* data, size_t bytes) { hash.update(data, bytes); });
  }
  return hash.hex();
}

}  // namespace simclr
