#include "src/config/config_errors.h"

#include "kernels/common/error.h"

namespace simclr {

void ConfigErrors::add(std::string_view where, std::string_view key, std::string_view text) {
  ++count_;
  if (lines_.size() == kMaxReported) return;
  std::string line(where);
  if (!key.empty()) line += (line.empty() ? "" : ": ") + std::string(key);
  lines_.push_back(line + (line.empty() ? "" : ": ") + std::string(text));
}

void ConfigErrors::raise_if_any() const {
  if (lines_.empty()) return;
  std::string text;
  for (size_t i = 0; i < lines_.size(); ++i) text += (i == 0 ? "" : "\n") + lines_[i];
  if (count_ > lines_.size()) text += fmt::format("\nand {} more errors", count_ - lines_.size());
  throw Error(ExitCode::kUsage, text);
}

std::string shown(std::string_view text, size_t max_bytes) {
  std::string result(text.substr(0, max_bytes));
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  if (text.size() <= max_bytes) return result;
  while (!result.empty() && (static_cast<unsigned char>(result.back()) & 0xC0) == 0x80) result.pop_back();
  if (!result.empty() && static_cast<unsigned char>(result.back()) >= 0xC0) result.pop_back();  // a cut UTF-8 character
  return result + "...";
}

}  // namespace simclr
