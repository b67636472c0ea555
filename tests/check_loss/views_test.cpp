// Two files that do not belong together are refused by one line; every image is one rank's.
#include "src/check_loss/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/checkpoint/checkpoint_support.h"
#include "tests/data/npy_support.h"

namespace simclr {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Views, HoldsTwoFilesTogether) {
  const TemporaryFolder folder;
  const auto write_matrix = [&](const std::string& name, const auto& numbers, const std::string& shape) {
    write_file(folder.path() / name, test::npy_bytes(numbers, shape));
    return folder.path() / name;
  };
  const auto a = write_matrix("a.npy", std::vector<float>{1, 2, 3, 4, 5, 6}, "(3, 2)");
  const auto refuse_pair = [&](const std::filesystem::path& b) {
    return error_text([&] { read_views(a, b); }, ExitCode::kData);
  };
  EXPECT_EQ(read_views(a, a).images(), 3);
  EXPECT_THAT(refuse_pair(write_matrix("b.npy", std::vector<float>{1, 2, 3, 4, 5, 6}, "(2, 3)")),
              AllOf(HasSubstr("a.npy is [3, 2] and "), HasSubstr("b.npy is [2, 3]")));
  EXPECT_THAT(refuse_pair(write_matrix("c.npy", std::vector<float>{1, 2, 3, 4}, "(2, 2)")),
              HasSubstr("c.npy is [2, 2]"));
  EXPECT_THAT(refuse_pair(write_matrix("d.npy", std::vector<double>{1, 2, 3, 4, 5, 6}, "(3, 2)")),
              AllOf(HasSubstr("a.npy is float32 and "), HasSubstr("d.npy is float64")));
  const auto one = write_matrix("one.npy", std::vector<float>{1, 2}, "(1, 2)");
  EXPECT_THAT(error_text([&] { read_views(one, one); }, ExitCode::kData), HasSubstr("has 1 row"));
}

// Consecutive, all of them, none twice; as even as it goes.
TEST(ImagesOfRank, CoverAllImages) {
  for (const int64_t images : {1, 2, 7, 8, 100}) {
    for (const int ranks : {1, 2, 3, 4, 9}) {
      int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const ImageRange range = images_of_rank(images, rank, ranks);
        EXPECT_EQ(range.first, next);
        EXPECT_GE(range.count, images / ranks);
        EXPECT_LE(range.count, images / ranks + 1);
        next += range.count;
      }
      EXPECT_EQ(next, images);
    }
  }
}

}  // namespace
}  // namespace simclr
