// The layout of CIFAR-10; cifar_files reads it.
#include "src/data/cifar10.h"

#include "src/data/cifar_files.h"

namespace simclr {

ImageSet read_cifar10(const std::string& path, Split split, const Beat& beat) {
  constexpr const char* kPython = "the Python version of CIFAR-10 (data_batch_1 without .bin)";
  const CifarLayout layout{
      .search = {.set = "CIFAR-10",
                 .files = {"data_batch_1.bin", "test_batch.bin"},
                 .subfolders = {"cifar-10-batches-bin"},
                 .others = {{"data_batch_1", kPython}, {"cifar-10-batches-py/data_batch_1", kPython}},
                 .download = "download the binary version, cifar-10-binary.tar.gz, from "
                             "https://www.cs.toronto.edu/~kriz/cifar.html, and unpack it"},
      .train_files = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                      "data_batch_5.bin"},
      .test_files = {"test_batch.bin"},
      .all_needed = "all six files of CIFAR-10 are needed",
      .labels = {{"label", 10}},
      .names_file = "batches.meta.txt",
      .class_names = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}};
  return read_cifar(layout, path, split, beat);
}

}  // namespace simclr
