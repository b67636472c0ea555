// Ranges and contradictions: the borders of each range, one message per rule, and the rank counts that will do.
#include "src/config/validator.h"

#include <limits>

#include "src/config/key_table.h"
#include "tests/config/config_support.h"

namespace simclr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Border {
  std::string key;
  std::vector<std::string> good, bad;
  std::vector<std::string> with = {};  // other overrides that the good values need
};

TEST(Validator, BordersOfEveryRange) {
  const std::vector<Border> borders = {
      {"run.threads", {"1", "1024", "auto"}, {"0", "1025", "-1"}},
      {"data.image_size", {"8", "512"}, {"7", "513"}},
      {"data.workers", {"0", "256", "auto"}, {"-1", "257"}},
      {"data.synthetic.train_images", {"512", "1000000"}, {"0", "1000001"}},
      {"data.synthetic.test_images", {"1", "1000000"}, {"0", "1000001"}},
      {"views.crop_scale", {"[1e-3, 1]", "[1, 1]"}, {"[0, 1]", "[0.5, 1.01]", "[0.6, 0.5]"}},
      {"views.crop_ratio", {"[0.05, 20]", "[1, 1]"}, {"[0, 1]", "[1, 21]", "[2, 1]"}},
      {"data.max_pixels", {"1", "1000000000"}, {"0", "1000000001"}},
      {"views.flip", {"0", "1"}, {"-0.1", "1.1"}},
      {"views.jitter.probability", {"0", "1"}, {"-0.1", "1.1"}},
      {"views.jitter.brightness", {"0", "10"}, {"-0.1", "10.1"}},
      {"views.jitter.contrast", {"0", "10"}, {"-0.1", "10.1"}},
      {"views.jitter.saturation", {"0", "10"}, {"-0.1", "10.1"}},
      {"views.jitter.hue", {"0", "0.5"}, {"-0.1", "0.51"}},
      {"views.grayscale", {"0", "1"}, {"-0.1", "1.1"}},
      {"views.blur.probability", {"0", "1"}, {"-0.1", "1.1"}},
      {"views.blur.sigma", {"[0.01, 100]"}, {"[0, 1]", "[1, 101]", "[2, 1]"}},
      {"views.normalize.mean", {"[0, 1, 0.5]"}, {"[0, 1.1, 0.5]", "[0.5]"}, {"views.normalize.std=[1, 1, 1]"}},
      {"views.normalize.std", {"[0.1, 10, 1]"}, {"[0, 1, 1]", "[1, 1]"}, {"views.normalize.mean=[0, 0, 0]"}},
      {"model.encoder.depth", {"10", "18", "34", "50"}, {"9", "12", "19", "51"}},
      {"model.encoder.width", {"1", "4096"}, {"0", "4097"}},
      {"model.projector.layers", {"1", "4"}, {"0", "5"}},
      {"model.projector.hidden", {"1", "65536"}, {"0", "65537"}},
      {"model.projector.output", {"1", "65536"}, {"0", "65537"}},
      {"model.batch_norm.momentum", {"0.001", "1"}, {"0", "1.1"}},
      {"model.batch_norm.eps", {"1e-12", "1"}, {"0", "2"}},
      {"loss.temperature", {"0.005", "100"}, {"0.004", "101", "0", "-1"}},
      {"loss.margin", {"0", "1.999"}, {"-0.1", "2"}},
      {"loss.lambda", {"0", "100"}, {"-1e-9"}},
      {"loss.scale", {"1e-9", "100"}, {"0", "-1"}, {"loss.type=barlow_twins"}},
      {"optimizer.base_lr", {"0", "100"}, {"-1e-9"}},
      {"optimizer.momentum", {"0", "0.999"}, {"-0.1", "1"}},
      {"optimizer.betas", {"[0, 0.999]", "[0.9, 0.1]"}, {"[0.9, 1]", "[-0.1, 0.9]"}},
      {"optimizer.eps", {"1e-300"}, {"0", "-1"}},
      {"optimizer.weight_decay", {"0", "1"}, {"-1e-9"}},
      {"optimizer.trust_coefficient", {"1e-9", "1"}, {"0", "-1"}},
      {"schedule.milestones", {"[0.5]", "[1, 2, 1000000]"}, {"[0]", "[2, 1]", "[2, 2]"}, {"schedule.type=step"}},
      {"schedule.gamma", {"1e-9", "1"}, {"0", "1.1"}},
      {"schedule.warmup_epochs", {"0", "0.5", "100"}, {"-1", "1000001"}},
      {"train.global_batch", {"2", "4096"}, {"1", "0", "-2", "1048577"}, {"train.shards=2"}},
      {"train.shards", {"1", "2", "512"}, {"0", "3", "6", "1025", "2048"}},
      {"train.epochs", {"1", "1000000"}, {"0", "1000001"}},
      {"train.max_steps", {"0", "1000000000"}, {"-1", "1000000001"}},
      {"train.stop_at_step", {"0", "1000000000"}, {"-1", "1000000001"}},
      {"train.check_every", {"0", "1000000000"}, {"-1", "1000000001"}},
      {"train.timeout_s", {"0.5", "1000000"}, {"0", "1000001"}},
      {"train.max_minutes", {"0", "0.5", "1000000"}, {"-1", "1000001"}},
      {"checkpoint.every_epochs", {"0", "1000000"}, {"-1", "1000001"}},
      {"checkpoint.every_steps", {"0", "1000000000"}, {"-1", "1000000001"}},
      {"checkpoint.every_minutes", {"0", "0.5", "1000000"}, {"-1", "1000001"}},
      {"checkpoint.keep", {"1", "1000000"}, {"0", "1000001"}},
      {"evaluate.knn.every_epochs", {"0", "1000000"}, {"-1", "1000001"}},
      {"evaluate.knn.k", {"1", "4096"}, {"0", "1000001"}},
      {"evaluate.knn.temperature", {"0.005", "100"}, {"0.004", "101"}},
      {"log.every_steps", {"1", "1000000000"}, {"0", "1000000001"}},
  };
  size_t ranged = 0;
  for (const Key& key : all_keys()) {
    const bool is_number = key.expected.find("number") != std::string::npos || key.expected.starts_with("integer");
    ranged += is_number && key.path != "run.seed" ? 1 : 0;  // any 64 bits are a seed
  }
  EXPECT_EQ(borders.size(), ranged);

  for (const Border& border : borders) {
    for (const bool good : {true, false}) {
      for (const std::string& value : good ? border.good : border.bad) {
        std::vector<std::string> overrides = border.with;
        overrides.push_back(border.key + "=" + value);
        if (good) {
          EXPECT_NO_THROW(load("{}", overrides)) << overrides.back();
        } else {
          EXPECT_THAT(load_refusal("{}", overrides), HasSubstr("--set: " + border.key + ": found "))
              << overrides.back();
        }
      }
    }
  }
}

struct Contradiction {
  std::string text, message;
};

TEST(Validator, ContradictionsNameBothKeysAndTheirPlaces) {
  const std::vector<Contradiction> cases = {
      {"train:\n  global_batch: 100\n  shards: 16\n",
       "c.yaml:2: train.global_batch: found 100, not a multiple of train.shards (16, c.yaml:3); use 96 or 112"},
      {"train:\n  global_batch: 4\n",
       "c.yaml:2: train.global_batch: found 4, not a multiple of train.shards (8, the default); use 8"},
      {"train:\n  shards: 1024\n",
       "train.global_batch: found 512, not a multiple of train.shards (1024, c.yaml:2); use 1024"},
      {"train:\n  shards: 6\n", "c.yaml:2: train.shards: found 6; expected a power of two, e.g. 4 or 8"},
      {"run:\n  name: a/b\n",
       "c.yaml:2: run.name: found \"a/b\"; expected a plain folder name of 1..200 bytes, without "
       "/ and without leading or trailing spaces (its parent folder is run.output_dir)"},
      {"run:\n  output_dir: \"\"\n",
       "c.yaml:2: run.output_dir: found an empty string; expected a folder (. for the current one)"},
      {"run:\n  device: cpu\n  precision: tf32\n",
       "c.yaml:3: run.precision: found tf32, which CPUs do not support, but run.device is cpu (c.yaml:2); write fp32, "
       "or "
       "bf16 if the CPU supports it"},
      {"data:\n  path: /data\n",
       "c.yaml:2: data.path: found \"/data\", but data.format is synthetic (the default), which reads no files; "
       "remove the path, or set data.format to the format of the files, e.g. cifar10"},
      {"data:\n  format: cifar10\n",
       "data.path: missing, but data.format is cifar10 (c.yaml:2), which reads files; give their "
       "folder, e.g. --set data.path=DIR"},
      {"data:\n  synthetic: {train_images: 500}\n",
       "c.yaml:2: data.synthetic.train_images: found 500, fewer than "
       "train.global_batch (512, the default); use at least 512"},
      {"evaluate:\n  knn: {k: 4097}\n",
       "c.yaml:2: evaluate.knn.k: found 4097, more neighbors than "
       "data.synthetic.train_images (4096, the default); use at most 4096"},
      {"views:\n  normalize: {mean: [0, 0, 0]}\n",
       "c.yaml:2: views.normalize.mean: has 3 values, but views.normalize.std "
       "([], the default) has 0; give both, of equal length, or neither"},
      {"model:\n  encoder: {stem: imagenet}\ndata: {image_size: 31}\n",
       "c.yaml:3: data.image_size: found 31, too small for model.encoder.stem (imagenet, c.yaml:2); use at least "
       "32, or set model.encoder.stem to cifar"},
      {"model:\n  convolution: winograd\nrun: {device: cpu, precision: bf16}\n",
       "c.yaml:2: model.convolution: found winograd, which CPUs do not support in bf16, but run.precision is bf16 "
       "(c.yaml:3); write auto or direct, or set run.precision to fp32"},
      {"loss:\n  decoupled: true\n  margin: 0.1\n",
       "c.yaml:3: loss.margin: found 0.1, which has no effect on the gradient if loss.decoupled is true (c.yaml:2); "
       "write 0"},
      {"loss:\n  products: bf16\n",
       "c.yaml:2: loss.products: found bf16, which applies to streaming only, but loss.algorithm is auto (the "
       "default); write fp32, or set loss.algorithm to streaming"},
      {"loss:\n  algorithm: streaming\n  products: bf16\nrun: {device: cpu}\n",
       "c.yaml:3: loss.products: found bf16, which this loss supports on GPUs only, but run.device is cpu (c.yaml:4); "
       "write fp32"},
      {"checkpoint:\n  keep_best: true\nevaluate:\n  knn: {every_epochs: 0}\n",
       "c.yaml:2: checkpoint.keep_best: found true, which requires k-NN accuracies, but evaluate.knn.every_epochs is 0 "
       "(c.yaml:4); set it to at least 1, or write false here"},
      {"resume:\n  allow: [epochs, type]\n",
       "c.yaml:2: resume.allow: found type, which is ambiguous; write loss.type or optimizer.type or schedule.type"},
      {"resume:\n  allow: [epoch]\n",
       "c.yaml:2: resume.allow: found epoch, which is not a key or a section; did you mean train.epochs?"},
      {"resume:\n  allow: [checkpoint.keep]\n",
       "c.yaml:2: resume.allow: found checkpoint.keep, which may always change at a resume; remove it"},
      {"loss:\n  decoupled: true\n  type: barlow_twins\n",
       "c.yaml:2: loss.decoupled: found true, which applies to infonce only, but loss.type is barlow_twins (c.yaml:3); "
       "write false"},
      {"loss:\n  margin: 0.1\n  type: barlow_twins\n",
       "c.yaml:2: loss.margin: found 0.1, which applies to infonce only, but loss.type is barlow_twins (c.yaml:3); "
       "write "
       "0"},
      {"loss:\n  algorithm: einsum\n  type: barlow_twins\n",
       "c.yaml:2: loss.algorithm: found einsum, which applies to infonce only, but loss.type is barlow_twins "
       "(c.yaml:3); "
       "write auto"},
      {"loss:\n  scale: 0.024\n",
       "c.yaml:2: loss.scale: found 0.024, which applies to barlow_twins only, but loss.type is infonce (the default); "
       "write 1"},
      {"optimizer:\n  nesterov: true\n  type: adamw\n",
       "c.yaml:2: optimizer.nesterov: found true, which applies to sgd "
       "only, but optimizer.type is adamw (c.yaml:3); write false"},
      {"optimizer:\n  nesterov: true\n  momentum: 0\n",
       "c.yaml:2: optimizer.nesterov: found true, which requires a "
       "momentum above 0, but optimizer.momentum is 0 (c.yaml:3); write false"},
      {"schedule:\n  type: step\n",
       "c.yaml:2: schedule.type: found step, which requires milestones, but schedule.milestones is [] (the default); "
       "give epochs, e.g. milestones: [60, 80]"},
      {"schedule:\n  milestones: [60, 80]\n",
       "c.yaml:2: schedule.milestones: found [60, 80], which applies to step only, but schedule.type is cosine (the "
       "default); write []"},
      {"schedule:\n  warmup_epochs: 3.5\ntrain: {epochs: 3}\n",
       "c.yaml:2: schedule.warmup_epochs: found 3.5, longer than train.epochs (3, c.yaml:3); use at most 3"},
  };
  for (const Contradiction& c : cases) EXPECT_EQ(load_refusal(c.text), c.message);
}

TEST(Validator, WhatOnlyLooksLikeAContradictionIsAccepted) {
  EXPECT_NO_THROW(load("train: {global_batch: 6, shards: 8, reduction: fastest}\n"));
  EXPECT_NO_THROW(load("schedule: {warmup_epochs: 3}\ntrain: {epochs: 1, max_steps: 1000}\n"));
  EXPECT_NO_THROW(load("evaluate: {knn: {k: 5000, every_epochs: 0}}\n"));
  EXPECT_NO_THROW(load("model: {encoder: {stem: imagenet}}\n"));
  EXPECT_NO_THROW(load("model: {convolution: winograd}\nrun: {precision: bf16}\n"));  // there may be a GPU
  EXPECT_NO_THROW(load("model: {convolution: auto}\nrun: {precision: bf16, device: cpu}\n"));
  EXPECT_NO_THROW(load("data: {path: \"\"}\n"));
  EXPECT_NO_THROW(load("loss: {type: barlow_twins, temperature: 0.1, margin: 0, scale: 0.024}\n"));
  EXPECT_NO_THROW(load("loss: {lambda: 0.1, scale: 1}\n"));
  EXPECT_NO_THROW(load("data: {format: cifar10, path: /d, synthetic: {train_images: 1}}\n"));
  for (const char* name : {"a", ".a", "a b", "2024", "-x", "\xC3\xBC"}) {
    EXPECT_NO_THROW(load(std::string("run: {name: '") + name + "'}\n")) << name;
  }
  for (const char* name : {"", ".", "..", "/", "a/", " a", "a "}) {
    EXPECT_THAT(load_refusal(std::string("run: {name: '") + name + "'}\n"), HasSubstr("plain folder name"));
  }
}

TEST(Validator, NothingIsConcludedFromAKeyThatIsAlreadyWrong) {
  EXPECT_EQ(load_refusal("train:\n  global_batch: 100\n  shards: none\n"),
            "c.yaml:3: train.shards: found none; expected integer 1..1024, a power of two");
  EXPECT_EQ(load_refusal("train:\n  global_batch: 100\n  shards: 0\n"),
            "c.yaml:3: train.shards: found 0; expected integer 1..1024, a power of two");
  EXPECT_EQ(load_refusal("data:\n  format: cifar\n  path: /data\n"),
            "c.yaml:2: data.format: found cifar; expected synthetic | cifar10 | cifar100 | mnist | "
            "stl10 | image_folder | packed");
}

TEST(Validator, SettingsMadeByAProgramAreCheckedToo) {
  EXPECT_NO_THROW(validate(Settings()));
  Settings settings;
  settings.optimizer.base_lr = std::numeric_limits<double>::infinity();
  settings.loss.temperature = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(
      refusal([&] { validate(settings); }),
      "loss.temperature: found nan; expected number 0.005..100\noptimizer.base_lr: found inf; expected number >= 0");
}

TEST(Validator, OrderedSumsRequireAPowerOfTwoThatDividesTheShards) {
  Settings settings;
  EXPECT_THAT(allowed_rank_counts(settings), ElementsAre(1, 2, 4, 8));
  for (const int ranks : {1, 2, 4, 8}) EXPECT_NO_THROW(validate_ranks(settings, ranks));
  EXPECT_EQ(
      refusal([&] {
        validate_ranks(settings, 3, {{"train.shards", "c.yaml:9"}});
      }),
      "c.yaml:9: train.shards: 3 ranks cannot share 8 shards equally; use one of these numbers of ranks: 1, 2, 4, 8");
  for (const int ranks : {5, 6, 7, 9, 16}) refusal([&] { validate_ranks(settings, ranks); });
}

TEST(Validator, FastestSumsRequireADivisorOfTheGlobalBatch) {
  Settings settings;
  settings.train.global_batch = 96;
  settings.train.reduction = Reduction::kFastest;
  for (const int ranks : {1, 2, 3, 6, 12, 96}) EXPECT_NO_THROW(validate_ranks(settings, ranks));
  EXPECT_EQ(refusal([&] { validate_ranks(settings, 7); }),
            "train.global_batch: 7 ranks cannot share a global batch of 96 images equally; use one of these "
            "numbers of ranks: 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96");
  settings.train.global_batch = 720720;  // many divisors: those nearest to the requested number are listed
  EXPECT_THAT(refusal([&] { validate_ranks(settings, 17); }),
              HasSubstr("numbers of ranks: 10, 11, 12, 13, 14, 15, 16, 18, 20, 21, 22, 24"));
}

}  // namespace
}  // namespace simclr
