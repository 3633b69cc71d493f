// print_html.cc: the answer as one page without scripts or links: tables, and plots in SVG. Colours work on light and on dark screens.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "runtime/base/html_escape.h"
#include "runtime/planner/operators.h"
#include "runtime/planner/plot.h"
#include "runtime/planner/report.h"
#include "runtime/planner/report_parts.h"
#include "runtime/planner/units.h"

namespace serin::planner {
namespace {

constexpr std::string_view kStyle = R"(<style>
:root{color-scheme:light dark;--ink:#1c2430;--dim:#5c6b7d;--line:#d5dce4;--one:#1668b8;--two:#b8501a;--paper:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e3e9f0;--dim:#93a3b5;--line:#36424f;--one:#62b0f5;--two:#f0965c;--paper:#151b22}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;margin:1rem 0}td,th{padding:.15rem .8rem;text-align:right;border-bottom:1px solid var(--line)}
td:first-child,th:first-child{text-align:left}figure{margin:1.5rem 0}figcaption{color:var(--dim)}
svg{max-width:100%;height:auto}svg text{fill:var(--dim);font:11px system-ui,sans-serif}.scroll{overflow-x:auto}pre{overflow-x:auto}
</style>
)";

std::string figure(const std::string& caption, const std::string& svg) {
  return fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", svg, html_escaped(caption));
}

std::string roofline(const Bucket& bucket, double ridge) {
  Plot plot{.x = "FLOPs for each byte", .y = "FLOPs of the step", .log_x = true, .log_y = true};
  Series steps{.name = "steps", .dots = true};
  double least = 1e18, most = 1;
  for (const Operator& op : operators(bucket))
    if (op.flops > 0 && op.moved > 0) {
      steps.points.push_back({op.intensity(), static_cast<double>(op.flops), op.node});
      least = std::min(least, static_cast<double>(op.flops));
      most = std::max(most, static_cast<double>(op.flops));
    }
  if (steps.points.empty()) return {};
  plot.series.push_back(std::move(steps));
  if (ridge > 0) plot.series.push_back({.name = "ridge of the device", .points = {{ridge, least, ""}, {ridge, most, ""}}, .second = true});
  return figure(ridge > 0 ? "Steps by arithmetic intensity: memory limits those on the left of the ridge, arithmetic those on its right"
                          : "Steps by arithmetic intensity; name a --device to see its ridge",
                draw(plot));
}

std::string memory_over_steps(const Bucket& bucket) {
  Plot plot{.x = "step", .y = "bytes in use"};
  Series live{.name = "in use"};
  for (const Operator& op : operators(bucket))
    live.points.push_back({static_cast<double>(op.place), static_cast<double>(op.live), op.node});
  if (live.points.empty()) return {};
  const double last = live.points.back().x, arena = static_cast<double>(bucket.arena);
  plot.series.push_back(std::move(live));
  plot.series.push_back({.name = "arena", .points = {{0, arena, ""}, {last, arena, ""}}, .second = true});
  return figure(fmt::format("The arena of {} rows over the steps of a run", bucket.rows), draw(plot));
}

/// Calibrated times, or else the range on the device; nothing without both.
std::string latency_over_batch(const ModelAnswer& model, const std::vector<Latency>* latencies) {
  Plot plot{.x = "rows", .y = "milliseconds", .log_x = true, .log_y = true};
  Series measured{.name = "calibrated"}, least{.name = "least, uncalibrated"}, most{.name = "most, uncalibrated", .second = true};
  for (size_t i = 0; i < model.buckets.size(); ++i) {
    const auto rows = static_cast<double>(model.buckets[i].rows);
    if (model.buckets[i].seconds) measured.points.push_back({rows, *model.buckets[i].seconds * 1e3, ""});
    if (!latencies) continue;
    least.points.push_back({rows, (*latencies)[i].least * 1e3, ""});
    most.points.push_back({rows, (*latencies)[i].most * 1e3, ""});
  }
  for (Series* series : {&measured, &least, &most})
    if (!series->points.empty()) plot.series.push_back(std::move(*series));
  return plot.series.empty() ? std::string() : figure("Predicted latency over the batch", draw(plot));
}

std::string bytes_table(const ModelAnswer& model) {
  std::string rows;
  const auto add = [&](std::string_view what, size_t bytes) {
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>", what, short_bytes(bytes), bytes);
  };
  add("constants", model.weights.constants);
  add("packed weights", model.weights.packed);
  add("weights while they are loaded", model.weights_at_load);
  add("each instance: arenas, staging, executors", model.each_instance());
  add("requests", model.in_flight());
  add("graph, plans, kernels", model.structures + model.code + model.plan_constants);
  add("in all", model.steady());
  return "<table><tr><th>bytes</th><th></th><th>exactly</th></tr>" + rows + "</table>\n";
}

std::string steps_table(const Bucket& bucket, double ridge) {
  std::vector<Operator> list = operators(bucket);
  std::ranges::stable_sort(list, std::greater(), &Operator::flops);
  std::string rows;
  for (const Operator& op : list)
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.1f}</td><td>{}</td></tr>\n",
                        html_escaped(op.node), html_escaped(op.op), html_escaped(op.kernel), op.macs, op.flops, op.moved, op.intensity(),
                        ridge == 0               ? ""
                        : op.intensity() < ridge ? "memory"
                                                 : "arithmetic");
  return fmt::format(
      "<details><summary>{} steps at {} rows</summary><div class=scroll><table><tr><th>node</th><th>operator</th><th>kernel</th>"
      "<th>MACs</th><th>FLOPs</th><th>bytes moved</th><th>FLOP/B</th><th>limited by</th></tr>\n{}</table></div></details>\n",
      list.size(), bucket.rows, rows);
}

}  // namespace

std::string print_html(const Answer& answer, const Placement* placement) {
  std::string page =
      "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>serin plan</title>\n";
  page += kStyle;
  page += fmt::format("<h1>serin plan</h1>\n<p>On {}. <b>serve occupies {} {}</b>, {} of it without a model. No weights were read.</p>\n",
                      html_escaped(answer.backend), answer.bounded() ? "at most" : "more than", short_bytes(answer.total()),
                      short_bytes(answer.base));
  for (size_t i = 0; i < answer.models.size(); ++i) {
    const ModelAnswer& model = answer.models[i];
    const bool on_device = placement && placement->device;
    const double ridge = on_device ? placement->roofs[i].ridge() : 0;
    page += fmt::format("<h2>{} version {}</h2>\n<p>{}: {}, {} instances of {} threads, batches up to {}.</p>\n", html_escaped(model.name),
                        html_escaped(model.version), html_escaped(model.path), model.precision, model.instances, model.threads,
                        model.max_batch);
    if (!model.not_planned.empty())
      page += fmt::format("<p>It has no plan, because {}. The memory of a run depends on its data and is not counted.</p>\n",
                          html_escaped(model.not_planned));
    page += bytes_table(model);
    if (model.buckets.empty()) continue;
    const Bucket& largest = model.buckets.back();
    page += roofline(largest, ridge) + memory_over_steps(largest) +
            latency_over_batch(model, on_device ? &placement->latencies[i] : nullptr) + steps_table(largest, ridge);
  }
  if (placement) page += fmt::format("<h2>Place</h2>\n<pre>{}</pre>\n", html_escaped(placement_text(answer, *placement)));
  return page + "</html>\n";
}

}  // namespace serin::planner
