// What the loader makes of YAML, and the line that it prints for each mistake.
#include "src/config/loader.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "tests/config/config_support.h"

namespace simclr {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Loader, TakesWhatIsGivenAndLeavesTheRestAtItsDefault) {
  const Settings settings = load(
      "run: {name: trial, threads: 3}\n"
      "views:\n  crop_scale: [0.08, 1]\n  normalize: {mean: [0.5, .5, 5e-1], std: [0.25, 0.25, 0.25]}\n"
      "optimizer:\n  type: adamw\n  nesterov: false\n"
      "train:\n  global_batch: 64\n");
  Settings expected;
  expected.run.name = "trial";
  expected.run.threads = 3;
  expected.views.crop_scale = {0.08, 1.0};
  expected.views.normalize = {.mean = {0.5, 0.5, 0.5}, .std = {0.25, 0.25, 0.25}};
  expected.optimizer.type = OptimizerType::kAdamW;
  expected.train.global_batch = 64;
  EXPECT_EQ(settings, expected);
  EXPECT_EQ(load("{}"), Settings());
  EXPECT_EQ(load("run: {}\n"), Settings());
  EXPECT_EQ(load("---\nrun: {threads: auto}\ndata: {workers: auto}\n...\n"), Settings());
}

TEST(Loader, ByteOrderMarkCrlfCommentsAndBlockListsAreAccepted) {
  const Settings settings = load(
      "\xEF\xBB\xBF# first\r\ntrain:  # second\r\n  epochs: 7\r\nviews:\r\n  blur:\r\n"
      "    sigma:\r\n    - 0.5\r\n    - 1\r\n");
  EXPECT_EQ(settings.train.epochs, 7);
  EXPECT_EQ(settings.views.blur.sigma, (std::array<double, 2>{0.5, 1.0}));
}

TEST(Loader, AliasesWorkAndMergeKeysAreRefused) {
  EXPECT_EQ(load("checkpoint: {every_epochs: &n 3}\nevaluate: {knn: {every_epochs: *n}}\n").evaluate.knn.every_epochs,
            3);
  EXPECT_EQ(load_refusal("run: &r {seed: 2}\ntrain:\n  <<: *r\n"),
            "c.yaml:3: train.<<: merge keys (<<) are not supported; write the keys out");
}

struct Mistake {
  std::string text, message;
};

TEST(Loader, OneMistakeOneLine) {
  const std::vector<Mistake> mistakes = {
      {"train:\n  epoch: 3\n", "c.yaml:2: train.epoch: unknown key; did you mean train.epochs?"},
      {"train:\n  temperature: 3\n", "c.yaml:2: train.temperature: unknown key; did you mean loss.temperature?"},
      {"optimizer: {lr: 0.1}\n", "c.yaml:1: optimizer.lr: unknown key; did you mean optimizer.base_lr?"},
      {"optimzer:\n  type: sgd\n", "c.yaml:1: optimzer: unknown section; did you mean optimizer?"},
      {"train.epochs: 3\n",
       "c.yaml:1: train.epochs: a dotted key is not supported in a file; nest the sections, e.g. train: {epochs: 10}"},
      {"views.jitter: {hue: 0}\n",
       "c.yaml:1: views.jitter: a dotted key is not supported in a file; nest the sections, e.g. train: {epochs: 10}"},
      {"train: !!map {epochs: 3}\n", "c.yaml:1: train: found the YAML tag tag:yaml.org,2002:map; remove it"},
      {"--- !!map\ntrain: {epochs: 3}\n", "c.yaml:1: found the YAML tag tag:yaml.org,2002:map; remove it"},
      {"\"\": 3\n", "c.yaml:1: unknown key; did you mean run.name?"},
      {"train:\n  epochs: 3\n  shards: 4\n  epochs: 4\n",
       "c.yaml:4: train.epochs: given twice, first on line 2; keep one"},
      {"train: {epochs: 3}\nrun: {}\ntrain: {shards: 4}\n", "c.yaml:3: train: given twice, first on line 1; keep one"},
      {"train:\n  epochs: many\n", "c.yaml:2: train.epochs: found many; expected integer 1..1000000, epochs"},
      {"train:\n  epochs: 064\n",
       "c.yaml:2: train.epochs: found 064 with a leading zero (octal or decimal?); "
       "write 64; expected integer 1..1000000, epochs"},
      {"train:\n  epochs: \"64\"\n",
       "c.yaml:2: train.epochs: found \"64\" in quotes, which makes it a string; remove the "
       "quotes; expected integer 1..1000000, epochs"},
      {"train:\n  epochs:\n",
       "c.yaml:2: train.epochs: has no value; remove the line or give one; expected integer "
       "1..1000000, epochs"},
      {"train:\n  epochs: ~\n",
       "c.yaml:2: train.epochs: has no value; remove the line or give one; expected integer "
       "1..1000000, epochs"},
      {"train:\n",
       "c.yaml:1: train: has no value; remove the line or give one; expected a section with keys ({} for "
       "all defaults)"},
      {"train: 3\n", "c.yaml:1: train: found 3; expected a section with keys ({} for all defaults)"},
      {"train: [3]\n", "c.yaml:1: train: found a list; expected a section with keys ({} for all defaults)"},
      {"train:\n  epochs: {a: 1}\n", "c.yaml:2: train.epochs: found a section; expected integer 1..1000000, epochs"},
      {"train:\n  epochs: !!int 3\n",
       "c.yaml:2: train.epochs: found the YAML tag tag:yaml.org,2002:int; remove it; "
       "expected integer 1..1000000, epochs"},
      {"optimizer:\n  nesterov: yes\n",
       "c.yaml:2: optimizer.nesterov: found yes; write true or false; expected true | false"},
      {"optimizer:\n  type: SGD\n", "c.yaml:2: optimizer.type: found SGD; expected sgd | adamw | lars"},
      {"views:\n  crop_scale: 0.2\n",
       "c.yaml:2: views.crop_scale: found 0.2; expected [number, number] > 0, <= 1, in "
       "order, share of the image's area"},
      {"views:\n  crop_scale: [0.2, x]\n",
       "c.yaml:2: views.crop_scale: element 2: found x; expected [number, number] "
       "> 0, <= 1, in order, share of the image's area"},
      {"views:\n  crop_scale: [0.2]\n",
       "c.yaml:2: views.crop_scale: found a list of length 1; expected [number, number] > "
       "0, <= 1, in order, share of the image's area"},
      {"run:\n  threads: 0\n", "c.yaml:2: run.threads: found 0; expected integer 1..1024 or auto, per rank"},
      {"run:\n  seed: -1\n", "c.yaml:2: run.seed: found -1; expected integer 0..18446744073709551615"},
      {"run:\n  threads: 99999999999\n",
       "c.yaml:2: run.threads: found 99999999999; expected integer 1..1024 or auto, per rank"},
      {"run:\n  name: \"a\\nb\"\n",
       "c.yaml:2: run.name: found \"a?b\" with a control character (0x0a); expected text, "
       "a plain folder name"},
      {"[1]: 2\n", "c.yaml:1: the key is not a scalar; write key: value"},
      {"", "c.yaml: contains no settings; write {} to use all defaults"},
      {"# nothing\n\n", "c.yaml: contains no settings; write {} to use all defaults"},
      {"---\n", "c.yaml: contains no settings; write {} to use all defaults"},
      {"- run\n", "c.yaml:1: found a list at the top level; expected sections, e.g. train: {epochs: 10}"},
      {"\nrun\n", "c.yaml:2: found run at the top level; expected sections, e.g. train: {epochs: 10}"},
      {"run: {}\n---\nrun: {}\n", "c.yaml:2: a second YAML document or stray text begins here; keep a single document"},
      {", a: 1\n", "c.yaml:1: a second YAML document or stray text begins here; keep a single document"},
      {"train:\n\tepochs: 3\n", "c.yaml:2: a tab in the indentation; YAML requires spaces"},
  };
  for (const Mistake& mistake : mistakes) EXPECT_EQ(load_refusal(mistake.text), mistake.message);
}

TEST(Loader, BrokenYamlIsOneLineWithItsPlace) {
  for (const char* text : {"train: {epochs: *x}\n", "train: [1, 2\nrun: {}\n", "train: }\n", "a: b: c\n",
                           "train: \"open\n", "@\n", "%YAML\n"}) {
    const std::string message = load_refusal(text);
    EXPECT_THAT(message, testing::MatchesRegex("c.yaml:[0-9]+: .*"));
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(Loader, ReportsAllErrorsTogetherInTheOrderOfTheFile) {
  EXPECT_EQ(load_refusal("train:\n  epochs: x\n  shard: 8\nloss:\n  temperature: 0\n", {"train.keep=1"}),
            "c.yaml:2: train.epochs: found x; expected integer 1..1000000, epochs\n"
            "c.yaml:3: train.shard: unknown key; did you mean train.shards?\n"
            "--set: train.keep: unknown key; did you mean checkpoint.keep?\n"
            "c.yaml:5: loss.temperature: found 0; expected number 0.005..100");
}

TEST(Loader, AfterTwentyErrorsOnlyTheirNumberIsReported) {
  std::string text = "train:\n";
  for (int i = 0; i < 25; ++i) text += "  unknown" + std::to_string(i) + ": 1\n";
  const std::string message = load_refusal(text);
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 20);
  EXPECT_THAT(message, HasSubstr("\nand 5 more errors"));
}

TEST(Loader, OverridesParseAsYamlAndReplaceTheFile) {
  KeyOrigins origins;
  const Settings settings = settings_from_string(
      "train:\n  epochs: 3\n  shards: 4\n", "c.yaml",
      {"train.epochs=5", "views.crop_scale=[0.08,1]", "data.path='/a b #1'", "data.format=cifar10", "run.name=a=b"},
      &origins);
  EXPECT_EQ(settings.train.epochs, 5);
  EXPECT_EQ(settings.views.crop_scale, (std::array<double, 2>{0.08, 1.0}));
  EXPECT_EQ(settings.data.path, "/a b #1");
  EXPECT_EQ(settings.run.name, "a=b");
  EXPECT_EQ(origins.at("train.epochs"), "--set");
  EXPECT_EQ(origins.at("train.shards"), "c.yaml:3");
  EXPECT_EQ(origins.count("train.global_batch"), 0u);
}

TEST(Loader, MistakesInOverrides) {
  const std::vector<Mistake> mistakes = {
      {"train.epoch=3", "--set: train.epoch: unknown key; did you mean train.epochs?"},
      {"train.epochs", "--set: found train.epochs; expected section.key=value"},
      {"=3", "--set: found =3; expected section.key=value"},
      {"train={epochs: 3}", "--set: train: is a section; set its keys one by one, as section.key=value"},
      {"train.epochs=",
       "--set: train.epochs: has no value; remove the line or give one; expected integer 1..1000000, "
       "epochs"},
      {"train.epochs=064",
       "--set: train.epochs: found 064 with a leading zero (octal or decimal?); write 64; expected "
       "integer 1..1000000, epochs"},
      {"run.name=a #1", "--set: run.name: found a, since \" #\" starts a comment in YAML; quote the value"},
      {"run.name=a\nb", "--set: run.name: found a?b; expected one line of UTF-8 text"},
      {"run.name=\xFF", "--set: run.name: found \xFF; expected one line of UTF-8 text"},
      {"views.crop_scale=[0.1, 1",
       "--set: views.crop_scale: found [0.1, 1, not valid YAML: end of sequence flow not "
       "found"},
      {"train.epochs=0", "--set: train.epochs: found 0; expected integer 1..1000000, epochs"},
  };
  for (const Mistake& mistake : mistakes) EXPECT_EQ(load_refusal("{}", {mistake.text}), mistake.message);
}

// What a wrapper script appends replaces what it was called with, also a value that would be refused.
TEST(Loader, TheLastOverrideOfAKeyCounts) {
  const std::vector<std::string> overrides = {"train.epochs=0", "run.seed=7", "train.epochs=4", "train.epochs=5"};
  const Settings settings = settings_from_string("train: {epochs: 3}", "c.yaml", overrides);
  EXPECT_EQ(settings.train.epochs, 5);
  EXPECT_EQ(settings.run.seed, 7);
  EXPECT_THAT(ignored_overrides(overrides),
              testing::ElementsAre("--set train.epochs=0: ignored, a later --set has the same key",
                                   "--set train.epochs=4: ignored, a later --set has the same key"));
  EXPECT_EQ(load_refusal("{}", {"train.epochs=4", "train.epochs=0"}),
            "--set: train.epochs: found 0; expected integer 1..1000000, epochs");
  EXPECT_THAT(load_refusal("{}", {"train.epochs=4", "train.epochs"}),
              testing::StartsWith("--set: found train.epochs;"));
}

TEST(Loader, HostileYamlEndsInAMessage) {
  const std::string deep = "train: " + std::string(200000, '[');
  EXPECT_THAT(load_refusal(deep), StartsWith("c.yaml:1: "));
  EXPECT_THAT(load_refusal("train: &a {epochs: *a}\n"), StartsWith("c.yaml:1: "));
  EXPECT_THAT(load_refusal("views: {crop_scale: &a [*a, *a]}\n"), StartsWith("c.yaml:1: "));
  EXPECT_THAT(load_refusal(std::string(300, 'k') + ": 1\n"), HasSubstr("...: unknown key; did you mean "));
}

// Bytes of a good file changed at random: settings or an Error, nothing else, and each line of the Error has its place.
TEST(Loader, DamagedFilesEndInSettingsOrAMessage) {
  const std::string good =
      "# a run\nrun: {name: \"x y\", seed: 7}\nviews:\n  crop_scale: [0.2, 1]\n  blur:\n    sigma:\n    - 0.5\n    - "
      "&j 1\n"
      "train:\n  global_batch: 64\n  shards: 8\nlog: {every_steps: *j}\n";
  const std::string alphabet = " \n\t:-[]{}#&*!|>'\"%@`,?0aZ\\\xC3";
  std::mt19937 random(1);
  int refused = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text = good;
    for (int change = 0; change < 1 + trial % 4; ++change) {
      text[random() % text.size()] = alphabet[random() % alphabet.size()];
    }
    try {
      load(text);
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.code(), ExitCode::kUsage) << text << error.what();
      EXPECT_THAT(error.what(), testing::AnyOf(StartsWith("c.yaml:"), HasSubstr("train."))) << text;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(Loader, AFileFullOfMistakesIsReadInSeconds) {
  std::string text;
  for (int i = 0; text.size() < 900000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(load_refusal(text), testing::EndsWith("more errors"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Loader, ReadsAFileUnderItsOwnName) {
  const TemporaryFolder folder;
  const std::string file = folder.write("run.yaml", "train:\n  epochs: 2\n  shard: 4\n");
  EXPECT_EQ(refusal([&] { load_settings(file); }), file + ":3: train.shard: unknown key; did you mean train.shards?");
  EXPECT_EQ(load_settings(folder.write("good.yaml", "train: {epochs: 2}\n")).train.epochs, 2);
}

}  // namespace
}  // namespace simclr
