// pictures_anything.h: what a fuzzer asks of the decoders of pictures.
#pragma once

#include <string_view>

namespace serin::fuzz {

/// A byte for the options, then the file of a picture, or EXIF data.
void pictures_anything(std::string_view input);

}  // namespace serin::fuzz
