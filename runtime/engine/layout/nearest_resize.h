// nearest_resize.h: a Resize that repeats whole pixels, which is a copy.
#pragma once

#include <optional>

#include "kernels/op.h"
#include "runtime/engine/program/program.h"

namespace serin::engine {

struct Repeats {
  int64_t rows, columns;
};

/// How often `step`, a Resize of images, repeats each pixel; nothing where it does anything else.
std::optional<Repeats> repeats_of(const Program& program, const Step& step);

}  // namespace serin::engine
