// The layout of CIFAR-100; cifar_files reads it.
#include "src/data/cifar100.h"

#include <sstream>

#include "src/data/cifar_files.h"

namespace simclr {
namespace {

constexpr const char* kFineNames =
    "apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle "
    "caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant "
    "flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man "
    "maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree "
    "plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper "
    "snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train "
    "trout tulip turtle wardrobe whale willow_tree wolf woman worm";

std::vector<std::string> fine_names() {
  std::vector<std::string> names;
  std::istringstream words(kFineNames);
  for (std::string word; words >> word;) names.push_back(word);
  return names;
}

}  // namespace

ImageSet read_cifar100(const std::string& path, Split split, const Beat& beat) {
  constexpr const char* kPython = "the Python version of CIFAR-100 (train without .bin)";
  const CifarLayout layout{.search = {.set = "CIFAR-100",
                                      .files = {"train.bin", "test.bin"},
                                      .subfolders = {"cifar-100-binary"},
                                      .others = {{"train", kPython}, {"cifar-100-python/train", kPython}},
                                      .download = "download the binary version, cifar-100-binary.tar.gz, from "
                                                  "https://www.cs.toronto.edu/~kriz/cifar.html, and unpack it"},
                           .train_files = {"train.bin"},
                           .test_files = {"test.bin"},
                           .all_needed = "train.bin and test.bin are both needed",
                           .labels = {{"coarse label", 20}, {"fine label", 100}},
                           .names_file = "fine_label_names.txt",
                           .class_names = fine_names()};
  return read_cifar(layout, path, split, beat);
}

}  // namespace simclr
