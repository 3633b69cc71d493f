// print_text.cc: the answer as tables. Bytes are decimal (1 MB = 10^6 B), with three digits; print_json.cc has them exactly.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/planner/operators.h"
#include "runtime/planner/report.h"
#include "runtime/planner/report_parts.h"
#include "runtime/planner/table.h"
#include "runtime/planner/units.h"

namespace serin::planner {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string sizes_text(const graph::Bindings& sizes) {
  std::vector<std::string> parts;
  for (const auto& [symbol, size] : sizes) parts.push_back(fmt::format("{}={}", symbol, size));
  return parts.empty() ? "fixed" : fmt::format("{}", fmt::join(parts, " "));
}

/// Names of fused nodes are long: their ends say most.
std::string shortened(const std::string& name) {
  constexpr size_t kMost = 48;
  return name.size() <= kMost ? name : name.substr(0, kMost / 2 - 2) + "..." + name.substr(name.size() - kMost / 2 + 1);
}

std::string heading(const ModelAnswer& model) {
  const std::string batches = model.batch_symbol.empty() && !model.not_batchable.empty()
                                  ? fmt::format("no batches: {}", model.not_batchable)
                                  : fmt::format("batches up to {}", model.max_batch);
  return fmt::format("model '{}' version {} ({}): {}, {} instance{} of {} thread{}, {}\n", model.name, model.version, model.path,
                     model.precision, model.instances, model.instances == 1 ? "" : "s", model.threads, model.threads == 1 ? "" : "s",
                     batches);
}

std::string memory(const ModelAnswer& model) {
  const size_t weights = model.weights.constants + model.weights.packed;
  const auto count = static_cast<size_t>(model.instances);
  Rows rows = {{"weights", short_bytes(weights),
                fmt::format("constants {}, packed {}; while they are loaded {}", short_bytes(model.weights.constants),
                            short_bytes(model.weights.packed), short_bytes(model.weights_at_load))}};
  if (model.not_planned.empty()) {
    rows.push_back({"instances", short_bytes(count * model.each_instance()),
                    fmt::format("{} x {}: arenas, staging and executors of {} size{}", count, short_bytes(model.each_instance()),
                                std::min(model.held_buckets, model.buckets.size()), model.buckets.size() == 1 ? "" : "s")});
    rows.push_back({"requests", short_bytes(model.in_flight()),
                    fmt::format("{} at a time, of the largest batch, as binary tensors; as JSON text {}", model.clients,
                                short_bytes(model.as_json()))});
  }
  rows.push_back(
      {"model", short_bytes(model.structures + model.code + model.plan_constants), "graph, plans and kernels: measured while planning"});
  rows.push_back({"in all", short_bytes(model.steady()), fmt::format("at most {} while it is loaded", short_bytes(model.peak()))});
  for (auto& row : rows) std::swap(row[1], row[2]);
  std::string text;
  for (const auto& row : rows) text += fmt::format("  {:<10} {:>9}   {}\n", row[0], row[2], row[1]);
  return text;
}

std::string buckets(const ModelAnswer& model) {
  const bool timed = std::ranges::any_of(model.buckets, [](const Bucket& bucket) { return bucket.seconds.has_value(); });
  Rows rows = {{"size", "arena", "least", "scratch", "staging", "results", "MACs", "FLOPs", "moved", "FLOP/B"}};
  if (timed) rows.front().insert(rows.front().end(), {"latency", "rows/s"});
  for (const Bucket& bucket : model.buckets) {
    const double intensity = bucket.moved > 0 ? static_cast<double>(bucket.flops) / static_cast<double>(bucket.moved) : 0;
    rows.push_back({sizes_text(bucket.sizes), short_bytes(bucket.arena), short_bytes(bucket.live), short_bytes(bucket.scratch),
                    short_bytes(bucket.staging), short_bytes(bucket.results), short_number(static_cast<double>(bucket.macs), ""),
                    short_number(static_cast<double>(bucket.flops), ""), short_bytes(static_cast<size_t>(bucket.moved)),
                    fmt::format("{:.1f}", intensity)});
    if (timed && bucket.seconds) {
      rows.back().push_back(fmt::format("{:.3g} ms", *bucket.seconds * 1e3));
      rows.back().push_back(short_number(static_cast<double>(bucket.rows) / *bucket.seconds, ""));
    }
  }
  std::string text = "\n" + table(rows, "  ");
  if (timed)
    text += fmt::format("  latency of one run on this machine, calibrated; {:.0f} % of it in kernels that were measured\n",
                        100 * model.buckets.back().known_share);
  if (!model.corrected_by.empty())
    text += fmt::format("  and multiplied by {:.3g}, as runs at {} took\n", model.buckets.back().correction, model.corrected_by);
  return text;
}

/// `ridge`: FLOPs for each byte above which arithmetic limits a step on the device; 0: none was named.
std::string steps(const Bucket& bucket, size_t most, double ridge) {
  std::vector<Operator> list = operators(bucket);
  const size_t all = list.size();
  std::ranges::stable_sort(list,
                           [](const Operator& a, const Operator& b) { return std::pair(a.flops, a.moved) > std::pair(b.flops, b.moved); });
  if (list.size() > most) list.resize(most);
  Rows rows = {{"node", "operator", "kernel", "MACs", "FLOPs", "moved", "FLOP/B", "of all"}};
  for (const Operator& op : list)
    rows.push_back(
        {shortened(op.node), op.op, op.kernel, short_number(static_cast<double>(op.macs), ""),
         short_number(static_cast<double>(op.flops), ""), short_bytes(static_cast<size_t>(op.moved)), fmt::format("{:.1f}", op.intensity()),
         fmt::format("{:.1f} %", bucket.flops > 0 ? 100.0 * static_cast<double>(op.flops) / static_cast<double>(bucket.flops) : 0)});
  if (ridge > 0) {
    rows.front().emplace_back("limited by");
    for (size_t i = 0; i < list.size(); ++i) rows[i + 1].emplace_back(list[i].intensity() < ridge ? "memory" : "arithmetic");
  }
  return fmt::format("\n  {} of {} steps at {}, most arithmetic first\n", list.size(), all, sizes_text(bucket.sizes)) +
         table(rows, "    ", 3);
}

}  // namespace

std::string print_text(const Answer& answer, size_t most_steps, const Extras& extras) {
  const Placement* const placement = extras.placement;
  std::string text = fmt::format("on {}; planned in {:.0f} ms, no weights read\n", answer.backend, answer.planning_ms);
  for (const ModelAnswer& model : answer.models) {
    text += "\n" + heading(model);
    if (!model.precision_why.empty()) text += fmt::format("  precision: {}\n", model.precision_why);
    text += memory(model);
    if (!model.not_planned.empty())
      text += fmt::format("  It has no plan, because {}. The memory of a run depends on its data and is not counted.\n", model.not_planned);
    if (model.buckets.empty()) continue;
    const double ridge = placement && placement->device ? placement->roofs[static_cast<size_t>(&model - answer.models.data())].ridge() : 0;
    text += buckets(model);
    if (most_steps > 0) text += steps(model.buckets.back(), most_steps, ridge);
  }
  text += fmt::format("\nserve occupies {} {} ({} without a model)\n", answer.bounded() ? "at most" : "more than",
                      short_bytes(answer.total()), short_bytes(answer.base));
  if (placement) text += placement_text(answer, *placement);
  if (extras.from_template) text += template_text(*extras.from_template, extras.explain);
  text += notes_text(extras.notes);
  if (extras.offers) text += offers_text(*extras.offers);
  if (extras.observed) text += observed_text(*extras.observed);
  return text;
}

}  // namespace serin::planner
