// The command lines of `evaluate` and `embed`, and settings that a command changes of those in a checkpoint.
#include "src/config/encoder_options.h"

#include "src/config/loader.h"
#include "tests/config/config_support.h"

namespace simclr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CommandLine parse(const char* command, std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), {"./simclr_train", command});
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

std::string parse_refusal(const char* command, const std::vector<const char*>& arguments) {
  const std::string message = refusal([&] { parse(command, arguments); });
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_THAT(message, HasSubstr("see simclr_train --help")) << message;
  return message;
}

TEST(EncoderOptions, ACheckpointIsEnoughForEvaluate) {
  const CommandLine line = parse("evaluate", {"runs/a"});
  EXPECT_EQ(line.command, Command::kEvaluate);
  EXPECT_EQ(line.evaluate.encoder.checkpoint, "runs/a");
  EXPECT_EQ(line.evaluate.encoder.batch, 0);
  EXPECT_THAT(line.evaluate.k, ElementsAre(1, 20, 200));
  EXPECT_THAT(line.evaluate.percent, ElementsAre(1, 10, 100));
  EXPECT_EQ(line.evaluate.c, 0);
}

TEST(EncoderOptions, EvaluateTakesEveryOption) {
  const EvaluateCommand e =
      parse("evaluate", {"--k", "5", "--labels", "50", "--checkpoint", "c", "--k=7", "--labels=2.5", "--c", "0.3",
                         "--config", "x.yaml", "--set", "data.path=/d", "--batch", "64", "--json", "r.json"})
          .evaluate;
  EXPECT_THAT(e.k, ElementsAre(5, 7));
  EXPECT_THAT(e.percent, ElementsAre(50, 2.5));
  EXPECT_EQ(e.c, 0.3);
  EXPECT_EQ(e.encoder.checkpoint, "c");
  EXPECT_EQ(e.encoder.source.config, "x.yaml");
  EXPECT_THAT(e.encoder.source.overrides, ElementsAre("data.path=/d"));
  EXPECT_EQ(e.encoder.batch, 64);
  EXPECT_EQ(e.json, "r.json");
  EXPECT_EQ(parse("evaluate", {"c", "--c", "auto"}).evaluate.c, 0);
}

TEST(EncoderOptions, EmbedRefusesOneFileUnderTwoSpellings) {
  EXPECT_THAT(parse_refusal("embed", {"c", "--output", "e.npy", "--labels", "./e.npy"}), HasSubstr("are both ./e.npy"));
  EXPECT_THAT(parse_refusal("embed", {"c", "--output", "./c"}), HasSubstr("would replace the input c"));
  EXPECT_EQ(parse("embed", {"c", "--output", "a/e.npy", "--labels", "b/e.npy"}).embed.labels, "b/e.npy");
}

TEST(EncoderOptions, EmbedTakesEveryOption) {
  const CommandLine line =
      parse("embed", {"c", "--output", "f.npy", "--labels", "l.npy", "--split", "test", "--projector"});
  EXPECT_EQ(line.command, Command::kEmbed);
  EXPECT_EQ(line.embed.output, "f.npy");
  EXPECT_EQ(line.embed.labels, "l.npy");
  EXPECT_TRUE(line.embed.test_split && line.embed.projector);
  EXPECT_FALSE(parse("embed", {"c", "--output", "f", "--split", "train"}).embed.test_split);
}

TEST(EncoderOptions, MistakesAreOneLineWithAHint) {
  EXPECT_THAT(parse_refusal("evaluate", {}), HasSubstr("a checkpoint is required: simclr_train evaluate"));
  EXPECT_THAT(parse_refusal("embed", {"--output", "f"}), HasSubstr("a checkpoint is required: simclr_train embed"));
  EXPECT_THAT(parse_refusal("embed", {"c"}), HasSubstr("embed needs --output FILE"));
  EXPECT_THAT(parse_refusal("embed", {"c", "--output", "c"}), HasSubstr("would replace the input c"));
  EXPECT_THAT(parse_refusal("embed", {"c", "--output", "f", "--labels", "f"}), HasSubstr("are both f"));
  EXPECT_THAT(parse_refusal("embed", {"c", "--output", "f", "--split", "val"}), HasSubstr("expected train or test"));
  EXPECT_THAT(parse_refusal("evaluate", {"c", "--json", "c"}), HasSubstr("would replace the input c"));
  EXPECT_THAT(parse_refusal("evaluate", {"c", "--k", "0"}), HasSubstr("--k"));
  EXPECT_THAT(parse_refusal("evaluate", {"c", "--labels", "101"}), HasSubstr("--labels"));
  EXPECT_THAT(parse_refusal("evaluate", {"c", "--labels", "0", "--labels", "1"}), HasSubstr("cannot be combined"));
  for (const char* c : {"0", "-1", "nan", "inf", "1x", ""})
    EXPECT_THAT(parse_refusal("evaluate", {"c", "--c", c}), HasSubstr("--c")) << c;
  EXPECT_THAT(parse_refusal("evaluate", {"c", "--resume", "none"}), HasSubstr("--resume has no meaning for evaluate"));
  EXPECT_THAT(parse_refusal("evaluate", {"c", "--jsn", "x"}), HasSubstr("did you mean --json"));
}

TEST(ChangeSettings, ReplacesWhatIsNamedAndKeepsTheRest) {
  Settings base;
  base.model.encoder.width = 16;
  base.data.image_size = 48;
  const TemporaryFolder folder;
  const std::string file = folder.write("change.yaml", "data: {image_size: 64}\nrun: {seed: 5}\n");
  KeyOrigins given;
  const Settings changed = change_settings(base, "c.safetensors", file, {"run.seed=6"}, &given);
  EXPECT_EQ(changed.model.encoder.width, 16);
  EXPECT_EQ(changed.data.image_size, 64);
  EXPECT_EQ(changed.run.seed, 6U);
  EXPECT_EQ(given.size(), 2U);
  EXPECT_EQ(change_settings(base, "c.safetensors", "", {}), base);
}

TEST(ChangeSettings, ContradictionsNameTheFileOfTheOtherKey) {
  Settings base;
  base.model.encoder.stem = Stem::kImagenet;
  base.data.image_size = 64;
  EXPECT_THAT(refusal([&] { change_settings(base, "c.safetensors", "", {"data.image_size=16"}); }),
              HasSubstr("model.encoder.stem (imagenet, c.safetensors)"));
}

}  // namespace
}  // namespace simclr
