// nearest_resize.h: recognises a Resize that repeats whole pixels, which is a copy.
#pragma once

#include <optional>

#include "kernels/op.h"
#include "runtime/engine/program/program.h"

namespace serin::engine {

struct Repeats {
  int64_t rows, columns;
};

/// Returns how often `step`, a Resize of images, repeats each pixel. Returns nothing if it does anything else.
std::optional<Repeats> repeats_of(const Program& program, const Step& step);

}  // namespace serin::engine
