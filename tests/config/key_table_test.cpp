// The table is complete, consistent with the structs, and each key reads, prints and refuses as it says.
#include "src/config/key_table.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "tests/config/config_support.h"
#include "tests/config/key_values.h"

namespace simclr {
namespace {

using testing::HasSubstr;

// Number of members of an aggregate: the most initializers that it takes.
struct AnyValue {
  template <typename T>
  operator T() const;
};

template <typename T, size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires {
    T{(static_cast<void>(I), AnyValue{})...};
  };
}

template <typename T, size_t N = 32>
constexpr size_t member_count() {
  if constexpr (takes<T>(std::make_index_sequence<N>())) {
    return N;
  } else {
    return member_count<T, N - 1>();
  }
}

// Keys and sections directly inside a section ("" = the whole).
size_t child_count(const std::string& section) {
  std::set<std::string> children;
  const std::string prefix = section.empty() ? "" : section + ".";
  for (const Key& key : all_keys()) {
    if (key.path.starts_with(prefix)) children.insert(key.path.substr(0, key.path.find('.', prefix.size())));
  }
  return children.size();
}

TEST(KeyTable, HasAKeyForEveryMemberOfTheStructs) {
  EXPECT_EQ(child_count(""), member_count<Settings>());
  EXPECT_EQ(child_count("run"), member_count<RunSettings>());
  EXPECT_EQ(child_count("data"), member_count<DataSettings>());
  EXPECT_EQ(child_count("data.synthetic"), member_count<SyntheticSettings>());
  EXPECT_EQ(child_count("views"), member_count<ViewSettings>());
  EXPECT_EQ(child_count("views.jitter"), member_count<JitterSettings>());
  EXPECT_EQ(child_count("views.blur"), member_count<BlurSettings>());
  EXPECT_EQ(child_count("views.normalize"), member_count<NormalizeSettings>());
  EXPECT_EQ(child_count("model"), member_count<ModelSettings>());
  EXPECT_EQ(child_count("model.encoder"), member_count<EncoderSettings>());
  EXPECT_EQ(child_count("model.projector"), member_count<ProjectorSettings>());
  EXPECT_EQ(child_count("model.batch_norm"), member_count<BatchNormSettings>());
  EXPECT_EQ(child_count("loss"), member_count<LossSettings>());
  EXPECT_EQ(child_count("optimizer"), member_count<OptimizerSettings>());
  EXPECT_EQ(child_count("schedule"), member_count<ScheduleSettings>());
  EXPECT_EQ(child_count("train"), member_count<TrainSettings>());
  EXPECT_EQ(child_count("checkpoint"), member_count<CheckpointSettings>());
  EXPECT_EQ(child_count("resume"), member_count<ResumeSettings>());
  EXPECT_EQ(child_count("evaluate"), member_count<EvaluateSettings>());
  EXPECT_EQ(child_count("evaluate.knn"), member_count<KnnSettings>());
  EXPECT_EQ(child_count("log"), member_count<LogSettings>());
}

TEST(KeyTable, EachKeyStandsOnceAndHasTestValues) {
  std::set<std::string> paths;
  for (const Key& key : all_keys()) {
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
    EXPECT_EQ(find_key(key.path), &key);
    EXPECT_EQ(key_values().count(key.path), 1u) << key.path << " is missing in key_values.h";
  }
  EXPECT_EQ(key_values().size(), paths.size());
  EXPECT_EQ(find_key("train"), nullptr);
  EXPECT_TRUE(is_section("views.jitter"));
  EXPECT_FALSE(is_section("views.jit"));
  EXPECT_FALSE(is_section("views.flip"));
}

TEST(KeyTable, EachKeyReadsItsPrintedValueAndNothingElseChanges) {
  for (const Key& key : all_keys()) {
    const KeyOrigins none;
    Settings expected;
    const std::string printed = key.print(expected);
    EXPECT_EQ(key.check(expected), "") << key.path;
    const Settings unchanged = load("{}", {key.path + "=" + printed});
    EXPECT_EQ(unchanged, Settings()) << key.path;
  }
}

// The text of a file whose second line (third, in a section inside a section) is "name: value" of that key.
std::string nested(const std::string& path, const std::string& value) {
  std::string text, indentation;
  size_t begin = 0;
  for (size_t dot = path.find('.'); dot != std::string::npos; begin = dot + 1, dot = path.find('.', begin)) {
    text += indentation + path.substr(begin, dot - begin) + ":\n";
    indentation += "  ";
  }
  return text + indentation + path.substr(begin) + ": " + value + "\n";
}

TEST(KeyTable, AWrongTypeIsRefusedWithKeyLineAndWhatIsExpected) {
  for (const Key& key : all_keys()) {
    const int line = 1 + static_cast<int>(std::count(key.path.begin(), key.path.end(), '.'));
    const std::string place = "c.yaml:" + std::to_string(line) + ": " + key.path + ": ";
    for (const std::string& value : {key_values().at(key.path).wrong_type, std::string("{a: 1}"), std::string("[[1]]"),
                                     std::string("null"), std::string("!!set {}")}) {
      const std::string message = load_refusal(nested(key.path, value));
      EXPECT_THAT(message, testing::StartsWith(place)) << value;
      EXPECT_THAT(message, HasSubstr("; expected " + key.description())) << value;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
    EXPECT_THAT(load_refusal("{}", {key.path + "=" + key_values().at(key.path).wrong_type}),
                testing::StartsWith("--set: " + key.path + ": "));
    EXPECT_THAT(load_refusal(nested(key.path + "_", "1")), HasSubstr("did you mean " + key.path));
  }
}

TEST(KeyTable, RangesSayWhatTheyContain) {
  const ValueRange closed = {.low = 1, .high = 1024};
  EXPECT_EQ(closed.text(), "1..1024");
  EXPECT_TRUE(closed.contains(1) && closed.contains(1024));
  EXPECT_FALSE(closed.contains(0) || closed.contains(1025) || closed.contains(NAN));
  const ValueRange half_open = {.low = 0, .high = 2, .low_open = true, .high_open = true};
  EXPECT_EQ(half_open.text(), "> 0, < 2");
  EXPECT_FALSE(half_open.contains(0) || half_open.contains(2));
  EXPECT_EQ((ValueRange{.low = 0.005}.text()), ">= 0.005");
  EXPECT_EQ(ValueRange{}.text(), "");
}

TEST(KeyTable, EditDistanceCountsInsertionsDeletionsReplacements) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("flaw", "lawn"), 2u);
}

TEST(KeyTable, TheNearestKeyIsTheOneThatWasMeant) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"train.global_bacth", "train.global_batch"},
      {"train.batch", "train.global_batch"},
      {"train.batch_size", "train.global_batch"},
      {"train.seed", "run.seed"},
      {"seed", "run.seed"},
      {"lr", "optimizer.base_lr"},
      {"optimizer.lr", "optimizer.base_lr"},
      {"optimizer.weightdecay", "optimizer.weight_decay"},
      {"temperature", "loss.temperature"},
      {"train.temperature", "loss.temperature"},
      {"views.hue", "views.jitter.hue"},
      {"model.depth", "model.encoder.depth"},
      {"evaluate.k", "evaluate.knn.k"},
      {"knn.k", "evaluate.knn.k"},
      {"train.warmup_epochs", "schedule.warmup_epochs"},
      {"checkpoint.every", "checkpoint.every_epochs"},
      {"data.dataset", "data.path"},
  };
  for (const auto& [unknown, key] : cases) EXPECT_EQ(nearest_key(unknown), key) << unknown;
  EXPECT_EQ(nearest_key("TRAIN.EPOCHS"), "train.epochs");
  EXPECT_EQ(nearest_key("view", true), "views");
  EXPECT_EQ(nearest_key("jitter", true), "views.jitter");
  EXPECT_EQ(nearest_key("optimizer", true), "optimizer");
}

}  // namespace
}  // namespace simclr
