// Checkpoints: any file. Header, checksum, metadata and every tensor, as a resume reads them.
#include "src/checkpoint/training_state.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace simclr;
  const test::MemoryFile memory(data, bytes);
  const auto expect = [](auto&& parse) { test::expect_parsed_or_refused(ExitCode::kOutput, false, parse); };
  expect([&] {
    const SafetensorsFile file(memory.path());
    int64_t read = 0;
    for (const SafetensorsEntry& entry : file.entries())
      file.read_in_pieces(entry, [&](const char*, size_t piece) { read += static_cast<int64_t>(piece); });
    if (read > static_cast<int64_t>(bytes)) std::abort();
    expect([&] { file.verify_checksum(); });
    expect([&] { read_checkpoint_header(file); });
    expect([&] { weights_sha256(file); });
  });
  float value = 0;
  const NamedTensor wanted[] = {{"w", TensorType::kFloat32, {1}, &value}};
  expect([&] { load_checkpoint(memory.path(), wanted, LoadWhat::kWeights); });
  return 0;
}
