// first_fit.cc: first fit decreasing, the start of the solver and the answer without one; and what a fleet looks like without packing.
//
// It is tried with many orders that are nearly those of the sizes, and with other options first; the best is kept. The draws are the same in every run.

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "runtime/planner/free_room.h"
#include "runtime/planner/packing.h"

namespace serin::planner {
namespace {

/// The largest share of an accelerator, or of a node, that a replica of the model takes.
double size_of(const Fleet& fleet, const WantedModel& model) {
  double size = 0;
  for (const Option& option : model.options)
    for (const FleetNode& node : fleet.nodes) {
      if (option.kind.empty()) size = std::max({size, option.cores / node.cores, option.memory / node.memory});
      for (const Accelerator& card : node.accelerators)
        if (card.name == option.kind) size = std::max({size, option.device_memory / card.memory, option.busy});
    }
  return size;
}

std::vector<double> sizes_of(const Fleet& fleet, const std::vector<WantedModel>& wanted) {
  std::vector<double> sizes;
  sizes.reserve(wanted.size());
  for (const WantedModel& model : wanted) sizes.push_back(size_of(fleet, model));
  return sizes;
}

using Order = std::vector<size_t>;

/// `draw`: a factor for each size.
template <class Draw>
Order largest_first(std::vector<double> sizes, Draw draw) {
  Order order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (double& size : sizes) size *= draw();
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  return order;
}

/// Those that a policy prefers first; `draw` decides among equals.
template <class Draw>
Order options_in_order(const WantedModel& model, Draw draw) {
  Order order(model.options.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<std::pair<double, double>> keys;
  keys.reserve(model.options.size());
  for (const Option& option : model.options) keys.emplace_back(option.dislike, draw());
  std::ranges::stable_sort(order, {}, [&](size_t option) { return keys[option]; });
  return order;
}

class Filler {
 public:
  Filler(const Fleet& fleet, const std::vector<WantedModel>& wanted, bool one_each)
      : fleet_(fleet), wanted_(wanted), one_each_(one_each), room_(fleet, wanted) {}

  /// All replicas of a model by the first of its options that has room for them, or none.
  void add(size_t model, const Order& order) {
    const std::vector<Option>& options = wanted_[model].options;
    for (const size_t option : order) {
      const size_t before = placed_.size();
      int left = options[option].replicas;
      for (const bool used : {true, false}) {
        for (size_t node = 0; node < fleet_.nodes.size() && left > 0; ++node) left -= on_node(model, option, node, used, left);
        if (options[option].kind.empty()) break;
      }
      if (left == 0) return;
      for (; placed_.size() > before; placed_.pop_back()) room_.give_back(placed_.back());
    }
  }

  std::vector<Placed> placed() && { return std::move(placed_); }

 private:
  int on_node(size_t model, size_t option, size_t node, bool used, int most) {
    if (wanted_[model].options[option].kind.empty()) return put(model, option, node, std::nullopt, most);
    int done = 0;
    for (size_t card = 0; card < fleet_.nodes[node].accelerators.size() && done < most; ++card) {
      if (room_.in_use(node, card) != used || (one_each_ && used)) continue;
      done += put(model, option, node, card, one_each_ ? 1 : most - done);
    }
    return done;
  }

  int put(size_t model, size_t option, size_t node, std::optional<size_t> card, int most) {
    const int count = room_.fits(model, option, node, card, most);
    if (count == 0) return 0;
    placed_.push_back({model, option, node, card, count});
    room_.take(placed_.back());
    return count;
  }

  const Fleet& fleet_;
  const std::vector<WantedModel>& wanted_;
  const bool one_each_;
  FreeRoom room_;
  std::vector<Placed> placed_;
};

template <class Size, class Choice>
std::vector<Placed> fill(const Fleet& fleet, const std::vector<WantedModel>& wanted, const std::vector<double>& sizes, bool one_each,
                         Size size, Choice choice) {
  Filler filler(fleet, wanted, one_each);
  for (const size_t model : largest_first(sizes, size)) filler.add(model, options_in_order(wanted[model], choice));
  return std::move(filler).placed();
}

/// Models without a place, then the cost of accelerators that come into use. Dislikes count, too, as for the solver.
std::pair<size_t, double> cost_of_all(const Fleet& fleet, const std::vector<WantedModel>& wanted, const std::vector<Placed>& placed) {
  const bool priced = has_prices(fleet);
  double highest = 0, cost = 0;
  for (const FleetNode& node : fleet.nodes)
    for (const Accelerator& card : node.accelerators) highest = std::max(highest, cost_of(card, priced));
  std::set<size_t> models;
  std::set<std::pair<size_t, size_t>> opened;
  for (const Placed& each : placed) {
    models.insert(each.model);
    cost += each.replicas * wanted[each.model].options[each.option].dislike * highest;
    if (!each.accelerator || !opened.emplace(each.node, *each.accelerator).second) continue;
    const Accelerator& card = fleet.nodes[each.node].accelerators[*each.accelerator];
    if (!card.in_use()) cost += cost_of(card, priced);
  }
  return {wanted.size() - models.size(), cost};
}

double unchanged() { return 1; }

}  // namespace

std::vector<Placed> first_fit(const Fleet& fleet, const std::vector<WantedModel>& wanted) {
  constexpr size_t kMostTries = 2000, kMostWork = 20'000'000;  // models times accelerators
  constexpr double kWider = 0.3;                               // of a size
  const size_t tries = std::min(kMostTries, kMostWork / std::max<size_t>(1, wanted.size() * use_of(fleet, wanted, {}).all));
  const std::vector<double> sizes = sizes_of(fleet, wanted);  // the same in every try
  std::vector<Placed> best = fill(fleet, wanted, sizes, false, unchanged, unchanged);
  auto least = cost_of_all(fleet, wanted, best);
  std::mt19937_64 random(1);
  for (size_t i = 0; i < tries; ++i) {
    std::uniform_real_distribution<double> factor(1 - kWider, 1 + kWider), any(0, 1);
    std::vector<Placed> other = fill(fleet, wanted, sizes, false, [&] { return factor(random); }, [&] { return any(random); });
    const auto cost = cost_of_all(fleet, wanted, other);
    if (cost >= least) continue;
    least = cost;
    best = std::move(other);
  }
  return best;
}

std::vector<Placed> one_each(const Fleet& fleet, const std::vector<WantedModel>& wanted) {
  return fill(fleet, wanted, sizes_of(fleet, wanted), true, unchanged, unchanged);
}

}  // namespace serin::planner
