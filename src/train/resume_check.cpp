#include "src/train/resume_check.h"

#include <algorithm>
#include <set>

#include "kernels/common/error.h"
#include "src/base/log.h"
#include "src/config/loader.h"
#include "src/config/resolved.h"
#include "src/train/recorded_plans.h"

namespace simclr {
namespace {

std::string data_of(const CheckpointHeader& header) {
  const auto found = header.environment.find(kDataKey);
  return found == header.environment.end() ? "unknown" : found->second;
}

std::set<std::string> as_set(const std::vector<std::string>& keys) {
  return {keys.begin(), keys.end()};
}

void require_same_run(const std::filesystem::path& file, const CheckpointHeader& saved, const CheckpointHeader& mine,
                      const Settings& settings) {
  if (data_of(saved) != data_of(mine)) {
    if (!allows_other_images(settings.resume)) {
      fail(ExitCode::kData,
           "{} was written by a run on other training images (sha256 {}, now {}); restore them, allow it with --set "
           "resume.allow=[data], or start from scratch in another folder with --output DIR",
           file.string(), data_of(saved), data_of(mine));
    }
    log_warning("{}: other training images (sha256 {} -> {}), as resume.allow says", file.string(), data_of(saved),
                data_of(mine));
  }
  const auto before = settings_from_string(saved.config_yaml, file.string());
  std::set<std::string> allowed;
  for (const std::string& entry : settings.resume.allow) allowed.merge(as_set(keys_named_by(entry)));
  std::string refused, accepted, keys;
  for (const auto& d : compare_for_resume(before, settings)) {
    const bool is_allowed = allowed.contains(d.key);
    std::string& list = is_allowed ? accepted : refused;
    list += fmt::format("{}{}: {} -> {}", list.empty() ? "" : ", ", d.key, d.saved, d.now);
    if (!is_allowed) keys += (keys.empty() ? "" : ",") + d.key;
  }
  if (!refused.empty()) {
    fail(ExitCode::kUsage,
         "{} was written by a run with other settings ({}); restore them, allow it with --set resume.allow=[{}], or "
         "start from scratch in another folder with --output DIR",
         file.string(), refused, keys);
  }
  if (!accepted.empty()) log_warning("{}: {}, as resume.allow says", file.string(), accepted);
}

// The weights that a run started from are part of its mathematics. Their file is not read again; it may be gone.
void require_same_start(const std::filesystem::path& file, const CheckpointHeader& saved,
                        const std::string& init_from) {
  const auto hash = saved.environment.find(kInitKey);
  const bool from_file = hash != saved.environment.end();
  if (from_file == !init_from.empty()) return;
  fail(ExitCode::kUsage,
       "{} was written by a run that started from {}; {}, or start from scratch in another folder with --output DIR",
       file.string(), from_file ? fmt::format("the weights of a file (sha256 {})", hash->second) : "random weights",
       from_file ? "give model.init_from as then" : "leave model.init_from out");
}

// Not every processor has Winograd convolutions, and direct ones give other bits.
void require_same_convolutions(const std::filesystem::path& file, const CheckpointHeader& saved,
                               const CheckpointHeader& mine, const Settings& settings) {
  const auto before = saved.environment.find(kPlansKey), now = mine.environment.find(kPlansKey);
  if (before == saved.environment.end() || now == mine.environment.end()) return;
  const bool asked_for_other =
      settings_from_string(saved.config_yaml, file.string()).model.convolution != settings.model.convolution;
  if (asked_for_other || !lack_winograd_of(read_plan_names(before->second), read_plan_names(now->second)))
    return;  // asked_for_other: require_same_run() decides
  constexpr const char* kKey = "model.convolution";
  for (const std::string& entry : settings.resume.allow) {
    const auto keys = keys_named_by(entry);
    if (std::find(keys.begin(), keys.end(), kKey) != keys.end()) return;  // warn_of_other_environment() reports it
  }
  fail(ExitCode::kDevice,
       "{} was computed with Winograd convolutions ({}), which this processor or its oneDNN does not have (here: {}); "
       "resume on such a processor, or allow direct ones: --set model.convolution=direct --set resume.allow=[{}]",
       file.string(), summarize_cpu_plans(before->second), summarize_cpu_plans(now->second), kKey);
}

}  // namespace

void check_resume(const std::filesystem::path& file, const CheckpointHeader& saved, const CheckpointHeader& mine,
                  const Settings& settings, bool on_cpu) {
  require_same_run(file, saved, mine, settings);
  require_same_start(file, saved, settings.model.init_from);
  if (on_cpu) require_same_convolutions(file, saved, mine, settings);
}

// Bits are promised for one build on one kind of processor: a resume elsewhere is allowed, but not in silence.
void warn_of_other_environment(const std::filesystem::path& file, const CheckpointHeader& saved,
                               const CheckpointHeader& mine) {
  for (const auto& [what, words] : {std::pair("program", "another version of the program"),
                                    {"libraries", "other libraries"},
                                    {"processor", "another processor"},
                                    {kPlansKey, "other convolution plans"}}) {
    const auto before = saved.environment.find(what), now = mine.environment.find(what);
    if (before == saved.environment.end() || now == mine.environment.end() || before->second == now->second) continue;
    log_warning(
        "{} was written with {} ({}, now {}): the run continues, but its bits may differ from those of an unbroken run",
        file.string(), words, before->second, now->second);
  }
}

}  // namespace simclr
