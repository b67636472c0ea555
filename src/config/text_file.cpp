#include "src/config/text_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "kernels/common/error.h"

namespace simclr {

namespace {

namespace fs = std::filesystem;

// Length of the well-formed UTF-8 character at the start of text (Unicode 15, table 3-7), 0 if there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                        : first >= 0xE0 && first <= 0xEF ? 3
                        : first >= 0xF0 && first <= 0xF4 ? 4
                                                         : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) > 0x9F;
  const bool beyond = first == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || beyond ? 0 : length;
}

// What is wrong with one line (without its line end), "" if nothing.
std::string line_problem(std::string_view line) {
  const size_t indentation = line.find_first_not_of(" \t");
  if (indentation != std::string_view::npos && line[indentation] != '#' &&
      line.substr(0, indentation).find('\t') != std::string_view::npos) {
    return "a tab in the indentation; YAML requires spaces";
  }
  for (size_t i = 0; i < line.size();) {
    const auto byte = static_cast<unsigned char>(line[i]);
    if (byte == '\r') return "a carriage return inside the line; end lines with LF or CRLF";
    if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
      return fmt::format("byte 0x{:02x} at column {} is a control character; give a text file", byte, i + 1);
    }
    const size_t length = utf8_length(line.substr(i));
    if (length == 0) return fmt::format("byte 0x{:02x} at column {} is not UTF-8; save the file as UTF-8", byte, i + 1);
    i += length;
  }
  return "";
}

}  // namespace

std::string read_text_file(const std::string& path) {
  const std::string name = shown_path(path);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    fail(ExitCode::kUsage, "{}: no such file (looked in {}); give a configuration with --config FILE", name,
         shown_path(fs::current_path(error).string()));
  }
  if (error) fail(ExitCode::kUsage, "{}: cannot be read: {}; check its permissions", name, error.message());
  if (status.type() == fs::file_type::directory) {
    fail(ExitCode::kUsage, "{}: is a folder; give the configuration file inside it", name);
  }
  if (status.type() != fs::file_type::regular) {
    fail(ExitCode::kUsage, "{}: is not a regular file; every rank reads the configuration, so give a regular file",
         name);
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ExitCode::kUsage, "{}: cannot be opened: {}; check its permissions", name, std::strerror(errno));
  std::string text(kMaxConfigBytes + 1, '\0');
  file.read(text.data(), std::ssize(text));
  if (file.bad()) fail(ExitCode::kUsage, "{}: cannot be read: {}; check the disk", name, std::strerror(errno));
  text.resize(file.gcount());
  if (text.size() > kMaxConfigBytes) {
    fail(ExitCode::kUsage, "{}: is larger than 1 MiB; give a configuration file (YAML)", name);
  }
  return text;
}

std::string clean_text(std::string_view text, std::string_view where, ConfigErrors& errors) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::string clean;
  clean.reserve(text.size());
  for (int line_number = 1; !text.empty(); ++line_number) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (const std::string problem = line_problem(line); !problem.empty()) {
      errors.add(fmt::format("{}:{}", where, line_number), "", problem);
    }
    clean.append(line);
    if (end != std::string_view::npos) clean.push_back('\n');
  }
  return clean;
}

}  // namespace simclr
