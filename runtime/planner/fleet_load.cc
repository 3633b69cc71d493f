#include "runtime/planner/fleet_load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

namespace serin::planner {
namespace {

/// The cards of one kind on one node.
struct Group {
  std::vector<MeasuredCard> cards;
  std::vector<Accelerator*> accelerators;
};

bool is_taken(const Accelerator& each) { return each.free_time() <= 0 && each.free_memory() <= 0; }

class Loader {
 public:
  Loader(const Catalogue& catalogue, Fleet& fleet) : catalogue_(catalogue), fleet_(fleet) {
    for (FleetNode& node : fleet.nodes) {
      for (Accelerator& each : node.accelerators) groups_[{node.name, each.name}].accelerators.push_back(&each);
      names_.emplace(node.name, node.name);
      if (const auto host = node.labels.find("kubernetes.io/hostname"); host != node.labels.end()) names_.emplace(host->second, node.name);
    }
  }

  void place(MeasuredCard card) {
    const auto node = names_.find(card.node);
    if (node == names_.end()) return strangers_[card.node].push_back(card.gpu);
    const auto found = catalogue_.find_all(card.model);
    if (!found) return note(node->second, fmt::format("card {} is a '{}', which the catalogue lacks", card.gpu, card.model));
    if (found->size() > 1)
      return note(node->second,
                  fmt::format("card {} is a '{}', which may be {} or {}", card.gpu, card.model, (*found)[0]->name, (*found)[1]->name));
    const std::string kind = found->front()->name + (card.slice.empty() ? "" : " " + card.slice);
    const auto group = groups_.find({node->second, kind});
    if (group == groups_.end())
      return note(node->second, fmt::format("card {} is measured, but the fleet has no {} there", card.gpu, kind));
    group->second.cards.push_back(std::move(card));
  }

  /// Returns how many accelerators got a load.
  size_t give() {
    size_t given = 0;
    for (auto& [where, group] : groups_) given += give(where.first, where.second, group);
    for (const auto& [node, cards] : strangers_)
      fleet_.notes.push_back(
          fmt::format("cards {} of the host '{}' are measured, but the fleet has no such node", fmt::join(cards, ", "), node));
    return given;
  }

 private:
  void note(const std::string& node, const std::string& text) { fleet_.notes.push_back(fmt::format("node {}: {}", node, text)); }

  size_t give(const std::string& node, const std::string& kind, Group& group) {
    const size_t measured = group.cards.size(), pairs = std::min(measured, group.accelerators.size());
    const auto taken = std::ranges::stable_partition(group.accelerators, [](const Accelerator* each) { return !is_taken(*each); });
    leave_out(group.cards, std::min(taken.size(), pairs));
    for (size_t i = 0; i + taken.size() < group.accelerators.size() && i < group.cards.size(); ++i)
      give_one(node, group.cards[i], *group.accelerators[i]);
    if (pairs < group.accelerators.size())
      note(node, fmt::format("{} of {} {} are not measured: their load stays as it is", group.accelerators.size() - pairs,
                             group.accelerators.size(), kind));
    if (pairs < measured)
      note(node, fmt::format("{} {} are measured, and the fleet has {} there", measured, kind, group.accelerators.size()));
    return pairs;
  }

  /// Those cards that are most likely the accelerators that are in use as a whole: of pods, else with most memory in use.
  static void leave_out(std::vector<MeasuredCard>& cards, size_t count) {
    for (; count > 0; --count) {
      const auto key = [](const MeasuredCard& card) { return std::pair(card.of_pod, card.bytes.value_or(0)); };
      cards.erase(std::ranges::max_element(cards, {}, key));
    }
  }

  void give_one(const std::string& node, const MeasuredCard& card, Accelerator& to) {
    if (card.busy) to.busy = std::clamp(*card.busy, 0.0, 1.0);
    if (card.bytes) to.memory_used = std::clamp(*card.bytes, 0.0, to.memory);
    if (!card.busy || !card.bytes)
      note(node, fmt::format("the {} of card {} is not measured: it stays as it is", card.busy ? "memory in use" : "busy time", card.gpu));
  }

  const Catalogue& catalogue_;
  Fleet& fleet_;
  std::map<std::pair<std::string, std::string>, Group> groups_;  // by node and kind
  std::map<std::string, std::string> names_;                     // of hosts: their nodes
  std::map<std::string, std::vector<std::string>> strangers_;    // by host: its cards
};

}  // namespace

size_t apply_load(std::vector<MeasuredCard> cards, const Catalogue& catalogue, Fleet& fleet) {
  Loader loader(catalogue, fleet);
  for (MeasuredCard& card : cards) loader.place(std::move(card));
  return loader.give();
}

}  // namespace serin::planner
