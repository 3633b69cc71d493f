#include "runtime/planner/fleet_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>

#include "runtime/planner/table.h"
#include "runtime/planner/units.h"

namespace serin::planner {
namespace {

namespace json = boost::json;

std::string share_text(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// "a x 2, b"
std::string models_at(const std::vector<WantedModel>& wanted, const Packing& packing, size_t node, std::optional<size_t> card) {
  std::vector<std::string> names;
  for (const Placed& each : packing.placed)
    if (each.node == node && each.accelerator == card)
      names.push_back(wanted[each.model].name + (each.replicas > 1 ? fmt::format(" x {}", each.replicas) : ""));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string places_text(const Fleet& fleet, const std::vector<WantedModel>& wanted, const Packing& packing) {
  std::vector<std::vector<std::string>> rows = {{"node", "place", "models", "memory", "time"}};
  for (size_t node = 0; node < fleet.nodes.size(); ++node) {
    const FleetNode& place = fleet.nodes[node];
    if (const std::string names = models_at(wanted, packing, node, std::nullopt); !names.empty())
      rows.push_back({place.name, "CPU", names, "", ""});
    for (size_t card = 0; card < place.accelerators.size(); ++card) {
      const std::string names = models_at(wanted, packing, node, card);
      if (names.empty()) continue;
      const Accelerator& accelerator = place.accelerators[card];
      const CardUse use = use_of_card(fleet, wanted, packing.placed, node, card);
      rows.push_back(
          {place.name, fmt::format("{} {}", card, accelerator.name), names,
           fmt::format("{} of {}", short_bytes(static_cast<size_t>(use.memory)), short_bytes(static_cast<size_t>(accelerator.memory))),
           share_text(use.time)});
    }
  }
  return rows.size() > 1 ? "\n" + table(rows, "  ", 3) : std::string();
}

std::string ways_text(const std::vector<WantedModel>& wanted, const Packing& packing) {
  std::vector<std::vector<std::string>> rows = {{"model", "runs as", "replicas"}};
  for (size_t model = 0; model < wanted.size(); ++model) {
    int replicas = 0;
    const Option* way = nullptr;
    for (const Placed& each : packing.placed)
      if (each.model == model) {
        replicas += each.replicas;
        way = &wanted[model].options[each.option];
      }
    if (way)
      rows.push_back(
          {wanted[model].name, fmt::format("{}: {}", way->kind.empty() ? "CPU" : way->kind, way->how), fmt::format("{}", replicas)});
  }
  return rows.size() > 1 ? "\n" + table(rows, "  ", 2) : std::string();
}

std::string proof_text(const Packing& packing) {
  if (packing.solver.empty())
    return fmt::format("first fit, without a bound on what a better packing would gain: {}\n", packing.why_no_solver);
  const std::string unit = packing.priced ? "an hour" : "GB of accelerators";
  return fmt::format("{}: {:.1f} s, cost {:.4g} ({}), no packing costs less than {:.4g}: gap {:.2f} %\n", packing.solver, packing.seconds,
                     packing.cost, unit, packing.least_cost, 100 * packing.gap());
}

std::string use_text(const Fleet& fleet, const std::vector<WantedModel>& wanted, const Packing& packing) {
  std::vector<std::vector<std::string>> rows = {{"", "models", "in use", "memory", "time"}};
  const auto add = [&](const char* what, const std::vector<Placed>& placed) {
    const FleetUse use = use_of(fleet, wanted, placed);
    rows.push_back({what, fmt::format("{} of {}", use.models, wanted.size()), fmt::format("{} of {}", use.in_use, use.all),
                    share_text(use.memory), share_text(use.time)});
  };
  add("as the fleet is", {});
  add("an accelerator for each replica", one_each(fleet, wanted));
  add("packed", packing.placed);
  return "\naccelerators in use, and the part of them that is taken\n" + table(rows, "  ");
}

json::object use_json(const FleetUse& use) {
  return {{"models", use.models}, {"in_use", use.in_use}, {"accelerators", use.all}, {"memory", use.memory}, {"time", use.time}};
}

}  // namespace

std::string print_fleet_text(const Fleet& fleet, const std::vector<WantedModel>& wanted, const Packing& packing) {
  std::string text =
      fmt::format("{} of {} models are placed on {} nodes\n", wanted.size() - packing.not_placed.size(), wanted.size(), fleet.nodes.size());
  text += proof_text(packing);
  if (!packing.not_placed.empty() && !packing.solver.empty())
    text += fmt::format("at most {} of them can be placed at once\n", packing.most_models);
  text += ways_text(wanted, packing) + places_text(fleet, wanted, packing) + use_text(fleet, wanted, packing);
  if (!packing.not_placed.empty()) text += "\nnot placed\n";
  for (const auto& [model, why] : packing.not_placed) text += fmt::format("  {}: {}\n", wanted[model].name, why);
  if (!fleet.notes.empty()) text += "\nnotes\n";
  for (const std::string& note : fleet.notes) text += fmt::format("  {}\n", note);
  return text;
}

std::string print_fleet_json(const Fleet& fleet, const std::vector<WantedModel>& wanted, const Packing& packing) {
  json::array placed, refused;
  for (const Placed& each : packing.placed) {
    const Option& way = wanted[each.model].options[each.option];
    placed.push_back({{"model", wanted[each.model].name},
                      {"node", fleet.nodes[each.node].name},
                      {"accelerator", each.accelerator ? json::value(*each.accelerator) : json::value()},
                      {"kind", way.kind},
                      {"replicas", each.replicas},
                      {"how", way.how},
                      {"device_memory_bytes", way.device_memory},
                      {"time", way.busy},
                      {"cores", way.cores},
                      {"memory_bytes", way.memory}});
  }
  for (const auto& [model, why] : packing.not_placed) refused.push_back({{"model", wanted[model].name}, {"why", why}});
  const json::object object = {{"schema", "serin.fleet/1"},
                               {"solver", packing.solver},
                               {"why_no_solver", packing.why_no_solver},
                               {"seconds", packing.seconds},
                               {"cost", packing.cost},
                               {"least_cost", packing.least_cost},
                               {"gap", packing.gap()},
                               {"priced", packing.priced},
                               {"most_models", packing.most_models},
                               {"placed", std::move(placed)},
                               {"not_placed", std::move(refused)},
                               {"notes", json::array(fleet.notes.begin(), fleet.notes.end())},
                               {"use",
                                {{"before", use_json(use_of(fleet, wanted, {}))},
                                 {"one_each", use_json(use_of(fleet, wanted, one_each(fleet, wanted)))},
                                 {"packed", use_json(use_of(fleet, wanted, packing.placed))}}}};
  return json::serialize(object);
}

}  // namespace serin::planner
