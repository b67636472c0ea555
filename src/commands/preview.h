// `simclr_train preview`: the augmented views of the first step, as a PNG image.
#pragma once

#include "src/config/command_line.h"

namespace simclr {

// Writes the image and returns the lines for the user. Error of the configuration, the data or the output.
std::string write_preview(const PreviewCommand& command, const ConfigSource& source);

}  // namespace simclr
