#include "src/check_loss/views.h"

#include "kernels/common/error.h"
#include "src/config/config_errors.h"

namespace simclr {

ViewPair read_views(const std::filesystem::path& view1, const std::filesystem::path& view2) {
  ViewPair pair{.paths = {view1, view2}, .views = {read_npy(view1), read_npy(view2)}};
  const NpyHeader &a = pair.views[0].header, &b = pair.views[1].header;
  const std::string first = shown_path(view1.string()), second = shown_path(view2.string());
  if (a.rows != b.rows || a.columns != b.columns)
    fail(ExitCode::kData,
         "{} is [{}, {}] and {} is [{}, {}]; give two views of the same images: row i of both is image i", first,
         a.rows, a.columns, second, b.rows, b.columns);
  if (a.type != b.type)
    fail(ExitCode::kData, "{} is {} and {} is {}; save both as one type, e.g. z.astype(np.float32)", first,
         name_of(a.type), second, name_of(b.type));
  if (a.rows < 2)
    fail(ExitCode::kData,
         "{} has 1 row: an image alone has no negatives; save the whole batch, gathered from all ranks", first);
  return pair;
}

ImageRange images_of_rank(int64_t images, int rank, int ranks) {
  const int64_t first = images * rank / ranks;
  return {.first = first, .count = images * (rank + 1) / ranks - first};
}

}  // namespace simclr
