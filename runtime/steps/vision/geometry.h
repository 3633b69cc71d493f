// geometry.h: points of pictures.
#pragma once

#include <array>

namespace serin::steps {

struct Point {
  float x = 0, y = 0;

  bool operator==(const Point&) const = default;
};

/// From the upper left corner clockwise.
using Quad = std::array<Point, 4>;

struct Size {
  int width = 0, height = 0;

  bool operator==(const Size&) const = default;
};

/// The place of a text, in pixels of the source picture, and the mean probability of its pixels.
struct TextBox {
  Quad points;
  float score = 0;

  bool operator==(const TextBox&) const = default;
};

}  // namespace serin::steps
