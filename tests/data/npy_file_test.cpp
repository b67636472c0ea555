// What is written reads back, and what is not a matrix of finite numbers is refused by one line with its path.
#include "src/data/npy_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "tests/checkpoint/checkpoint_support.h"
#include "tests/data/npy_support.h"

namespace simclr {
namespace {

using test::npy_start;
using test::npy_text;
using testing::AllOf;
using testing::HasSubstr;

class NpyFile : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    write_file(folder_.path() / name, bytes);
    return folder_.path() / name;
  }
  template <typename T>
  std::filesystem::path write_matrix(const std::string& name, const std::vector<T>& numbers,
                                     const std::string& shape) const {
    return write(name, test::npy_bytes(numbers, shape));
  }
  // The refusal names the file.
  static std::string refusal(const std::filesystem::path& path) {
    const std::string text = error_text([&] { read_npy(path); }, ExitCode::kData);
    EXPECT_THAT(text, HasSubstr("cannot read " + path.string() + ": "));
    return text;
  }

  TemporaryFolder folder_;
};

TEST_F(NpyFile, ReadsNumbersRowByRow) {
  const NpyMatrix m = read_npy(write_matrix<float>("f.npy", {1, 2, 3, 4, 5, 6.5F}, "(3, 2)"));
  EXPECT_EQ(m.at(0, 1), 2);
  EXPECT_EQ(m.at(1, 0), 3);
  EXPECT_EQ(m.at(2, 1), 6.5);
  EXPECT_EQ(read_npy(write_matrix<double>("d.npy", {0.1, 1e300}, "(1, 2)")).at(0, 0), 0.1);
}

TEST_F(NpyFile, WhatIsWrittenIsReadAgain) {
  const std::vector<double> numbers = {1, -2, 1e-300, 4, 5, 6};
  const NpyMatrix m = test::npy_matrix(numbers, 3);
  write_npy(folder_.path() / "g.npy", m.header, m.data);
  const NpyMatrix again = read_npy(folder_.path() / "g.npy");
  EXPECT_EQ(again.header.rows, 2);
  EXPECT_EQ(again.header.columns, 3);
  EXPECT_EQ(again.data, m.data);
  EXPECT_THAT(error_text([&] { write_npy(folder_.path() / "none" / "g.npy", m.header, m.data); }),
              HasSubstr("none/g.npy"));
}

TEST_F(NpyFile, RefusesFoldersPipesAndEmptyFiles) {
  EXPECT_THAT(refusal(folder_.path() / "nothing.npy"), HasSubstr("No such file"));
  EXPECT_THAT(refusal(folder_.path()), HasSubstr("it is a folder"));
  const auto pipe = folder_.path() / "pipe.npy";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refusal(pipe), HasSubstr("not a regular file"));  // at once, although the pipe has no writer
  EXPECT_THAT(refusal("/dev/null"), HasSubstr("not a regular file"));
  EXPECT_THAT(refusal(write("empty.npy", "")), HasSubstr("it is empty"));
}

TEST_F(NpyFile, RefusesWhatMayNotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const auto path = write_matrix<float>("secret.npy", {1, 2}, "(1, 2)");
  ::chmod(path.c_str(), 0);
  EXPECT_THAT(refusal(path), HasSubstr("Permission denied"));
}

TEST_F(NpyFile, RefusesWhatIsCutOffOrTooLong) {
  const std::string whole = npy_start(npy_text("'<f4'", "False", "(2, 2)")) + std::string(16, '\0');
  EXPECT_NO_THROW(read_npy(write("whole.npy", whole)));
  EXPECT_THAT(refusal(write("short.npy", whole.substr(0, whole.size() - 1))), HasSubstr("there are 15: cut off"));
  EXPECT_THAT(refusal(write("long.npy", whole + "x")), HasSubstr("there are 17"));
  // No memory is taken on the word of a header: this would be 4 EB.
  EXPECT_THAT(refusal(write("huge.npy", npy_start(npy_text("'<f4'", "False", "(1073741824, 1073741824)")))),
              HasSubstr("needs 4611686018427387904 bytes of data, there are 0"));
}

TEST_F(NpyFile, NamesTheFirstNumberThatIsNotFinite) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(refusal(write_matrix<float>("nan.npy", {1, 2, 3, nan, 5, nan}, "(3, 2)")),
              HasSubstr("row 1, column 1 (both from 0) is nan"));
  EXPECT_THAT(refusal(write_matrix<float>("inf.npy", {1, 2, 3, 4, -infinity, 6}, "(3, 2)")),
              HasSubstr("row 2, column 0 (both from 0) is -inf"));
  EXPECT_THAT(refusal(write_matrix<double>("nan64.npy", {static_cast<double>(nan), 2}, "(1, 2)")),
              HasSubstr("row 0, column 0"));
}

}  // namespace
}  // namespace simclr
