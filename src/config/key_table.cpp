#include "src/config/key_table.h"

#include <cmath>
#include <string_view>

#include "src/config/key_types.h"

namespace simclr {

namespace {

constexpr ValueRange kProbability = {.low = 0, .high = 1};
constexpr ValueRange kPositive = {.low = 0, .low_open = true};
constexpr ValueRange kNotNegative = {.low = 0};
constexpr ValueRange kTemperature = {.low = 0.005, .high = 100};
constexpr ValueRange kSteps = {.low = 0, .high = 1e9};
constexpr ValueRange kEpochs = {.low = 0, .high = 1e6};
constexpr ValueRange kMinutes = {.low = 0, .high = 1e6};
constexpr ValueRange kStrength = {.low = 0, .high = 10};
constexpr KeyEffect kExecution = KeyEffect::kExecution;

// The path of a key is the path of its member.
#define SIMCLR_KEY(member)               \
#member, [](auto& settings) -> auto& { \
    return settings.member;              \
  }

std::vector<Key> make_keys() {
  return {
      make_key(SIMCLR_KEY(run.name), {.unit = "a plain folder name", .effect = kExecution}),
      make_key(SIMCLR_KEY(run.output_dir), {.unit = "a folder", .effect = kExecution}),
      make_key(SIMCLR_KEY(run.seed)),
      make_key(SIMCLR_KEY(run.device), {.effect = kExecution}),
      make_key(SIMCLR_KEY(run.precision)),
      make_key(SIMCLR_KEY(run.threads),
               {.range = {.low = 1, .high = 1024}, .unit = "per rank", .effect = kExecution, .auto_value = 0}),

      make_key(SIMCLR_KEY(data.format)),
      make_key(SIMCLR_KEY(data.path), {.unit = "a folder, or the file of packed", .effect = KeyEffect::kExecution}),
      make_key(SIMCLR_KEY(data.image_size), {.range = {.low = 8, .high = 512}, .unit = "pixels"}),
      make_key(SIMCLR_KEY(data.workers),
               {.range = {.low = 0, .high = 256}, .unit = "threads per rank", .effect = kExecution, .auto_value = -1}),
      make_key(SIMCLR_KEY(data.on_error), {.effect = kExecution}),
      make_key(SIMCLR_KEY(data.max_pixels), {.range = {.low = 1, .high = 1e9}, .unit = "pixels"}),
      make_key(SIMCLR_KEY(data.synthetic.train_images), {.range = {.low = 1, .high = 1e6}, .unit = "images"}),
      make_key(SIMCLR_KEY(data.synthetic.test_images), {.range = {.low = 1, .high = 1e6}, .unit = "images"}),

      make_key(
          SIMCLR_KEY(views.crop_scale),
          {.range = {.low = 0, .high = 1, .low_open = true}, .unit = "share of the image's area", .ordered = true}),
      make_key(SIMCLR_KEY(views.crop_ratio),
               {.range = {.low = 0.05, .high = 20}, .unit = "width / height", .ordered = true}),
      make_key(SIMCLR_KEY(views.flip), {.range = kProbability, .unit = "probability"}),
      make_key(SIMCLR_KEY(views.jitter.probability), {.range = kProbability, .unit = "probability"}),
      make_key(SIMCLR_KEY(views.jitter.brightness), {.range = kStrength}),
      make_key(SIMCLR_KEY(views.jitter.contrast), {.range = kStrength}),
      make_key(SIMCLR_KEY(views.jitter.saturation), {.range = kStrength}),
      make_key(SIMCLR_KEY(views.jitter.hue), {.range = {.low = 0, .high = 0.5}, .unit = "turns"}),
      make_key(SIMCLR_KEY(views.grayscale), {.range = kProbability, .unit = "probability"}),
      make_key(SIMCLR_KEY(views.blur.probability), {.range = kProbability, .unit = "probability"}),
      make_key(SIMCLR_KEY(views.blur.sigma),
               {.range = {.low = 0, .high = 100, .low_open = true}, .unit = "pixels", .ordered = true}),
      make_key(SIMCLR_KEY(views.normalize.mean), {.range = {.low = 0, .high = 1}, .unit = "per channel"}),
      make_key(SIMCLR_KEY(views.normalize.std),
               {.range = {.low = 0, .high = 10, .low_open = true}, .unit = "per channel"}),

      make_key(SIMCLR_KEY(model.encoder.depth), {.range = {.low = 10, .high = 50}, .unit = "layers: 10, 18, 34 or 50"}),
      make_key(SIMCLR_KEY(model.encoder.width), {.range = {.low = 1, .high = 4096}, .unit = "channels"}),
      make_key(SIMCLR_KEY(model.encoder.stem)),
      make_key(SIMCLR_KEY(model.encoder.zero_init_residual)),
      make_key(SIMCLR_KEY(model.projector.layers), {.range = {.low = 1, .high = 4}, .unit = "layers"}),
      make_key(SIMCLR_KEY(model.projector.hidden), {.range = {.low = 1, .high = 65536}, .unit = "columns"}),
      make_key(SIMCLR_KEY(model.projector.output), {.range = {.low = 1, .high = 65536}, .unit = "columns"}),
      make_key(SIMCLR_KEY(model.projector.batch_norm)),
      make_key(SIMCLR_KEY(model.batch_norm.views)),
      make_key(SIMCLR_KEY(model.batch_norm.momentum), {.range = {.low = 0, .high = 1, .low_open = true}}),
      make_key(SIMCLR_KEY(model.batch_norm.eps), {.range = {.low = 0, .high = 1, .low_open = true}}),
      make_key(SIMCLR_KEY(model.convolution)),
      make_key(SIMCLR_KEY(model.init_from), {.unit = "a safetensors file", .effect = kExecution}),

      make_key(SIMCLR_KEY(loss.type)),
      make_key(SIMCLR_KEY(loss.algorithm)),
      make_key(SIMCLR_KEY(loss.temperature), {.range = kTemperature}),
      make_key(SIMCLR_KEY(loss.margin), {.range = {.low = 0, .high = 2, .high_open = true}}),
      make_key(SIMCLR_KEY(loss.decoupled)),
      make_key(SIMCLR_KEY(loss.products)),
      make_key(SIMCLR_KEY(loss.lambda), {.range = kNotNegative}),
      make_key(SIMCLR_KEY(loss.scale), {.range = kPositive}),

      make_key(SIMCLR_KEY(optimizer.type)),
      make_key(SIMCLR_KEY(optimizer.base_lr), {.range = kNotNegative}),
      make_key(SIMCLR_KEY(optimizer.lr_scaling)),
      make_key(SIMCLR_KEY(optimizer.momentum), {.range = {.low = 0, .high = 1, .high_open = true}}),
      make_key(SIMCLR_KEY(optimizer.nesterov)),
      make_key(SIMCLR_KEY(optimizer.betas), {.range = {.low = 0, .high = 1, .high_open = true}}),
      make_key(SIMCLR_KEY(optimizer.eps), {.range = kPositive}),
      make_key(SIMCLR_KEY(optimizer.weight_decay), {.range = kNotNegative}),
      make_key(SIMCLR_KEY(optimizer.trust_coefficient), {.range = kPositive}),
      make_key(SIMCLR_KEY(optimizer.decay_1d)),

      make_key(SIMCLR_KEY(schedule.warmup_epochs), {.range = kEpochs, .unit = "epochs"}),
      make_key(SIMCLR_KEY(schedule.type)),
      make_key(
          SIMCLR_KEY(schedule.milestones),
          {.range = {.low = 0, .high = 1e6, .low_open = true}, .unit = "epochs", .ordered = true, .any_length = true}),
      make_key(SIMCLR_KEY(schedule.gamma), {.range = {.low = 0, .high = 1, .low_open = true}}),

      make_key(SIMCLR_KEY(train.global_batch), {.range = {.low = 2, .high = 1048576}, .unit = "images"}),
      make_key(SIMCLR_KEY(train.shards), {.range = {.low = 1, .high = 1024}, .unit = "a power of two"}),
      make_key(SIMCLR_KEY(train.epochs), {.range = {.low = 1, .high = 1e6}, .unit = "epochs"}),
      make_key(SIMCLR_KEY(train.max_steps), {.range = kSteps, .unit = "steps"}),
      make_key(SIMCLR_KEY(train.stop_at_step), {.range = kSteps, .unit = "steps", .effect = kExecution}),
      make_key(SIMCLR_KEY(train.reduction)),
      make_key(SIMCLR_KEY(train.check_every), {.range = kSteps, .unit = "steps", .effect = kExecution}),
      make_key(SIMCLR_KEY(train.timeout_s),
               {.range = {.low = 0, .high = 1e6, .low_open = true}, .unit = "seconds", .effect = kExecution}),
      make_key(SIMCLR_KEY(train.max_minutes), {.range = kMinutes, .unit = "minutes", .effect = kExecution}),

      make_key(SIMCLR_KEY(checkpoint.every_epochs), {.range = kEpochs, .unit = "epochs", .effect = kExecution}),
      make_key(SIMCLR_KEY(checkpoint.every_steps), {.range = kSteps, .unit = "steps", .effect = kExecution}),
      make_key(SIMCLR_KEY(checkpoint.every_minutes), {.range = kMinutes, .unit = "minutes", .effect = kExecution}),
      make_key(SIMCLR_KEY(checkpoint.keep), {.range = {.low = 1, .high = 1e6}, .unit = "files", .effect = kExecution}),
      make_key(SIMCLR_KEY(checkpoint.keep_best), {.effect = kExecution}),

      make_key(SIMCLR_KEY(resume.allow), {.unit = "names of keys or sections, or data", .effect = kExecution}),

      make_key(SIMCLR_KEY(evaluate.knn.every_epochs), {.range = kEpochs, .unit = "epochs", .effect = kExecution}),
      make_key(SIMCLR_KEY(evaluate.knn.k),
               {.range = {.low = 1, .high = 1e6}, .unit = "neighbors", .effect = kExecution}),
      make_key(SIMCLR_KEY(evaluate.knn.temperature), {.range = kTemperature, .effect = kExecution}),

      make_key(SIMCLR_KEY(log.every_steps), {.range = {.low = 1, .high = 1e9}, .unit = "steps", .effect = kExecution}),
      make_key(SIMCLR_KEY(log.tensorboard), {.effect = kExecution}),
      make_key(SIMCLR_KEY(log.report), {.effect = kExecution}),
  };
}

#undef SIMCLR_KEY

}  // namespace

bool ValueRange::contains(double value) const {
  return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
}

std::string ValueRange::text() const {
  const bool has_low = std::isfinite(low);
  const bool has_high = std::isfinite(high);
  const auto number = [](double x) {
    return std::abs(x) < 1e15 && x == std::floor(x) ? fmt::format("{:.0f}", x) : print_number(x);
  };
  if (has_low && has_high && !low_open && !high_open) return number(low) + ".." + number(high);
  std::string text;
  if (has_low) text = (low_open ? "> " : ">= ") + number(low);
  if (has_high) text += (text.empty() ? "" : ", ") + std::string(high_open ? "< " : "<= ") + number(high);
  return text;
}

const std::vector<Key>& all_keys() {
  static const std::vector<Key> keys = make_keys();
  return keys;
}

const Key* find_key(std::string_view path) {
  for (const Key& key : all_keys()) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

bool is_section(std::string_view path) {
  for (const Key& key : all_keys()) {
    if (key.path.size() > path.size() && key.path[path.size()] == '.' && key.path.starts_with(path)) return true;
  }
  return false;
}

}  // namespace simclr
