#include "src/train/state_io.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>

#include "kernels/fingerprint/fingerprint.h"
#include "kernels/optimizer_update/optimizer_update.h"
#include "src/base/log.h"
#include "src/checkpoint/start_weights.h"
#include "src/comm/agreement.h"
#include "src/train/resume_check.h"

namespace simclr {
namespace {

std::span<const float> values_of(const NamedTensor& t) {
  return std::span(static_cast<const float*>(t.data), elements_of(t.shape));
}

constexpr std::chrono::milliseconds kWait(100);  // between two beats while a checkpoint is being written
constexpr size_t kMostNamed = 3;                 // tensors, of those in which ranks differ
constexpr const char* kBestKey = "knn_top1";     // in the environment of best.safetensors

std::vector<NamedTensor> state_tensors(Model& model, const Optimizer& optimizer) {
  std::vector<NamedTensor> tensors = named_tensors(model.store());
  for (const auto& t : optimizer.state()) tensors.push_back({t.name, TensorType::kFloat32, t.shape, t.data});
  return tensors;
}

}  // namespace

StateIo::StateIo(CheckpointStore store, CheckpointHeader header, Model& model, const Optimizer& optimizer,
                 const RunContext& run, Beat beat)
    : store_(std::move(store)),
      header_(std::move(header)),
      context_(run.context),
      collectives_(run.host),
      beat_(std::move(beat)),
      tensors_(state_tensors(model, optimizer)),
      on_host_(context_.device(), tensors_, HostTensors::Memory::kShared),
      state_hash_(context_.allocate_elements<uint64_t>(1)),
      non_finite_(context_.allocate_elements<int>(1)) {}

const std::vector<NamedTensor>& StateIo::download() {
  on_host_.download(beat_);
  return on_host_.all();
}

std::string StateIo::weights_hash() {
  return weights_sha256(download(), beat_);
}

const uint64_t* StateIo::queue_state_hash() {
  uint64_t* hash = state_hash_.as<uint64_t>().data();
  context_.device().zero(hash, sizeof *hash);
  int64_t first = 0;
  for (const auto& t : tensors_) {
    add_fingerprint(context_.exec(), values_of(t), first, hash);
    first += elements_of(t.shape);
    beat_();
  }
  return hash;
}

std::string StateIo::describe_drift() {
  std::vector<uint64_t> mine;  // [tensors]
  for (const auto& t : tensors_) {
    uint64_t* hash = state_hash_.as<uint64_t>().data();
    context_.device().zero(hash, sizeof *hash);
    add_fingerprint(context_.exec(), values_of(t), 0, hash);
    context_.device().download(&mine.emplace_back(), hash, sizeof *hash);
    beat_();
  }
  std::vector<uint64_t> all(mine.size() * collectives_.size());  // [W, tensors]
  collectives_.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  std::string text;
  size_t named = 0, more = 0;
  for (size_t t = 0; t < mine.size(); ++t) {
    std::string ranks;
    int count = 0;
    for (size_t r = 1; r < all.size() / mine.size(); ++r) {
      if (all[r * mine.size() + t] == all[t]) continue;
      ranks += fmt::format("{}{}", count++ == 0 ? "" : ", ", r);
    }
    if (count == 0) continue;
    if (named == kMostNamed && ++more > 0) continue;
    text +=
        fmt::format("{}{} on {} {}", named++ == 0 ? "" : "; ", tensors_[t].name, count == 1 ? "rank" : "ranks", ranks);
  }
  return more == 0 ? text : fmt::format("{}; and {} more", text, more);
}

bool StateIo::is_finite() {
  int* flag = non_finite_.as<int>().data();
  context_.device().zero(flag, sizeof *flag);
  for (const auto& t : tensors_) {
    flag_non_finite(context_.exec(), values_of(t), flag);
    beat_();
  }
  int found = 0;
  context_.device().download(&found, flag, sizeof found);
  return found == 0;
}

void StateIo::begin_save(int64_t step, int64_t epoch, bool evaluation_due) {
  if (collectives_.rank() != 0) return;
  finish_save();
  if (!saved_) saved_.emplace(context_.device(), tensors_, HostTensors::Memory::kOwn);
  saved_->download(beat_);
  header_.step = step;
  header_.epoch = epoch;
  header_.environment.erase(kEvaluationDueKey);
  if (evaluation_due) header_.environment[kEvaluationDueKey] = "yes";
  saving_ = std::async(
      std::launch::async,
      [store = store_.without_beat(), state = TrainingState{header_, saved_->all()}] { return store.save(state); });
}

void StateIo::poll_save() {
  if (!saving_.valid() || saving_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  last_checkpoint_ = "checkpoints/" + saving_.get().filename().string();
  log_info("checkpoint {}", last_checkpoint_);
  flush_log();
}

void StateIo::finish_save() {
  while (saving_.valid() && saving_.wait_for(kWait) != std::future_status::ready) beat_();
  poll_save();
}

void StateIo::keep_if_best(int64_t step, int64_t epoch, double accuracy) {
  if (collectives_.rank() != 0 || accuracy <= best_accuracy_) return;
  CheckpointHeader header = header_;
  header.step = step;
  header.epoch = epoch;
  header.environment[kBestKey] = fmt::format("{}", accuracy);
  store_.save_best({std::move(header), download()});
  best_accuracy_ = accuracy;
  log_info("step {} has the best k-NN accuracy so far: {}", step, store_.best_path().filename().string());
}

void StateIo::find_best(int64_t step) {
  std::vector<std::string> warnings;
  const auto header = store_.find_best(step, warnings);
  for (const auto& warning : warnings) log_warning("{}", warning);
  if (!header) return;
  const auto accuracy = header->environment.find(kBestKey);
  if (accuracy != header->environment.end()) best_accuracy_ = std::strtod(accuracy->second.c_str(), nullptr);
}

int64_t StateIo::load_on_root(const std::string& resume, const Settings& settings) {
  for (const auto& name : store_.prepare()) log_warning("removed {}, left by an ended process", name);
  const ResumePoint point = store_.resolve(resume);
  for (const auto& warning : point.warnings) log_warning("{}", warning);
  if (!point.path) {
    find_best(0);
    return 0;
  }
  check_resume(*point.path, point.header, header_, settings, context_.device().is_cpu());
  if (const auto hash = point.header.environment.find(kInitKey); hash != point.header.environment.end())
    header_.environment[kInitKey] = hash->second;
  load_checkpoint(*point.path, on_host_.all(), LoadWhat::kEverything, beat_);
  for (const auto& path : store_.set_aside_after(point.header.step))
    log_warning("set aside as {}: it is from a later step than this run resumes from", path.string());
  evaluation_due_ = point.header.environment.contains(kEvaluationDueKey);
  find_best(point.header.step);
  warn_of_other_environment(*point.path, point.header, header_);
  const bool own = point.path->parent_path().filename() == "checkpoints" && resume == "auto";
  last_checkpoint_ = own ? "checkpoints/" + point.path->filename().string() : point.path->string();
  log_info("resumed from {} after step {}", point.path->string(), point.header.step);
  return point.header.step;
}

int64_t StateIo::resume(const std::string& resume, const Settings& settings) {
  int64_t step =
      agree_on(collectives_, [&] { return collectives_.rank() == 0 ? load_on_root(resume, settings) : int64_t{0}; });
  collectives_.broadcast(std::as_writable_bytes(std::span(&step, 1)), 0);
  collectives_.broadcast(std::as_writable_bytes(std::span(&evaluation_due_, 1)), 0);
  if (step > 0) on_host_.broadcast(collectives_, beat_);
  return step;
}

void StateIo::start_from(const std::filesystem::path& file) {
  agree_on(collectives_, [&] {
    if (collectives_.rank() != 0) return;
    const auto start = load_start_weights(file, download(), beat_);
    header_.environment[kInitKey] = start.sha256;
    log_info("starts from {}: encoder{} (weights sha256 {}){}", file.string(),
             start.projector ? " and projector" : "; the projector is random", start.sha256,
             start.left_out.empty() ? "" : fmt::format("; left out: {}", fmt::join(start.left_out, ", ")));
  });
  on_host_.broadcast(collectives_, beat_);
}

}  // namespace simclr
