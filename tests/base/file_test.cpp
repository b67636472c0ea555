// Durable files, bounded reads, folders, status.json: content, and what is said when the system refuses.
#include "src/base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "src/base/status_file.h"
#include "tests/base/temporary_folder.h"

namespace simclr {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void expect_error(const std::function<void()>& act, ExitCode code, const testing::Matcher<std::string>& text) {
  try {
    act();
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code);
    EXPECT_THAT(std::string(e.what()), text);
    EXPECT_EQ(std::strchr(e.what(), '\n'), nullptr);
  }
}

int64_t entries(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

TEST(DurableFile, ReplacesTheContentAndLeavesNothingElse) {
  TemporaryFolder folder;
  const auto path = folder.path() / "a.bin";
  write_file_durably(path, "first, and longer");
  write_file_durably(path, std::string_view("\0b", 2));
  EXPECT_EQ(read_file(path, 100), std::string("\0b", 2));
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(DurableFile, WithoutCommitTheOldContentStays) {
  TemporaryFolder folder;
  const auto path = folder.path() / "a.txt";
  write_file_durably(path, "old");
  {
    DurableFile file(path);
    file.write(std::as_bytes(std::span("new", 3)));
    EXPECT_EQ(entries(folder.path()), 2);
  }
  EXPECT_EQ(read_file(path, 100), "old");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(DurableFile, NamesPathAndReason) {
  TemporaryFolder folder;
  expect_error([&] { write_file_durably(folder.path() / "none" / "a.txt", "x"); }, ExitCode::kOutput,
               AllOf(HasSubstr("none/a.txt"), HasSubstr("No such file or directory")));
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  for (const auto& path : {folder.path(), folder.path() / "pipe"})
    expect_error([&] { write_file_durably(path, "x"); }, ExitCode::kOutput,
                 HasSubstr(path.string() + ": it is not a regular file"));
  EXPECT_EQ(entries(folder.path()), 1) << "only the pipe";
}

TEST(DurableFile, TwoWritersOfOnePathShareNoTemporary) {
  TemporaryFolder folder;
  const auto path = folder.path() / "a.txt";
  DurableFile first(path), second(path);
  EXPECT_EQ(entries(folder.path()), 2);
  for (DurableFile* file : {&first, &second}) file->write(std::as_bytes(std::span(file == &first ? "1" : "2", 1)));
  second.commit();
  EXPECT_EQ(read_file(path, 100), "2");
  first.commit();
  EXPECT_EQ(read_file(path, 100), "1");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(DurableFile, ALinkInItsPlaceIsReplacedAndItsTargetStays) {
  TemporaryFolder folder;
  const auto target = folder.path() / "target", path = folder.path() / "a.txt";
  write_file_durably(target, "precious");
  std::filesystem::create_symlink(target, path);
  write_file_durably(path, "x");
  EXPECT_FALSE(std::filesystem::is_symlink(path));
  EXPECT_EQ(read_file(target, 100), "precious");
}

TEST(DurableFile, WhatItMakesIsFoundAsLeftOver) {
  TemporaryFolder folder;
  const auto path = folder.path() / "a.txt";
  const DurableFile file(path);
  EXPECT_EQ(remove_temporaries_of(path).size(), 1u);
  EXPECT_EQ(entries(folder.path()), 0);
}

TEST(OpenInPlace, OpensAFileAndRefusesWhatElseIsThere) {
  TemporaryFolder folder;
  const auto target = folder.path() / "target", link = folder.path() / "link", dangling = folder.path() / "dangling",
             pipe = folder.path() / "pipe";
  const int flags = O_WRONLY | O_APPEND | O_CREAT;
  ASSERT_TRUE(open_in_place(target, flags).is_open());
  ASSERT_TRUE(open_in_place(target, flags).is_open()) << "a second time";
  std::filesystem::create_symlink(target, link);
  std::filesystem::create_symlink(folder.path() / "none", dangling);
  for (const auto& path : {link, dangling})
    expect_error([&] { open_in_place(path, flags); }, ExitCode::kOutput,
                 HasSubstr("cannot open " + path.string() + ": it is a symbolic link; move it away"));
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error([&] { open_in_place(pipe, flags); }, ExitCode::kOutput, HasSubstr("it is a pipe; move it away"));
  expect_error([&] { open_in_place(folder.path(), flags); }, ExitCode::kOutput, HasSubstr("it is a folder"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "none"));
  std::filesystem::create_directory_symlink(folder.path(), folder.path() / "folder");
  EXPECT_TRUE(open_in_place(folder.path() / "folder" / "target", flags).is_open()) << "a run folder may be a link";
}

TEST(DurableFile, WhatAKilledProcessLeftIsRemovedAndNothingElse) {
  TemporaryFolder folder;
  const auto path = folder.path() / "a.txt";
  for (const char* name : {"a.txt", "a.txt.tmp-1", "a.txt.tmp-4711-0123456789abcdef", "a.txt.tmp-", "a.txt.tmp-12x",
                           "a.txt.tmp-12-x", "b.txt.tmp-1"})
    write_file_durably(folder.path() / name, "x");
  EXPECT_THAT(remove_temporaries_of(path),
              testing::UnorderedElementsAre("a.txt.tmp-1", "a.txt.tmp-4711-0123456789abcdef"));
  EXPECT_EQ(entries(folder.path()), 5);
  EXPECT_THAT(remove_temporaries_of(path), testing::IsEmpty());
  expect_error([&] { remove_temporaries_of(folder.path() / "none" / "a.txt"); }, ExitCode::kOutput,
               HasSubstr("cannot list"));
}

TEST(ReadFile, RefusesWhatIsMissingTooLargeOrAFolder) {
  TemporaryFolder folder;
  const auto path = folder.path() / "a.txt";
  write_file_durably(path, "12345");
  EXPECT_EQ(read_file(path, 5), "12345");
  expect_error([&] { read_file(path, 4, ExitCode::kUsage); }, ExitCode::kUsage, HasSubstr("more than 4 bytes"));
  expect_error([&] { read_file(folder.path() / "b", 4, ExitCode::kData); }, ExitCode::kData, HasSubstr("No such file"));
  expect_error([&] { read_file(folder.path(), 4); }, ExitCode::kOutput, HasSubstr("Is a directory"));
}

TEST(MakeDirectories, MakesThemOrSaysWhyNot) {
  TemporaryFolder folder;
  make_directories(folder.path() / "a" / "b" / "c");
  make_directories(folder.path() / "a" / "b" / "c" / "");
  EXPECT_TRUE(std::filesystem::is_directory(folder.path() / "a" / "b" / "c"));
  write_file_durably(folder.path() / "file", "x");
  expect_error([&] { make_directories(folder.path() / "file"); }, ExitCode::kOutput, HasSubstr("is a file"));
  expect_error([&] { make_directories(folder.path() / "file" / "below"); }, ExitCode::kOutput,
               AllOf(HasSubstr("file/below"), HasSubstr("Not a directory")));
}

TEST(StatusFile, HoldsHowTheRunEnded) {
  TemporaryFolder folder;
  RunStatus status{.ranks = 4, .host = "n1"};
  write_status_file(folder.path(), status);
  auto json = nlohmann::json::parse(read_file(folder.path() / "status.json", 10000));
  EXPECT_EQ(json["state"], "running");
  EXPECT_TRUE(json["exit_code"].is_null());

  status.state = RunState::kFailed;
  status.reason = "rank 2 \"n1\xff\" is gone";  // no UTF-8
  status.step = 17;
  status.checkpoint = "checkpoints/step_00000012.safetensors";
  status.exit_code = ExitCode::kDevice;
  EXPECT_TRUE(try_write_status_file(folder.path(), status));
  json = nlohmann::json::parse(read_file(folder.path() / "status.json", 10000));
  EXPECT_EQ(json["state"], "failed");
  EXPECT_THAT(json["reason"].get<std::string>(), HasSubstr("is gone"));
  EXPECT_EQ(json["step"], 17);
  EXPECT_EQ(json["exit_code"], 4);
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["host"], "n1");
  EXPECT_EQ(json["pid"], ::getpid());
  EXPECT_FALSE(try_write_status_file(folder.path() / "none", status));

  status.state = RunState::kRunning;
  write_status_file(folder.path(), status);
  json = nlohmann::json::parse(read_file(folder.path() / "status.json", 10000));
  EXPECT_EQ(json["state"], "failed") << "\"running\" came too late";
}

// The main thread and the watchdog's: whichever comes last, the file says how the run ended.
TEST(StatusFile, TwoThreadsOfOneProcessLeaveTheEnd) {
  TemporaryFolder folder;
  for (int round = 0; round < 20; ++round) {
    const auto run = folder.path() / std::to_string(round);
    make_directories(run);
    std::thread running([&] {
      for (int i = 0; i < 5; ++i) EXPECT_TRUE(try_write_status_file(run, {.state = RunState::kRunning}));
    });
    EXPECT_TRUE(try_write_status_file(run, {.state = RunState::kStopped, .exit_code = ExitCode::kStopped}));
    running.join();
    EXPECT_EQ(nlohmann::json::parse(read_file(run / "status.json", 10000))["state"], "stopped");
    EXPECT_EQ(entries(run), 1);
  }
}

}  // namespace
}  // namespace simclr
