#include "router/objects/route_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/kubernetes/api_client.h"

namespace serin::router {
namespace {

namespace json = boost::json;
using kubernetes::array_at;

constexpr uint32_t kPercent = 10'000, kPerMille = 1000;

/// Percent where they are whole, or else thousandths, or else millionths: people read them, too.
uint32_t unit_of(const std::vector<BackendShare>& shares) {
  const auto whole = [&shares](uint32_t unit) {
    return std::ranges::all_of(shares, [unit](const BackendShare& share) { return share.ppm % unit == 0; });
  };
  return whole(kPercent) ? kPercent : whole(kPerMille) ? kPerMille : 1;
}

struct Place {
  size_t backend = 0;  ///< its number in the rule
  bool has_weight = false;
  int64_t weight = 1;  ///< what the API means where it is absent
};

/// Where a rule has that backend.
std::vector<Place> places_of(const json::object& rule, std::string_view name) {
  const json::array& backends = array_at(rule, {"backendRefs"});
  std::vector<Place> places;
  for (size_t i = 0; i < backends.size(); ++i) {
    const json::object* backend = backends[i].if_object();
    if (backend == nullptr || kubernetes::text_at(*backend, {"name"}) != name) continue;
    Place& place = places.emplace_back(Place{.backend = i});
    const json::value* weight = backend->if_contains("weight");
    if (weight == nullptr || !weight->is_int64()) continue;
    place.has_weight = true;
    place.weight = weight->as_int64();
  }
  return places;
}

std::string missing(const json::object& route, const std::vector<BackendShare>& shares) {
  std::string names;
  for (const BackendShare& share : shares) {
    if (share.ppm == 0) continue;
    const bool there = std::ranges::any_of(array_at(route, {"spec", "rules"}), [&share](const json::value& rule) {
      return rule.is_object() && !places_of(rule.as_object(), share.backend).empty();
    });
    if (!there) names += fmt::format("{}'{}'", names.empty() ? "" : ", ", share.backend);
  }
  if (names.empty()) return "no rule has each of the backends once";
  return fmt::format("no rule has the backend {}", names);
}

}  // namespace

Result<json::array> weight_patch(const json::object& route, const std::vector<BackendShare>& shares) {
  const json::value* spec = kubernetes::find_at(route, {"spec"});
  if (spec == nullptr || !spec->is_object()) return Error{Code::kNotFound, "it has no rules"};
  const uint32_t unit = unit_of(shares);
  const json::array& rules = array_at(route, {"spec", "rules"});
  json::array changes;
  bool divides = false;
  for (size_t rule = 0; rule < rules.size(); ++rule) {
    const json::object* object = rules[rule].if_object();
    if (object == nullptr) continue;
    json::array of_rule;
    size_t there = 0;
    const bool has_all = std::ranges::all_of(shares, [&](const BackendShare& share) {
      const auto places = places_of(*object, share.backend);
      if (places.empty()) return share.ppm == 0;
      if (places.size() > 1) return false;
      ++there;
      const int64_t weight = share.ppm / unit;
      if (places[0].weight == weight && places[0].has_weight) return true;
      of_rule.emplace_back(json::object{
          {"op", "add"}, {"path", fmt::format("/spec/rules/{}/backendRefs/{}/weight", rule, places[0].backend)}, {"value", weight}});
      return true;
    });
    if (!has_all || there < std::min<size_t>(shares.size(), 2)) continue;
    divides = true;
    for (json::value& change : of_rule) changes.push_back(std::move(change));
  }
  if (!divides) return Error{Code::kNotFound, missing(route, shares)};
  if (changes.empty()) return changes;
  const std::string version = kubernetes::text_at(route, {"metadata", "resourceVersion"});
  changes.insert(changes.begin(), json::object{{"op", "replace"}, {"path", "/metadata/resourceVersion"}, {"value", version}});
  return changes;
}

}  // namespace serin::router
