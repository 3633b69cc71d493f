// plot.cc: axes run over the values that there are. Ticks are powers of ten on an axis with logarithms, else five equal parts.

#include "runtime/planner/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/base/html_escape.h"
#include "runtime/planner/units.h"

namespace serin::planner {
namespace {

constexpr double kPlotWidth = 720, kPlotHeight = 300, kLeft = 70, kRight = 20, kTop = 24, kBottom = 40;

class Axis {
 public:
  Axis(bool logarithmic, double from, double to) : logarithmic_(logarithmic), from_(from), to_(to) {}

  void cover(double value) {
    if (!shows(value)) return;
    low_ = any_ ? std::min(low_, scaled(value)) : scaled(value);
    high_ = any_ ? std::max(high_, scaled(value)) : scaled(value);
    any_ = true;
  }
  void round() {
    if (logarithmic_)
      low_ = std::floor(low_), high_ = std::ceil(high_);
    else
      low_ = std::min(low_, 0.0);
    if (high_ - low_ < 1e-12) high_ = low_ + 1;
  }
  bool shows(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }
  double at(double value) const { return from_ + (to_ - from_) * (scaled(value) - low_) / (high_ - low_); }
  std::vector<double> ticks() const {
    std::vector<double> values;
    const double step = logarithmic_ ? std::max(1.0, std::ceil((high_ - low_) / 8)) : (high_ - low_) / 5;
    for (int i = 0; low_ + i * step <= high_ + 1e-9; ++i) values.push_back(logarithmic_ ? std::pow(10, low_ + i * step) : low_ + i * step);
    return values;
  }

 private:
  double scaled(double value) const { return logarithmic_ ? std::log10(value) : value; }

  const bool logarithmic_;
  const double from_, to_;
  double low_ = 0, high_ = 1;
  bool any_ = false;
};

std::string axes(const Plot& plot, const Axis& x, const Axis& y) {
  std::string svg;
  for (const double tick : x.ticks())
    svg += fmt::format("<path d=\"M{0:.1f} {1}V{2}\" stroke=\"var(--line)\"/><text x=\"{0:.1f}\" y=\"{3}\" text-anchor=middle>{4}</text>",
                       x.at(tick), kTop, kPlotHeight - kBottom, kPlotHeight - kBottom + 15, short_number(tick, ""));
  for (const double tick : y.ticks())
    svg += fmt::format("<path d=\"M{1} {0:.1f}H{2}\" stroke=\"var(--line)\"/><text x=\"{3}\" y=\"{4:.1f}\" text-anchor=end>{5}</text>",
                       y.at(tick), kLeft, kPlotWidth - kRight, kLeft - 6, y.at(tick) + 4, short_number(tick, ""));
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=middle>{}</text><text x=\"{}\" y=\"14\">{}</text>",
                     (kLeft + kPlotWidth - kRight) / 2, kPlotHeight - 6, html_escaped(plot.x), 4, html_escaped(plot.y));
  return svg;
}

std::string drawn(const Series& series, const Axis& x, const Axis& y) {
  const std::string_view colour = series.second ? "var(--two)" : "var(--one)";
  std::string path, dots;
  for (const PlotPoint& point : series.points) {
    if (!x.shows(point.x) || !y.shows(point.y)) continue;
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x.at(point.x), y.at(point.y));
    if (series.dots || !point.label.empty() || series.points.size() <= 16)
      dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" fill-opacity=\".6\"><title>{}</title></circle>",
                          x.at(point.x), y.at(point.y), series.dots ? 4 : 2, colour, html_escaped(point.label));
  }
  if (series.dots || path.empty()) return dots;
  return fmt::format("<path d=\"{}\" fill=none stroke=\"{}\" stroke-width=\"1.5\"/>", path, colour) + dots;
}

}  // namespace

std::string draw(const Plot& plot) {
  Axis x(plot.log_x, kLeft, kPlotWidth - kRight), y(plot.log_y, kPlotHeight - kBottom, kTop);
  for (const Series& series : plot.series)
    for (const PlotPoint& point : series.points) x.cover(point.x), y.cover(point.y);
  x.round(), y.round();
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=img aria-label=\"{} over {}\">", kPlotWidth, kPlotHeight,
                                html_escaped(plot.y), html_escaped(plot.x));
  svg += axes(plot, x, y);
  double legend = kPlotWidth - kRight;
  for (const Series& series : plot.series) {
    svg += drawn(series, x, y);
    svg += fmt::format("<text x=\"{}\" y=\"14\" text-anchor=end style=\"fill:{}\">{}</text>", legend,
                       series.second ? "var(--two)" : "var(--one)", html_escaped(series.name));
    legend -= 8.0 * static_cast<double>(series.name.size()) + 10;
  }
  return svg + "</svg>";
}

}  // namespace serin::planner
