// Text and images as parts of an HTML page.
#pragma once

#include <string>
#include <string_view>

#include "src/data/png_image.h"

namespace simclr {

// For text and for attribute values in double quotes: no character keeps a meaning in HTML. What is no UTF-8 becomes
// U+FFFD, control characters become spaces.
std::string escape_html(std::string_view text);

std::string base64(std::string_view bytes);

// <img> with the image inside.
std::string image_tag(const RgbImage& image, std::string_view alternative_text);

}  // namespace simclr
