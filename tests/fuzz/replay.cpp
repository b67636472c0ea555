// Feeds every file of the folders on the command line to a fuzz target: the same inputs each time, on any compiler.
// Each is replayed whole, truncated, and with one byte changed, so that the corpus can stay small.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/fuzz_input.h"

namespace {

constexpr size_t kMostVariants = 200;  // of each kind and file

int64_t replay(std::vector<uint8_t> input) {
  int64_t count = 1;
  LLVMFuzzerTestOneInput(input.data(), input.size());
  const size_t step = input.size() / kMostVariants + 1;
  for (size_t at = 0; at < input.size(); at += step, count += 3) {
    LLVMFuzzerTestOneInput(input.data(), at);
    const uint8_t original = input[at];
    for (const int other : {original ^ 0x01, original ^ 0x80}) {
      input[at] = static_cast<uint8_t>(other);
      LLVMFuzzerTestOneInput(input.data(), input.size());
    }
    input[at] = original;
  }
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  int64_t inputs = 0, files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      inputs += replay({std::istreambuf_iterator<char>(file), {}});
      ++files;
    }
  }
  std::printf("%lld inputs from %lld files\n", static_cast<long long>(inputs), static_cast<long long>(files));
  return files > 0 ? 0 : 1;
}
