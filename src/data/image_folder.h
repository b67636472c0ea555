// Images as people have them: folders of JPEG and PNG files, decoded when they are asked for.
//
//   PATH/train/CLASS/…  and PATH/val/CLASS/… (or PATH/test/CLASS/…)    two splits
//   PATH/CLASS/…                                                      a training split alone
//   PATH/…  or PATH/train/…  with files only                          images without labels
//
// A class is a folder; its images lie in it at any depth. Classes are numbered, and images ordered, by their names
// as bytes. Every regular file counts as an image, whatever it is called; names that start with a dot are passed over,
// links are followed, and what is no file (FIFO, socket, device) is never opened.
#pragma once

#include <memory>
#include <string>

#include "src/data/dataset.h"

namespace simclr {

// One split; a test split that is not there has no images. The test classes are those of the training split, in its
// numbering. What is odd (an empty class, loose files beside class folders, a loop of links) is told by a warning of
// the log, once. Error(kData): no such folder, no images for training, a folder that cannot be read, a class of the
// test split that the training split lacks.
//
// The fingerprint covers names, classes and sizes in bytes, not times (a copy is the same set) and not contents
// (reading them would take minutes at every start).
//
// A file that is no image, is damaged or too large: settings.on_error. fail: image() throws Error(kData). skip: it
// is replaced by the next good image of the same class (of the set where there are no labels) in order, the last one
// followed by the first; so its label holds, the number of images and steps stays, and which image stands in is a
// function of the files alone. A file that cannot be read at all (it vanished, the disk failed) is an error either way.
std::unique_ptr<Dataset> open_image_folder(const DataSettings& settings, Split split, const Beat& beat = no_beat);

}  // namespace simclr
