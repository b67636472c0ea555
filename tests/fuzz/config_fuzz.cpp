// Configuration files: any text. What loads must print and load again as the same settings.
#include <string_view>

#include "src/config/loader.h"
#include "src/config/resolved.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace simclr;
  test::expect_parsed_or_refused(ExitCode::kUsage, true, [&] {
    const Settings settings = settings_from_string({reinterpret_cast<const char*>(data), bytes}, "fuzz.yaml");
    if (!(settings_from_string(print_config(settings), "printed.yaml") == settings)) std::abort();
  });
  return 0;
}
