#include "src/commands/info.h"

#include <algorithm>

#include "kernels/common/error.h"
#include "src/checkpoint/training_state.h"

namespace simclr {
namespace {

// "  name  F32  [64, 3, 3, 3]  6912" with the columns aligned.
std::string format_table(const std::vector<SafetensorsEntry>& entries) {
  size_t name_width = 4, shape_width = 5;
  for (const SafetensorsEntry& entry : entries) {
    name_width = std::max(name_width, entry.name.size());
    shape_width = std::max(shape_width, format_shape(entry.shape).size());
  }
  std::string text = fmt::format("  {:<{}}  dtype  {:<{}}  bytes\n", "name", name_width, "shape", shape_width);
  for (const SafetensorsEntry& entry : entries) {
    text += fmt::format("  {:<{}}  {:<5}  {:<{}}  {}\n", entry.name, name_width, name_of(entry.type),
                        format_shape(entry.shape), shape_width, entry.end - entry.begin);
  }
  return text;
}

std::string format_count(std::string_view title, const std::vector<SafetensorsEntry>& entries, bool weights) {
  int64_t tensors = 0, elements = 0, bytes = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (is_weight(entry.name) != weights) continue;
    ++tensors;
    elements += elements_of(entry.shape);
    bytes += entry.end - entry.begin;
  }
  return fmt::format("{}: {} tensors, {} elements, {} bytes\n", title, tensors, elements, bytes);
}

// For one line of a terminal: control characters of the file become "?".
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  return text;
}

// Indents each line by two spaces.
std::string indent(const std::string& text) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    result += "  " + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return result;
}

}  // namespace

std::string describe_checkpoint(const std::filesystem::path& path, InfoConfig config) {
  return describe_checkpoint(SafetensorsFile(path), config);
}

std::string describe_checkpoint(const SafetensorsFile& file, InfoConfig config) {
  const bool is_ours = file.metadata().count("format_version") > 0;
  if (is_ours || file.has_checksum()) file.verify_checksum();

  std::string text = fmt::format("file: {}\n", file.path().string());
  if (is_ours) {
    const CheckpointHeader header = read_checkpoint_header(file);
    text += fmt::format("step: {}\nepoch: {}\nconfig hash: {}\n", header.step, header.epoch, header.config_hash);
    for (const auto& [key, value] : header.environment) text += fmt::format("{}: {}\n", key, printable(value));
    if (config == InfoConfig::kPrint) text += "config:\n" + indent(header.config_yaml);
  } else {
    text += "format: safetensors, not a simclr_train checkpoint\n";
    for (const auto& [key, value] : file.metadata()) text += fmt::format("{}: {}\n", key, printable(value));
  }
  text += fmt::format("tensors: {}\n", file.entries().size()) + format_table(file.entries());
  text += format_count("weights", file.entries(), true);
  text += format_count("optimizer", file.entries(), false);
  text += fmt::format("weights sha256: {}\n", weights_sha256(file));
  text += fmt::format("checksum: {}\n", file.has_checksum() ? "ok" : "none");
  return text;
}

}  // namespace simclr
