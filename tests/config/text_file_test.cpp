// Which files are refused as a configuration, and which forms of text are accepted.
#include "src/config/text_file.h"

#include <sys/stat.h>

#include "tests/config/config_support.h"

namespace simclr {
namespace {

using testing::HasSubstr;

TEST(TextFile, UnreadableFilesAreRefusedWithTheReason) {
  const TemporaryFolder folder;
  EXPECT_THAT(refusal([&] { read_text_file(folder.path() + "/none.yaml"); }), HasSubstr("no such file (looked in /"));
  EXPECT_THAT(refusal([&] { read_text_file(folder.path()); }), HasSubstr("is a folder"));
  EXPECT_THAT(refusal([&] { read_text_file(""); }), HasSubstr("no such file"));
  EXPECT_THAT(refusal([] { read_text_file("/dev/null"); }), HasSubstr("not a regular file"));
  const std::string file = folder.write("a.yaml", "x");
  EXPECT_THAT(refusal([&] { read_text_file(file + "/b.yaml"); }), HasSubstr(file));
  ASSERT_EQ(mkfifo((folder.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal([&] { read_text_file(folder.path() + "/pipe"); }), HasSubstr("not a regular file"));
}

TEST(TextFile, AFileWithoutPermissionIsRefusedWithTheReason) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const TemporaryFolder folder;
  const std::string file = folder.write("a.yaml", "{}");
  ASSERT_EQ(chmod(file.c_str(), 0), 0);
  EXPECT_THAT(refusal([&] { read_text_file(file); }), HasSubstr("Permission denied"));
}

TEST(TextFile, OneMebibyteIsTheLimit) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_text_file(folder.write("a.yaml", std::string(kMaxConfigBytes, '#'))).size(), kMaxConfigBytes);
  const std::string large = folder.write("b.yaml", std::string(kMaxConfigBytes + 1, '#'));
  EXPECT_THAT(refusal([&] { read_text_file(large); }), HasSubstr("larger than 1 MiB"));
}

std::string problem_of(std::string_view text) {
  ConfigErrors errors;
  clean_text(text, "f", errors);
  return refusal([&] { errors.raise_if_any(); });
}

TEST(TextFile, ByteOrderMarkAndCrlfAreAccepted) {
  ConfigErrors errors;
  EXPECT_EQ(clean_text("\xEF\xBB\xBF"
                       "a: 1\r\n\r\nb: \xE2\x82\xAC\t2\r\n",
                       "f", errors),
            "a: 1\n\nb: \xE2\x82\xAC\t2\n");
  EXPECT_EQ(clean_text("a", "f", errors), "a");
  EXPECT_EQ(clean_text("  # a comment\n\t# another\n\t\n", "f", errors), "  # a comment\n\t# another\n\t\n");
  EXPECT_TRUE(errors.empty());
}

TEST(TextFile, InvalidTextIsRefusedWithLineAndByte) {
  EXPECT_EQ(problem_of("a:\n\tb: 1\n  \tc: 2\n"),
            "f:2: a tab in the indentation; YAML requires spaces\n"
            "f:3: a tab in the indentation; YAML requires spaces");
  EXPECT_THAT(problem_of(std::string("a\0b", 3)), HasSubstr("f:1: byte 0x00 at column 2 is a control character"));
  EXPECT_THAT(problem_of("\x7f"), HasSubstr("byte 0x7f at column 1 is a control character"));
  EXPECT_THAT(problem_of("a\rb"), HasSubstr("carriage return inside the line"));
  EXPECT_THAT(problem_of("\xFF\xFE"
                         "a"),
              HasSubstr("byte 0xff at column 1 is not UTF-8"));
  for (const char* bad : {"\x80", "\xC0\xAF", "\xC3", "\xC3(", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82"}) {
    EXPECT_THAT(problem_of(bad), HasSubstr("is not UTF-8"));
  }
}

}  // namespace
}  // namespace simclr
