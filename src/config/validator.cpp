#include "src/config/validator.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string_view>

#include "kernels/common/error.h"
#include "kernels/common/numbers.h"
#include "src/config/enum_names.h"
#include "src/config/key_table.h"
#include "src/config/resolved.h"
#include "src/config/rules.h"

namespace simclr {

namespace {

bool is_power_of_two(int64_t value) {
  return value > 0 && std::has_single_bit<uint64_t>(value);
}

void check_run(const Settings& s, Rules& rules) {
  const std::string& name = s.run.name;
  if (rules.all_valid({"run.name"}) &&
      (name.empty() || name.find('/') != std::string::npos || name == "." || name == ".." || name.front() == ' ' ||
       name.back() == ' ' || name.size() > 200)) {
    rules.refuse("run.name", fmt::format("found \"{}\"; expected a plain folder name of 1..200 bytes, without / and "
                                         "without leading or trailing spaces (its parent folder is run.output_dir)",
                                         shown(name)));
  }
  if (rules.all_valid({"run.output_dir"}) && s.run.output_dir.empty()) {
    rules.refuse("run.output_dir", "found an empty string; expected a folder (. for the current one)");
  }
  if (rules.all_valid({"run.precision", "run.device"}) && s.run.precision == Precision::kTf32 &&
      s.run.device == DeviceChoice::kCpu) {
    rules.refuse(
        "run.precision",
        fmt::format("found tf32, which CPUs do not support, but {}; write fp32, or bf16 if the CPU supports it",
                    rules.state("run.device", s)));
  }
}

void check_data(const Settings& s, Rules& rules) {
  const bool synthetic = s.data.format == DataFormat::kSynthetic;
  if (rules.all_valid({"data.format", "data.path"})) {
    if (synthetic && !s.data.path.empty()) {
      rules.refuse("data.path", fmt::format("found \"{}\", but {}, which reads no files; remove the path, or set "
                                            "data.format to the format of the files, e.g. cifar10",
                                            shown(s.data.path), rules.state("data.format", s)));
    } else if (!synthetic && s.data.path.empty()) {
      rules.refuse("data.path", fmt::format("missing, but {}, which reads files; give their folder, e.g. --set "
                                            "data.path=DIR",
                                            rules.state("data.format", s)));
    }
  }
  if (synthetic && rules.all_valid({"data.format", "data.synthetic.train_images", "train.global_batch"}) &&
      s.data.synthetic.train_images < s.train.global_batch) {
    rules.refuse("data.synthetic.train_images",
                 fmt::format("found {}, fewer than {}; use at least {}", s.data.synthetic.train_images,
                             rules.describe("train.global_batch", s), s.train.global_batch));
  }
  if (synthetic && s.evaluate.knn.every_epochs > 0 &&
      rules.all_valid({"data.format", "data.synthetic.train_images", "evaluate.knn.k", "evaluate.knn.every_epochs"}) &&
      s.evaluate.knn.k > s.data.synthetic.train_images) {
    rules.refuse("evaluate.knn.k",
                 fmt::format("found {}, more neighbors than {}; use at most {}", s.evaluate.knn.k,
                             rules.describe("data.synthetic.train_images", s), s.data.synthetic.train_images));
  }
  if (rules.all_valid({"views.normalize.mean", "views.normalize.std"}) &&
      s.views.normalize.mean.size() != s.views.normalize.std.size()) {
    rules.refuse("views.normalize.mean",
                 fmt::format("has {} values, but {} has {}; give both, of equal length, or neither",
                             s.views.normalize.mean.size(), rules.describe("views.normalize.std", s),
                             s.views.normalize.std.size()));
  }
}

void check_model(const Settings& s, Rules& rules) {
  constexpr int kDepths[] = {10, 18, 34, 50};
  if (rules.all_valid({"model.encoder.depth"}) &&
      std::find(std::begin(kDepths), std::end(kDepths), s.model.encoder.depth) == std::end(kDepths)) {
    rules.refuse("model.encoder.depth", fmt::format("found {}; expected 10, 18, 34 or 50", s.model.encoder.depth));
  }
  constexpr int64_t kImagenetSide = 32;  // stem and stages reduce each side by a factor of 32
  if (rules.all_valid({"model.encoder.stem", "data.image_size"}) && s.model.encoder.stem == Stem::kImagenet &&
      s.data.image_size < kImagenetSide) {
    rules.refuse("data.image_size",
                 fmt::format("found {}, too small for {}; use at least {}, or set model.encoder.stem to cifar",
                             s.data.image_size, rules.describe("model.encoder.stem", s), kImagenetSide));
  }
  // The key has no effect on a GPU. With run.device: auto the device is not known here: the first layer checks it.
  if (rules.all_valid({"model.convolution", "run.precision", "run.device"}) &&
      s.model.convolution == ConvolutionAlgorithm::kWinograd && s.run.precision == Precision::kBf16 &&
      s.run.device == DeviceChoice::kCpu) {
    rules.refuse("model.convolution",
                 fmt::format("found winograd, which CPUs do not support in bf16, but {}; write auto or direct, or set "
                             "run.precision to fp32",
                             rules.state("run.precision", s)));
  }
}

void check_loss(const Settings& s, Rules& rules) {
  if (rules.all_valid({"loss.decoupled", "loss.margin"}) && s.loss.decoupled && s.loss.margin != 0.0) {
    rules.refuse("loss.margin", fmt::format("found {}, which has no effect on the gradient if {}; write 0",
                                            s.loss.margin, rules.state("loss.decoupled", s)));
  }
  if (rules.all_valid({"loss.products", "run.device", "loss.algorithm"}) && s.loss.products != DataType::kFloat32) {
    if (s.run.device == DeviceChoice::kCpu) {
      rules.refuse("loss.products", fmt::format("found {}, which this loss supports on GPUs only, but {}; write fp32",
                                                enum_name(s.loss.products), rules.state("run.device", s)));
    } else if (s.loss.algorithm != LossAlgorithm::kStreaming) {
      rules.refuse(
          "loss.products",
          fmt::format("found {}, which applies to streaming only, but {}; write fp32, or set loss.algorithm to "
                      "streaming",
                      enum_name(s.loss.products), rules.state("loss.algorithm", s)));
    }
  }
  // Options of the other loss that are off by default. Numbers that always have a value (the temperature, as the betas
  // of adamw) are ignored instead.
  const auto refuse_for_other_type = [&](LossType type, std::string_view key, bool is_on, std::string_view off) {
    if (is_on && s.loss.type != type && rules.all_valid({"loss.type", key})) {
      rules.refuse(key, fmt::format("found {}, which applies to {} only, but {}; write {}", find_key(key)->print(s),
                                    enum_name(type), rules.state("loss.type", s), off));
    }
  };
  refuse_for_other_type(LossType::kInfoNce, "loss.algorithm", s.loss.algorithm != LossAlgorithm::kAuto, "auto");
  refuse_for_other_type(LossType::kInfoNce, "loss.margin", s.loss.margin != 0.0, "0");
  refuse_for_other_type(LossType::kInfoNce, "loss.decoupled", s.loss.decoupled, "false");
  refuse_for_other_type(LossType::kBarlowTwins, "loss.scale", s.loss.scale != 1.0, "1");
}

void check_optimizer(const Settings& s, Rules& rules) {
  if (rules.all_valid({"optimizer.nesterov", "optimizer.type", "optimizer.momentum"}) && s.optimizer.nesterov) {
    if (s.optimizer.type != OptimizerType::kSgd) {
      rules.refuse("optimizer.nesterov", fmt::format("found true, which applies to sgd only, but {}; write false",
                                                     rules.state("optimizer.type", s)));
    } else if (s.optimizer.momentum == 0.0) {
      rules.refuse("optimizer.nesterov",
                   fmt::format("found true, which requires a momentum above 0, but {}; write false",
                               rules.state("optimizer.momentum", s)));
    }
  }
  if (rules.all_valid({"schedule.type", "schedule.milestones"})) {
    const bool steps = s.schedule.type == ScheduleType::kStep;
    if (steps && s.schedule.milestones.empty()) {
      rules.refuse("schedule.type",
                   fmt::format("found step, which requires milestones, but {}; give epochs, e.g. milestones: [60, 80]",
                               rules.state("schedule.milestones", s)));
    } else if (!steps && !s.schedule.milestones.empty()) {
      rules.refuse("schedule.milestones",
                   fmt::format("found {}, which applies to step only, but {}; write []",
                               find_key("schedule.milestones")->print(s), rules.state("schedule.type", s)));
    }
  }
  if (rules.all_valid({"schedule.warmup_epochs", "train.epochs", "train.max_steps"}) && s.train.max_steps == 0 &&
      s.schedule.warmup_epochs > as_double(s.train.epochs)) {
    rules.refuse("schedule.warmup_epochs",
                 fmt::format("found {}, longer than {}; use at most {}", s.schedule.warmup_epochs,
                             rules.describe("train.epochs", s), s.train.epochs));
  }
}

void check_train(const Settings& s, Rules& rules) {
  if (rules.all_valid({"train.shards"}) && !is_power_of_two(s.train.shards)) {
    const uint64_t below = std::bit_floor<uint64_t>(s.train.shards);
    rules.refuse("train.shards",
                 fmt::format("found {}; expected a power of two, e.g. {} or {}", s.train.shards, below, 2 * below));
  }
  if (rules.all_valid({"train.global_batch", "train.shards", "train.reduction"}) &&
      s.train.reduction == Reduction::kOrdered && s.train.global_batch % s.train.shards != 0) {
    const int64_t below = s.train.global_batch / s.train.shards * s.train.shards;
    const std::string near = below == 0 ? "" : fmt::format("{} or ", below);
    rules.refuse("train.global_batch", fmt::format("found {}, not a multiple of {}; use {}{}", s.train.global_batch,
                                                   rules.describe("train.shards", s), near, below + s.train.shards));
  }
}

void check_checkpoint(const Settings& s, Rules& rules) {
  if (rules.all_valid({"checkpoint.keep_best", "evaluate.knn.every_epochs"}) && s.checkpoint.keep_best &&
      s.evaluate.knn.every_epochs == 0) {
    rules.refuse("checkpoint.keep_best",
                 fmt::format("found true, which requires k-NN accuracies, but {}; set it to at least 1, or "
                             "write false here",
                             rules.state("evaluate.knn.every_epochs", s)));
  }
}

void check_resume(const Settings& s, Rules& rules) {
  if (!rules.all_valid({"resume.allow"})) return;
  for (const std::string& entry : s.resume.allow) {
    const std::vector<std::string> keys = keys_named_by(entry);
    const bool several = keys.size() > 1 && !is_section(entry);
    if (!keys.empty() && !several) continue;
    rules.refuse("resume.allow",
                 several ? fmt::format("found {}, which is ambiguous; write {}", shown(entry), fmt::join(keys, " or "))
                 : find_key(entry) != nullptr
                     ? fmt::format("found {}, which may always change at a resume; remove it", entry)
                     : fmt::format("found {}, which is not a key or a section; did you mean {}?", shown(entry),
                                   nearest_key(entry)));
    return;
  }
}

}  // namespace

void find_errors(const Settings& settings, const KeyOrigins& origins, std::set<std::string, std::less<>> invalid,
                 ConfigErrors& errors) {
  Rules rules(origins, std::move(invalid), errors);
  for (const Key& key : all_keys()) {
    if (!rules.all_valid({key.path})) continue;
    if (const std::string problem = key.check(settings); !problem.empty()) {
      rules.refuse(key.path, fmt::format("{}; expected {}", problem, key.description()));
    }
  }
  check_run(settings, rules);
  check_data(settings, rules);
  check_model(settings, rules);
  check_loss(settings, rules);
  check_optimizer(settings, rules);
  check_train(settings, rules);
  check_checkpoint(settings, rules);
  check_resume(settings, rules);
}

void validate(const Settings& settings, const KeyOrigins& origins) {
  ConfigErrors errors;
  find_errors(settings, origins, {}, errors);
  errors.raise_if_any();
}

std::vector<int64_t> allowed_rank_counts(const Settings& settings) {
  const bool ordered = settings.train.reduction == Reduction::kOrdered;
  const int64_t divided = ordered ? settings.train.shards : settings.train.global_batch;
  std::vector<int64_t> counts;
  for (int64_t ranks = 1; ranks <= divided; ++ranks) {
    if (divided % ranks == 0) counts.push_back(ranks);  // divisors of a power of two are powers of two
  }
  return counts;
}

void validate_ranks(const Settings& settings, int ranks, const KeyOrigins& origins) {
  SIMCLR_CHECK(ranks >= 1, "{} ranks", ranks);
  std::vector<int64_t> counts = allowed_rank_counts(settings);
  if (std::find(counts.begin(), counts.end(), ranks) != counts.end()) return;

  constexpr size_t kMaxListed = 12;  // those nearest to the requested number
  std::stable_sort(counts.begin(), counts.end(),
                   [&](int64_t a, int64_t b) { return std::abs(a - ranks) < std::abs(b - ranks); });
  counts.resize(std::min(counts.size(), kMaxListed));
  std::sort(counts.begin(), counts.end());

  const bool ordered = settings.train.reduction == Reduction::kOrdered;
  const std::string_view key = ordered ? "train.shards" : "train.global_batch";
  ConfigErrors errors;
  Rules rules(origins, {}, errors);
  const std::string rule = ordered
                               ? fmt::format("{} ranks cannot share {} shards equally", ranks, settings.train.shards)
                               : fmt::format("{} ranks cannot share a global batch of {} images equally", ranks,
                                             settings.train.global_batch);
  rules.refuse(key, fmt::format("{}; use one of these numbers of ranks: {}", rule, fmt::join(counts, ", ")));
  errors.raise_if_any();
}

}  // namespace simclr
