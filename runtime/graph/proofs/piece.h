// piece.h: neighbours in a value, whose 2-norm magnitudes.h bounds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace serin::graph {

/// Neighbours along an axis. The first is at a multiple of `length`, which divides the axis. Length 1: any element, whatever the axis.
struct Piece {
  size_t axis = 0;
  int64_t length = 1;
};

}  // namespace serin::graph
