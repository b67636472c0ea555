// What each command line asks for, the line that a mistake prints, and that --help knows every option.
#include "src/config/command_line.h"

#include <set>
#include <sstream>

#include "tests/config/config_support.h"

namespace simclr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CommandLine parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "./simclr_train");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

std::string parse_refusal(const std::vector<const char*>& arguments) {
  const std::string message = refusal([&] { parse(arguments); });
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_THAT(message, HasSubstr("see simclr_train --help")) << message;
  return message;
}

TEST(CommandLineParser, WithoutASubcommandItTrains) {
  const CommandLine line = parse({"--config", "a.yaml"});
  EXPECT_EQ(line.command, Command::kTrain);
  EXPECT_EQ(line.source.config, "a.yaml");
  EXPECT_EQ(line.resume, "auto");
  EXPECT_EQ(line.output, "");
  EXPECT_FALSE(line.dry_run || line.print_config);
  EXPECT_TRUE(line.source.overrides.empty());
}

TEST(CommandLineParser, TakesEveryOptionOfTraining) {
  const CommandLine line = parse({"--set", "views.crop_scale=[0.08,1]", "--dry-run", "--config=a b.yaml", "--output",
                                  "/runs/x", "--set=data.path=a=b", "--resume", "none", "--print-config"});
  EXPECT_EQ(line.source.config, "a b.yaml");
  EXPECT_THAT(line.source.overrides, ElementsAre("views.crop_scale=[0.08,1]", "data.path=a=b"));
  EXPECT_EQ(line.output, "/runs/x");
  EXPECT_EQ(line.resume, "none");
  EXPECT_TRUE(line.dry_run && line.print_config);
  EXPECT_EQ(parse({"--config", "a", "--resume", "x.safetensors"}).resume, "x.safetensors");
}

TEST(CommandLineParser, InfoHelpAndVersionNeedNoConfiguration) {
  const CommandLine info = parse({"info", "c.safetensors"});
  EXPECT_EQ(info.command, Command::kInfo);
  EXPECT_EQ(info.info_file, "c.safetensors");
  EXPECT_EQ(parse({"--version"}).command, Command::kVersion);
  EXPECT_EQ(parse({"-h"}).command, Command::kHelp);
  EXPECT_THAT(parse({"info", "--help"}).help, HasSubstr("A checkpoint, or a run folder"));
}

TEST(CommandLineParser, HelpNamesEveryOptionAndNoOther) {
  const CommandLine line = parse({"--help", "--config", "a.yaml"});
  EXPECT_EQ(line.command, Command::kHelp);
  const std::set<std::string> expected = {"--config",       "--set",     "--resume",  "--output", "--dry-run",
                                          "--print-config", "--profile", "--version", "--help",   "--quiet"};
  std::set<std::string> named;
  std::istringstream lines(line.help);
  for (std::string text; std::getline(lines, text);) {
    const size_t begin = text.find_first_not_of(' ');
    if (begin == 0 || begin == std::string::npos || text[begin] != '-') continue;  // "  -h,--help  ..." is an option
    const size_t name = text.find("--", begin);
    named.insert(text.substr(name, text.find(' ', name) - name));
  }
  EXPECT_EQ(named, expected) << line.help;
  EXPECT_THAT(line.help, HasSubstr("auto|none|PATH"));
  EXPECT_THAT(line.help, HasSubstr("Exit codes: 0 done, 2 usage"));
  EXPECT_THAT(line.help, HasSubstr("\n  info "));
  EXPECT_LT(line.help.find("Before training:"), line.help.find("\n  preview "));
  EXPECT_LT(line.help.find("\n  preview "), line.help.find("After training:"));
}

// Every option of the help is understood by the parser.
TEST(CommandLineParser, EveryOptionOfTheHelpIsUnderstood) {
  EXPECT_NO_THROW(parse({"--config", "a", "--set", "a=b", "--resume", "none", "--output", "d", "--dry-run",
                         "--print-config", "--profile", "--version", "-q", "--quiet"}));
  EXPECT_NO_THROW(parse({"--config", "a", "--profile", "5"}));
}

TEST(CommandLineParser, MistakesAreOneLineWithAHint) {
  EXPECT_THAT(parse_refusal({}), HasSubstr("no configuration; start with --config FILE"));
  EXPECT_THAT(parse_refusal({"--dry-run"}), HasSubstr("no configuration"));
  EXPECT_THAT(parse_refusal({"--confg", "a.yaml"}), HasSubstr("unknown argument --confg; did you mean --config"));
  EXPECT_THAT(parse_refusal({"--config", "a", "--resum=none"}),
              HasSubstr("unknown argument --resum=none; did you mean --resume"));
  EXPECT_THAT(parse_refusal({"a.yaml"}),
              HasSubstr("unknown argument a.yaml; give the configuration as --config a.yaml"));
  EXPECT_THAT(parse_refusal({"--config", "a.yaml", "train.epochs=3"}),
              HasSubstr("unknown argument train.epochs=3; set a key with --set train.epochs=3"));
  EXPECT_THAT(parse_refusal({"--config"}), HasSubstr("--config"));
  EXPECT_THAT(parse_refusal({"--config", "a", "--config", "b"}), HasSubstr("--config"));
  EXPECT_THAT(parse_refusal({"--config", "a", "--set", "x.y=1", "x.z=1"}), HasSubstr("unknown argument x.z=1"));
  EXPECT_THAT(parse_refusal({"--config", "a", "--resume", ""}), HasSubstr("--resume is empty"));
  for (const std::vector<const char*>& unset : std::vector<std::vector<const char*>>{{"--config", ""},
                                                                                     {"--config", "a", "--output", ""},
                                                                                     {"--config", "a", "--set", ""},
                                                                                     {"evaluate", "f", "--json", ""},
                                                                                     {"embed", "f", "--labels", ""},
                                                                                     {"export", "f", "--output", ""},
                                                                                     {"loss", "a", "b", "--grad1", ""}})
    EXPECT_THAT(parse_refusal(unset), HasSubstr(" is empty; give it a value, or leave it out"));
  EXPECT_THAT(parse_refusal({"--config", "a", "--dry-run=maybe"}), HasSubstr("maybe"));
  EXPECT_THAT(parse_refusal({"--config", "a", "--profile", "0"}), HasSubstr("0 not in range 1 to 1000"));
  EXPECT_THAT(parse_refusal({"--config", "a", "--profile", "--dry-run"}), HasSubstr("--dry-run runs none"));
  EXPECT_THAT(parse_refusal({"info"}), HasSubstr("CHECKPOINT is required"));
  EXPECT_THAT(parse_refusal({"info", "a", "b"}), HasSubstr("unknown argument b"));
  EXPECT_THAT(parse_refusal({"--config", "a", "info", "f"}), HasSubstr("--config has no meaning for info"));
  EXPECT_THAT(parse_refusal({"info", "f", "--dry-run"}), HasSubstr("--dry-run has no meaning for info"));
  EXPECT_EQ(parse_refusal({"--config", "a", "-c"}), "unknown argument -c; see simclr_train --help");
  EXPECT_THAT(parse_refusal({"-config", "a"}), HasSubstr("did you mean --config"));
  EXPECT_THAT(parse_refusal({"--config", "a", "--bad\nline"}), HasSubstr("unknown argument --bad?line"));
}

TEST(CommandLineParser, OutputIsTheRunFolderItself) {
  Settings settings;
  settings.run.output_dir = "/runs";
  settings.run.name = "a";
  EXPECT_EQ(run_folder({}, settings), "/runs/a");
  CommandLine line;
  line.output = "/elsewhere";
  EXPECT_EQ(run_folder(line, settings), "/elsewhere");
}

TEST(CommandLineParser, NoCommandWritesOverWhatItReads) {
  const std::vector<std::vector<const char*>> commands = {{"pack", "--config", "a", "--output", "a"},
                                                          {"preview", "--config", "a", "--output", "a"},
                                                          {"export", "a", "--output", "a"},
                                                          {"embed", "a", "--output", "a"},
                                                          {"embed", "a", "--output", "b", "--labels", "a"},
                                                          {"evaluate", "a", "--json", "a"},
                                                          {"loss", "a", "b", "--grad1", "a"}};
  for (const auto& command : commands)
    EXPECT_THAT(parse_refusal(command), HasSubstr("would replace the input")) << command[0];
}

}  // namespace
}  // namespace simclr
