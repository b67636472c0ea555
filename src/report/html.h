// Text and images as parts of an HTML page.
#pragma once

#include <string>
#include <string_view>

#include "src/data/png_image.h"

namespace simclr {

// Escapes text for element contents and for attribute values in double quotes. Invalid UTF-8 becomes U+FFFD, control
// characters become spaces.
std::string escape_html(std::string_view text);

std::string base64(std::string_view bytes);

// <img> with the image embedded as a data URL.
std::string image_tag(const RgbImage& image, std::string_view alternative_text);

}  // namespace simclr
