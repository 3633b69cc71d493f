#include "runtime/planner/packing_program.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

namespace serin::planner {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();

}  // namespace

PackingProgram::PackingProgram(const Fleet& fleet, const std::vector<WantedModel>& wanted) : fleet_(fleet), wanted_(wanted) {
  const bool priced = has_prices(fleet);
  for (size_t node = 0; node < fleet.nodes.size(); ++node) {
    auto& columns = open_of_.emplace_back();
    for (size_t card = 0; card < fleet.nodes[node].accelerators.size(); ++card) {
      const Accelerator& accelerator = fleet.nodes[node].accelerators[card];
      const double cost = cost_of(accelerator, priced);
      columns.push_back(accelerator.in_use() ? -1 : add(1, cost));
      if (columns.back() >= 0) open_.push_back({node, card, columns.back(), cost});
    }
  }
  const FreeRoom room(fleet, wanted);
  double highest = 1;
  for (const Open& open : open_) highest = std::max(highest, open.cost);
  for (size_t model = 0; model < wanted.size(); ++model) {
    Row one{.lower = -kEndless, .upper = 1, .entries = {}};
    for (size_t option = 0; option < wanted[model].options.size(); ++option) {
      taken_.push_back({model, option, add(1, 0)});
      one.entries.emplace_back(taken_.back().column, 1.0);
      add_places(room, highest, model, option, taken_.back().column);
    }
    if (!one.entries.empty()) program_.rows.push_back(std::move(one));
  }
  limit_cards();
  limit_nodes();
  limit_quotas();
}

int PackingProgram::add(double upper, double cost) {
  program_.columns.push_back({.lower = 0, .upper = upper, .cost = cost, .integer = true});
  return static_cast<int>(program_.columns.size()) - 1;
}

void PackingProgram::add_places(const FreeRoom& room, double highest, size_t model, size_t option, int taken) {
  const Option& way = wanted_[model].options[option];
  Row all{.lower = 0, .upper = 0, .entries = {{taken, -static_cast<double>(way.replicas)}}};
  for (size_t node = 0; node < fleet_.nodes.size(); ++node) {
    const size_t cards = way.kind.empty() ? 1 : fleet_.nodes[node].accelerators.size();
    for (size_t card = 0; card < cards; ++card) {
      const std::optional<size_t> accelerator = way.kind.empty() ? std::nullopt : std::optional(card);
      const int most = room.fits(model, option, node, accelerator, way.replicas);
      if (most == 0) continue;
      const int column = add(most, highest * way.dislike);
      places_.push_back({{model, option, node, accelerator, 0}, column});
      all.entries.emplace_back(column, 1.0);
    }
  }
  program_.rows.push_back(std::move(all));  // of no place: z is 0
}

void PackingProgram::limit_cards() {
  std::map<std::pair<size_t, size_t>, std::pair<Row, Row>> rows;  // memory and time
  for (const Where& where : places_) {
    if (!where.placed.accelerator) continue;
    const Option& way = wanted_[where.placed.model].options[where.placed.option];
    auto& [memory, time] = rows[{where.placed.node, *where.placed.accelerator}];
    if (way.device_memory > 0) memory.entries.emplace_back(where.column, way.device_memory / 1e9);
    if (way.busy > 0) time.entries.emplace_back(where.column, way.busy);
    if (way.device_memory <= 0 && way.busy <= 0) time.entries.emplace_back(where.column, 1e-6);  // it opens the card all the same
  }
  for (auto& [place, both] : rows) {
    const Accelerator& card = fleet_.nodes[place.first].accelerators[place.second];
    const int open = open_of_[place.first][place.second];
    const auto limit = [&](Row row, double free) {
      if (row.entries.empty()) return;
      row.lower = -kEndless;
      row.upper = open < 0 ? free : 0;
      if (open >= 0) row.entries.emplace_back(open, -free);
      program_.rows.push_back(std::move(row));
    };
    limit(std::move(both.first), card.free_memory() / 1e9);
    limit(std::move(both.second), card.free_time());
  }
  // Of equal unused cards of a node the first is used first: otherwise the solver tries them all.
  for (size_t i = 1; i < open_.size(); ++i) {
    const Open& before = open_[i - 1];
    const Open& each = open_[i];
    if (before.node != each.node ||
        fleet_.nodes[each.node].accelerators[before.accelerator].name != fleet_.nodes[each.node].accelerators[each.accelerator].name)
      continue;
    program_.rows.push_back({.lower = 0, .upper = kEndless, .entries = {{before.column, 1.0}, {each.column, -1.0}}});
  }
}

void PackingProgram::limit_nodes() {
  struct Rows {
    Row cores, memory, pods;
  };
  std::map<size_t, Rows> rows;
  for (const Where& where : places_) {
    const Option& way = wanted_[where.placed.model].options[where.placed.option];
    auto& [cores, memory, pods] = rows[where.placed.node];
    if (way.cores > 0) cores.entries.emplace_back(where.column, way.cores);
    if (way.memory > 0) memory.entries.emplace_back(where.column, way.memory / 1e9);
    if (fleet_.nodes[where.placed.node].pods) pods.entries.emplace_back(where.column, 1.0);
  }
  for (auto& [node, of] : rows) {
    const FleetNode& place = fleet_.nodes[node];
    of.cores.lower = of.memory.lower = of.pods.lower = -kEndless;
    of.cores.upper = place.cores - place.cores_used;
    of.memory.upper = (place.memory - place.memory_used) / 1e9;
    of.pods.upper = place.pods.value_or(kEndless) - place.pods_used;
    for (Row* row : {&of.cores, &of.memory, &of.pods})
      if (!row->entries.empty()) program_.rows.push_back(std::move(*row));
  }
}

void PackingProgram::limit_quotas() {
  for (const auto& [tenant, quota] : fleet_.quotas) {
    const auto limit = [&, name = tenant](double most, const std::function<double(const Where&)>& each) {
      Row row{.lower = -kEndless, .upper = most, .entries = {}};
      for (const Where& where : places_)
        if (wanted_[where.placed.model].tenant == name && each(where) > 0) row.entries.emplace_back(where.column, each(where));
      if (!row.entries.empty()) program_.rows.push_back(std::move(row));
    };
    const auto way = [&](const Where& where) -> const Option& { return wanted_[where.placed.model].options[where.placed.option]; };
    if (quota.devices) limit(*quota.devices, [](const Where& where) { return where.placed.accelerator ? 1.0 : 0.0; });
    if (quota.cores) limit(*quota.cores, [&](const Where& where) { return way(where).cores; });
    if (quota.memory) limit(*quota.memory / 1e9, [&](const Where& where) { return way(where).memory / 1e9; });
  }
}

Program PackingProgram::most_models() const {
  Program program = program_;
  for (Column& column : program.columns) column.cost = 0;
  for (const Taken& taken : taken_) program.columns[static_cast<size_t>(taken.column)].cost = -1;
  return program;
}

Program PackingProgram::least_cost(size_t models) const {
  Program program = program_;
  Row enough{.lower = static_cast<double>(models), .upper = kEndless, .entries = {}};
  for (const Taken& taken : taken_) enough.entries.emplace_back(taken.column, 1.0);
  program.rows.push_back(std::move(enough));
  return program;
}

std::vector<double> PackingProgram::values_of(const std::vector<Placed>& placed) const {
  std::vector<double> values(program_.columns.size(), 0.0);
  for (const Placed& each : placed) {
    for (const Taken& taken : taken_)
      if (taken.model == each.model && taken.option == each.option) values[static_cast<size_t>(taken.column)] = 1;
    for (const Where& where : places_)
      if (where.placed.model == each.model && where.placed.option == each.option && where.placed.node == each.node &&
          where.placed.accelerator == each.accelerator)
        values[static_cast<size_t>(where.column)] += each.replicas;
    if (!each.accelerator) continue;
    if (const int open = open_of_[each.node][*each.accelerator]; open >= 0) values[static_cast<size_t>(open)] = 1;
  }
  return values;
}

std::vector<Placed> PackingProgram::placed_of(const std::vector<double>& values) const {
  std::vector<Placed> placed;
  for (const Where& where : places_) {
    Placed each = where.placed;
    each.replicas = static_cast<int>(std::lround(values[static_cast<size_t>(where.column)]));
    if (each.replicas > 0) placed.push_back(each);
  }
  return placed;
}

double PackingProgram::cost_of_values(const std::vector<double>& values) const {
  double cost = 0;
  for (size_t i = 0; i < values.size(); ++i) cost += program_.columns[i].cost * values[i];
  return cost;
}

}  // namespace serin::planner
