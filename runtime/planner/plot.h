// plot.h: draws points and lines over two axes as an SVG picture.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace serin::planner {

struct PlotPoint {
  double x = 0, y = 0;
  std::string label;  ///< shown when the mouse is over it; empty: nothing is
};

struct Series {
  std::string name;
  std::vector<PlotPoint> points;
  bool dots = false;    ///< no line between them
  bool second = false;  ///< in the second colour
};

/// On an axis with logarithms only points above 0 are drawn.
struct Plot {
  std::string x, y;  ///< names of the axes
  bool log_x = false, log_y = false;
  std::vector<Series> series;
};

std::string draw(const Plot& plot);

}  // namespace serin::planner
