// The binary files of CIFAR-100.
#include "src/data/cifar100.h"

#include "tests/fuzz/foreign_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace simclr;
  static const std::string good(3074, '\1');
  static test::FileSet files({{"train.bin", good}, {"test.bin", good}});
  for (const Split split : {Split::kTrain, Split::kTest})
    files.with(data, bytes, [&](const std::string& folder) { read_cifar100(folder, split); });
  return 0;
}
