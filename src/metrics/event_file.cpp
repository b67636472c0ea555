#include "src/metrics/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "kernels/common/error.h"
#include "src/base/file.h"

namespace simclr {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBegin = "events.out.tfevents.", kEnd = ".simclr";

double wall_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

// The event files of earlier starts in this folder.
std::vector<fs::path> find_earlier(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(kBegin) && name.ends_with(kEnd)) found.push_back(entry->path());
  }
  if (error) fail(ExitCode::kOutput, "cannot read the folder {}: {}", folder.string(), error.message());
  return found;
}

// TensorBoard reads files in the order of their names and never goes back: the new name must sort last, even if this
// host's clock is behind.
int64_t stamp_after(const std::vector<fs::path>& earlier) {
  auto stamp = static_cast<int64_t>(wall_time_s());
  for (const fs::path& path : earlier) {
    const std::string digits = path.filename().string().substr(kBegin.size());
    const int64_t theirs = std::strtoll(digits.c_str(), nullptr, 10);
    if (theirs < 9'999'999'999) stamp = std::max(stamp, theirs + 1);
  }
  return stamp;
}

}  // namespace

EventFile::EventFile(const fs::path& run_folder, int64_t steps_done) {
  std::vector<fs::path> earlier = find_earlier(run_folder);
  if (steps_done == 0) {
    for (const fs::path& path : earlier) {
      std::error_code error;
      if (!fs::remove(path, error) && error)
        fail(ExitCode::kOutput, "cannot remove {} of an earlier run: {}; remove it", path.string(), error.message());
    }
    earlier.clear();
  }
  path_ = run_folder / fmt::format("{}{:010}.{}.{}{}", kBegin, stamp_after(earlier), host(), ::getpid(), kEnd);
  file_ = open_in_place(path_, O_WRONLY | O_APPEND | O_CREAT);
  const double now_s = wall_time_s();
  append(version_event(now_s));
  if (steps_done > 0) append(session_start_event({now_s, steps_done + 1}));
}

void EventFile::add_metrics(const std::string& line) {
  const nlohmann::ordered_json json = nlohmann::ordered_json::parse(line);
  const std::string group = json.contains("loss") ? "train/" : "evaluate/";
  std::vector<std::pair<std::string, double>> scalars;
  for (const auto& [name, value] : json.items())
    if (value.is_number() && name != "step" && name != "epoch") scalars.emplace_back(group + name, value.get<double>());
  if (!scalars.empty()) append(scalars_event({wall_time_s(), json.at("step").get<int64_t>()}, scalars));
}

void EventFile::add_text(int64_t step, const std::string& tag, const std::string& markdown) {
  append(text_event({wall_time_s(), step}, tag, markdown));
}

void EventFile::add_image(int64_t step, const std::string& tag, const EncodedImage& image) {
  append(image_event({wall_time_s(), step}, tag, image));
}

void EventFile::append(const std::string& event) {
  const std::string record = frame_record(event);
  if (const int error = write_all(file_.get(), record.data(), record.size()))
    fail(ExitCode::kOutput, "cannot write {}: {}; check the free space", path_.string(), errno_text(error));
}

void EventFile::sync() {
  if (::fsync(file_.get()) != 0) fail(ExitCode::kOutput, "cannot flush {}: {}", path_.string(), errno_text(errno));
}

}  // namespace simclr
