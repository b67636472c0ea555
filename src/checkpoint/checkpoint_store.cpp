// File names decide which checkpoints are removed; which one is the newest is read from inside the files.
#include "src/checkpoint/checkpoint_store.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "kernels/common/error.h"
#include "src/base/file.h"
#include "src/base/log.h"

namespace simclr {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kNamePrefix = "step_";
constexpr std::string_view kSetAsideSuffix = ".set_aside";

[[noreturn]] void fail_at(const fs::path& path, const char* step, const std::error_code& error) {
  fail(ExitCode::kOutput, "cannot {} {}: {}", step, path.string(), error.message());
}

// The step in a name of the form step_00000012.safetensors.
std::optional<int64_t> step_in_name(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kNamePrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  const char* begin = name.data() + kNamePrefix.size();
  const char* end = name.data() + name.size() - kSuffix.size();
  int64_t step = -1;
  const auto [parsed, error] = std::from_chars(begin, end, step);
  if (error != std::errc() || parsed != end || step < 0) return std::nullopt;
  return step;
}

// NAME.set_aside, then NAME.set_aside.2, ...: what was set aside before stays.
fs::path set_aside(const fs::path& path) {
  const std::string first = fmt::format("{}{}", path.string(), kSetAsideSuffix);
  fs::path target = first;
  for (int number = 2; fs::exists(fs::symlink_status(target)); ++number) target = fmt::format("{}.{}", first, number);
  std::error_code error;
  fs::rename(path, target, error);
  if (error) fail_at(path, "rename", error);
  return target;
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path folder, int keep, Beat beat)
    : folder_(std::move(folder)), keep_(keep), beat_(std::move(beat)) {
  SIMCLR_CHECK(keep >= 1, "keep is {}", keep);
}

std::vector<std::string> CheckpointStore::prepare() const {
  make_directories(folder_);
  std::vector<std::string> removed;
  for (const fs::path& path : list("")) {
    // NAME.safetensors.tmp-PID, see DurableFile
    if (!path.stem().string().ends_with(kSuffix) || !path.extension().string().starts_with(".tmp-")) continue;
    std::error_code error;
    if (!fs::remove(path, error) && error) fail_at(path, "remove the old temporary file", error);
    removed.push_back(path.filename().string());
  }
  return removed;
}

fs::path CheckpointStore::save(const TrainingState& state) const {
  const int64_t step = state.header.step;
  const fs::path path = path_of(step);
  write_checkpoint(path, state, beat_);

  std::vector<std::pair<int64_t, fs::path>> up_to_here;
  for (const fs::path& other : list(kSuffix)) {
    const std::optional<int64_t> other_step = step_in_name(other);
    if (other_step && *other_step <= step) up_to_here.emplace_back(*other_step, other);
  }
  std::sort(up_to_here.begin(), up_to_here.end());
  for (int64_t i = 0; i + keep_ < std::ssize(up_to_here); ++i) {
    std::error_code error;
    if (!fs::remove(up_to_here[i].second, error) && error) {
      fail_at(up_to_here[i].second, "remove the old checkpoint", error);
    }
  }
  return path;
}

// A run that is alive removes its oldest checkpoint at each save, also between the listing and the opening here.
ResumePoint CheckpointStore::find_latest() const {
  constexpr int kTries = 20;
  bool some_vanished = true;
  ResumePoint result;
  for (int i = 0; i < kTries && some_vanished; ++i) result = find_latest_once(some_vanished);
  return result;
}

ResumePoint CheckpointStore::find_latest_once(bool& some_vanished) const {
  some_vanished = false;
  ResumePoint result;
  std::vector<std::pair<int64_t, fs::path>> candidates;
  const auto skip = [&](const fs::path& path, const Error& error) {
    if (fs::exists(fs::symlink_status(path)))
      result.warnings.push_back(std::string(error.what()) + "; skipping this file");
    else
      some_vanished = true;
  };
  for (const fs::path& path : list(kSuffix)) {
    try {
      candidates.emplace_back(read_checkpoint_header(SafetensorsFile(path)).step, path);
    } catch (const Error& error) {
      skip(path, error);
    }
  }
  std::sort(candidates.rbegin(), candidates.rend());  // of two files with the same step, the later name first
  for (const auto& [step, path] : candidates) {
    try {
      SafetensorsFile file(path);
      file.verify_checksum(beat_);
      result.header = read_checkpoint_header(file);
      result.path = path;
      result.file = std::move(file);
      break;
    } catch (const Error& error) {
      skip(path, error);
    }
  }
  return result;
}

std::optional<std::pair<int64_t, fs::path>> CheckpointStore::newest_name() const {
  std::optional<std::pair<int64_t, fs::path>> newest;
  for (const fs::path& path : list(kSuffix)) {
    const std::optional<int64_t> step = step_in_name(path);
    if (step && (!newest || *step > newest->first)) newest.emplace(*step, path);
  }
  return newest;
}

ResumePoint CheckpointStore::resolve(const std::string& resume) const {
  if (resume == "auto") {
    ResumePoint latest = find_latest();
    if (!latest.path && !latest.warnings.empty()) {
      fail(ExitCode::kOutput,
           "none of the {} checkpoints in {} can be read, the first: {}; move them away to start from scratch",
           latest.warnings.size(), folder_.string(), latest.warnings.front());
    }
    return latest;
  }
  if (resume == "none") {
    const std::vector<fs::path> found = list(kSuffix);
    if (!found.empty()) {
      fail(ExitCode::kOutput,
           "{} already holds {} checkpoints (the last: {}) and resume is 'none'; use --resume auto to continue, "
           "or another --output or run.name, or move them away",
           folder_.string(), found.size(), found.back().filename().string());
    }
    return {};
  }
  SafetensorsFile file{fs::path(resume)};
  CheckpointHeader header = read_checkpoint_header(file);
  file.verify_checksum(beat_);
  return {.path = fs::path(resume), .header = std::move(header), .file = std::move(file), .warnings = {}};
}

void CheckpointStore::save_best(const TrainingState& state) const {
  write_checkpoint(best_path(), state, beat_);
}

std::optional<CheckpointHeader> CheckpointStore::find_best(int64_t step, std::vector<std::string>& warnings) const {
  const fs::path path = best_path();
  if (!fs::exists(path)) return std::nullopt;
  std::string reason;
  try {
    CheckpointHeader header = read_checkpoint_header(SafetensorsFile(path));
    if (header.step <= step) return header;
    reason = fmt::format("{} is of step {}, later than the checkpoint that this run resumes from", path.string(),
                         header.step);
  } catch (const Error& error) {
    reason = error.what();
  }
  warnings.push_back(fmt::format("{}; renamed to {}", reason, set_aside(path).string()));
  return std::nullopt;
}

std::vector<fs::path> CheckpointStore::set_aside_after(int64_t step) const {
  std::vector<fs::path> moved;
  for (const fs::path& path : list(kSuffix)) {
    if (step_in_name(path).value_or(0) > step) moved.push_back(set_aside(path));
  }
  return moved;
}

fs::path CheckpointStore::path_of(int64_t step) const {
  return folder_ / fmt::format("{}{:08d}{}", kNamePrefix, step, kSuffix);
}

// The folder's entries whose names end in suffix, sorted; none if the folder does not exist.
std::vector<fs::path> CheckpointStore::list(std::string_view suffix) const {
  std::vector<fs::path> found;
  std::error_code error;
  fs::directory_iterator entries(folder_, error);
  if (error == std::errc::no_such_file_or_directory) return found;
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    if (entries->path().filename().string().ends_with(suffix)) found.push_back(entries->path());
  }
  if (error) fail_at(folder_, "list", error);
  std::sort(found.begin(), found.end());
  return found;
}

SafetensorsFile open_checkpoint(const fs::path& given) {
  std::error_code ignored;
  if (!fs::is_directory(given, ignored)) return SafetensorsFile(given);
  for (const auto& folder : {given / "checkpoints", given}) {
    ResumePoint point = CheckpointStore(folder, 1).find_latest();
    for (const auto& warning : point.warnings) log_warning("{}", warning);
    if (point.file) return std::move(*point.file);
  }
  fail(ExitCode::kOutput, "there is no checkpoint in {}; give the path of a checkpoint or of a run folder",
       given.string());
}

}  // namespace simclr
