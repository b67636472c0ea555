// PNG images: the signature is given, and each chunk gets its right checksum, so that inputs reach their
// contents.
#include <zlib.h>

#include <algorithm>
#include <vector>

#include "tests/fuzz/image_target.h"

namespace {

constexpr size_t kSignatureBytes = 8, kChunkBytes = 12;  // length, type, checksum

uint32_t big_endian(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}

void correct_checksums(std::vector<uint8_t>& file) {
  for (size_t at = kSignatureBytes; file.size() >= at + kChunkBytes;) {
    const size_t length = big_endian(file.data() + at);
    if (length > file.size() - at - kChunkBytes) return;
    const auto sum = static_cast<uint32_t>(crc32(0, file.data() + at + 4, static_cast<uInt>(length + 4)));
    for (size_t i = 0; i < 4; ++i) file[at + 8 + length + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
    at += kChunkBytes + length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  std::vector<uint8_t> file(data, data + bytes);
  constexpr uint8_t kStart[kSignatureBytes] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  if (file.size() >= sizeof kStart) std::copy(std::begin(kStart), std::end(kStart), file.begin());
  correct_checksums(file);
  simclr::test::decode_foreign(file);
  return 0;
}
