// What TensorBoard will find, read back by the specification.
#include "src/metrics/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/common/error.h"
#include "src/metrics/metrics_file.h"
#include "tests/checkpoint/checkpoint_support.h"
#include "tests/metrics/event_reader.h"

namespace simclr {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> event_files(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(EventRecord, ChecksumsByRfc3720) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
}

TEST(EventRecord, ByHand) {
  // field 1 double 1.5; field 2 varint 300; field 5 {field 1 {field 1 "a"; field 2 float 2}}
  EXPECT_EQ(scalars_event({1.5, 300}, {{"a", 2.0}}),
            std::string("\x09\0\0\0\0\0\0\xF8\x3F\x10\xAC\x02\x2A\x0A\x0A\x08\x0A\x01\x61\x15\0\0\0\x40", 24));
}

TEST(EventFile, HoldsTheNumbersOfALine) {
  TemporaryFolder folder;
  EventFile file(folder.path(), 0);
  file.add_metrics(
      format_metrics({.step = 12, .epoch = 3, .loss = 0.25, .lr = 0.5, .images_per_s = 800, .data_wait_s = 2}));
  file.add_metrics(format_metrics(12, 3, {{"knn_top1", 0.75}}));
  file.add_metrics(R"({"step":13,"epoch":3,"loss":null,"loss_text":"nan","lr":0.5})");
  const auto events = read_events(file.path());
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].text(3), "brain.Event:2");
  EXPECT_GT(events[0].real64(1), 1.6e9);
  const ReadMessage summary = events[1].part(5);
  EXPECT_EQ(events[1].number(2), 12U);
  ASSERT_EQ(summary.texts.at(1).size(), 4U);
  const std::vector<std::pair<std::string, float>> expected = {
      {"train/loss", 0.25F}, {"train/lr", 0.5F}, {"train/images_per_s", 800.F}, {"train/data_wait_s", 2.F}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(summary.part(1, i).text(1), expected[i].first);
    EXPECT_EQ(summary.part(1, i).real32(2), expected[i].second);
  }
  EXPECT_EQ(events[2].part(5).part(1).text(1), "evaluate/knn_top1");
  ASSERT_EQ(events[3].part(5).texts.at(1).size(), 1U) << "a NaN loss has no point";
  EXPECT_EQ(events[3].part(5).part(1).text(1), "train/lr");
}

TEST(EventFile, HoldsTextAndImages) {
  TemporaryFolder folder;
  EventFile file(folder.path(), 0);
  file.add_text(0, "config", "    a: 1\n");
  file.add_image(7, "pairs", {.png = std::string(300, 'x'), .height = 20, .width = 300});
  const auto events = read_events(file.path());
  const ReadMessage text = events[1].part(5).part(1);
  EXPECT_EQ(text.part(9).part(1).text(1), "text");
  EXPECT_EQ(text.part(8).number(1), 7U);
  EXPECT_EQ(text.part(8).part(2).part(2).number(1), 1U);
  EXPECT_EQ(text.part(8).text(8), "    a: 1\n");
  const ReadMessage image = events[2].part(5).part(1).part(4);
  EXPECT_EQ(events[2].number(2), 7U);
  EXPECT_EQ(image.number(1), 20U);
  EXPECT_EQ(image.number(2), 300U);
  EXPECT_EQ(image.number(3), 3U);
  EXPECT_EQ(image.text(4), std::string(300, 'x'));
}

TEST(EventFile, AResumedRunBeginsALaterFileThatVoidsWhatFollowed) {
  TemporaryFolder folder;
  std::ofstream(folder.path() / "events.out.tfevents.4000000000.elsewhere.1.simclr") << "of a clock that is ahead";
  EventFile resumed(folder.path(), 12);
  ASSERT_EQ(event_files(folder.path()).back(), resumed.path().filename());
  const auto events = read_events(resumed.path());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].number(2), 13U);
  EXPECT_EQ(events[1].part(7).number(1), 1U);
}

TEST(EventFile, ARunFromItsStartReplacesTheFilesOfThisProgramOnly) {
  TemporaryFolder folder;
  std::ofstream(folder.path() / "events.out.tfevents.1000000000.host.1.simclr") << "old";
  std::ofstream(folder.path() / "events.out.tfevents.1000000000.host") << "somebody else's";
  EventFile file(folder.path(), 0);
  EXPECT_THAT(event_files(folder.path()),
              testing::ElementsAre("events.out.tfevents.1000000000.host", file.path().filename().string()));
}

TEST(EventFile, NamesTheFileThatCannotBeMade) {
  try {
    EventFile file("/proc/none", 1);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kOutput);
    EXPECT_THAT(error.what(), testing::HasSubstr("/proc/none"));
  }
}

}  // namespace
}  // namespace simclr
