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
       "c.yaml:2: train.global_batch: found 100, which train.shards (16, c.yaml:3) does not divide; 96 or 112 would "
       "do"},
      {"train:\n  global_batch: 4\n",
       "c.yaml:2: train.global_batch: found 4, which train.shards (8, the default) does not divide; 8 would do"},
      {"train:\n  shards: 1024\n",
       "train.global_batch: found 512, which train.shards (1024, c.yaml:2) does not divide; "
       "1024 would do"},
      {"train:\n  shards: 6\n", "c.yaml:2: train.shards: found 6; expected a power of two, such as 4 or 8"},
      {"run:\n  name: a/b\n",
       "c.yaml:2: run.name: found \"a/b\"; expected a plain folder name of 1..200 bytes, without "
       "/ and without spaces at its ends (the folder above it is run.output_dir)"},
      {"run:\n  output_dir: \"\"\n",
       "c.yaml:2: run.output_dir: found an empty text; expected a folder (. is the current one)"},
      {"run:\n  device: cpu\n  precision: tf32\n",
       "c.yaml:3: run.precision: found tf32 with run.device: cpu; CPUs compute in fp32, and some in bf16; write one of "
       "them"},
      {"data:\n  path: /data\n",
       "c.yaml:2: data.path: found \"/data\", but data.format (synthetic, the default) draws "
       "its own images; remove the path or name another format, such as cifar10"},
      {"data:\n  format: cifar10\n",
       "data.path: missing, but data.format (cifar10, c.yaml:2) reads files; give the "
       "folder, e.g. --set data.path=DIR"},
      {"data:\n  synthetic: {train_images: 500}\n",
       "c.yaml:2: data.synthetic.train_images: found 500, fewer than one "
       "train.global_batch (512, the default)"},
      {"evaluate:\n  knn: {k: 4097}\n",
       "c.yaml:2: evaluate.knn.k: found 4097, more neighbors than "
       "data.synthetic.train_images (4096, the default)"},
      {"views:\n  normalize: {mean: [0, 0, 0]}\n",
       "c.yaml:2: views.normalize.mean: has 3 values, views.normalize.std "
       "([], the default) has 0; give both or neither"},
      {"model:\n  encoder: {stem: imagenet}\ndata: {image_size: 31}\n",
       "c.yaml:3: data.image_size: found 31, too small for model.encoder.stem (imagenet, c.yaml:2); expected at least "
       "32, or stem: cifar"},
      {"model:\n  convolution: winograd\nrun: {device: cpu, precision: bf16}\n",
       "c.yaml:2: model.convolution: found winograd, which CPUs do not have in bf16; here is run.precision (bf16, "
       "c.yaml:3); write auto or direct, or precision: fp32"},
      {"loss:\n  decoupled: true\n  margin: 0.1\n",
       "c.yaml:3: loss.margin: found 0.1, which has no gradient with loss.decoupled (true, c.yaml:2); write 0"},
      {"loss:\n  products: bf16\n",
       "c.yaml:2: loss.products: found bf16, which is for streaming only; here is loss.algorithm (auto, the default); "
       "write fp32, or algorithm: streaming"},
      {"loss:\n  algorithm: streaming\n  products: bf16\nrun: {device: cpu}\n",
       "c.yaml:3: loss.products: found bf16 with run.device: cpu; CPUs compute in fp32 only; write fp32"},
      {"checkpoint:\n  keep_best: true\nevaluate:\n  knn: {every_epochs: 0}\n",
       "c.yaml:2: checkpoint.keep_best: found true, but evaluate.knn.every_epochs (0, c.yaml:4) never says which is "
       "the "
       "best"},
      {"resume:\n  allow: [epochs, type]\n",
       "c.yaml:2: resume.allow: found type, which may be loss.type or optimizer.type or schedule.type; write the one "
       "that is meant"},
      {"resume:\n  allow: [epoch]\n",
       "c.yaml:2: resume.allow: found epoch, which is no key and no section; the nearest is train.epochs"},
      {"resume:\n  allow: [checkpoint.keep]\n",
       "c.yaml:2: resume.allow: found checkpoint.keep, which a resume may find changed in any case; remove it"},
      {"loss:\n  decoupled: true\n  type: barlow_twins\n",
       "c.yaml:2: loss.decoupled: found true, which is for infonce only; here is loss.type (barlow_twins, c.yaml:3); "
       "write false"},
      {"loss:\n  margin: 0.1\n  type: barlow_twins\n",
       "c.yaml:2: loss.margin: found 0.1, which is for infonce only; here is loss.type (barlow_twins, c.yaml:3); write "
       "0"},
      {"loss:\n  algorithm: einsum\n  type: barlow_twins\n",
       "c.yaml:2: loss.algorithm: found einsum, which is for infonce only; here is loss.type (barlow_twins, c.yaml:3); "
       "write auto"},
      {"loss:\n  scale: 0.024\n",
       "c.yaml:2: loss.scale: found 0.024, which is for barlow_twins only; here is loss.type (infonce, the default); "
       "write 1"},
      {"optimizer:\n  nesterov: true\n  type: adamw\n",
       "c.yaml:2: optimizer.nesterov: found true, which is for sgd "
       "only; here is optimizer.type (adamw, c.yaml:3)"},
      {"optimizer:\n  nesterov: true\n  momentum: 0\n",
       "c.yaml:2: optimizer.nesterov: found true, which needs a "
       "momentum; here is optimizer.momentum (0, c.yaml:3)"},
      {"schedule:\n  type: step\n",
       "c.yaml:2: schedule.type: found step, but schedule.milestones ([], the default) names no epoch; give some, e.g. "
       "milestones: [60, 80]"},
      {"schedule:\n  milestones: [60, 80]\n",
       "c.yaml:2: schedule.milestones: found [60, 80], which is for step only; here is schedule.type (cosine, the "
       "default); write []"},
      {"schedule:\n  warmup_epochs: 3.5\ntrain: {epochs: 3}\n",
       "c.yaml:2: schedule.warmup_epochs: found 3.5, longer than train.epochs (3, c.yaml:3)"},
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

TEST(Validator, OrderedSumsWantAPowerOfTwoThatDividesTheShards) {
  Settings settings;
  EXPECT_THAT(allowed_rank_counts(settings), ElementsAre(1, 2, 4, 8));
  for (const int ranks : {1, 2, 4, 8}) EXPECT_NO_THROW(validate_ranks(settings, ranks));
  EXPECT_EQ(
      refusal([&] {
        validate_ranks(settings, 3, {{"train.shards", "c.yaml:9"}});
      }),
      "c.yaml:9: train.shards: 3 ranks cannot share 8 shards: reduction ordered wants a power of two that divides "
      "them; these rank counts would do: 1, 2, 4, 8");
  for (const int ranks : {5, 6, 7, 9, 16}) refusal([&] { validate_ranks(settings, ranks); });
}

TEST(Validator, FastestSumsWantADivisorOfTheGlobalBatch) {
  Settings settings;
  settings.train.global_batch = 96;
  settings.train.reduction = Reduction::kFastest;
  for (const int ranks : {1, 2, 3, 6, 12, 96}) EXPECT_NO_THROW(validate_ranks(settings, ranks));
  EXPECT_EQ(refusal([&] { validate_ranks(settings, 7); }),
            "train.global_batch: 7 ranks cannot share a global batch of 96 images: their number must divide it; these "
            "rank counts would do: 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96");
  settings.train.global_batch = 720720;  // many divisors: those nearest to the wish are listed
  EXPECT_THAT(refusal([&] { validate_ranks(settings, 17); }),
              HasSubstr("would do: 10, 11, 12, 13, 14, 15, 16, 18, 20, 21, 22, 24"));
}

}  // namespace
}  // namespace simclr
