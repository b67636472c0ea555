// TIFF 6.0, section 2: header, then the first directory of 12-byte entries. Offsets are untrusted: each is checked.
#include "src/data/exif.h"

#include <cstddef>

namespace simclr {
namespace {

constexpr uint32_t kOrientationTag = 0x0112, kShort = 3;
constexpr size_t kEntryBytes = 12;

class TiffReader {
 public:
  explicit TiffReader(std::span<const uint8_t> bytes) : bytes_(bytes), big_endian_(!bytes.empty() && bytes[0] == 'M') {}

  bool has(size_t at, size_t bytes) const { return at <= bytes_.size() && bytes <= bytes_.size() - at; }
  uint32_t number(size_t at, size_t bytes) const {  // has(at, bytes)
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | bytes_[at + (big_endian_ ? i : bytes - 1 - i)];
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
  bool big_endian_;
};

}  // namespace

int exif_orientation(std::span<const uint8_t> tiff) {
  const TiffReader reader(tiff);
  if (!reader.has(0, 8) || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M') || reader.number(2, 2) != 42)
    return 1;
  const size_t directory = reader.number(4, 4);
  if (!reader.has(directory, 2)) return 1;
  const size_t entries = reader.number(directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (!reader.has(entry, kEntryBytes)) return 1;
    if (reader.number(entry, 2) != kOrientationTag) continue;
    const uint32_t value = reader.number(entry + 8, 2);
    return reader.number(entry + 2, 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace simclr
