#include "runtime/planner/fleet_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

#include "runtime/base/file.h"
#include "runtime/planner/fleet_kubernetes.h"
#include "runtime/planner/keys.h"

namespace serin::planner {
namespace {

using config::Node;
using Labels = std::map<std::string, std::string>;

constexpr int64_t kMostCount = 4096;
constexpr size_t kLargestCluster = size_t{512} << 20;

Result<double> bytes_of(const Node& parent, const char* key, double fallback) {
  const auto node = parent.find(key);
  if (!node) return fallback;
  SERIN_TRY(const std::string text, node->text());
  if (text == "0") return 0.0;
  return read_bytes(*node);
}

Result<Labels> labels_of(const Node& parent, const char* key) {
  Labels all;
  const auto node = parent.find(key);
  if (!node) return all;
  if (!node->is_map()) return node->error("must be a map of labels");
  for (const std::string& name : node->keys()) {
    SERIN_TRY(const Node value, node->at(name));
    SERIN_TRY(all[name], value.text());
  }
  return all;
}

class FleetReader {
 public:
  FleetReader(Fleet& fleet, std::string folder, const Catalogue& catalogue)
      : fleet_(fleet), folder_(std::move(folder)), catalogue_(catalogue) {}

  Status read(const Node& root) {
    SERIN_CHECK(only_keys(root, {"nodes", "models", "tenants", "prices", "scheduler"}));
    SERIN_TRY(const std::string prices, root.text("prices", ""));
    if (!prices.empty()) {
      SERIN_TRY(fleet_.prices, read_prices((std::filesystem::path(folder_) / prices).string(), catalogue_));
    }
    if (const auto tenants = root.find("tenants")) {
      SERIN_TRY(fleet_.quotas, read_quotas(*tenants));
      for (const auto& [name, quota] : fleet_.quotas)
        if (quota.hourly_cost)
          return tenants->at(name)->error(
              "hourly_cost is for one task: tenants share the cards of a fleet; limit devices, cores or memory");
    }
    SERIN_CHECK(read_scheduler(root));
    SERIN_TRY(const Node nodes, root.at("nodes"));
    if (nodes.is_scalar()) {
      SERIN_CHECK(read_cluster(nodes));
      return read_models(root);
    }
    if (!nodes.is_list() || nodes.items().empty()) return nodes.error("must be a list of nodes");
    for (const Node& node : nodes.items()) SERIN_CHECK(read_node(node));
    return read_models(root);
  }

 private:
  /// A file that kubectl has written.
  Status read_cluster(const Node& node) {
    SERIN_TRY(const std::string file, node.text());
    const std::string path = (std::filesystem::path(folder_) / file).string();
    const auto text = read_file_or_pipe(path, kLargestCluster);
    if (!text) return node.error(text.error().message);
    return read_kubernetes(*text, path, catalogue_, fleet_);
  }

  Status read_models(const Node& root) {
    const auto models = root.find("models");
    if (!models) return {};
    if (!models->is_list()) return models->error("must be a list of models");
    for (const Node& model : models->items()) SERIN_CHECK(read_model(model));
    return {};
  }

  Status read_scheduler(const Node& root) {
    const auto scheduler = root.find("scheduler");
    if (!scheduler) return {};
    SERIN_CHECK(only_keys(*scheduler, {"timeout", "gap"}));
    SERIN_TRY(fleet_.timeout, scheduler->number("timeout", 0.1, 86'400, fleet_.timeout));
    SERIN_TRY(fleet_.gap, scheduler->fraction("gap", fleet_.gap));
    return {};
  }

  Status read_node(const Node& node) {
    SERIN_CHECK(only_keys(node, {"name", "count", "cores", "memory", "load", "labels", "accelerators"}));
    FleetNode made;
    SERIN_TRY(const Node name, node.at("name"));
    SERIN_TRY(made.name, name.text());
    SERIN_TRY(const int64_t count, node.integer("count", 1, kMostCount, 1));
    SERIN_TRY(const Node cores, node.at("cores"));
    SERIN_TRY(made.cores, cores.number(0.1, 100'000));
    SERIN_TRY(made.memory, bytes_of(node, "memory", 0));
    if (made.memory <= 0) return node.error("key 'memory' is missing");
    if (const auto load = node.find("load")) {
      SERIN_CHECK(only_keys(*load, {"cores", "memory"}));
      SERIN_TRY(const double busy, load->fraction("cores", 0));
      SERIN_TRY(const double held, load->fraction("memory", 0));
      made.cores_used = made.cores * busy;
      made.memory_used = made.memory * held;
    }
    SERIN_TRY(made.labels, labels_of(node, "labels"));
    if (const auto cards = node.find("accelerators"))
      for (const Node& card : cards->items()) SERIN_CHECK(read_accelerator(card, made));
    for (int64_t i = 0; i < count; ++i) {
      FleetNode each = made;
      if (count > 1) each.name += fmt::format("-{}", i);
      if (!names_.insert(each.name).second) return name.error(fmt::format("there are two nodes '{}'", each.name));
      fleet_.nodes.push_back(std::move(each));
    }
    return {};
  }

  Status read_accelerator(const Node& node, FleetNode& made) {
    SERIN_CHECK(only_keys(node, {"device", "slice", "count", "load", "memory_used"}));
    SERIN_TRY(const Node device, node.at("device"));
    SERIN_TRY(const std::string name, device.text());
    const auto found = catalogue_.find_all(name);
    if (!found) return device.error(found.error().message);
    if (found->size() > 1) return device.error(fmt::format("'{}' may be {} or {}", name, (*found)[0]->name, (*found)[1]->name));
    const Device& card = *found->front();
    SERIN_TRY(const std::string slice, node.text("slice", ""));
    const auto made_of = accelerator_of(card, slice, fleet_.prices);
    if (!made_of) {
      std::vector<std::string> known;
      known.reserve(card.slices.size());
      for (const Slice& one : card.slices) known.push_back(one.name);
      return node.at("slice")->error(fmt::format("{} has no slice '{}'; it has: {}", card.name, slice, fmt::join(known, ", ")));
    }
    Accelerator each = *made_of;
    SERIN_TRY(each.busy, node.fraction("load", 0));
    SERIN_TRY(each.memory_used, bytes_of(node, "memory_used", 0));
    if (each.memory_used > each.memory)
      return node.at("memory_used")->error(fmt::format("is above the {:.1f} GB of {}", each.memory / 1e9, each.name));
    SERIN_TRY(const int64_t count, node.integer("count", 1, kMostCount, 1));
    made.accelerators.insert(made.accelerators.end(), static_cast<size_t>(count), each);
    return {};
  }

  Status read_model(const Node& node) {
    SERIN_CHECK(only_keys(node, {"name", "model", "task", "resource_policy", "scheduler", "demand", "file", "needs", "replicas", "on"}));
    FleetModel model;
    SERIN_TRY(const std::string file, node.text("file", ""));
    if (!file.empty()) {
      const std::filesystem::path path = std::filesystem::path(folder_) / file;
      SERIN_TRY(const Node root, Node::load(path.string()));
      SERIN_TRY(model.task, read_task(root, path.parent_path().string(), catalogue_, /*in_fleet=*/true));
    } else {
      SERIN_TRY(model.task, read_task(node, folder_, catalogue_, /*in_fleet=*/true));
    }
    const std::string own_name = model.task.model_name;
    SERIN_TRY(model.task.model_name, node.text("name", own_name));
    if (const auto replicas = node.find("replicas")) {
      SERIN_TRY(const int64_t count, replicas->integer(1, kMostCount));
      model.replicas = static_cast<int>(count);
    }
    SERIN_TRY(model.on, labels_of(node, "on"));
    if (const auto needs = node.find("needs")) {
      SERIN_TRY(model.needs, read_needs(*needs));
    }
    if (model.needs.has_value() != model.task.models.empty()) return node.error("must have one of: model, needs");
    if (model.task.model_name.empty() && model.needs) return node.error("key 'name' is missing");
    if (model.task.models.size() > 1) return node.error("model must be one: give each model an entry of its own");
    if (!model.task.policy.tenant.empty() && !fleet_.quotas.contains(model.task.policy.tenant))
      return node.error(fmt::format("tenant '{}' has no quota under tenants", model.task.policy.tenant));
    fleet_.models.push_back(std::move(model));
    return {};
  }

  static Result<PlainNeeds> read_needs(const Node& node) {
    SERIN_CHECK(only_keys(node, {"device_memory", "busy", "cores", "memory"}));
    PlainNeeds needs;
    SERIN_TRY(needs.device_memory, bytes_of(node, "device_memory", 0));
    SERIN_TRY(needs.busy, node.fraction("busy", 0));
    SERIN_TRY(needs.cores, node.number("cores", 0, 100'000, needs.cores));
    SERIN_TRY(needs.memory, bytes_of(node, "memory", 0));
    return needs;
  }

  Fleet& fleet_;
  const std::string folder_;
  const Catalogue& catalogue_;
  std::set<std::string> names_;
};

}  // namespace

Result<Fleet> read_fleet(const std::string& given, const Catalogue& catalogue) {
  const std::string path = given == "-" ? "/dev/stdin" : given;
  SERIN_TRY(const std::string text, read_file_or_pipe(path, kLargestCluster));
  Fleet fleet;
  if (is_kubernetes_list(text)) {
    SERIN_CHECK(read_kubernetes(text, path, catalogue, fleet));
    return fleet;
  }
  SERIN_TRY(const Node root, Node::parse(text, path));
  SERIN_CHECK(FleetReader(fleet, std::filesystem::path(path).parent_path().string(), catalogue).read(root));
  return fleet;
}

}  // namespace serin::planner
