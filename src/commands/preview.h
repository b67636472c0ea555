// `simclr_train preview`: the views that training will see, as an image, before anybody trains.
#pragma once

#include "src/config/command_line.h"

namespace simclr {

// Writes the image and returns the lines that tell of it. Error of the configuration, the data or the output.
std::string write_preview(const PreviewCommand& command, const ConfigSource& source);

}  // namespace simclr
