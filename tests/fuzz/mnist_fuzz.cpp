// The idx files of MNIST, plain and compressed: both are taken by their content.
#include "src/data/mnist.h"

#include "tests/fuzz/foreign_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace simclr;
  using std::string_literals::operator""s;
  static const std::string images = "\0\0\x08\x03\0\0\0\1\0\0\0\x1c\0\0\0\x1c"s + std::string(784, 'x');
  static const std::string labels = "\0\0\x08\1\0\0\0\1\3"s;
  static test::FileSet files({{"train-images-idx3-ubyte.gz", images},
                              {"train-labels-idx1-ubyte.gz", labels},
                              {"t10k-images-idx3-ubyte", images},
                              {"t10k-labels-idx1-ubyte", labels}});
  for (const Split split : {Split::kTrain, Split::kTest})
    files.with(data, bytes, [&](const std::string& folder) { read_mnist(folder, split); });
  return 0;
}
