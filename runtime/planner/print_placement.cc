// print_placement.cc: the part of a report that speaks of a device or of a memory.

#include <fmt/format.h>

#include <boost/json.hpp>

#include "runtime/planner/report.h"
#include "runtime/planner/report_parts.h"
#include "runtime/planner/table.h"
#include "runtime/planner/units.h"

namespace serin::planner {
namespace {

namespace json = boost::json;

std::string milliseconds(double seconds) { return fmt::format("{:.{}f} ms", seconds * 1e3, seconds < 1e-3 ? 3 : seconds < 0.1 ? 2 : 0); }

std::string speed(const Answer& answer, const Placement& placement) {
  std::string text;
  for (size_t m = 0; m < answer.models.size(); ++m) {
    const ModelAnswer& model = answer.models[m];
    if (model.buckets.empty()) continue;
    std::vector<std::vector<std::string>> rows = {{"rows", "latency", "rows/s", "limited by"}};
    for (size_t b = 0; b < model.buckets.size(); ++b) {
      const Bucket& bucket = model.buckets[b];
      const Latency& latency = placement.latencies[m][b];
      const double intensity = bucket.moved > 0 ? static_cast<double>(bucket.flops) / static_cast<double>(bucket.moved) : 0;
      const auto row_rate = [&](double seconds) { return short_number(static_cast<double>(bucket.rows) / seconds, ""); };
      const bool range = latency.most > latency.least;
      rows.push_back({fmt::format("{}", bucket.rows),
                      range ? milliseconds(latency.least) + " to " + milliseconds(latency.most) : milliseconds(latency.most),
                      range ? row_rate(latency.most) + " to " + row_rate(latency.least) : row_rate(latency.most),
                      intensity < placement.roofs[m].ridge() ? "memory" : "arithmetic"});
    }
    text += fmt::format("\n  '{}' in {}, {}: a bound at {:.0f} FLOP/B\n", model.name, placement.precision,
                        placement.latencies[m].front().calibrated ? "calibrated" : "uncalibrated, so a range", placement.roofs[m].ridge()) +
            table(rows, "    ");
  }
  return text;
}

}  // namespace

std::string placement_text(const Answer& answer, const Placement& placement) {
  std::string text;
  if (placement.device) {
    text += fmt::format("\non {}{}\n", placement.device->name,
                        placement.device->runs ? std::string() : ": for planning only, because " + placement.device->why_not);
    text += speed(answer, placement);
  }
  if (placement.fit) {
    const Fit& fit = *placement.fit;
    text += fmt::format("\n{} {}: needs {} of {}\n", fit.fits ? "It fits" : "It does not fit", placement.where, short_bytes(fit.needs),
                        short_bytes(fit.has));
    if (!fit.advice.empty()) text += "  " + fit.advice + "\n";
    if (fit.largest_batch) text += fmt::format("  largest batch that fits: {}\n", *fit.largest_batch);
    text += fmt::format("  most instances that fit: {}\n", fit.most_instances);
    const bool on_card = placement.device && placement.device->kind != Device::Kind::kCpu;
    if (on_card) text += "  estimated from the plan for the CPU; a device's own plan needs the device\n";
    if (on_card && !fit.smallest.empty()) text += fmt::format("  smallest card or slice: {}\n", fit.smallest);
  }
  return text + "\n" + placement.resources;
}

json::object placement_json(const Placement& placement) {
  json::object object = {{"precision", placement.precision}, {"resources", placement.resources}};
  if (placement.device) {
    object["device"] = {{"name", placement.device->name}, {"runs", placement.device->runs}, {"why_not", placement.device->why_not}};
    json::array models, ridges;
    for (const Roof& roof : placement.roofs) ridges.emplace_back(roof.ridge());
    object["ridges_flops_per_byte"] = std::move(ridges);
    for (const auto& latencies : placement.latencies) {
      json::array list;
      for (const Latency& latency : latencies)
        list.push_back({{"least_seconds", latency.least}, {"most_seconds", latency.most}, {"calibrated", latency.calibrated}});
      models.push_back(std::move(list));
    }
    object["latencies"] = std::move(models);
  }
  if (placement.fit) {
    const Fit& fit = *placement.fit;
    object["fit"] = {{"needs_bytes", fit.needs},
                     {"has_bytes", fit.has},
                     {"fits", fit.fits},
                     {"most_instances", fit.most_instances},
                     {"smallest", fit.smallest},
                     {"advice", fit.advice},
                     {"largest_batch", fit.largest_batch ? json::value(*fit.largest_batch) : json::value()}};
  }
  return object;
}

}  // namespace serin::planner
