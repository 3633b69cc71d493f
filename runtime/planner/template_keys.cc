#include "runtime/planner/template_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "runtime/base/nearest_name.h"

namespace serin::planner {
namespace {

using config::Node;
using Keys = TemplateKeys;

/// The keys of a template's maps, by their path. Other maps have names of their user.
const std::map<std::string, Keys, std::less<>>& vocabulary() {
  static const std::map<std::string, Keys, std::less<>> all = {
      {"", {"extends",     "description", "applies_to",   "model",       "name",     "image",       "command", "cpu",
            "memory",      "gpu_count",   "device",       "batch_size",  "replicas", "autoscaling", "demand",  "labels",
            "annotations", "env",         "nodeSelector", "tolerations", "args",     "settings",    "smoke"}},
      {"applies_to", {"name", "format", "input", "operators", "parameters"}},
      {"applies_to.parameters", {"min", "max"}},
      {"autoscaling", {"min", "max", "in_flight", "cpu_percent"}},
      {"demand", {"rps", "slo"}},
      {"smoke", {"data", "rtol", "atol"}},
  };
  return all;
}

std::string unknown(const std::string& key, const std::string& under, const Keys& keys) {
  return fmt::format("unknown key '{}'{}; allowed: {}{}", key, under.empty() ? "" : " under " + under, fmt::join(keys, ", "),
                     did_you_mean(key, keys));
}

/// Of a layer: `path` is that of `map`.
Status check_keys(const Node& map, const std::string& path) {
  const auto keys = vocabulary().find(path);
  if (keys == vocabulary().end() || !map.is_map()) return {};
  for (const std::string& key : map.keys()) {
    const auto inner = map.find(key);
    if (std::ranges::find(keys->second, std::string_view(key)) == keys->second.end())
      return invalid(fmt::format("{}: {}", (inner ? *inner : map).where(), unknown(key, path, keys->second)));
    if (inner) SERIN_CHECK(check_keys(*inner, path.empty() ? key : path + "." + key));
  }
  return {};
}

}  // namespace

Status check_template_keys(const Node& layer) { return check_keys(layer, ""); }

Status check_template_setting(const Layers::Setting& setting) {
  std::string path;
  for (const std::string& key : setting.path) {
    const auto keys = vocabulary().find(path);
    if (keys == vocabulary().end()) return {};
    if (std::ranges::find(keys->second, std::string_view(key)) == keys->second.end())
      return setting.value.error(unknown(key, path, keys->second));
    path = path.empty() ? key : path + "." + key;
  }
  if (path == "extends") return setting.value.error("is of files only");
  return check_keys(setting.value, path);
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
