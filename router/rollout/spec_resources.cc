// spec_resources.cc: `guard: {resources: ...}`: auto, off, or the names and limits of the metrics that the endpoints export.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "router/rollout/spec.h"
#include "router/rollout/spec_parts.h"

namespace serin::rollout {
namespace {

using config::Node;
using config::Problems;

constexpr std::chrono::milliseconds kShortestInterval{100};
constexpr double kLargestLimit = 1e18;

bool is_metric_name(const std::string& name) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == ':'; };
  return !name.empty() && name.size() <= 200 && std::isdigit(static_cast<unsigned char>(name[0])) == 0 && std::ranges::all_of(name, fits);
}

/// off: an empty name.
void read_name(const Node& node, const char* key, std::string& name, Problems& problems) {
  const auto given = node.find(key);
  std::string text;
  if (!given || !problems.read(text, given->text())) return;
  if (text == "off")
    name.clear();
  else if (is_metric_name(text))
    name = text;
  else
    problems.add(given->error("must be the name of a metric, or off"));
}

void read_limit(const Node& node, const char* key, std::optional<double>& limit, Problems& problems) {
  if (const auto given = node.find(key)) problems.read(limit, given->number(1, kLargestLimit));
}

std::string name_or_off(const std::string& name) { return name.empty() ? "\"off\"" : in_quotes(name); }

std::string print_limit(const char* key, const std::optional<double>& limit) {
  return limit ? fmt::format(", {}: {}", key, *limit) : std::string();
}

}  // namespace

void read_resources(const Node& node, ResourceGuard& guard, Problems& problems) {
  if (!node.is_map()) {
    std::string word;
    if (problems.read(word, node.one_of({"auto", "off"}))) guard.on = word == "auto";
    return;
  }
  problems.allow_only(node, {"path", "port", "interval", "memory", "descriptors", "gpuMemory", "cpu", "requests", "memoryLimit",
                             "descriptorLimit", "gpuMemoryLimit", "cpuRatio", "horizon"});
  guard.on = true;
  if (const auto path = node.find("path");
      path && problems.read(guard.path, path->text()) &&
      (!guard.path.starts_with('/') || guard.path.size() > 1000 || guard.path.find_first_of(" \t\r\n#") != std::string::npos))
    problems.add(path->error("must be a path such as /metrics"));
  problems.read(guard.port, node.integer("port", 0, std::numeric_limits<uint16_t>::max(), guard.port));
  if (const auto interval = node.find("interval");
      interval && problems.read(guard.interval, positive_duration(*interval)) && guard.interval < kShortestInterval)
    problems.add(interval->error("must be at least 100ms"));
  read_name(node, "memory", guard.memory, problems);
  read_name(node, "descriptors", guard.descriptors, problems);
  read_name(node, "gpuMemory", guard.gpu, problems);
  read_name(node, "cpu", guard.cpu, problems);
  read_name(node, "requests", guard.requests, problems);
  read_limit(node, "memoryLimit", guard.memory_limit, problems);
  read_limit(node, "descriptorLimit", guard.descriptor_limit, problems);
  read_limit(node, "gpuMemoryLimit", guard.gpu_limit, problems);
  problems.read(guard.cpu_ratio, node.number("cpuRatio", 1.1, 100, guard.cpu_ratio));
  if (const auto horizon = node.find("horizon")) problems.read(guard.horizon, positive_duration(*horizon));
}

std::string print_resources(const ResourceGuard& guard) {
  if (!guard.on) return "  resources: \"off\"\n";
  return fmt::format(
      "  resources: {{path: {}, port: {}, interval: {}, memory: {}, descriptors: {}, gpuMemory: {}, cpu: {}, requests: {}, cpuRatio: {}, "
      "horizon: {}{}{}{}}}\n",
      in_quotes(guard.path), guard.port, config::print_duration(guard.interval), name_or_off(guard.memory), name_or_off(guard.descriptors),
      name_or_off(guard.gpu), name_or_off(guard.cpu), name_or_off(guard.requests), guard.cpu_ratio, config::print_duration(guard.horizon),
      print_limit("memoryLimit", guard.memory_limit), print_limit("descriptorLimit", guard.descriptor_limit),
      print_limit("gpuMemoryLimit", guard.gpu_limit));
}

}  // namespace serin::rollout
