// eval_html.cc: no script and no address of another host, so a report can be kept with a release and opened years later.

#include "runtime/cli/offline/eval_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/base/base64.h"
#include "runtime/base/html_escape.h"
#include "runtime/base/utf8.h"

namespace serin::cli {
namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>serin eval</title><style>
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;color:#1b1f24}
table{border-collapse:collapse;margin:.5rem 0 1.5rem}td,th{padding:.2rem .8rem;border-bottom:1px solid #d8dee4;text-align:right}
td:first-child,th:first-child{text-align:left}code{font-size:.85em;word-break:break-all}
.yes{color:#116329}.no{color:#a40e26}.inconclusive{color:#7d4e00}figure{display:inline-block;margin:0 2rem 1rem 0;vertical-align:top}
.worst{display:inline-block;width:11rem;margin:0 1rem 1rem 0;vertical-align:top;font-size:13px;overflow-wrap:anywhere}.worst img{max-width:100%;max-height:9rem;display:block}
</style></head><body>
)";

std::string shown(double value) { return std::isfinite(value) ? fmt::format("{:.4f}", value) : "-"; }

std::string measured_rows(const std::vector<Measured>& measured) {
  std::string html = "<table><tr><th>metric</th><th>value</th><th>from</th><th>to</th></tr>\n";
  for (const Measured& each : measured)
    html += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", html_escaped(each.metric), shown(each.value),
                        shown(each.interval.low), shown(each.interval.high));
  return html + "</table>\n";
}

/// Rows are the truth; a darker cell has a larger share of its row.
std::string confusion_svg(const EvalReport& report) {
  constexpr size_t kMostClasses = 40;  // more are unreadable; the JSON has them
  const size_t classes = report.classes.size();
  if (classes == 0 || classes > kMostClasses) return {};
  constexpr size_t kMargin = 90;
  const size_t cell = std::max<size_t>(14, 360 / classes);
  std::string svg = fmt::format(
      "<figure><figcaption>Confusion: truth in rows, answers in columns</figcaption><svg width=\"{0}\" height=\"{0}\" font-size=\"11\">\n",
      kMargin + cell * classes + 10);
  for (size_t row = 0; row < classes; ++row) {
    const auto name = html_escaped(utf8_prefix(report.classes[row], 12));
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kMargin - 5, kMargin + row * cell + cell / 2 + 4, name);
    svg +=
        fmt::format("<text transform=\"translate({},{}) rotate(-60)\">{}</text>\n", kMargin + row * cell + cell / 2 + 4, kMargin - 6, name);
    const int64_t* const counts = report.confusion.data() + row * classes;
    int64_t all = 0;
    for (size_t column = 0; column < classes; ++column) all += counts[column];
    for (size_t column = 0; column < classes; ++column) {
      const double share = all > 0 ? static_cast<double>(counts[column]) / static_cast<double>(all) : 0;
      svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" fill-opacity=\"{:.3f}\" stroke=\"#d8dee4\"/>",
                         kMargin + column * cell, kMargin + row * cell, cell, cell, row == column ? "#1f883d" : "#cf222e",
                         share > 0 ? 0.15 + 0.85 * share : 0);
      if (counts[column] > 0)
        svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", kMargin + column * cell + cell / 2,
                           kMargin + row * cell + cell / 2 + 4, counts[column]);
    }
  }
  return svg + "</svg></figure>\n";
}

std::string calibration_svg(const EvalReport& report) {
  if (report.calibration.empty()) return {};
  constexpr double kSide = 300, kLeft = 40;
  std::string svg = fmt::format(
      "<figure><figcaption>Calibration: accuracy by confidence</figcaption><svg width=\"{0}\" height=\"{0}\" font-size=\"11\">\n"
      "<line x1=\"{1}\" y1=\"{2}\" x2=\"{3}\" y2=\"10\" stroke=\"#8c959f\" stroke-dasharray=\"4\"/>",
      kSide + kLeft + 20, kLeft, kSide + 10, kLeft + kSide);
  const double width = kSide / static_cast<double>(report.calibration.size());
  for (size_t i = 0; i < report.calibration.size(); ++i) {
    const auto& bin = report.calibration[i];
    if (bin.rows == 0) continue;
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"#0969da\" fill-opacity=\"0.6\"><title>{} rows, "
        "confidence {:.3f}, "
        "accuracy {:.3f}</title></rect>\n",
        kLeft + static_cast<double>(i) * width, 10 + kSide * (1 - bin.accuracy), width - 2, kSide * bin.accuracy, bin.rows, bin.confidence,
        bin.accuracy);
  }
  for (int tenth = 0; tenth <= 10; tenth += 2) {
    const double at = kSide * tenth / 10;
    svg += fmt::format(
        "<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">0.{}</text><text x=\"{:.0f}\" y=\"{:.0f}\" "
        "text-anchor=\"end\">0.{}</text>\n",
        kLeft + at, kSide + 26, tenth, kLeft - 4, 14 + kSide - at, tenth);
  }
  std::string html = svg + "</svg></figure>\n";
  for (size_t at = html.find("0.10<"); at != std::string::npos; at = html.find("0.10<")) html.replace(at, 4, "1.0");
  return html;
}

/// The first metric of each slice, with its interval.
std::string slices_svg(const EvalReport& report) {
  if (report.slices.empty() || report.slices.front().measured.empty()) return {};
  double low = report.measured.front().value, high = low;
  for (const EvalSlice& slice : report.slices) {
    const Measured& first = slice.measured.front();
    for (const double value : {first.value, first.interval.low, first.interval.high}) {
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  constexpr double kWidth = 500, kNames = 200, kRow = 22;
  const auto x = [&](double value) { return kNames + (high > low ? (value - low) / (high - low) : 0.5) * kWidth; };
  const double height = static_cast<double>(report.slices.size()) * kRow + 24;
  std::string svg = fmt::format(
      "<figure><figcaption>{} by {}: {} to {}; the line is that of all rows</figcaption><svg width=\"{}\" height=\"{}\" "
      "font-size=\"12\">\n",
      html_escaped(report.measured.front().metric), html_escaped(report.slice_column), shown(low), shown(high), kNames + kWidth + 30,
      height);
  svg += fmt::format("<line x1=\"{0:.1f}\" y1=\"0\" x2=\"{0:.1f}\" y2=\"{1}\" stroke=\"#8c959f\" stroke-dasharray=\"4\"/>\n",
                     x(report.measured.front().value), height);
  double y = 16;
  for (const EvalSlice& slice : report.slices) {
    const Measured& first = slice.measured.front();
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{} ({})</text>", kNames - 10, y + 4,
                       html_escaped(utf8_prefix(slice.name, 24)), slice.rows);
    if (std::isfinite(first.interval.low) && std::isfinite(first.interval.high))
      svg += fmt::format("<line x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\" stroke=\"#0969da\" stroke-width=\"2\"/>",
                         x(first.interval.low), y, x(first.interval.high), y);
    if (std::isfinite(first.value)) svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{}\" r=\"4\" fill=\"#0969da\"/>\n", x(first.value), y);
    y += kRow;
  }
  return svg + "</svg></figure>\n";
}

/// By the first bytes, of what browsers show; empty: none of these.
std::string_view mime_of(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xD8\xFF")) return "image/jpeg";
  if (bytes.starts_with("\x89PNG")) return "image/png";
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP")) return "image/webp";
  if (bytes.starts_with("BM")) return "image/bmp";
  return {};
}

std::string picture_of(const datasets::Dataset& data, int64_t row) {
  constexpr size_t kMostBytes = size_t{4} << 20;  // of one picture in the page
  const auto column = data.column("image");
  if (!column) return {};
  const auto rows = data.read(row, 1, std::array{*column});
  if (!rows || rows->faults.front() || rows->cell(0, 0).kind != datasets::Cell::Kind::kText) return {};
  const std::string_view bytes = rows->cell(0, 0).text;
  const std::string_view mime = mime_of(bytes);
  if (mime.empty() || bytes.size() > kMostBytes) return {};
  return fmt::format("<img alt=\"row {}\" src=\"data:{};base64,{}\">", row, mime, encode_base64(bytes));
}

std::string gate_rows(const EvalReport& report) {
  std::string html;
  for (const auto& [requirement, value] : report.requirements)
    html += fmt::format("<tr class=\"{}\"><td>{}</td><td>{}</td><td>{}</td></tr>\n", requirement.holds(value) ? "yes" : "no",
                        html_escaped(requirement.text), shown(value), requirement.holds(value) ? "holds" : "does not hold");
  if (report.comparison) {
    const EvalComparison& comparison = *report.comparison;
    const auto& outcome = comparison.outcome;
    const std::string_view word = outcome.verdict == evaluation::Comparison::Verdict::kNoWorse ? "no worse"
                                  : outcome.verdict == evaluation::Comparison::Verdict::kWorse ? "worse"
                                                                                               : "inconclusive";
    html += fmt::format("<tr><td>{} no worse by more than {} than {}</td><td>{} ({} to {})</td><td>{}{}</td></tr>\n",
                        html_escaped(comparison.metric), shown(comparison.margin), shown(comparison.old_value), shown(outcome.difference),
                        shown(outcome.bounds.low), shown(outcome.bounds.high), word, comparison.gate ? "" : " (no gate)");
    if (!std::isnan(outcome.p_value))
      html += fmt::format("<tr><td>right only in the new model: {}, only in the old one: {}</td><td>p {:.3g}</td><td>McNemar</td></tr>\n",
                          outcome.only_new_right, outcome.only_old_right, outcome.p_value);
  }
  return html.empty() ? html : "<h2>Gate</h2><table>" + html + "</table>\n";
}

}  // namespace

std::string report_html(const EvalReport& report, const datasets::Dataset& data) {
  const std::string_view verdict = verdict_word(report.exit_code());
  std::string html(kHead);
  html += fmt::format("<h1>Verdict: <span class=\"{0}\">{0}</span></h1>\n<p>{1} of {2} rows, {3} at fault.</p>\n<table>", verdict,
                      kEvalTasks[static_cast<size_t>(report.task)], report.rows, report.faults);
  const auto file = [&](std::string_view what, const EvalFile& each) {
    html += fmt::format("<tr><td>{}</td><td>{}</td><td><code>sha256 {}</code></td></tr>\n", what, html_escaped(each.path), each.sha256);
  };
  file("model", report.model);
  if (report.against) file("against", *report.against);
  file("data", report.data);
  html += "</table>\n" + gate_rows(report);
  html += fmt::format("<h2>Metrics</h2><p>From and to: intervals of {:.0f} % confidence.</p>\n", report.confidence * 100) +
          measured_rows(report.measured);
  html += confusion_svg(report) + calibration_svg(report);
  if (!report.slices.empty()) {
    html += fmt::format("<h2>By {}</h2>\n", html_escaped(report.slice_column)) + slices_svg(report);
    for (const EvalSlice& slice : report.slices)
      html += fmt::format("<h3>{}: {} rows</h3>\n", html_escaped(slice.name), slice.rows) + measured_rows(slice.measured);
  }
  if (!report.worst.empty()) html += "<h2>Worst rows</h2>\n";
  for (const WorstRow& row : report.worst)
    html += fmt::format("<div class=\"worst\">{}<b>row {}</b>: {}<br>truth: {}<br>answer: {}</div>\n", picture_of(data, row.row), row.row,
                        html_escaped(row.place), html_escaped(utf8_prefix(row.truth, 200)), html_escaped(utf8_prefix(row.answer, 200)));
  return html + "</body></html>\n";
}

}  // namespace serin::cli
