// The binary files of CIFAR-10 and the names of its classes.
#include "src/data/cifar10.h"

#include "tests/fuzz/foreign_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace simclr;
  static const std::string good(3073, '\1');
  static test::FileSet files({{"test_batch.bin", good},
                              {"data_batch_1.bin", good},
                              {"data_batch_2.bin", good},
                              {"data_batch_3.bin", good},
                              {"data_batch_4.bin", good},
                              {"data_batch_5.bin", good},
                              {"batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"}});
  for (const Split split : {Split::kTrain, Split::kTest})
    files.with(data, bytes, [&](const std::string& folder) { read_cifar10(folder, split); });
  return 0;
}
