#include "runtime/serving/settings/ovms_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>

#include "runtime/base/config.h"
#include "runtime/base/file.h"
#include "runtime/base/number.h"

namespace serin::serving {
namespace {

using config::Node;

constexpr size_t kLargestConfig = size_t{1} << 20;
constexpr int64_t kMostVersions = int64_t{1} << 31;

/// Of a model, and nothing that this engine would be told.
constexpr std::array<const char*, 10> kOfTheirEngine = {"batch_size",  "shape",  "nireq", "plugin_config", "target_device",
                                                        "allow_cache", "layout", "mean",  "scale",         "color_format"};
constexpr std::array<const char*, 4> kSteps = {"layout", "mean", "scale", "color_format"};

/// "[123.7, 116.3]", "(1,1)" or "1": each is `neutral`.
bool all_are(std::string_view text, double neutral) {
  constexpr std::string_view kBetween = "[](), ";
  while (!text.empty()) {
    const size_t start = text.find_first_not_of(kBetween);
    if (start == std::string_view::npos) return true;
    text.remove_prefix(start);
    const size_t end = std::min(text.find_first_of(kBetween), text.size());
    if (parse_number<double>(text.substr(0, end)) != neutral) return false;
    text.remove_prefix(end);
  }
  return true;
}

/// Whether inputs stay as they are: nothing subtracted, divided by one, turned from one layout into the same.
bool leaves_inputs(std::string_view key, std::string_view text) {
  if (key == "mean") return all_are(text, 0);
  if (key == "scale") return all_are(text, 1);
  const size_t colon = text.find(':');
  return colon == std::string_view::npos || text.substr(0, colon) == text.substr(colon + 1);
}

Status check_step(std::string_view key, const Node& node) {
  for (const std::string& input : node.is_map() ? node.keys() : std::vector<std::string>()) {
    const auto of_input = node.find(input);
    if (of_input) SERIN_CHECK(check_step(key, *of_input));
  }
  for (const Node& item : node.items()) SERIN_CHECK(check_step(key, item));
  if (!node.is_scalar()) return {};
  SERIN_TRY(const std::string text, node.text());
  if (leaves_inputs(key, text)) return {};
  Error error = node.error(
      fmt::format("{} {} would change what the model is given, which is not done here: export the model so, or send what it takes", key,
                  text.substr(0, 256)));
  error.code = Code::kUnsupported;
  return error;
}

Result<VersionPolicy> read_policy(const Node& node) {
  if (node.is_scalar()) {
    SERIN_TRY(const std::string text, node.text());
    return parse_ovms_policy(text);
  }
  SERIN_CHECK(node.allow_only({"all", "latest", "specific"}));
  const auto latest = node.find("latest"), specific = node.find("specific"), all = node.find("all");
  if (latest.has_value() + specific.has_value() + all.has_value() != 1) return node.error("must have one of all, latest and specific");
  if (all) {
    SERIN_CHECK(all->allow_only({}));
    return VersionPolicy();
  }
  VersionPolicy policy;
  if (latest) {
    SERIN_CHECK(latest->allow_only({"num_versions"}));
    SERIN_TRY(const Node count, latest->at("num_versions"));
    SERIN_TRY(const int64_t number, count.integer(1, kMostVersions));
    policy.latest = static_cast<size_t>(number);
    return policy;
  }
  SERIN_CHECK(specific->allow_only({"versions"}));
  SERIN_TRY(const Node versions, specific->at("versions"));
  for (const Node& version : versions.items()) {
    SERIN_TRY(const int64_t number, version.integer(1, INT64_MAX));
    policy.specific.push_back(static_cast<uint64_t>(number));
  }
  if (policy.specific.empty()) return versions.error("names no versions");
  return policy;
}

/// Absolute, from the file's folder on.
std::string place_of(const std::string& file, std::string base_path) {
  base_path = local_path(std::move(base_path));
  if (base_path.starts_with('/') || base_path.find("://") != std::string::npos) return base_path;
  return (std::filesystem::path(file).parent_path() / base_path).string();
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  Result<OvmsConfig> read() {
    SERIN_TRY(const std::string text, read_file_or_pipe(path_, kLargestConfig));
    SERIN_TRY(const Node root, Node::parse(text, path_));
    SERIN_CHECK(root.allow_only({"model_config_list", "monitoring", "pipeline_config_list", "mediapipe_config_list",
                                 "custom_loader_config_list", "custom_node_library_config_list"}));
    SERIN_TRY(const Node list, root.at("model_config_list"));
    if (!list.is_list()) return list.error("must be a list");
    for (const Node& item : list.items()) SERIN_CHECK(add_model(item));
    for (const char* key : {"pipeline_config_list", "mediapipe_config_list"}) name_unserved(root, key);
    for (const char* key : {"custom_loader_config_list", "custom_node_library_config_list"})
      if (const auto libraries = root.find(key); libraries && !libraries->items().empty())
        say(fmt::format("{} changes nothing: libraries are not loaded", key));
    SERIN_CHECK(read_monitoring(root));
    return std::move(read_);
  }

 private:
  void say(const std::string& remark) { read_.models.remarks.push_back(path_ + ": " + remark); }

  Status add_model(const Node& item) {
    SERIN_CHECK(item.allow_only({"config"}));
    SERIN_TRY(const Node model, item.at("config"));
    SERIN_CHECK(model.allow_only({"name",
                                  "base_path",
                                  "model_version_policy",
                                  "batch_size",
                                  "shape",
                                  "layout",
                                  "nireq",
                                  "target_device",
                                  "allow_cache",
                                  "plugin_config",
                                  "mean",
                                  "scale",
                                  "color_format",
                                  "graph_path",
                                  "subconfig",
                                  "custom_loader_options",
                                  "stateful",
                                  "idle_sequence_cleanup",
                                  "low_latency_transformation",
                                  "max_sequence_number"}));
    SERIN_TRY(const Node named, model.at("name"));
    SERIN_TRY(std::string name, named.text());
    SERIN_TRY(std::string base, model.text("base_path", ""));
    if (!names_.insert(name).second) return say(fmt::format("model '{}' is named twice: the first counts", name)), Status();
    if (model.has("graph_path") || model.has("subconfig"))
      return say(fmt::format("'{}' is not served: it is a graph of MediaPipe's", name)), Status();
    SERIN_CHECK(check_parts(model, name));
    ModelRoot root{.path = place_of(path_, std::move(base)), .name = std::move(name)};
    if (const auto policy = model.find("model_version_policy")) {
      SERIN_TRY(root.versions, read_policy(*policy));
    }
    read_.models.roots.push_back(std::move(root));
    return {};
  }

  Status check_parts(const Node& model, const std::string& name) {
    for (const char* step : kSteps)
      if (const auto node = model.find(step)) SERIN_CHECK(check_step(step, *node));
    if (const auto loader = model.find("custom_loader_options")) return loader->error("files of custom loaders are not read");
    SERIN_TRY(const bool stateful, model.boolean("stateful", false));
    if (stateful) return model.error("stateful: state is kept if serin.yaml, next to the versions, has `sequences`");
    std::vector<const char*> without_effect;
    std::ranges::copy_if(kOfTheirEngine, std::back_inserter(without_effect), [&](const char* key) { return model.has(key); });
    if (!without_effect.empty())
      say(fmt::format("model '{}': {} change nothing: there is one engine, which sizes itself", name, fmt::join(without_effect, ", ")));
    return {};
  }

  void name_unserved(const Node& root, const char* key) {
    const auto list = root.find(key);
    if (!list) return;
    for (const Node& item : list->items()) {
      const auto name = item.text("name", "");
      say(fmt::format("{}: '{}' is not served: an ensemble (serin.yaml) runs models one after the other", key, name ? *name : ""));
    }
  }

  Status read_monitoring(const Node& root) {
    const auto monitoring = root.find("monitoring");
    if (!monitoring) return {};
    SERIN_CHECK(monitoring->allow_only({"metrics"}));
    SERIN_TRY(const Node metrics, monitoring->at("metrics"));
    SERIN_CHECK(metrics.allow_only({"enable", "metrics_list", "endpoint_path"}));
    SERIN_TRY(read_.metrics, metrics.boolean("enable", false));
    if (const auto list = metrics.find("metrics_list")) {
      for (const Node& item : list->items()) {
        SERIN_TRY(std::string name, item.text());
        read_.metrics_list.push_back(std::move(name));
      }
    }
    return {};
  }

  const std::string path_;
  std::set<std::string> names_;
  OvmsConfig read_;
};

}  // namespace

Result<OvmsConfig> read_ovms_config(const std::string& path) { return Reader(path).read(); }

Result<ListedModels> read_ovms_models(const std::string& path) {
  SERIN_TRY(OvmsConfig config, read_ovms_config(path));
  return std::move(config.models);
}

Result<VersionPolicy> parse_ovms_policy(const std::string& text) {
  SERIN_TRY(const Node node, Node::parse(text, "model_version_policy"));
  if (!node.is_map()) return node.error("must be a map");
  return read_policy(node);
}

Status check_ovms_step(const std::string& key, const std::string& text) {
  SERIN_TRY(const Node node, Node::parse(text, key));
  return check_step(key, node);
}

}  // namespace serin::serving
