// One encoded image through header and decoder, as the loader does it, within a limit that keeps a try short.
#pragma once

#include <array>
#include <cstdlib>
#include <vector>

#include "src/data/image_file.h"
#include "tests/fuzz/fuzz_input.h"

namespace simclr::test {

inline void decode_foreign(std::span<const uint8_t> file) {
  constexpr int64_t kMostPixels = 1 << 16;
  expect_parsed_or_refused(ExitCode::kData, false, [&] {
    const ImageInfo info = read_image_info(file, kMostPixels);
    std::vector<uint8_t> storage;
    for (const int reduction : {1, 8}) {
      const PlanarImage view = decode_image(file, info, reduction, storage);
      const bool whole = view.height == info.height && view.width == info.width;
      const bool part = view.height == (info.height + 7) / 8 && view.width == (info.width + 7) / 8;
      if (view.bytes() > static_cast<int64_t>(storage.size()) || !(whole || (reduction == 8 && part))) std::abort();
    }
  });
}

}  // namespace simclr::test
