#include "src/config/validator.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "kernels/common/error.h"
#include "src/config/enum_names.h"
#include "src/config/key_table.h"
#include "src/config/resolved.h"

namespace simclr {

namespace {

// One pass over the rules: which keys may be judged, where they were given, what was found.
class Rules {
 public:
  Rules(const KeyOrigins& origins, std::set<std::string, std::less<>> faulty, Faults& faults)
      : origins_(origins), faulty_(std::move(faulty)), faults_(faults) {}

  // False when one of the keys already has a fault of its own.
  bool can_judge(std::initializer_list<std::string_view> keys) const {
    return std::none_of(keys.begin(), keys.end(), [&](std::string_view key) {
      SIMCLR_CHECK(find_key(key) != nullptr, "a rule speaks of {}, which is no key", key);
      return faulty_.contains(key);
    });
  }

  void refuse(std::string_view key, std::string_view text) {
    SIMCLR_CHECK(find_key(key) != nullptr, "a rule speaks of {}, which is no key", key);
    const auto origin = origins_.find(key);
    faults_.add(origin == origins_.end() ? "" : origin->second, key, text);
    faulty_.insert(std::string(key));
  }

  // "train.shards (8, run.yaml:3)": another key of a contradiction, with its value and place.
  std::string other(std::string_view key, const Settings& settings) const {
    const auto origin = origins_.find(key);
    return fmt::format("{} ({}, {})", key, find_key(key)->print(settings),
                       origin == origins_.end() ? "the default" : origin->second);
  }

 private:
  const KeyOrigins& origins_;
  std::set<std::string, std::less<>> faulty_;
  Faults& faults_;
};

bool is_power_of_two(int64_t value) {
  return value > 0 && std::has_single_bit(static_cast<uint64_t>(value));
}

void check_run(const Settings& s, Rules& rules) {
  const std::string& name = s.run.name;
  if (rules.can_judge({"run.name"}) &&
      (name.empty() || name.find('/') != std::string::npos || name == "." || name == ".." || name.front() == ' ' ||
       name.back() == ' ' || name.size() > 200)) {
    rules.refuse("run.name", fmt::format("found \"{}\"; expected a plain folder name of 1..200 bytes, without / and "
                                         "without spaces at its ends (the folder above it is run.output_dir)",
                                         shown(name)));
  }
  if (rules.can_judge({"run.output_dir"}) && s.run.output_dir.empty()) {
    rules.refuse("run.output_dir", "found an empty text; expected a folder (. is the current one)");
  }
  if (rules.can_judge({"run.precision", "run.device"}) && s.run.precision == Precision::kTf32 &&
      s.run.device == DeviceChoice::kCpu) {
    rules.refuse("run.precision",
                 "found tf32 with run.device: cpu; CPUs compute in fp32, and some in bf16; write one of them");
  }
}

void check_data(const Settings& s, Rules& rules) {
  const bool synthetic = s.data.format == DataFormat::kSynthetic;
  if (rules.can_judge({"data.format", "data.path"})) {
    if (synthetic && !s.data.path.empty()) {
      rules.refuse("data.path", fmt::format("found \"{}\", but {} draws its own images; remove the path or name "
                                            "another format, such as cifar10",
                                            shown(s.data.path), rules.other("data.format", s)));
    } else if (!synthetic && s.data.path.empty()) {
      rules.refuse("data.path", fmt::format("missing, but {} reads files; give the folder, e.g. --set data.path=DIR",
                                            rules.other("data.format", s)));
    }
  }
  if (synthetic && rules.can_judge({"data.format", "data.synthetic.train_images", "train.global_batch"}) &&
      s.data.synthetic.train_images < s.train.global_batch) {
    rules.refuse("data.synthetic.train_images",
                 fmt::format("found {}, fewer than one {}", s.data.synthetic.train_images,
                             rules.other("train.global_batch", s)));
  }
  if (synthetic && s.evaluate.knn.every_epochs > 0 &&
      rules.can_judge({"data.format", "data.synthetic.train_images", "evaluate.knn.k", "evaluate.knn.every_epochs"}) &&
      s.evaluate.knn.k > s.data.synthetic.train_images) {
    rules.refuse("evaluate.knn.k", fmt::format("found {}, more neighbors than {}", s.evaluate.knn.k,
                                               rules.other("data.synthetic.train_images", s)));
  }
  if (rules.can_judge({"views.normalize.mean", "views.normalize.std"}) &&
      s.views.normalize.mean.size() != s.views.normalize.std.size()) {
    rules.refuse("views.normalize.mean",
                 fmt::format("has {} values, {} has {}; give both or neither", s.views.normalize.mean.size(),
                             rules.other("views.normalize.std", s), s.views.normalize.std.size()));
  }
}

void check_model(const Settings& s, Rules& rules) {
  constexpr int kDepths[] = {10, 18, 34, 50};
  if (rules.can_judge({"model.encoder.depth"}) &&
      std::find(std::begin(kDepths), std::end(kDepths), s.model.encoder.depth) == std::end(kDepths)) {
    rules.refuse("model.encoder.depth", fmt::format("found {}; expected 10, 18, 34 or 50", s.model.encoder.depth));
  }
  constexpr int64_t kImagenetSide = 32;  // stem and stages shrink the image 32 times
  if (rules.can_judge({"model.encoder.stem", "data.image_size"}) && s.model.encoder.stem == Stem::kImagenet &&
      s.data.image_size < kImagenetSide) {
    rules.refuse("data.image_size",
                 fmt::format("found {}, too small for {}; expected at least {}, or stem: cifar", s.data.image_size,
                             rules.other("model.encoder.stem", s), kImagenetSide));
  }
  // On a GPU the key says nothing; with run.device: auto the first layer finds out.
  if (rules.can_judge({"model.convolution", "run.precision", "run.device"}) &&
      s.model.convolution == ConvolutionAlgorithm::kWinograd && s.run.precision == Precision::kBf16 &&
      s.run.device == DeviceChoice::kCpu) {
    rules.refuse("model.convolution",
                 fmt::format("found winograd, which CPUs do not have in bf16; here is {}; write auto or direct, or "
                             "precision: fp32",
                             rules.other("run.precision", s)));
  }
}

void check_loss(const Settings& s, Rules& rules) {
  if (rules.can_judge({"loss.decoupled", "loss.margin"}) && s.loss.decoupled && s.loss.margin != 0.0) {
    rules.refuse("loss.margin", fmt::format("found {}, which has no gradient with {}; write 0", s.loss.margin,
                                            rules.other("loss.decoupled", s)));
  }
  if (rules.can_judge({"loss.products", "run.device", "loss.algorithm"}) && s.loss.products != DataType::kFloat32) {
    if (s.run.device == DeviceChoice::kCpu) {
      rules.refuse("loss.products", fmt::format("found {} with run.device: cpu; CPUs compute in fp32 only; write fp32",
                                                enum_name(s.loss.products)));
    } else if (s.loss.algorithm != LossAlgorithm::kStreaming) {
      rules.refuse("loss.products",
                   fmt::format("found {}, which is for streaming only; here is {}; write fp32, or algorithm: streaming",
                               enum_name(s.loss.products), rules.other("loss.algorithm", s)));
    }
  }
  // What is off by default and was switched on for the other objective. Numbers that always have a value, such as the
  // temperature, are left out of account as the betas of adamw are.
  const auto refuse_for_other_type = [&](LossType type, std::string_view key, bool is_on, std::string_view off) {
    if (is_on && s.loss.type != type && rules.can_judge({"loss.type", key})) {
      rules.refuse(key, fmt::format("found {}, which is for {} only; here is {}; write {}", find_key(key)->print(s),
                                    enum_name(type), rules.other("loss.type", s), off));
    }
  };
  refuse_for_other_type(LossType::kInfoNce, "loss.algorithm", s.loss.algorithm != LossAlgorithm::kAuto, "auto");
  refuse_for_other_type(LossType::kInfoNce, "loss.margin", s.loss.margin != 0.0, "0");
  refuse_for_other_type(LossType::kInfoNce, "loss.decoupled", s.loss.decoupled, "false");
  refuse_for_other_type(LossType::kBarlowTwins, "loss.scale", s.loss.scale != 1.0, "1");
}

void check_optimizer(const Settings& s, Rules& rules) {
  if (rules.can_judge({"optimizer.nesterov", "optimizer.type", "optimizer.momentum"}) && s.optimizer.nesterov) {
    if (s.optimizer.type != OptimizerType::kSgd) {
      rules.refuse("optimizer.nesterov",
                   fmt::format("found true, which is for sgd only; here is {}", rules.other("optimizer.type", s)));
    } else if (s.optimizer.momentum == 0.0) {
      rules.refuse("optimizer.nesterov",
                   fmt::format("found true, which needs a momentum; here is {}", rules.other("optimizer.momentum", s)));
    }
  }
  if (rules.can_judge({"schedule.type", "schedule.milestones"})) {
    const bool steps = s.schedule.type == ScheduleType::kStep;
    if (steps && s.schedule.milestones.empty()) {
      rules.refuse("schedule.type",
                   fmt::format("found step, but {} names no epoch; give some, e.g. milestones: [60, 80]",
                               rules.other("schedule.milestones", s)));
    } else if (!steps && !s.schedule.milestones.empty()) {
      rules.refuse("schedule.milestones",
                   fmt::format("found {}, which is for step only; here is {}; write []",
                               find_key("schedule.milestones")->print(s), rules.other("schedule.type", s)));
    }
  }
  if (rules.can_judge({"schedule.warmup_epochs", "train.epochs", "train.max_steps"}) && s.train.max_steps == 0 &&
      s.schedule.warmup_epochs > static_cast<double>(s.train.epochs)) {
    rules.refuse("schedule.warmup_epochs",
                 fmt::format("found {}, longer than {}", s.schedule.warmup_epochs, rules.other("train.epochs", s)));
  }
}

void check_train(const Settings& s, Rules& rules) {
  if (rules.can_judge({"train.shards"}) && !is_power_of_two(s.train.shards)) {
    const auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(s.train.shards)));
    rules.refuse("train.shards",
                 fmt::format("found {}; expected a power of two, such as {} or {}", s.train.shards, below, 2 * below));
  }
  if (rules.can_judge({"train.global_batch", "train.shards", "train.reduction"}) &&
      s.train.reduction == Reduction::kOrdered && s.train.global_batch % s.train.shards != 0) {
    const int64_t below = s.train.global_batch / s.train.shards * s.train.shards;
    const std::string near = below == 0 ? "" : fmt::format("{} or ", below);
    rules.refuse("train.global_batch",
                 fmt::format("found {}, which {} does not divide; {}{} would do", s.train.global_batch,
                             rules.other("train.shards", s), near, below + s.train.shards));
  }
}

void check_checkpoint(const Settings& s, Rules& rules) {
  if (rules.can_judge({"checkpoint.keep_best", "evaluate.knn.every_epochs"}) && s.checkpoint.keep_best &&
      s.evaluate.knn.every_epochs == 0) {
    rules.refuse("checkpoint.keep_best", fmt::format("found true, but {} never says which is the best",
                                                     rules.other("evaluate.knn.every_epochs", s)));
  }
}

void check_resume(const Settings& s, Rules& rules) {
  if (!rules.can_judge({"resume.allow"})) return;
  for (const std::string& entry : s.resume.allow) {
    const std::vector<std::string> keys = keys_named_by(entry);
    const bool several = keys.size() > 1 && !is_section(entry);
    if (!keys.empty() && !several) continue;
    rules.refuse("resume.allow",
                 several ? fmt::format("found {}, which may be {}; write the one that is meant", shown(entry),
                                       fmt::join(keys, " or "))
                 : find_key(entry) != nullptr
                     ? fmt::format("found {}, which a resume may find changed in any case; remove it", entry)
                     : fmt::format("found {}, which is no key and no section; the nearest is {}", shown(entry),
                                   nearest_key(entry)));
    return;
  }
}

}  // namespace

void find_faults(const Settings& settings, const KeyOrigins& origins, std::set<std::string, std::less<>> faulty,
                 Faults& faults) {
  Rules rules(origins, std::move(faulty), faults);
  for (const Key& key : all_keys()) {
    if (!rules.can_judge({key.path})) continue;
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
  Faults faults;
  find_faults(settings, origins, {}, faults);
  faults.raise_if_any();
}

std::vector<int64_t> allowed_rank_counts(const Settings& settings) {
  const bool ordered = settings.train.reduction == Reduction::kOrdered;
  const int64_t divided = ordered ? settings.train.shards : settings.train.global_batch;
  std::vector<int64_t> counts;
  for (int64_t ranks = 1; ranks <= divided; ++ranks) {
    if (divided % ranks == 0) counts.push_back(ranks);  // divisors of the shards are powers of two, as the shards are
  }
  return counts;
}

void validate_ranks(const Settings& settings, int ranks, const KeyOrigins& origins) {
  SIMCLR_CHECK(ranks >= 1, "{} ranks", ranks);
  std::vector<int64_t> counts = allowed_rank_counts(settings);
  if (std::find(counts.begin(), counts.end(), ranks) != counts.end()) return;

  constexpr size_t kMostListed = 12;  // those nearest to what was asked for
  std::stable_sort(counts.begin(), counts.end(),
                   [&](int64_t a, int64_t b) { return std::abs(a - ranks) < std::abs(b - ranks); });
  counts.resize(std::min(counts.size(), kMostListed));
  std::sort(counts.begin(), counts.end());

  const bool ordered = settings.train.reduction == Reduction::kOrdered;
  const std::string_view key = ordered ? "train.shards" : "train.global_batch";
  Faults faults;
  Rules rules(origins, {}, faults);
  const std::string rule =
      ordered ? fmt::format("{} ranks cannot share {} shards: reduction ordered wants a power of two that divides them",
                            ranks, settings.train.shards)
              : fmt::format("{} ranks cannot share a global batch of {} images: their number must divide it", ranks,
                            settings.train.global_batch);
  rules.refuse(key, fmt::format("{}; these rank counts would do: {}", rule, fmt::join(counts, ", ")));
  faults.raise_if_any();
}

}  // namespace simclr
