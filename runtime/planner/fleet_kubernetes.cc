#include "runtime/planner/fleet_kubernetes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <utility>

#include "runtime/base/json_at.h"
#include "runtime/base/number.h"

namespace serin::planner {
namespace {

namespace json = boost::json;
using Resources = std::map<std::string, double>;

constexpr std::string_view kVendor = "nvidia.com/", kCard = "nvidia.com/gpu", kSlice = "nvidia.com/mig-", kMig = "-MIG-";

const json::array& list_at(const json::value& value, std::string_view pointer) {
  static const json::array none;
  const json::value* const found = json_at::find(value, pointer);
  return found && found->is_array() ? found->get_array() : none;
}

Result<Resources> resources_at(const json::value& value, std::string_view pointer) {
  Resources all;
  const json::value* const found = json_at::find(value, pointer);
  if (!found || !found->is_object()) return all;
  for (const auto& [name, given] : found->get_object()) {
    const std::string text = given.is_string() ? std::string(given.get_string()) : json::serialize(given);
    const auto quantity = kubernetes_quantity(text);
    if (!quantity) return invalid(fmt::format("{}: '{}' is no quantity", std::string_view(name), text));
    all[std::string(name)] = *quantity;
  }
  return all;
}

void add(Resources& to, const Resources& more) {
  for (const auto& [name, amount] : more) to[name] += amount;
}
void keep_most(Resources& of, const Resources& other) {
  for (const auto& [name, amount] : other) of[name] = std::max(of[name], amount);
}

/// What the scheduler sets aside for a pod. Init containers run one after another, before the others; those that restart always stay.
Result<Resources> requests_of(const json::value& pod) {
  Resources sum, stay, first;
  for (const json::value& container : list_at(pod, "/spec/initContainers")) {
    SERIN_TRY(Resources needs, resources_at(container, "/resources/requests"));
    const bool stays = json_at::text(container, "/restartPolicy") == "Always";
    if (stays) add(stay, needs);
    Resources at_this_time = stay;
    if (!stays) add(at_this_time, needs);
    keep_most(first, at_this_time);
  }
  for (const json::value& container : list_at(pod, "/spec/containers")) {
    SERIN_TRY(const Resources needs, resources_at(container, "/resources/requests"));
    add(sum, needs);
  }
  add(sum, stay);
  keep_most(sum, first);
  // Requests of the pod as a whole take the place of those of its containers.
  SERIN_TRY(const Resources whole, resources_at(pod, "/spec/resources/requests"));
  for (const auto& [name, amount] : whole) sum[name] = amount;
  SERIN_TRY(const Resources overhead, resources_at(pod, "/spec/overhead"));
  add(sum, overhead);
  return sum;
}

/// Why no pod is placed on a node; empty: pods are. A taint of a resource keeps away only pods that do not ask for it.
std::string why_no_pods(const json::value& node) {
  if (json_at::is_true(node, "/spec/unschedulable")) return "is unschedulable";
  for (const json::value& condition : list_at(node, "/status/conditions"))
    if (json_at::text(condition, "/type") == "Ready" && json_at::text(condition, "/status") != "True") return "is not ready";
  for (const json::value& taint : list_at(node, "/spec/taints")) {
    const std::string key = json_at::text(taint, "/key"), effect = json_at::text(taint, "/effect");
    if (key != kCard && (effect == "NoSchedule" || effect == "NoExecute")) return fmt::format("has the taint {}:{}", key, effect);
  }
  return "";
}

/// The name of a node's cards as NVIDIA's feature discovery or the cloud has it.
std::string product_of(const FleetNode& node) {
  constexpr std::array<std::string_view, 2> kLabels = {"nvidia.com/gpu.product", "cloud.google.com/gke-accelerator"};
  for (const std::string_view label : kLabels)
    if (const auto found = node.labels.find(std::string(label)); found != node.labels.end()) return found->second;
  return "";
}

/// Nodes and what pods have taken of them.
class KubernetesFleet {
 public:
  KubernetesFleet(const Catalogue& catalogue, Fleet& fleet) : catalogue_(catalogue), fleet_(fleet) {}

  /// The most cards of a node; a card is an entry of its own.
  static constexpr double kMostCards = 4096;

  Status read_node(const json::value& object) {
    FleetNode node;
    node.name = json_at::text(object, "/metadata/name");
    if (node.name.empty()) return invalid("a node has no name");
    ++seen_;
    if (const std::string why = why_no_pods(object); !why.empty()) {
      fleet_.notes.push_back(fmt::format("node {} {}: it is left out", node.name, why));
      return {};
    }
    const auto allocatable = resources_at(object, "/status/allocatable");
    if (!allocatable) return allocatable.error().in("node " + node.name);
    const auto amount = [&](const std::string& name) { return allocatable->contains(name) ? allocatable->at(name) : 0.0; };
    node.cores = amount("cpu");
    node.memory = amount("memory");
    if (allocatable->contains("pods")) node.pods = amount("pods");
    if (node.cores <= 0 || node.memory <= 0) return invalid(fmt::format("node {}: has no allocatable cpu and memory", node.name));
    if (const json::value* const labels = json_at::find(object, "/metadata/labels"); labels && labels->is_object())
      for (const auto& [name, value] : labels->get_object())
        if (value.is_string()) node.labels[std::string(name)] = std::string(value.get_string());
    for (const auto& [name, count] : *allocatable)
      if (name.starts_with(kVendor) && count > kMostCards)
        return invalid(fmt::format("node {}: {}: {:g} is more than {:g}", node.name, name, count, kMostCards));
    add_cards(*allocatable, node);
    positions_[node.name] = fleet_.nodes.size();
    fleet_.nodes.push_back(std::move(node));
    return {};
  }

  Status read_pod(const json::value& object) {
    const std::string phase = json_at::text(object, "/status/phase");
    const auto found = positions_.find(json_at::text(object, "/spec/nodeName"));
    if (found == positions_.end() || phase == "Succeeded" || phase == "Failed") return {};
    const auto needs = requests_of(object);
    if (!needs)
      return needs.error().in(
          fmt::format("pod {}/{}", json_at::text(object, "/metadata/namespace"), json_at::text(object, "/metadata/name")));
    FleetNode& node = fleet_.nodes[found->second];
    ++node.pods_used;
    for (const auto& [name, amount] : *needs) {
      if (name == "cpu") node.cores_used += amount;
      if (name == "memory") node.memory_used += amount;
      if (name == kCard) take_cards(node, "", amount);
      if (name.starts_with(kSlice)) take_cards(node, name.substr(kSlice.size()), amount);
    }
    return {};
  }

  size_t seen() const { return seen_; }
  void finish() {
    for (FleetNode& node : fleet_.nodes) {
      node.cores_used = std::min(node.cores_used, node.cores);
      node.memory_used = std::min(node.memory_used, node.memory);
      if (node.pods) node.pods_used = std::min(node.pods_used, *node.pods);
    }
  }

 private:
  void note(const FleetNode& node, const std::string& text) { fleet_.notes.push_back(fmt::format("node {}: {}", node.name, text)); }

  void add_cards(const Resources& allocatable, FleetNode& node) {
    const std::string label = product_of(node);
    const size_t single = label.find(kMig);  // the strategy in which all cards have slices of one size, which count as cards
    const std::string product = label.substr(0, single);
    std::map<std::string, double> wanted;  // by slice; a whole card has none
    for (const auto& [name, count] : allocatable) {
      if (count < 1) continue;
      if (name == kCard) wanted[""] += count;
      if (name.starts_with(kSlice) && !name.ends_with(".shared")) wanted[name.substr(kSlice.size())] += count;
    }
    for (const auto& [name, count] : allocatable)
      if (name.starts_with(kVendor) && name.ends_with(".shared") && count >= 1)
        note(node, fmt::format("{} are cards that are shared by time, which is not planned: they are left out", name));
    if (wanted.empty()) return;
    if (product.ends_with("-SHARED")) return note(node, "its cards are shared by time, which is not planned: they are left out");
    if (product.empty()) return note(node, "no label nvidia.com/gpu.product names its cards: they are left out");
    constexpr std::string_view kMaker = "nvidia-";  // before names of a cloud, such as nvidia-tesla-t4
    auto found = catalogue_.find_all(product);
    if (!found && product.starts_with(kMaker)) found = catalogue_.find_all(product.substr(kMaker.size()));
    if (!found) return note(node, found.error().message + ": its cards are left out; --catalogue FILE adds one");
    if (found->size() > 1)
      return note(node, fmt::format("'{}' may be {} or {}: its cards are left out", product, (*found)[0]->name, (*found)[1]->name));
    if (wanted.contains("") && single != std::string::npos) {
      const std::string slice = label.substr(single + kMig.size());
      wanted[slice] += wanted[""];
      single_[node.name] = slice;
      wanted.erase("");
    }
    for (const auto& [slice, count] : wanted) add_card(*found->front(), slice, count, node);
  }

  void add_card(const Device& card, const std::string& slice, double count, FleetNode& node) {
    const auto each = accelerator_of(card, slice, fleet_.prices);
    if (!each) return note(node, fmt::format("{} has no slice '{}': it is left out", card.name, slice));
    node.accelerators.insert(node.accelerators.end(), static_cast<size_t>(count), *each);
  }

  /// A pod has whole cards or slices for itself.
  void take_cards(FleetNode& node, std::string slice, double count) {
    if (const auto single = single_.find(node.name); slice.empty() && single != single_.end()) slice = single->second;
    for (Accelerator& each : node.accelerators) {
      if (count < 1) return;
      if (each.in_use() || (slice.empty() ? each.name != each.card : each.name != each.card + " " + slice)) continue;
      each.memory_used = each.memory;
      each.busy = 1;
      --count;
    }
  }

  const Catalogue& catalogue_;
  Fleet& fleet_;
  std::map<std::string, size_t> positions_;    // of nodes in the fleet
  std::map<std::string, std::string> single_;  // by node: the slice that counts as a card
  size_t seen_ = 0;
};

}  // namespace

std::optional<double> kubernetes_quantity(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"Ki", 1024.0},
                                                            {"Mi", 1048576.0},
                                                            {"Gi", 1073741824.0},
                                                            {"Ti", 1099511627776.0},
                                                            {"Pi", 1125899906842624.0},
                                                            {"Ei", 1152921504606846976.0},
                                                            {"n", 1e-9},
                                                            {"u", 1e-6},
                                                            {"m", 1e-3},
                                                            {"k", 1e3},
                                                            {"M", 1e6},
                                                            {"G", 1e9},
                                                            {"T", 1e12},
                                                            {"P", 1e15},
                                                            {"E", 1e18}};
  double unit = 1;
  for (const auto& [name, value] : kUnits) {
    if (!text.ends_with(name)) continue;
    unit = value;
    text.remove_suffix(name.size());
    if (text.find_first_of("eE") != std::string_view::npos) return std::nullopt;  // an exponent or a unit
    break;
  }
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto number = parse_number<double>(text);
  return number && *number >= 0 ? std::optional(*number * unit) : std::nullopt;
}

bool is_kubernetes_list(std::string_view text) {
  constexpr size_t kLooked = 4096;  // kubectl has apiVersion, items and kind in this order: the kind may stand at the end
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{') return false;
  return text.substr(begin, kLooked).find("\"apiVersion\"") != std::string_view::npos;
}

Status read_kubernetes(std::string_view text, const std::string& name, const Catalogue& catalogue, Fleet& fleet) {
  boost::system::error_code error;
  const json::value root = json::parse(text, error);
  if (error) return invalid(fmt::format("{}: is no JSON: {}", name, error.message()));
  if (const std::string kind = json_at::text(root, "/kind"); !kind.ends_with("List"))
    return invalid(fmt::format("{}: is of kind '{}'; a list is needed, as kubectl get nodes,pods -A -o json prints it", name, kind));
  const json::array& items = list_at(root, "/items");
  KubernetesFleet reader(catalogue, fleet);
  const std::string every = json_at::text(root, "/kind") == "NodeList" ? "Node" : "";
  const auto read_all = [&](std::string_view kind, auto read) -> Status {
    for (const json::value& item : items) {
      const std::string own = json_at::text(item, "/kind");
      if ((own.empty() ? every : own) != kind) continue;
      if (const Status done = read(item); !done) return done.error().in(name);
    }
    return {};
  };
  SERIN_CHECK(read_all("Node", [&](const json::value& item) { return reader.read_node(item); }));
  SERIN_CHECK(read_all("Pod", [&](const json::value& item) { return reader.read_pod(item); }));
  reader.finish();
  if (reader.seen() == 0) return invalid(name + ": has no nodes: kubectl get nodes,pods -A -o json lists them");
  if (fleet.nodes.empty()) return invalid(fmt::format("{}: no node takes pods: {}", name, fleet.notes.front()));
  return {};
}

}  // namespace serin::planner
