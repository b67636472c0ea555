// JPEG images: the first two bytes are given, so that no input is wasted on them.
#include <algorithm>
#include <vector>

#include "tests/fuzz/image_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  std::vector<uint8_t> file(data, data + bytes);
  constexpr uint8_t kStart[] = {0xff, 0xd8, 0xff};
  if (file.size() >= sizeof kStart) std::copy(std::begin(kStart), std::end(kStart), file.begin());
  simclr::test::decode_foreign(file);
  return 0;
}
