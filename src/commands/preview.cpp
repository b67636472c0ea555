#include "src/commands/preview.h"

#include <algorithm>

#include "src/base/file.h"
#include "src/base/log.h"
#include "src/config/config_errors.h"
#include "src/config/enum_names.h"
#include "src/config/loader.h"
#include "src/report/images.h"

namespace simclr {

std::string write_preview(const PreviewCommand& command, const ConfigSource& source) {
  const Settings settings = load_settings(source.config, source.overrides);
  for (const std::string& text : ignored_overrides(source.overrides)) log_info("{}", text);
  const std::unique_ptr<Dataset> dataset = open_dataset(settings.data, Split::kTrain);
  const int64_t side = shown_side(settings.data.image_size);
  const std::vector<AugmentedPair> pairs = draw_pairs(*dataset, settings, 0, command.rows, side);
  const RgbImage grid = grid_of(rows_of(pairs));
  write_file_durably(command.output, encode_png(grid));
  const int64_t rows = std::ssize(pairs);
  return fmt::format(
      "{}: {} x {} pixels, {} row{}: image, view 1, view 2\n"
      "the first {} of the {} images of step 1 ({}, seed {}), views of {} x {} pixels{}{}\n",
      shown_path(command.output), grid.width, grid.height, rows, rows == 1 ? "" : "s", rows,
      settings.train.global_batch, enum_name(settings.data.format), settings.run.seed, settings.data.image_size,
      settings.data.image_size,
      side == settings.data.image_size ? "" : fmt::format(", enlarged {} times", side / settings.data.image_size),
      rows < command.rows ? "; the batch has no more images" : "");
}

}  // namespace simclr
