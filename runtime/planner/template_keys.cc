#include "runtime/planner/template_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "runtime/base/nearest_name.h"
#include "runtime/planner/keys.h"

namespace serin::planner {
namespace {

using config::Node;
using MapKeys = std::initializer_list<std::string_view>;

/// The keys of a template's maps. Other maps have names of their user.
const MapKeys kTopKeys = {"extends",     "description", "applies_to",   "model",       "name",     "image",       "command", "cpu",
                          "memory",      "gpu_count",   "device",       "batch_size",  "replicas", "autoscaling", "demand",  "labels",
                          "annotations", "env",         "nodeSelector", "tolerations", "args",     "settings",    "smoke"};
const MapKeys kConditions = {"name", "format", "input", "operators", "parameters"}, kRange = {"min", "max"},
              kAutoscaling = {"min", "max", "in_flight", "cpu_percent"}, kDemand = {"rps", "slo"}, kSmoke = {"data", "rtol", "atol"};

/// Null: the map at that path has names of its user, or there is none.
const MapKeys* keys_at(std::string_view path) {
  static const std::pair<std::string_view, const MapKeys*> maps[] = {{"", &kTopKeys},
                                                                     {"applies_to", &kConditions},
                                                                     {"applies_to.parameters", &kRange},
                                                                     {"autoscaling", &kAutoscaling},
                                                                     {"demand", &kDemand},
                                                                     {"smoke", &kSmoke}};
  const auto* const found = std::ranges::find(maps, path, [](const auto& map) { return map.first; });
  return found == std::end(maps) ? nullptr : found->second;
}

/// Of a layer: `path` is that of `map`.
Status check_keys(const Node& map, const std::string& path) {
  const MapKeys* const keys = keys_at(path);
  if (!keys) return {};
  SERIN_CHECK(only_keys(map, *keys));
  for (const std::string& key : map.keys())
    if (const auto inner = map.find(key)) SERIN_CHECK(check_keys(*inner, child_path(path, key)));
  return {};
}

}  // namespace

Status check_template_keys(const Node& layer) { return check_keys(layer, ""); }

Status check_template_setting(const Layers::Setting& setting) {
  std::string path;
  for (const std::string& key : setting.path) {
    const MapKeys* const keys = keys_at(path);
    if (!keys) return {};
    if (std::ranges::find(*keys, std::string_view(key)) == keys->end())
      return setting.value.error(fmt::format("unknown key '{}'{}; allowed: {}{}", key, path.empty() ? "" : " under " + path,
                                             fmt::join(*keys, ", "), did_you_mean(key, *keys)));
    path = child_path(path, key);
  }
  if (path == "extends") return setting.value.error("is of files only");
  return setting.value.is_null() ? Status() : check_keys(setting.value, path);
}

bool is_label(std::string_view word) {
  constexpr size_t kMost = 63;
  const auto inner = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  const auto end = [](unsigned char c) { return std::isalnum(c) != 0; };
  return word.size() <= kMost && std::ranges::all_of(word, inner) && (word.empty() || (end(word.front()) && end(word.back())));
}

bool is_object_name(std::string_view word, size_t most) {
  const auto letter = [](unsigned char c) { return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-'; };
  return !word.empty() && word.size() <= most && std::ranges::all_of(word, letter) && word.front() != '-' && word.back() != '-' &&
         std::isdigit(static_cast<unsigned char>(word.front())) == 0;
}

bool is_label_name(std::string_view name) {
  const size_t slash = name.rfind('/');
  const std::string_view own = slash == std::string_view::npos ? name : name.substr(slash + 1);
  if (own.empty() || !is_label(own)) return false;
  if (slash == std::string_view::npos) return true;
  const std::string_view domain = name.substr(0, slash);
  return !domain.empty() && std::isalnum(static_cast<unsigned char>(domain.front())) != 0 &&
         std::isalnum(static_cast<unsigned char>(domain.back())) != 0 && domain.size() <= 253 &&
         domain.find('/') == std::string_view::npos &&
         std::ranges::all_of(domain, [](unsigned char c) { return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-' || c == '.'; });
}

}  // namespace serin::planner
