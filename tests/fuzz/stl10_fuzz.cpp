// The binary files of STL-10 and the names of its classes.
#include "src/data/stl10.h"

#include "tests/fuzz/foreign_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace simclr;
  static const std::string image(3 * 96 * 96, '\1');
  static test::FileSet files({{"train_X.bin", image},
                              {"train_y.bin", "\1"},
                              {"test_X.bin", image},
                              {"test_y.bin", "\x0a"},
                              {"unlabeled_X.bin", image},
                              {"class_names.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"}});
  for (const Split split : {Split::kTrain, Split::kTest, Split::kBank}) {
    files.with(data, bytes, [&](const std::string& folder) {
      const auto set = open_stl10(folder, split);
      std::vector<uint8_t> storage;
      for (int64_t i = 0; i < set->count(); ++i) set->image(i, storage);
    });
  }
  return 0;
}
