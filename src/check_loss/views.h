// The two files of `simclr_train loss` in memory: the projector outputs of the two views of N images.
#pragma once

#include <filesystem>
#include <string>

#include "src/data/npy_file.h"

namespace simclr {

// Both of one type and shape [N, C], N >= 2, every number finite.
struct ViewPair {
  std::filesystem::path paths[2];
  NpyMatrix views[2];

  NpyType type() const { return views[0].header.type; }
  int64_t images() const { return views[0].header.rows; }      // N
  int64_t columns() const { return views[0].header.columns; }  // C
};

// Error(kData), one line, for a file that read_npy refuses and for two that do not belong together.
ViewPair read_views(const std::filesystem::path& view1, const std::filesystem::path& view2);

// The images of one rank: consecutive, as in training; none where there are fewer images than ranks.
struct ImageRange {
  int64_t first = 0;
  int64_t count = 0;
};
ImageRange images_of_rank(int64_t images, int rank, int ranks);

}  // namespace simclr
