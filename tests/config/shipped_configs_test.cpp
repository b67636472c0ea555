// Every file in configs/ loads; reference.yaml lists each key with the default, unit and range of the program.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "src/config/key_table.h"
#include "src/config/resolved.h"
#include "src/config/validator.h"
#include "tests/config/config_support.h"

namespace simclr {
namespace {

using testing::HasSubstr;

const std::string kFolder = SIMCLR_CONFIGS_DIR;

// Formats that read files leave the folder to the user.
std::vector<std::string> data_path_for(const std::string& file) {
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const bool reads_files =
      text.find("\n  format: ") != std::string::npos && text.find("\n  format: synthetic") == std::string::npos;
  return reads_files ? std::vector<std::string>{"data.path=/data"} : std::vector<std::string>{};
}

TEST(ShippedConfigs, EachLoadsAndMaySplitOverOneToEightRanks) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string file = entry.path().string();
    ASSERT_EQ(entry.path().extension(), ".yaml") << file;
    Settings settings;
    ASSERT_NO_THROW(settings = load_settings(file, data_path_for(file))) << file;
    for (const int ranks : {1, 2, 4, 8}) EXPECT_NO_THROW(validate_ranks(settings, ranks)) << file;
    ++files;
  }
  EXPECT_EQ(files, 11);
}

TEST(ShippedConfigs, TheReferenceHasEveryKeyWithItsDefaultUnitAndRange) {
  KeyOrigins origins;
  const std::string file = kFolder + "/reference.yaml";
  EXPECT_EQ(load_settings(file, {}, &origins), Settings());
  std::vector<std::string> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  for (const Key& key : all_keys()) {
    ASSERT_EQ(origins.count(key.path), 1u) << key.path << " is missing in reference.yaml";
    const std::string& origin = origins.at(key.path);
    const std::string& line = lines.at(std::stoul(origin.substr(origin.rfind(':') + 1)) - 1);
    EXPECT_THAT(line, HasSubstr(": " + key.print(Settings()) + "  # ")) << key.path;
    EXPECT_THAT(line, testing::EndsWith(" [" + key.description() + "]")) << key.path;
    EXPECT_LT(line.find("  # ") + 5, line.rfind(" [" + key.description())) << key.path << " has no meaning";
  }
  EXPECT_EQ(origins.size(), all_keys().size());
}

TEST(ShippedConfigs, LongerCifar10RunsDifferInNameAndEpochsAlone) {
  for (const int64_t epochs : {500, 1000}) {
    const std::string name = "cifar10_" + std::to_string(epochs) + "_epochs";
    Settings expected = load_settings(kFolder + "/cifar10.yaml", {"data.path=/data"});
    ASSERT_EQ(expected.train.epochs, 100);
    expected.run.name = name;
    expected.train.epochs = epochs;
    EXPECT_EQ(load_settings(kFolder + "/" + name + ".yaml", {"data.path=/data"}), expected) << name;
  }
}

TEST(ShippedConfigs, QuickstartIsTheRecipeThatWasMeasured) {
  const Settings s = load_settings(kFolder + "/quickstart.yaml");
  EXPECT_EQ(s.data.format, DataFormat::kSynthetic);
  EXPECT_EQ(s.model.encoder.depth, 10);
  EXPECT_EQ(s.model.encoder.width, 16);
  EXPECT_EQ(s.model.projector.hidden, 8 * s.model.encoder.width) << "the encoder's output width";
  EXPECT_EQ(s.train.global_batch, 64);
  EXPECT_EQ(s.optimizer.type, OptimizerType::kAdamW);
  EXPECT_DOUBLE_EQ(scaled_learning_rate(s), 2e-3);
  EXPECT_DOUBLE_EQ(s.schedule.warmup_epochs, 0.05 * static_cast<double>(s.train.epochs));
}

}  // namespace
}  // namespace simclr
