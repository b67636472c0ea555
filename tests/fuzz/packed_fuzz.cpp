// A packed data set. Its checksum of the description is corrected before it is read, so that the parser
// behind it is reached: an attacker can do the same.
#include <cstddef>
#include <vector>

#include "src/base/sha256.h"
#include "src/data/packed_file.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

void correct_checksum(std::vector<uint8_t>& file) {
  using namespace simclr;
  if (file.size() < sizeof(PackedTail)) return;
  const size_t end = file.size() - sizeof(PackedTail);
  PackedTail tail;
  std::memcpy(&tail, file.data() + end, sizeof tail);
  if (tail.entries_at > end) return;
  Sha256 hash;
  hash.update(file.data() + tail.entries_at, end - tail.entries_at);
  hash.update(file.data() + end, offsetof(PackedTail, described));
  std::memcpy(file.data() + end + offsetof(PackedTail, described), hash.hex().data(), Sha256::kHexDigits);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace simclr;
  std::vector<uint8_t> content(data, data + bytes);
  correct_checksum(content);
  const test::MemoryFile file(content.data(), content.size());
  test::expect_parsed_or_refused(ExitCode::kData, false, [&] {
    const PackedFile packed(file.path());
    for (const Split split : {Split::kTrain, Split::kTest, Split::kBank}) packed.matches_content(split, no_beat);
  });
  return 0;
}
