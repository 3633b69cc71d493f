// decoders.cc: the limit that all decoders have.

#include "runtime/steps/decoders.h"

#include <fmt/format.h>

namespace serin::steps {

Status check_size(std::string_view format, int64_t width, int64_t height, int64_t max_pixels) {
  if (width <= 0 || height <= 0) return Error{Code::kCorrupt, fmt::format("a {} of {} x {} pixels", format, width, height)};
  if (width > max_pixels / height)
    return Error{Code::kTooLarge, fmt::format("a {} of {} x {} pixels; {} pixels are allowed", format, width, height, max_pixels)};
  return {};
}

}  // namespace serin::steps
