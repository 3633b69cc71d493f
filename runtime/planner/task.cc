#include "runtime/planner/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <filesystem>

#include "runtime/planner/keys.h"

namespace serin::planner {
namespace {

using config::Node;

constexpr std::array<std::string_view, 5> kPrecisions = {"fp32", "tf32", "fp16", "bf16", "int8"};
constexpr std::array<std::string_view, 5> kExact = {"exact", "milp", "mip", "branch_and_bound", "solver"};

std::string small(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// A list's items; of anything else, itself.
std::vector<Node> items_or_one(const Node& node) { return node.is_list() ? node.items() : std::vector<Node>{node}; }

/// A word, or a list of words.
Result<std::vector<std::string>> words(const Node& node) {
  std::vector<std::string> all;
  for (const Node& item : items_or_one(node)) {
    SERIN_TRY(std::string word, item.text());
    if (word.empty()) return item.error("is empty");
    all.push_back(std::move(word));
  }
  return all;
}

class TaskReader {
 public:
  TaskReader(Task& task, std::string folder, const Catalogue& catalogue, bool in_fleet)
      : task_(task), folder_(std::move(folder)), catalogue_(catalogue), in_fleet_(in_fleet) {}

  Status read(const Node& root) {
    SERIN_CHECK(
        in_fleet_ ? only_keys(root, {"model", "name", "task", "resource_policy", "scheduler", "demand", "file", "needs", "replicas", "on"})
                  : only_keys(root, {"model", "name", "task", "resource_policy", "scheduler", "demand", "prices", "tenants"}));
    if (const auto model = root.find("model")) {
      SERIN_TRY(const std::vector<std::string> places, words(*model));
      for (const std::string& place : places) task_.models.push_back((std::filesystem::path(folder_) / place).lexically_normal().string());
    }
    SERIN_TRY(task_.model_name, root.text("name", ""));
    if (const auto node = root.find("task")) SERIN_CHECK(read_model(*node));
    if (const auto node = root.find("resource_policy")) SERIN_CHECK(read_policy(*node));
    if (const auto node = root.find("scheduler")) SERIN_CHECK(read_scheduler(*node));
    if (const auto node = root.find("demand")) SERIN_CHECK(read_demand(*node));
    SERIN_TRY(const std::string prices, root.text("prices", ""));
    if (!prices.empty()) task_.prices = (std::filesystem::path(folder_) / prices).lexically_normal().string();
    return read_tenants(root);
  }

 private:
  void note(const Node& parent, std::string_view key, std::string text) {
    task_.notes.push_back({parent.path().empty() ? std::string(key) : parent.path() + "." + std::string(key), std::move(text)});
  }

  Status read_model(const Node& node) {
    SERIN_CHECK(
        only_keys(node, {"type", "framework", "model_name", "sequence_length", "batch_size_per_gpu", "batch_size", "num_gpus_estimate"}));
    if (const auto type = node.find("type")) {
      SERIN_TRY(const std::string word, type->one_of({"inference", "serving", "training"}));
      if (word == "training") note(node, "type", "Serin does not train: this is what serving the trained model needs");
    }
    if (node.has("framework")) note(node, "framework", "ignored: the files of the model say what wrote them");
    SERIN_TRY(const std::string name, node.text("model_name", ""));
    if (!name.empty()) task_.model_name = name;
    if (const auto length = node.find("sequence_length")) {
      SERIN_TRY(task_.length, length->integer(1, 1 << 24));
    }
    if (node.has("batch_size") && node.has("batch_size_per_gpu"))
      return node.error("batch_size and batch_size_per_gpu are the same: leave one of them out");
    for (const char* const key : {"batch_size", "batch_size_per_gpu"})
      if (const auto batch = node.find(key)) {
        SERIN_TRY(task_.batch, batch->integer(1, serving::kMostBatch));
      }
    if (const auto estimate = node.find("num_gpus_estimate")) {
      const auto word = estimate->text();
      if (!word || *word != "auto") {
        const auto count = estimate->integer(1, 100'000);
        if (!count) return estimate->error("must be auto, or a number of at least 1");
        task_.policy.most_replicas = static_cast<int>(*count);
      }
    }
    return {};
  }

  Status read_policy(const Node& node) {
    SERIN_CHECK(only_keys(node, {"memory_threshold", "allow_mixed_precision", "precision", "distributed_strategy", "preferred_devices",
                                 "prefer", "max_latency", "min_accuracy", "tenant"}));
    Policy& policy = task_.policy;
    if (const auto threshold = node.find("memory_threshold")) {
      SERIN_TRY(policy.memory_threshold, threshold->fraction());
      if (policy.memory_threshold < 0.05)
        return threshold->error("must be from 5% to 100%: it is the part of a memory that may be planned");
    }
    if (const auto mixed = node.find("allow_mixed_precision")) {
      SERIN_TRY(policy.mixed_precision, mixed->boolean());
    }
    SERIN_TRY(policy.precision, node.text("precision", ""));
    if (!policy.precision.empty() && std::ranges::find(kPrecisions, policy.precision) == kPrecisions.end())
      return node.at("precision")->error(fmt::format("must be one of {}", fmt::join(kPrecisions, ", ")));
    if (!policy.precision.empty() && policy.precision != "fp32" && policy.mixed_precision == false)
      return node.at("precision")
          ->error(fmt::format("{} contradicts {}.allow_mixed_precision, which is false", policy.precision, node.path()));
    if (const auto strategy = node.find("distributed_strategy")) {
      SERIN_TRY(const std::string word, strategy->text());
      note(node, "distributed_strategy",
           fmt::format("{} is ignored: replicas of a served model do not speak with each other, and each lies on one device", word));
    }
    if (const auto names = node.find("preferred_devices")) SERIN_CHECK(read_preferred(*names));
    if (const auto prefer = node.find("prefer")) {
      SERIN_TRY(policy.prefer, words(*prefer));
    }
    if (const auto longest = node.find("max_latency")) {
      SERIN_TRY(const auto limit, longest->duration());
      if (limit.count() <= 0) return longest->error("must be above 0");
      task_.demand.slos.push_back({.share = 0.99, .seconds = std::chrono::duration<double>(limit).count()});
      note(node, "max_latency", "holds for 99 % of the requests: no plan promises the slowest one");
    }
    if (const auto accuracy = node.find("min_accuracy")) {
      SERIN_TRY(const double least, accuracy->fraction());
      note(node, "min_accuracy",
           fmt::format("{:.4g} % is not judged here: a plan reads no data. `serin eval` measures it, in each precision", 100 * least));
    }
    SERIN_TRY(policy.tenant, node.text("tenant", ""));
    return {};
  }

  Status read_preferred(const Node& names) {
    for (const Node& item : items_or_one(names)) {
      SERIN_TRY(const std::string name, item.text());
      auto devices = catalogue_.find_all(name);
      if (!devices) return item.error(devices.error().message + "; --catalogue adds devices");
      task_.policy.preferred.push_back(*std::move(devices));
    }
    return {};
  }

  Status read_scheduler(const Node& node) {
    SERIN_CHECK(only_keys(node, {"algorithm", "timeout"}));
    if (const auto algorithm = node.find("algorithm")) {
      SERIN_TRY(const std::string word, algorithm->text());
      if (std::ranges::find(kExact, small(word)) == kExact.end())
        note(node, "algorithm", fmt::format("{} is replaced by an exact solver, which has the timeout of the file", word));
    }
    if (const auto timeout = node.find("timeout")) {
      SERIN_TRY(task_.timeout, timeout->number(0.1, 86'400));
    }
    return {};
  }

  Status read_demand(const Node& node) {
    SERIN_CHECK(only_keys(node, {"rps", "slo"}));
    SERIN_TRY(task_.demand.rps, node.number("rps", 1e-6, 1e9, 0));
    const auto slo = node.find("slo");
    if (!slo) return {};
    for (const Node& item : items_or_one(*slo)) {
      SERIN_TRY(const std::string text, item.text());
      auto parsed = parse_slo(text);
      if (!parsed) return item.error(parsed.error().message);
      task_.demand.slos.push_back(*parsed);
    }
    return {};
  }

  Status read_tenants(const Node& root) {
    Policy& policy = task_.policy;
    const auto tenants = root.find("tenants");
    if (in_fleet_) return {};
    if (!tenants && !policy.tenant.empty())
      return root.at("resource_policy")
          ->at("tenant")
          ->error(fmt::format("'{}' has no quota, because the file has no tenants", policy.tenant));
    if (!tenants) return {};
    SERIN_TRY(const auto quotas, read_quotas(*tenants));
    if (policy.tenant.empty()) {
      note(root, "tenants", "ignored: resource_policy.tenant does not say whose this task is");
      return {};
    }
    const auto own = quotas.find(policy.tenant);
    if (own == quotas.end()) return tenants->error(fmt::format("has no tenant '{}', which resource_policy.tenant names", policy.tenant));
    policy.quota = own->second;
    if (policy.most_replicas && policy.quota->devices && *policy.most_replicas > *policy.quota->devices)
      return tenants->at(policy.tenant)
          ->error(
              fmt::format("devices: {} contradicts task.num_gpus_estimate, which is {}", *policy.quota->devices, *policy.most_replicas));
    return {};
  }

  Task& task_;
  const std::string folder_;
  const Catalogue& catalogue_;
  const bool in_fleet_;
};

}  // namespace

size_t Policy::rank(const Device* device) const {
  for (size_t i = 0; i < preferred.size(); ++i)
    if (device && std::ranges::find(preferred[i], device->name, &Device::name) != preferred[i].end()) return i;
  return preferred.size();
}

bool Policy::prefers(const Device* device) const {
  if (!device) return false;
  const std::string name = small(device->name);
  return std::ranges::any_of(prefer, [&](const std::string& word) {
    return std::ranges::find(device->labels, word) != device->labels.end() || name.find(small(word)) != std::string::npos;
  });
}

double Demand::strictest_share() const {
  constexpr double kUsual = 0.99;
  return slos.empty() ? kUsual : std::ranges::max(slos, {}, &Slo::share).share;
}

Result<std::map<std::string, Quota>> read_quotas(const Node& tenants) {
  constexpr int64_t kMostOfAQuota = 1'000'000;
  std::map<std::string, Quota> quotas;
  if (!tenants.is_map()) return tenants.error("must be a map from a tenant's name to its limits");
  for (const std::string& name : tenants.keys()) {
    SERIN_TRY(const Node node, tenants.at(name));
    SERIN_CHECK(only_keys(node, {"devices", "cores", "memory", "hourly_cost"}));
    Quota quota;
    if (const auto devices = node.find("devices")) {
      SERIN_TRY(const int64_t count, devices->integer(0, kMostOfAQuota));
      quota.devices = static_cast<int>(count);
    }
    if (const auto cores = node.find("cores")) {
      SERIN_TRY(const int64_t count, cores->integer(0, kMostOfAQuota));
      quota.cores = static_cast<double>(count);
    }
    if (const auto memory = node.find("memory")) {
      SERIN_TRY(quota.memory, read_bytes(*memory));
    }
    if (const auto cost = node.find("hourly_cost")) {
      SERIN_TRY(quota.hourly_cost, cost->number(0, 1e9));
    }
    quotas[name] = quota;
  }
  return quotas;
}

Result<Task> read_task(const Node& root, const std::string& folder, const Catalogue& catalogue, bool in_fleet) {
  Task task;
  SERIN_CHECK(TaskReader(task, folder, catalogue, in_fleet).read(root));
  return task;
}

Result<Task> read_task(const std::string& path, const Catalogue& catalogue) {
  SERIN_TRY(const Node root, Node::load(path));
  return read_task(root, std::filesystem::path(path).parent_path().string(), catalogue);
}

}  // namespace serin::planner
