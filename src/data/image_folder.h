// data.format: image_folder. Folders of JPEG and PNG files, decoded on demand.
//
//   PATH/train/CLASS/…  and PATH/val/CLASS/… (or PATH/test/CLASS/…)    two splits
//   PATH/CLASS/…                                                      training split only
//   PATH/…  or PATH/train/…  with files only                          images without labels
//
// A class is a folder with images at any depth. Classes are numbered, and images ordered, by the bytes of their names.
// Every regular file counts as an image, whatever its name; names that start with a dot are ignored, links are
// followed, and FIFOs, sockets and devices are never opened.
#pragma once

#include <memory>
#include <string>

#include "src/data/dataset.h"

namespace simclr {

// Opens one split; a missing test split has no images. The test split uses the classes and the numbering of the
// training split. Oddities (an empty class, files next to class folders, a loop of links) are logged once as warnings.
// Error(kData): no such folder, no training images, a folder that cannot be read, a test class that the training split
// does not have.
//
// The fingerprint covers names, classes and sizes in bytes; not times (a copy is the same set) and not contents
// (reading them would take minutes at every start).
//
// settings.on_error decides on a file that is not an image, is damaged or too large. fail: image() throws Error(kData).
// skip: the next usable image of the same class (of the whole set without labels) replaces it, in order, the first one
// following the last. So labels and the number of images and steps stay the same, and the replacement depends on the
// files alone, not on ranks or time. A file that cannot be read at all (removed, disk failure) is always an error.
std::unique_ptr<Dataset> open_image_folder(const DataSettings& settings, Split split, const Beat& beat = no_beat);

}  // namespace simclr
