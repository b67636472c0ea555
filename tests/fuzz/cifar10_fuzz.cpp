// The binary files of CIFAR-10: the first byte says which of the six files is foreign, the rest is its content.
#include <fcntl.h>

#include <filesystem>
#include <iterator>

#include "src/data/cifar10.h"
#include "tests/base/temporary_folder.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

constexpr size_t kRecordBytes = 3073;
const char* const kNames[] = {"test_batch.bin",   "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                              "data_batch_4.bin", "data_batch_5.bin", "batches.meta.txt"};
constexpr size_t kFiles = std::size(kNames);

void write(const std::filesystem::path& path, const void* data, size_t bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || simclr::write_all(fd, data, bytes) != 0) std::abort();
  ::close(fd);
}

void write_good(const std::filesystem::path& folder, size_t file) {
  const std::string good(kRecordBytes, '\1');
  write(folder / kNames[file], good.data(), good.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace simclr;
  if (bytes == 0) return 0;
  static const TemporaryFolder folder;
  [[maybe_unused]] static const bool written = [] {
    for (size_t i = 0; i < kFiles; ++i) write_good(folder.path(), i);
    return true;
  }();
  const size_t foreign = data[0] % kFiles;
  write(folder.path() / kNames[foreign], data + 1, bytes - 1);
  for (const Split split : {Split::kTrain, Split::kTest}) {
    testing::expect_parsed_or_refused(ExitCode::kData, false, [&] { read_cifar10(folder.path().string(), split); });
  }
  write_good(folder.path(), foreign);
  return 0;
}
