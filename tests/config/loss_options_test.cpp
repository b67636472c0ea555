// The command line of `loss`: what it asks for, and the line that a mistake prints.
#include "src/config/loss_options.h"

#include "tests/config/config_support.h"

namespace simclr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CommandLine parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), {"./simclr_train", "loss"});
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

std::string parse_refusal(const std::vector<const char*>& arguments) {
  const std::string message = refusal([&] { parse(arguments); });
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_THAT(message, HasSubstr("see simclr_train --help")) << message;
  return message;
}

TEST(LossOptions, TwoFilesAreEnough) {
  const CommandLine line = parse({"a.npy", "b.npy"});
  EXPECT_EQ(line.command, Command::kLoss);
  EXPECT_THAT(line.loss.views, ElementsAre("a.npy", "b.npy"));
  EXPECT_EQ(line.loss.settings.temperature, 0.5);
  EXPECT_EQ(line.loss.settings.margin, 0);
  EXPECT_FALSE(line.loss.settings.decoupled || line.loss.json || line.loss.has_gradient());
  EXPECT_EQ(line.loss.precision, LossPrecision::kAsFiles);
  EXPECT_EQ(line.loss.threads, 0);
}

TEST(LossOptions, TakesEveryOption) {
  const LossCommand loss = parse({"--temperature", "0.07", "--z2", "b.npy", "--margin=0.3", "--precision", "fp64",
                                  "--grad2", "h.npy", "--json", "--threads", "3", "--z1=a.npy"})
                               .loss;
  EXPECT_THAT(loss.views, ElementsAre("a.npy", "b.npy"));
  EXPECT_THAT(loss.gradients, ElementsAre("", "h.npy"));
  EXPECT_EQ(loss.settings.temperature, 0.07);
  EXPECT_EQ(loss.settings.margin, 0.3);
  EXPECT_EQ(loss.precision, LossPrecision::kFp64);
  EXPECT_TRUE(loss.json && loss.has_gradient());
  EXPECT_EQ(loss.threads, 3);
  EXPECT_TRUE(parse({"a", "b", "--decoupled", "--precision", "fp32"}).loss.settings.decoupled);
  const std::string help = parse({"--help"}).help;
  for (const char* name : {"VIEW1", "--z1", "--temperature", "--margin", "--decoupled", "--precision", "fp32|fp64",
                           "--grad1", "--grad2", "--json", "--threads"})
    EXPECT_THAT(help, HasSubstr(name));
}

TEST(LossOptions, MistakesAreOneLineWithAHint) {
  EXPECT_THAT(parse_refusal({}), HasSubstr("two files are required"));
  EXPECT_THAT(parse_refusal({"a.npy"}), HasSubstr("VIEW1.npy VIEW2.npy"));
  EXPECT_THAT(parse_refusal({"a", "b", "c"}), HasSubstr("unknown argument c; loss takes no further argument"));
  EXPECT_THAT(parse_refusal({"a", "b", "--temprature", "0.1"}), HasSubstr("did you mean --temperature"));
  EXPECT_THAT(parse_refusal({"a", "b", "--dry-run"}), HasSubstr("--dry-run has no meaning for loss"));
  EXPECT_THAT(parse_refusal({"a", "b", "--temperature", "0.001"}),
              HasSubstr("--temperature: found 0.001, expected number 0.005..100"));
  EXPECT_THAT(parse_refusal({"a", "b", "--temperature", "nan"}), HasSubstr("--temperature: found nan"));
  EXPECT_THAT(parse_refusal({"a", "b", "--temperature", "x"}), HasSubstr("--temperature"));
  EXPECT_THAT(parse_refusal({"a", "b", "--margin", "2"}), HasSubstr("--margin: found 2"));
  EXPECT_THAT(parse_refusal({"a", "b", "--margin", "-0.1"}), HasSubstr("--margin: found -0.1"));
  EXPECT_THAT(parse_refusal({"a", "b", "--margin", "0.1", "--decoupled"}), HasSubstr("no gradient with --decoupled"));
  EXPECT_THAT(parse_refusal({"a", "b", "--precision", "fp16"}), HasSubstr("fp16"));
  EXPECT_THAT(parse_refusal({"a", "b", "--threads", "0"}), HasSubstr("--threads"));
  EXPECT_THAT(parse_refusal({"a", "b", "--grad1", "b"}), HasSubstr("would replace the input b"));
  EXPECT_THAT(parse_refusal({"a", "b", "--grad1", "g", "--grad2", "g"}), HasSubstr("are both g"));
  for (const char* spelling : {"./g", "no_folder/../g", ".//g"})
    EXPECT_THAT(parse_refusal({"a", "b", "--grad1", "g", "--grad2", spelling}),
                HasSubstr(fmt::format("are both {}", spelling)));
}

// Two names of one file are one file.
TEST(LossOptions, SeesThroughLinks) {
  const TemporaryFolder folder;
  const std::string z1 = folder.write("z1.npy", "x"), link = folder.path() + "/link.npy";
  std::filesystem::create_symlink(z1, link);
  EXPECT_THAT(parse_refusal({z1.c_str(), "b", "--grad1", link.c_str()}), HasSubstr("would replace the input"));
}

}  // namespace
}  // namespace simclr
