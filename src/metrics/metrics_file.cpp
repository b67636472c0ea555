// Lines are formatted as text, because a JSON library would choose the digits; they are read as JSON.
#include "src/metrics/metrics_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "kernels/common/error.h"
#include "src/base/file.h"

namespace simclr {
namespace {

constexpr int64_t kMostBytes = int64_t{4} << 30;  // about 30 million steps

void add_field(std::string& line, std::string_view key, double value, std::string_view format) {
  const std::string name = nlohmann::json(key).dump();
  if (std::isfinite(value)) {
    std::string digits = fmt::format(fmt::runtime(format), value);
    // "5" and "-0" would be read as integers, and the sign of zero would be lost.
    if (digits.find_first_of(".e") == digits.npos) digits += ".0";
    line += fmt::format(",{}:{}", name, digits);
  } else {
    const std::string text_name = nlohmann::json(std::string(key) + "_text").dump();
    line += fmt::format(",{}:null,{}:\"{}\"", name, text_name, value);  // nan, inf, -inf
  }
}

constexpr std::string_view kAllDigits = "{:.17g}";
constexpr std::string_view kShortest = "{}";  // the fewest digits that read back as the same double

// The step of a line; empty if the line is damaged.
std::optional<int64_t> step_of(std::string_view line) {
  const nlohmann::json json = nlohmann::json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) return std::nullopt;
  return json["step"].get<int64_t>();
}

// The part of a file that a run resumed after some step keeps.
struct Kept {
  size_t bytes = 0;  // from the start of the file
  bool lacks_newline = false;
  int64_t lines = 0, lines_removed = 0;
  int64_t last_step = -1;
};

Kept find_kept(const std::filesystem::path& path, std::string_view text, int64_t step) {
  Kept kept;
  int64_t line_number = 0, damaged_line = 0;
  for (size_t begin = 0; begin < text.size();) {
    ++line_number;
    const size_t end = text.find('\n', begin);
    const bool is_whole = end != text.npos;
    const std::optional<int64_t> line_step =
        step_of(text.substr(begin, end - begin));  // an incomplete line does not parse
    begin = is_whole ? end + 1 : text.size();
    if (!line_step) {
      if (damaged_line == 0) damaged_line = line_number;
    } else if (*line_step <= step) {
      if (damaged_line > 0) {
        fail(ExitCode::kOutput, "{}:{} is damaged and later lines are not; repair that line or move the file away",
             path.string(), damaged_line);
      }
      kept = {.bytes = begin, .lacks_newline = !is_whole, .lines = line_number, .last_step = *line_step};
    }
  }
  kept.lines_removed = line_number - kept.lines;
  return kept;
}

}  // namespace

std::string format_metrics(int64_t step, int64_t epoch, const std::vector<std::pair<std::string, double>>& fields) {
  std::string line = fmt::format("{{\"step\":{},\"epoch\":{}", step, epoch);
  for (const auto& [key, value] : fields) add_field(line, key, value, kShortest);
  return line + "}";
}

std::string format_metrics(const StepMetrics& metrics) {
  std::string line = fmt::format("{{\"step\":{},\"epoch\":{}", metrics.step, metrics.epoch);
  add_field(line, "loss", metrics.loss, kAllDigits);
  add_field(line, "lr", metrics.lr, kShortest);
  add_field(line, "images_per_s", metrics.images_per_s, kShortest);
  add_field(line, "data_wait_s", metrics.data_wait_s, kShortest);
  for (const auto& [key, value] : metrics.extra) add_field(line, key, value, kShortest);
  return line + "}";
}

MetricsFile MetricsFile::begin(const std::filesystem::path& path) {
  write_file_durably(path, std::string_view());
  return MetricsFile(path);
}

MetricsFile MetricsFile::continue_after(const std::filesystem::path& path, int64_t step) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return begin(path);
  if (!std::filesystem::is_regular_file(status)) {
    fail(ExitCode::kOutput, "cannot append to {}: it is not a regular file; move it away", path.string());
  }
  std::string text = read_file(path, kMostBytes);
  const Kept kept = find_kept(path, text, step);
  // A symbolic link is replaced by the lines that it leads to; its target stays as it is.
  const bool is_link = std::filesystem::is_symlink(std::filesystem::symlink_status(path, error));
  if (is_link || kept.bytes < text.size() || kept.lacks_newline) {
    text.resize(kept.bytes);
    if (kept.lacks_newline) text += '\n';
    write_file_durably(path, text);
  }
  MetricsFile file(path);
  file.lines_removed_ = kept.lines_removed;
  file.last_step_ = kept.last_step;
  return file;
}

MetricsFile::MetricsFile(const std::filesystem::path& path)
    : path_(path), file_(open_in_place(path, O_WRONLY | O_APPEND | O_CREAT)) {}

void MetricsFile::append(const std::string& line) {
  const std::string whole = line + '\n';
  if (const int error = write_all(file_.get(), whole.data(), whole.size())) {
    fail(ExitCode::kOutput, "cannot write {}: {}; check the free space", path_.string(), errno_text(error));
  }
}

void MetricsFile::sync() {
  if (::fsync(file_.get()) != 0) fail(ExitCode::kOutput, "cannot flush {}: {}", path_.string(), errno_text(errno));
}

}  // namespace simclr
