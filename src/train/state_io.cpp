#include "src/train/state_io.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <set>
#include <span>

#include "kernels/fingerprint/fingerprint.h"
#include "kernels/optimizer_update/optimizer_update.h"
#include "src/base/log.h"
#include "src/checkpoint/start_weights.h"
#include "src/comm/agreement.h"
#include "src/config/loader.h"
#include "src/config/resolved.h"
#include "src/train/recorded_plans.h"

namespace simclr {
namespace {

std::span<const float> values_of(const NamedTensor& t) {
  return {static_cast<const float*>(t.data), static_cast<size_t>(elements_of(t.shape))};
}

std::string data_of(const CheckpointHeader& header) {
  const auto found = header.environment.find("data_sha256");
  return found == header.environment.end() ? "unknown" : found->second;
}

constexpr std::chrono::milliseconds kWait(100);  // between two beats while a checkpoint is being written
constexpr size_t kMostNamed = 3;                 // tensors, of those in which ranks differ
constexpr const char* kBestKey = "knn_top1";     // in the environment of best.safetensors
constexpr const char* kInitKey = "init_sha256";  // in that of a run with model.init_from: the weights it started from

std::set<std::string> as_set(const std::vector<std::string>& keys) {
  return {keys.begin(), keys.end()};
}

void require_same_run(const std::filesystem::path& file, const CheckpointHeader& saved, const CheckpointHeader& mine,
                      const Settings& settings) {
  if (data_of(saved) != data_of(mine)) {
    if (!allows_other_images(settings.resume)) {
      fail(ExitCode::kData,
           "{} was written by a run on other training images (sha256 {}, now {}); restore them, allow it with --set "
           "resume.allow=[data], or start anew in another folder with --output DIR",
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
    const bool good = allowed.contains(d.key);
    std::string& list = good ? accepted : refused;
    list += fmt::format("{}{}: {} -> {}", list.empty() ? "" : ", ", d.key, d.saved, d.now);
    if (!good) keys += (keys.empty() ? "" : ",") + d.key;
  }
  if (!refused.empty()) {
    fail(ExitCode::kUsage,
         "{} was written by a run with other settings ({}); restore them, allow it with --set resume.allow=[{}], or "
         "start anew in another folder with --output DIR",
         file.string(), refused, keys);
  }
  if (!accepted.empty()) log_warning("{}: {}, as resume.allow says", file.string(), accepted);
}

// What a run started from is part of its mathematics; the file is not read again, and may be gone by now.
void require_same_start(const std::filesystem::path& file, const CheckpointHeader& saved,
                        const std::string& init_from) {
  const auto hash = saved.environment.find(kInitKey);
  const bool from_file = hash != saved.environment.end();
  if (from_file == !init_from.empty()) return;
  fail(ExitCode::kUsage,
       "{} was written by a run that started from {}; {}, or start anew in another folder with --output DIR",
       file.string(), from_file ? fmt::format("the weights of a file (sha256 {})", hash->second) : "random weights",
       from_file ? "give model.init_from as then" : "leave model.init_from out");
}

// Winograd convolutions are not to be had everywhere, and direct ones give other bits.
void require_same_convolutions(const std::filesystem::path& file, const CheckpointHeader& saved,
                               const CheckpointHeader& mine, const Settings& settings) {
  const auto before = saved.environment.find(kPlansKey), now = mine.environment.find(kPlansKey);
  if (before == saved.environment.end() || now == mine.environment.end()) return;
  const bool other_wish =
      settings_from_string(saved.config_yaml, file.string()).model.convolution != settings.model.convolution;
  if (other_wish || !lack_winograd_of(read_plan_names(before->second), read_plan_names(now->second)))
    return;  // other_wish: require_same_run()'s matter
  constexpr const char* kKey = "model.convolution";
  for (const std::string& entry : settings.resume.allow) {
    const auto keys = keys_named_by(entry);
    if (std::find(keys.begin(), keys.end(), kKey) != keys.end()) return;  // told by warn_of_other_surroundings()
  }
  fail(ExitCode::kDevice,
       "{} was computed with Winograd convolutions ({}), which this processor or its oneDNN does not have (here: {}); "
       "go on where it was, or without them: --set model.convolution=direct --set resume.allow=[{}]",
       file.string(), summarize_cpu_plans(before->second), summarize_cpu_plans(now->second), kKey);
}

// Bits are promised for one build on one kind of processor: a resume elsewhere is allowed, but not in silence.
void warn_of_other_surroundings(const std::filesystem::path& file, const CheckpointHeader& saved,
                                const CheckpointHeader& mine) {
  for (const char* what : {"program", "libraries", "processor", kPlansKey}) {
    const auto before = saved.environment.find(what), now = mine.environment.find(what);
    if (before == saved.environment.end() || now == mine.environment.end() || before->second == now->second) continue;
    log_warning(
        "{} was written with another {} ({}, now {}): the run goes on, but its bits may differ from an unbroken one",
        file.string(), what, before->second, now->second);
  }
}

}  // namespace

StateIo::StateIo(CheckpointStore store, CheckpointHeader header, Model& model, const Optimizer& optimizer,
                 const RunContext& run, Beat beat)
    : store_(std::move(store)),
      header_(std::move(header)),
      context_(run.context),
      collectives_(run.host),
      beat_(std::move(beat)),
      state_hash_(context_.allocate_elements<uint64_t>(1)),
      non_finite_(context_.allocate_elements<int>(1)) {
  for (const auto& p : model.store().parameters()) tensors_.push_back({p.name, TensorType::kFloat32, p.shape, p.value});
  for (const auto& b : model.store().buffers()) tensors_.push_back({b.name, TensorType::kFloat32, b.shape, b.value});
  for (const auto& t : optimizer.state()) tensors_.push_back({t.name, TensorType::kFloat32, t.shape, t.data});
  host_tensors_ = tensors_;
  if (!context_.device().is_cpu()) host_tensors_ = make_host_copy(host_memory_);
}

std::vector<NamedTensor> StateIo::make_host_copy(Buffer& memory) const {
  int64_t bytes = 0;
  for (const auto& t : tensors_) bytes += t.bytes();
  memory = Buffer(bytes);
  std::vector<NamedTensor> copy = tensors_;
  std::byte* next = memory.data();
  for (auto& t : copy) {
    t.data = next;
    next += t.bytes();
  }
  return copy;
}

const std::vector<NamedTensor>& StateIo::download() {
  if (context_.device().is_cpu()) return tensors_;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    context_.device().download(host_tensors_[i].data, tensors_[i].data, static_cast<size_t>(tensors_[i].bytes()));
    beat_();
  }
  return host_tensors_;
}

void StateIo::upload() {
  if (context_.device().is_cpu()) return;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    context_.device().upload(tensors_[i].data, host_tensors_[i].data, static_cast<size_t>(tensors_[i].bytes()));
    beat_();
  }
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
  std::vector<uint64_t> all(mine.size() * static_cast<size_t>(collectives_.size()));  // [W, tensors]
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

void StateIo::begin_save(int64_t step, int64_t epoch) {
  if (collectives_.rank() != 0) return;
  finish_save();
  if (saved_tensors_.empty()) saved_tensors_ = make_host_copy(saved_memory_);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    context_.device().download(saved_tensors_[i].data, tensors_[i].data, static_cast<size_t>(tensors_[i].bytes()));
    beat_();
  }
  header_.step = step;
  header_.epoch = epoch;
  saving_ = std::async(
      std::launch::async,
      [store = store_.without_beat(), state = TrainingState{header_, saved_tensors_}] { return store.save(state); });
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

void StateIo::look_for_best(int64_t step) {
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
    look_for_best(0);
    return 0;
  }
  require_same_run(*point.path, point.header, header_, settings);
  require_same_start(*point.path, point.header, settings.model.init_from);
  if (context_.device().is_cpu()) require_same_convolutions(*point.path, point.header, header_, settings);
  if (const auto hash = point.header.environment.find(kInitKey); hash != point.header.environment.end())
    header_.environment[kInitKey] = hash->second;
  load_checkpoint(*point.path, host_tensors_, LoadWhat::kEverything, beat_);
  for (const auto& path : store_.set_aside_after(point.header.step))
    log_warning("set aside as {}: it lies after the step that this run goes on from", path.string());
  look_for_best(point.header.step);
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
  if (step > 0) broadcast();
  return step;
}

void StateIo::broadcast() {
  for (const auto& t : host_tensors_)
    collectives_.broadcast(std::span(static_cast<float*>(t.data), elements_of(t.shape)), 0);
  upload();
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
  broadcast();
}

}  // namespace simclr
