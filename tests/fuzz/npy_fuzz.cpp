// .npy files: any file. An array that is read has as many finite numbers as its header states.
#include "src/data/npy_file.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace simclr;
  const test::MemoryFile memory(data, bytes);
  test::expect_parsed_or_refused(ExitCode::kData, false, [&] {
    const NpyMatrix matrix = read_npy(memory.path());
    if (matrix.data.size() != static_cast<size_t>(matrix.header.data_bytes()) || matrix.data.size() > bytes)
      std::abort();
  });
  return 0;
}
