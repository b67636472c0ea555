// The printed configuration loads again and gives the same settings; hash and comparison see exactly the mathematics.
#include "src/config/resolved.h"

#include <random>
#include <set>

#include "src/config/key_table.h"
#include "tests/config/config_support.h"
#include "tests/config/key_values.h"

namespace simclr {
namespace {

using testing::HasSubstr;

TEST(Resolved, LearningRateFollowsTheScaling) {
  Settings settings;
  settings.optimizer.base_lr = 0.3;
  settings.train.global_batch = 1024;
  settings.optimizer.lr_scaling = LrScaling::kNone;
  EXPECT_EQ(scaled_learning_rate(settings), 0.3);
  settings.optimizer.lr_scaling = LrScaling::kLinear;
  EXPECT_DOUBLE_EQ(scaled_learning_rate(settings), 1.2);
  settings.optimizer.lr_scaling = LrScaling::kSqrt;
  EXPECT_DOUBLE_EQ(scaled_learning_rate(settings), 9.6);
}

TEST(Resolved, ShardsFollowTheReduction) {
  Settings settings;
  EXPECT_EQ(shard_count(settings, 4), 8);
  EXPECT_EQ(images_per_shard(settings, 4), 64);
  settings.train.reduction = Reduction::kFastest;
  EXPECT_EQ(shard_count(settings, 4), 4);
  EXPECT_EQ(images_per_shard(settings, 4), 128);
  EXPECT_THROW(images_per_shard(settings, 3), Error);
}

TEST(Resolved, AutoIsOneAlgorithmOnceTheDeviceIsKnown) {
  Settings named;
  for (const bool on_gpu : {false, true}) {
    const LossAlgorithm expected = on_gpu ? LossAlgorithm::kEinsum : LossAlgorithm::kStreaming;
    named.loss.algorithm = expected;
    EXPECT_EQ(resolve_for_device({}, on_gpu), named);
    EXPECT_EQ(config_hash(resolve_for_device({}, on_gpu)), config_hash(named));
    named.loss.algorithm = LossAlgorithm::kEinsum;
    EXPECT_EQ(resolve_for_device(named, on_gpu), named);
  }
}

TEST(Resolved, BarlowTwinsHasNoAlgorithm) {
  Settings settings;
  settings.loss.type = LossType::kBarlowTwins;
  for (const bool on_gpu : {false, true}) EXPECT_EQ(resolve_for_device(settings, on_gpu), settings);
  const std::string text = print_config(settings);
  EXPECT_THAT(text, HasSubstr("\n  type: barlow_twins\n  algorithm: auto  # not used by type: barlow_twins\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("negatives")));
  EXPECT_THAT(print_config({}), HasSubstr("\n  lambda: 0.005  # not used by type: infonce\n"));
}

TEST(Resolved, PrintedConfigurationHasDerivedValuesAsComments) {
  Settings settings;
  settings.train.global_batch = 1024;
  const std::string text = print_config(settings);
  EXPECT_THAT(text, HasSubstr("\noptimizer:\n  type: sgd\n  base_lr: 0.03  # scaled: 0.12\n"));
  EXPECT_THAT(text, HasSubstr("\n  global_batch: 1024  # per anchor: 1 positive, 2046 negatives\n"
                              "  shards: 8  # 128 images per shard\n"));
  EXPECT_THAT(text, HasSubstr("\n  algorithm: auto  # streaming on a CPU, einsum on a GPU\n"));
  EXPECT_THAT(text, HasSubstr("views:\n  crop_scale: [0.2, 1]\n"));
  EXPECT_THAT(text, HasSubstr("  jitter:\n    probability: 0.8\n"));
  EXPECT_THAT(text, testing::StartsWith("run:\n  name: \"simclr\"\n"));
  settings.train.reduction = Reduction::kFastest;
  EXPECT_THAT(print_config(settings), HasSubstr("  shards: 8  # not used by reduction: fastest"));
}

// Settings that validate() accepts, every key drawn at random.
class RandomSettings {
 public:
  explicit RandomSettings(unsigned seed) : random_(seed) {}

  Settings draw() {
    Settings s;
    s.run = {.name = text() + "x",
             .output_dir = "/" + text(),
             .seed = random_(),
             .device = pick(DeviceChoice::kAuto, DeviceChoice::kCuda),
             .threads = pick(0, whole(1, 1024))};
    s.train = {.global_batch = 64 * whole(1, 100),
               .shards = 1 << whole(0, 6),
               .epochs = whole(100, 1000000),
               .max_steps = whole(0, 1000000000),
               .stop_at_step = whole(0, 1000000000),
               .reduction = pick(Reduction::kOrdered, Reduction::kFastest),
               .check_every = whole(0, 1000),
               .timeout_s = real(1e-3, 1e6)};
    s.data.image_size = whole(32, 512);
    s.data.workers = whole(-1, 256);
    s.data.on_error = pick(OnDataError::kFail, OnDataError::kSkip);
    s.data.max_pixels = whole(1, 1000000000);
    s.data.synthetic = {.train_images = whole(100000, 1000000), .test_images = whole(1, 1000000)};
    if (whole(0, 1) == 1) s.data.format = DataFormat::kCifar10;
    if (s.data.format == DataFormat::kCifar10) s.data.path = "C:\\dir # \"" + text();
    s.views.crop_scale = {real(1e-6, 0.5), real(0.5, 1)};
    s.views.crop_ratio = {real(0.05, 1), real(1, 20)};
    s.views.flip = real(0, 1);
    s.views.grayscale = real(0, 1);
    s.views.jitter = {real(0, 1), real(0, 10), real(0, 10), real(0, 10), real(0, 0.5)};
    s.views.blur = {.probability = real(0, 1), .sigma = {real(1e-3, 1), real(1, 100)}};
    if (whole(0, 1) == 1) {
      s.views.normalize = {{real(0, 1), real(0, 1), real(0, 1)}, {real(1e-3, 1), real(1, 10), real(1e-9, 1)}};
    }
    s.model.encoder = {.depth = pick(pick(10, 18), pick(34, 50)),
                       .width = whole(1, 4096),
                       .stem = pick(Stem::kCifar, Stem::kImagenet),
                       .zero_init_residual = flag()};
    s.model.projector = {whole(1, 4), whole(1, 65536), whole(1, 65536), flag()};
    s.model.batch_norm = {pick(BatchNormViews::kJoint, BatchNormViews::kSeparate), real(1e-3, 1), real(1e-12, 1)};
    s.loss = {.type = pick(LossType::kInfoNce, LossType::kBarlowTwins),
              .temperature = real(0.005, 100),
              .lambda = real(0, 1e3)};
    if (s.loss.type == LossType::kInfoNce) {
      s.loss.algorithm = pick(LossAlgorithm::kEinsum, LossAlgorithm::kStreaming);
      if (s.loss.algorithm == LossAlgorithm::kStreaming) {
        s.loss.products = pick(DataType::kFloat32, DataType::kBfloat16);
      }
      s.loss.decoupled = flag();
      if (!s.loss.decoupled) s.loss.margin = real(0, 1.99);
    } else {
      s.loss.scale = real(1e-9, 1e3);
    }
    s.optimizer = {.type = pick(OptimizerType::kSgd, pick(OptimizerType::kAdamW, OptimizerType::kLars)),
                   .base_lr = real(0, 1e-5),
                   .lr_scaling = pick(LrScaling::kNone, LrScaling::kSqrt),
                   .momentum = real(0.1, 0.999),
                   .betas = {real(0, 0.99), real(0, 0.999)},
                   .eps = real(1e-300, 1e-200),
                   .weight_decay = real(0, 1e20),
                   .trust_coefficient = real(1e-6, 1),
                   .decay_1d = flag()};
    s.optimizer.nesterov = s.optimizer.type == OptimizerType::kSgd && flag();
    s.schedule = {real(0, 100), pick(ScheduleType::kCosine, ScheduleType::kConstant)};
    if (flag()) s.schedule = {real(0, 100), ScheduleType::kStep, {real(1e-3, 1), real(1, 1e6)}, real(1e-3, 1)};
    s.model.convolution = pick(ConvolutionAlgorithm::kDirect, ConvolutionAlgorithm::kWinograd);
    if (flag()) s.model.init_from = "dir/" + text();
    s.checkpoint = {whole(0, 1000000), whole(0, 1000000000), real(0, 1e6), whole(1, 1000000), flag()};
    s.train.max_minutes = real(0, 1e6);
    if (whole(0, 1) == 1) s.resume.allow = {"epochs", "views.jitter"};
    s.evaluate.knn = {whole(s.checkpoint.keep_best ? 1 : 0, 1000000), whole(1, 100000), real(0.005, 100)};
    s.log = {whole(1, 1000000000), flag(), flag()};
    return s;
  }

 private:
  int whole(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  double real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }
  bool flag() { return whole(0, 1) == 1; }
  template <typename T>
  T pick(T a, T b) {
    return flag() ? a : b;
  }
  std::string text() {
    const std::vector<std::string> parts = {"a",        " ", "#", ": ", "\"", "'", "\\",
                                            "\xC3\xBC", "-", "{", "]",  "&",  "%", "~"};
    std::string result = "t";
    for (int i = whole(0, 8); i > 0; --i) result += parts[whole(0, 13)];
    return result;
  }

  std::mt19937_64 random_;
};

TEST(Resolved, PrintedConfigurationLoadsAgainAndIsEqual) {
  RandomSettings random(7);
  std::set<std::string> changed;
  for (int trial = 0; trial < 200; ++trial) {
    const Settings settings = random.draw();
    const std::string text = print_config(settings);
    const Settings again = settings_from_string(text, "printed");
    ASSERT_EQ(again, settings) << text;
    EXPECT_EQ(print_config(again), text);
    EXPECT_EQ(config_hash(again), config_hash(settings));
    for (const Key& key : all_keys()) {
      if (key.print(settings) != key.print(Settings())) changed.insert(key.path);
    }
  }
  // What has only one accepted value in this build cannot be drawn.
  EXPECT_EQ(changed.size() + 1, all_keys().size()) << "run.precision";
  EXPECT_EQ(settings_from_string(print_config(Settings()), "printed"), Settings());
}

// Keys that may change between a run and its resumption, or differ between ranks, without a change of the numbers.
const std::set<std::string> kExecutionKeys = {
    "run.name",
    "run.output_dir",
    "run.device",
    "run.threads",
    "data.path",  // the images count, not where they lie
    "data.workers",
    "data.on_error",
    "train.stop_at_step",
    "train.check_every",
    "train.timeout_s",
    "train.max_minutes",
    "checkpoint.every_epochs",
    "checkpoint.every_steps",
    "checkpoint.every_minutes",
    "checkpoint.keep",
    "checkpoint.keep_best",
    "resume.allow",
    "evaluate.knn.every_epochs",
    "model.init_from",
    "evaluate.knn.k",
    "evaluate.knn.temperature",
    "log.every_steps",
    "log.tensorboard",
    "log.report",
};

// settings with one key set to its other value, without looking at the rest.
Settings with_other_value(const Key& key) {
  const std::string& text = key_values().at(key.path).other;
  ConfigValue value = {.kind = ConfigValue::Kind::kScalar, .text = text};
  if (text.starts_with('[')) {
    value = {.kind = ConfigValue::Kind::kList};
    for (size_t begin = 1; begin < text.size();) {
      const size_t end = text.find_first_of(",]", begin);
      value.items.push_back({.kind = ConfigValue::Kind::kScalar, .text = text.substr(begin, end - begin)});
      begin = end + (text[end] == ',' ? 2 : 1);
    }
  }
  Settings settings;
  EXPECT_EQ(key.assign(value, settings), "") << key.path;
  return settings;
}

TEST(Resolved, HashAndComparisonSeeTheMathematicsOfARunAndNothingElse) {
  Settings base;
  for (const Key& key : all_keys()) {
    const Settings other = with_other_value(key);
    ASSERT_NE(key.print(other), key.print(base)) << key.path;
    const std::vector<SettingDifference> differences = compare_for_resume(base, other);
    if (kExecutionKeys.count(key.path) > 0) {
      EXPECT_EQ(config_hash(other), config_hash(base)) << key.path;
      EXPECT_TRUE(differences.empty()) << key.path;
    } else {
      EXPECT_NE(config_hash(other), config_hash(base)) << key.path;
      ASSERT_EQ(differences.size(), 1u) << key.path;
      EXPECT_EQ(differences[0].key, key.path);
      EXPECT_EQ(differences[0].saved, key.print(base));
      EXPECT_EQ(differences[0].now, key.print(other));
    }
  }
  for (const std::string& path : kExecutionKeys) EXPECT_NE(find_key(path), nullptr) << path;
}

TEST(Resolved, DifferencesComeInTheOrderOfTheStructs) {
  Settings now;
  now.train.shards = 16;
  now.run.seed = 9;
  const std::vector<SettingDifference> differences = compare_for_resume(Settings(), now);
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].key, "run.seed");
  EXPECT_EQ(differences[0].now, "9");
  EXPECT_EQ(differences[1].key, "train.shards");
  EXPECT_EQ(differences[1].saved, "8");
}

TEST(Resolved, AnEntryOfResumeAllowNamesKeysByPathSectionOrLastWord) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(keys_named_by("train.epochs"), Names{"train.epochs"});
  EXPECT_EQ(keys_named_by("epochs"), Names{"train.epochs"});
  EXPECT_EQ(keys_named_by("schedule"),
            (Names{"schedule.warmup_epochs", "schedule.type", "schedule.milestones", "schedule.gamma"}));
  EXPECT_EQ(keys_named_by("jitter"), Names{});
  EXPECT_EQ(keys_named_by("views.jitter").size(), 5u);
  EXPECT_EQ(keys_named_by("type").size(), 3u);
  EXPECT_EQ(keys_named_by("checkpoint"), Names{}) << "no part of the mathematics";
  EXPECT_EQ(keys_named_by(""), Names{});
  EXPECT_TRUE(allows_other_images({.allow = {"epochs", "data"}}));
  EXPECT_FALSE(allows_other_images({.allow = {"data.format"}}));
}

TEST(Resolved, HashIsSha256InHex) {
  const std::string hash = config_hash(Settings());
  EXPECT_EQ(hash.size(), 64u);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(config_hash(Settings()), hash);
}

}  // namespace
}  // namespace simclr
