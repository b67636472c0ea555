#include "src/train/state_io.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <span>

#include "kernels/optimizer_update/optimizer_update.h"
#include "src/base/log.h"
#include "src/comm/agreement.h"
#include "src/config/loader.h"
#include "src/config/resolved.h"

namespace simclr {
namespace {

std::string data_of(const CheckpointHeader& header) {
  const auto found = header.environment.find("data_sha256");
  return found == header.environment.end() ? "unknown" : found->second;
}

void require_same_run(const std::filesystem::path& file, const CheckpointHeader& saved, const CheckpointHeader& mine,
                      const Settings& settings) {
  if (data_of(saved) != data_of(mine)) {
    fail(ExitCode::kData,
         "{} was written by a run on other training pictures (sha256 {}, now {}); restore them, or start anew in "
         "another "
         "folder with --output DIR",
         file.string(), data_of(saved), data_of(mine));
  }
  const auto before = settings_from_string(saved.config_yaml, file.string());
  const auto differences = compare_for_resume(before, settings);
  if (differences.empty()) return;
  std::string list;
  for (const auto& d : differences)
    list += fmt::format("{}{}: {} -> {}", list.empty() ? "" : ", ", d.key, d.saved, d.now);
  fail(ExitCode::kUsage,
       "{} was written by a run with other settings ({}); restore them, or start anew in another folder with --output "
       "DIR",
       file.string(), list);
}

// Bits are promised for one build on one kind of processor: a resume elsewhere is allowed, but not in silence.
void warn_of_other_surroundings(const std::filesystem::path& file, const CheckpointHeader& saved,
                                const CheckpointHeader& mine) {
  for (const char* what : {"program", "libraries", "processor"}) {
    const auto before = saved.environment.find(what), now = mine.environment.find(what);
    if (before == saved.environment.end() || now == mine.environment.end() || before->second == now->second) continue;
    log_warning(
        "{} was written with another {} ({}, now {}): the run goes on, but its bits may differ from an unbroken one",
        file.string(), what, before->second, now->second);
  }
}

}  // namespace

StateIo::StateIo(CheckpointStore store, CheckpointHeader header, Model& model, const Optimizer& optimizer,
                 Collectives& collectives, Beat beat)
    : store_(std::move(store)), header_(std::move(header)), collectives_(collectives), beat_(std::move(beat)) {
  for (const auto& p : model.store().parameters()) tensors_.push_back({p.name, TensorType::kFloat32, p.shape, p.value});
  for (const auto& b : model.store().buffers()) tensors_.push_back({b.name, TensorType::kFloat32, b.shape, b.value});
  for (const auto& t : optimizer.state()) tensors_.push_back({t.name, TensorType::kFloat32, t.shape, t.data});
}

std::string StateIo::weights_hash() const {
  return weights_sha256(tensors_, beat_);
}

uint64_t StateIo::state_hash() const {
  uint64_t hash = 14695981039346656037ull;  // FNV-1a over 64-bit words: fast, and any differing bit changes it
  for (const auto& t : tensors_) {
    const auto* words = static_cast<const uint32_t*>(t.data);
    for (int64_t i = 0; i < elements_of(t.shape); ++i) hash = (hash ^ words[i]) * 1099511628211ull;
    beat_();
  }
  return hash;
}

bool StateIo::is_finite(const Exec& exec) const {
  int flag = 0;
  for (const auto& t : tensors_) {
    flag_non_finite(exec, {static_cast<const float*>(t.data), static_cast<size_t>(elements_of(t.shape))}, &flag);
    beat_();
  }
  return flag == 0;
}

void StateIo::save(int64_t step, int64_t epoch) {
  if (collectives_.rank() != 0) return;
  header_.step = step;
  header_.epoch = epoch;
  last_checkpoint_ = "checkpoints/" + store_.save({header_, tensors_}).filename().string();
  log_info("checkpoint {}", last_checkpoint_);
}

int64_t StateIo::load_on_root(const std::string& resume, const Settings& settings) {
  for (const auto& name : store_.prepare()) log_warning("removed {}, left by an ended process", name);
  const ResumePoint point = store_.resolve(resume);
  for (const auto& warning : point.warnings) log_warning("{}", warning);
  if (!point.path) return 0;
  require_same_run(*point.path, point.header, header_, settings);
  load_checkpoint(*point.path, tensors_, LoadWhat::kEverything, beat_);
  for (const auto& path : store_.set_aside_after(point.header.step))
    log_warning("set aside as {}: it lies after the step that this run goes on from", path.string());
  warn_of_other_surroundings(*point.path, point.header, header_);
  const bool own = point.path->parent_path().filename() == "checkpoints" && resume == "auto";
  last_checkpoint_ = own ? "checkpoints/" + point.path->filename().string() : point.path->string();
  log_info("resumed from {} after step {}", point.path->string(), point.header.step);
  return point.header.step;
}

int64_t StateIo::resume(const std::string& resume, const Settings& settings) {
  int64_t step =
      agree_on(collectives_, [&] { return collectives_.rank() == 0 ? load_on_root(resume, settings) : int64_t{0}; });
  collectives_.broadcast(std::as_writable_bytes(std::span(&step, 1)), 0);
  if (step > 0) {
    for (const auto& t : tensors_)
      collectives_.broadcast(std::span(static_cast<float*>(t.data), static_cast<size_t>(elements_of(t.shape))), 0);
  }
  return step;
}

}  // namespace simclr
