// The lines, their digits, and what a resumed run finds.
#include "src/metrics/metrics_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/checkpoint/checkpoint_support.h"

namespace simclr {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MetricsFileTest : public testing::Test {
 protected:
  std::string content() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& text) { std::ofstream(path_) << text; }
  static std::string line(int64_t step) { return fmt::format("{{\"step\":{},\"epoch\":0,\"loss\":1}}\n", step); }
  TemporaryFolder folder_;
  fs::path path_ = folder_.path() / "metrics.jsonl";
};

TEST(FormatMetrics, ByHand) {
  EXPECT_EQ(format_metrics({.step = 12, .epoch = 3, .loss = 0.1, .lr = 0.1, .images_per_s = 800, .data_wait_s = 0.25}),
            R"({"step":12,"epoch":3,"loss":0.10000000000000001,"lr":0.1,"images_per_s":800.0,"data_wait_s":0.25})");
  EXPECT_EQ(format_metrics(0, 0, {{"knn_top1", 0.5}, {"a\"b", 1e300}}),
            R"({"step":0,"epoch":0,"knn_top1":0.5,"a\"b":1e+300})");
}

TEST(FormatMetrics, LossesComeBackWithTheSameBits) {
  for (double loss : {5.4262981414794922, 1.0 / 3, 1e-310, -0.0, 1.7976931348623157e308, 0.1 + 0.2}) {
    const std::string line = format_metrics({.step = 1, .loss = loss, .lr = loss, .extra = {{"x", loss}}});
    const nlohmann::json json = nlohmann::json::parse(line);
    for (const char* key : {"loss", "lr", "x"}) {
      const double read = json[key].get<double>();
      EXPECT_EQ(std::memcmp(&read, &loss, sizeof loss), 0) << line;
    }
  }
}

TEST(FormatMetrics, WhatJsonDoesNotHaveIsNullWithItsName) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string line =
      format_metrics({.step = 1, .loss = std::nan(""), .lr = infinity, .extra = {{"x", -infinity}}});
  const nlohmann::json json = nlohmann::json::parse(line);
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_EQ(json["loss_text"], "nan");
  EXPECT_TRUE(json["lr"].is_null());
  EXPECT_EQ(json["lr_text"], "inf");
  EXPECT_EQ(json["x_text"], "-inf");
}

TEST_F(MetricsFileTest, ALineIsThereWhenAppendReturns) {
  write("old\n");
  MetricsFile file = MetricsFile::begin(path_);
  EXPECT_EQ(content(), "");
  file.append("{}");
  EXPECT_EQ(content(), "{}\n");
  file.append("{\"step\":2}");
  file.sync();
  EXPECT_EQ(content(), "{}\n{\"step\":2}\n");
}

TEST_F(MetricsFileTest, AResumedRunReadsAsOne) {
  write(line(0) + line(1) + line(2) + line(2) + line(3) + line(4));
  MetricsFile file = MetricsFile::continue_after(path_, 2);
  EXPECT_EQ(file.lines_removed(), 2);
  EXPECT_EQ(file.last_step(), 2);
  file.append("{\"step\":3}");
  EXPECT_EQ(content(), line(0) + line(1) + line(2) + line(2) + "{\"step\":3}\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1) << "no temporary file is left";
}

TEST_F(MetricsFileTest, NothingToRemoveLeavesTheFileAlone) {
  write(line(1) + line(2));
  const fs::file_time_type long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(path_, long_ago);
  EXPECT_EQ(MetricsFile::continue_after(path_, 5).last_step(), 2);
  EXPECT_EQ(fs::last_write_time(path_), long_ago);
}

TEST_F(MetricsFileTest, NoFileOrNoLineIsAnEmptyStart) {
  EXPECT_EQ(MetricsFile::continue_after(path_, 5).last_step(), -1);
  EXPECT_EQ(content(), "");
  EXPECT_EQ(MetricsFile::continue_after(path_, 5).lines_removed(), 0);
  write(line(6));
  EXPECT_EQ(MetricsFile::continue_after(path_, 5).lines_removed(), 1);
  EXPECT_EQ(content(), "");
}

TEST_F(MetricsFileTest, ADamagedEndGoes) {
  const std::string damages[] = {
      "{\"step\":3,\"lo", std::string(100, '\0'), "\n", "{}\n", "[3]\n", "3\n", "{\"step\":\"3\"}\n",
      "{\"step\":3.5}\n", "\xFF\n" + line(9)};
  for (const std::string& damage : damages) {
    write(line(1) + line(2) + damage);
    const MetricsFile file = MetricsFile::continue_after(path_, 5);
    EXPECT_EQ(content(), line(1) + line(2)) << damage;
    EXPECT_EQ(file.lines_removed(), damage.ends_with(line(9)) ? 2 : 1) << damage;
  }
}

TEST_F(MetricsFileTest, AWholeLastLineGetsItsEnd) {
  write(line(1) + "{\"step\":2}");
  MetricsFile file = MetricsFile::continue_after(path_, 5);
  file.append("{\"step\":3}");
  EXPECT_EQ(content(), line(1) + "{\"step\":2}\n{\"step\":3}\n");
}

TEST_F(MetricsFileTest, DamageInTheMiddleIsNamed) {
  const std::string text = line(1) + "{\"step\":\n" + line(3) + line(4);
  write(text);
  EXPECT_THAT(error_text([&] { MetricsFile::continue_after(path_, 3); }), HasSubstr("metrics.jsonl:2 is damaged"));
  EXPECT_EQ(content(), text) << "untouched";
  MetricsFile::continue_after(path_, 2);  // then it is the damaged end
  EXPECT_EQ(content(), line(1));
}

TEST_F(MetricsFileTest, ErrorsNameThePath) {
  const fs::path nowhere = folder_.path() / "none" / "metrics.jsonl";
  EXPECT_THAT(error_text([&] { MetricsFile::begin(nowhere); }), HasSubstr(nowhere.string()));
  EXPECT_THAT(error_text([&] { MetricsFile::continue_after(folder_.path(), 1); }), HasSubstr(folder_.path().string()));
  EXPECT_THAT(error_text([&] { MetricsFile::continue_after("/dev/full", 1); }), HasSubstr("not a regular file"));
  MetricsFile file = MetricsFile::begin(path_);
  const FileSizeLimit full(1);
  EXPECT_THAT(error_text([&] { file.append("{}"); }), HasSubstr(path_.string() + ": File too large"));
}

}  // namespace
}  // namespace simclr
