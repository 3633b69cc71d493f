// packing_reasons.cc: why a model has no place: first whether it would have one alone, then which resource the others left too little of.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "runtime/planner/free_room.h"
#include "runtime/planner/packing.h"
#include "runtime/planner/units.h"

namespace serin::planner {
namespace {

std::string bytes_text(double bytes) { return short_bytes(static_cast<size_t>(std::max(0.0, bytes))); }
std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }
std::string cores_text(double cores) { return fmt::format("{:.4g} cores", cores); }

/// Of the resources of one place, that of which the most is missing.
struct Shortage {
  std::string resource;
  double needs = 0, has = 0;

  double part() const { return needs > 0 ? std::max(0.0, needs - has) / needs : 0; }
  std::string print(const std::string& where) const {
    const auto number = [&](double value) {
      if (resource == "pods") return fmt::format("{:.0f} pods", value);
      return resource == "time" ? percent(value) : resource == "cores" ? cores_text(value) : bytes_text(value);
    };
    const std::string of = resource == "cores" || resource == "pods" ? "" : " of " + resource;
    return fmt::format("a replica needs {}{}, and the most that is free on {} is {}: {} are missing", number(needs), of, where, number(has),
                       number(needs - has));
  }
};

Shortage shortage_at(const FreeRoom& room, const Option& way, size_t node, std::optional<size_t> card) {
  const FreeRoom::Left& left = room.at(node);
  std::vector<Shortage> all = {{"cores", way.cores, left.cores}, {"memory", way.memory, left.memory}, {"pods", 1, left.pods}};
  if (card) {
    all.push_back({"device memory", way.device_memory, left.accelerators[*card].memory});
    all.push_back({"time", way.busy, left.accelerators[*card].time});
  }
  return *std::ranges::max_element(all, {}, &Shortage::part);
}

/// The place where the least is missing for one replica; nothing: one fits somewhere.
struct Nearest {
  Shortage shortage;
  std::string where;
  bool any = false;  ///< there is such an accelerator on a node with the labels
  int slots = 0;     ///< replicas that there is room for
};

Nearest nearest(const Fleet& fleet, const std::vector<WantedModel>& wanted, const FreeRoom& room, size_t model, size_t option) {
  Nearest best;
  double least = std::numeric_limits<double>::infinity();
  const Option& way = wanted[model].options[option];
  for (size_t node = 0; node < fleet.nodes.size(); ++node) {
    if (!has_labels(fleet.nodes[node], wanted[model].on)) continue;
    const size_t cards = way.kind.empty() ? 1 : fleet.nodes[node].accelerators.size();
    for (size_t card = 0; card < cards; ++card) {
      const std::optional<size_t> accelerator = way.kind.empty() ? std::nullopt : std::optional(card);
      if (accelerator && fleet.nodes[node].accelerators[card].name != way.kind) continue;
      best.any = true;
      best.slots += room.fits(model, option, node, accelerator, way.replicas);
      const Shortage here = shortage_at(room, way, node, accelerator);
      if (here.part() >= least) continue;
      least = here.part();
      best.shortage = here;
      best.where =
          accelerator ? fmt::format("{} of node '{}'", way.kind, fleet.nodes[node].name) : fmt::format("node '{}'", fleet.nodes[node].name);
    }
  }
  return best;
}

std::string help(const Shortage& shortage, const std::string& kind) {
  if (shortage.resource == "device memory") return "smaller batches, fewer instances, fp16, or a card with more memory would help";
  if (shortage.resource == "time") return "more replicas of less load each, a faster precision, or a faster card would help";
  return fmt::format("{} with more {} would help", kind.empty() ? "a node" : "a node of that card", shortage.resource);
}

std::string quota_reason(const Quota& quota, const std::string& tenant, const Option& way) {
  if (quota.devices && !way.kind.empty() && way.replicas > *quota.devices)
    return fmt::format("needs {} devices, and the quota of tenant '{}' has {} left", way.replicas, tenant, std::max(0, *quota.devices));
  if (quota.cores && way.replicas * way.cores > *quota.cores)
    return fmt::format("needs {}, and the quota of tenant '{}' has {} left", cores_text(way.replicas * way.cores), tenant,
                       cores_text(std::max(0.0, *quota.cores)));
  if (quota.memory && way.replicas * way.memory > *quota.memory)
    return fmt::format("needs {} of memory, and the quota of tenant '{}' has {} left", bytes_text(way.replicas * way.memory), tenant,
                       bytes_text(*quota.memory));
  return {};
}

}  // namespace

std::string why_not_placed(const Fleet& fleet, const std::vector<WantedModel>& wanted, size_t model, const std::vector<Placed>& placed) {
  const WantedModel& own = wanted[model];
  if (own.options.empty()) return own.no_option;
  const FreeRoom empty(fleet, wanted);
  FreeRoom filled(fleet, wanted);
  for (const Placed& each : placed) filled.take(each);
  std::string found;
  double least = std::numeric_limits<double>::infinity();
  const auto offer = [&](double part, std::string text) {
    if (part >= least) return;
    least = part;
    found = std::move(text);
  };
  for (size_t option = 0; option < own.options.size(); ++option) {
    const Option& way = own.options[option];
    const std::string kind = way.kind.empty() ? "a CPU" : way.kind;
    const Nearest alone = nearest(fleet, wanted, empty, model, option);
    if (!alone.any) {
      offer(1e9, own.on.empty() ? fmt::format("the fleet has no {}", kind) : fmt::format("no node with its labels has {}", kind));
      continue;
    }
    if (alone.slots == 0 && alone.shortage.part() > 0) {
      offer(1 + alone.shortage.part(), alone.shortage.print(alone.where) + "; " + help(alone.shortage, way.kind));
      continue;
    }
    if (const Quota* const quota = filled.quota(own.tenant))
      if (std::string reason = quota_reason(*quota, own.tenant, way); !reason.empty()) {
        offer(0.5, std::move(reason));
        continue;
      }
    if (alone.slots < way.replicas) {
      offer(0.9, fmt::format(
                     "{} replicas are needed on {}, and there is room for {} even without the other models: {} are missing; more cards of "
                     "that kind would help",
                     way.replicas, kind, alone.slots, way.replicas - alone.slots));
      continue;
    }
    const Nearest now = nearest(fleet, wanted, filled, model, option);
    const std::string lacks = now.shortage.part() > 0
                                  ? now.shortage.print(now.where)
                                  : fmt::format("there is room for {} of {} replicas on {}", now.slots, way.replicas, kind);
    offer(now.shortage.part() * 0.1, fmt::format("it fits alone, but not with the others: {}; {} more of {} would help", lacks,
                                                 std::max(1, way.replicas - now.slots), way.kind.empty() ? "node" : way.kind));
  }
  return found;
}

}  // namespace serin::planner
