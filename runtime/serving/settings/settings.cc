// settings.cc: serin.yaml. What is not understood is refused by name, so that nobody believes it works.

#include "runtime/serving/settings/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/config.h"
#include "runtime/base/file.h"
#include "runtime/base/number.h"

namespace serin::serving {

std::optional<Precision> parse_precision(std::string_view word) {
  const auto name = std::ranges::find(kPrecisionNames, word);
  if (name == kPrecisionNames.end()) return std::nullopt;
  return static_cast<Precision>(name - kPrecisionNames.begin());
}

namespace {

constexpr int64_t kMostPriorities = 256;
constexpr std::chrono::seconds kLongestQueueDelay(
    10);  // an instance's thread sleeps for it, and the end of the server waits for that thread

/// {seq: [32, 64]}
Result<std::map<std::string, std::vector<int64_t>>> read_buckets(const config::Node& node) {
  if (!node.is_map()) return node.error("must be a map from dimensions to lists of sizes: {seq: [32, 64, 128]}");
  std::map<std::string, std::vector<int64_t>> buckets;
  for (const std::string& dimension : node.keys()) {
    SERIN_TRY(const config::Node list, node.at(dimension));
    if (!list.is_list() || list.items().empty() || list.items().size() > 16) return list.error("must be a list of 1 to 16 sizes");
    std::vector<int64_t>& sizes = buckets[dimension];
    for (const config::Node& item : list.items()) {
      SERIN_TRY(const int64_t size, item.integer(1, 1'000'000));
      if (!sizes.empty() && size <= sizes.back()) return item.error("sizes must rise");
      sizes.push_back(size);
    }
  }
  return buckets;
}

/// {stable: 3, canary: 4}
Result<Labels> read_labels(const config::Node& node) {
  if (!node.is_map()) return node.error("must be a map from labels to versions: {stable: 3}");
  Labels labels;
  for (const std::string& label : node.keys()) {
    SERIN_TRY(const config::Node version, node.at(label));
    if (label.empty() || label.find_first_of("/:") != std::string::npos) return version.error("a label has no '/' and no ':'");
    SERIN_TRY(const int64_t number, version.integer(1, INT64_MAX));
    labels[label] = static_cast<uint64_t>(number);
  }
  return labels;
}

/// What a node says of a queue, the rest as in `base`.
Result<QueuePolicy> read_queue(const config::Node& node, QueuePolicy policy) {
  SERIN_TRY(const int64_t limit, node.integer("queue_limit", 1, 1'000'000, static_cast<int64_t>(policy.limit)));
  policy.limit = static_cast<size_t>(limit);
  SERIN_TRY(policy.timeout, node.duration("queue_timeout", policy.timeout));
  if (const auto action = node.find("queue_timeout_action")) {
    SERIN_TRY(const std::string word, action->one_of({"reject", "delay"}));
    policy.delay = word == "delay";
  }
  return policy;
}

constexpr std::array kQueueKeys = {"queue_limit",     "queue_timeout",          "queue_timeout_action",
                                   "priority_levels", "default_priority_level", "priority_queues"};

Result<QueuePolicies> read_queues(const config::Node& root) {
  SERIN_TRY(const QueuePolicy common, read_queue(root, {}));
  SERIN_TRY(const int64_t levels, root.integer("priority_levels", 1, kMostPriorities, 1));
  QueuePolicies queues{.levels = std::vector(static_cast<size_t>(levels), common)};
  if (levels > 1 && !root.has("default_priority_level"))
    return root.at("priority_levels")
        ->error(fmt::format("default_priority_level is missing: 1 to {}, which requests that name none get", levels));
  SERIN_TRY(const int64_t standard, root.integer("default_priority_level", 1, levels, 1));
  queues.standard = static_cast<size_t>(standard);
  const auto own = root.find("priority_queues");
  if (!own) return queues;
  if (!own->is_map()) return own->error("must be a map from priorities to queues: {1: {queue_limit: 16}}");
  for (const std::string& key : own->keys()) {
    SERIN_TRY(const config::Node node, own->at(key));
    const auto level = parse_number<int64_t>(key);
    if (!level || *level < 1 || *level > levels)
      return node.error(fmt::format("a priority is a number from 1 to {} (priority_levels)", levels));
    SERIN_CHECK(node.allow_only({"queue_limit", "queue_timeout", "queue_timeout_action"}));
    QueuePolicy& queue = queues.levels[static_cast<size_t>(*level) - 1];
    SERIN_TRY(queue, read_queue(node, queue));
  }
  return queues;
}

/// all, {latest: 2} or [1, 3]
Result<VersionPolicy> read_versions(const config::Node& node) {
  VersionPolicy policy;
  if (node.is_scalar()) {
    SERIN_CHECK(node.one_of({"all"}));
    return policy;
  }
  if (!node.is_list()) {
    SERIN_CHECK(node.allow_only({"latest"}));
    SERIN_TRY(const int64_t latest, node.integer("latest", 1, 1'000'000, 1));
    policy.latest = static_cast<size_t>(latest);
    return policy;
  }
  for (const config::Node& item : node.items()) {
    SERIN_TRY(const int64_t number, item.integer(0, INT64_MAX));
    policy.specific.push_back(static_cast<uint64_t>(number));
  }
  if (policy.specific.empty()) return node.error("must be all, {latest: N} or a list of versions");
  return policy;
}

/// {scores: labels.txt}
Result<std::map<std::string, std::vector<std::string>>> read_class_labels(const config::Node& node, const std::string& folder) {
  if (!node.is_map()) return node.error("must be a map from outputs to files with a label on each line: {scores: labels.txt}");
  std::map<std::string, std::vector<std::string>> labels;
  for (const std::string& output : node.keys()) {
    SERIN_TRY(const config::Node file, node.at(output));
    SERIN_TRY(const std::string name, file.text());
    auto lines = read_label_file(folder, name);
    if (!lines) return file.error(lines.error().message);
    labels[output] = std::move(*lines);
  }
  return labels;
}

}  // namespace

std::vector<uint64_t> VersionPolicy::choose(std::span<const uint64_t> there) const {
  if (specific.empty())
    return {there.end() - static_cast<ptrdiff_t>(latest == 0 ? there.size() : std::min(latest, there.size())), there.end()};
  std::vector<uint64_t> chosen;
  std::ranges::copy_if(there, std::back_inserter(chosen),
                       [this](uint64_t number) { return std::ranges::find(specific, number) != specific.end(); });
  return chosen;
}

bool same_but_for_names(ModelSettings a, const ModelSettings& b) {
  a.labels = b.labels;
  a.versions = b.versions;
  return a == b;
}

Result<std::vector<std::string>> read_label_file(const std::string& folder, const std::string& name) {
  constexpr size_t kMostBytes = size_t{16} << 20;
  SERIN_TRY(const std::string path, file_of_model(folder, "", name));
  return read_lines(path, kMostBytes);
}

Result<ModelSettings> read_model_settings(const std::string& path, const ModelSettings& defaults) {
  auto document = config::Node::load(path);
  if (!document && document.error().code == Code::kNotFound) return defaults;
  if (!document) return document.error();
  return read_model_settings(*document, std::filesystem::path(path).parent_path().string(), defaults);
}

Result<ModelSettings> read_model_settings(const config::Node& root, const std::string& folder, const ModelSettings& defaults) {
  SERIN_CHECK(root.allow_only({"max_batch",
                               "buckets",
                               "instances",
                               "threads",
                               "device",
                               "gpu_mem_limit",
                               "priority",
                               "precision",
                               "samples",
                               "warmup",
                               "labels",
                               "queue_limit",
                               "queue_timeout",
                               "queue_timeout_action",
                               "priority_levels",
                               "default_priority_level",
                               "priority_queues",
                               "slo",
                               "max_queue_delay",
                               "versions",
                               "class_labels",
                               "response_cache",
                               "ensemble",
                               "sequences",
                               "optional_inputs",
                               "signatures",
                               "pre",
                               "post",
                               "ocr"}));

  ModelSettings settings = defaults;
  if (const auto versions = root.find("versions")) {
    SERIN_TRY(settings.versions, read_versions(*versions));
  }
  if (const auto labels = root.find("class_labels")) {
    SERIN_TRY(settings.class_labels, read_class_labels(*labels, folder));
  }
  SERIN_TRY(settings.max_batch, root.integer("max_batch", 1, kMostBatch, settings.max_batch));
  if (root.has("instances")) {
    SERIN_TRY(const int64_t instances, root.integer("instances", 1, 64, 1));
    settings.instances = static_cast<int>(instances);
  }
  SERIN_TRY(const int64_t threads, root.integer("threads", 1, 256, settings.threads));
  settings.threads = static_cast<int>(threads);
  if (std::ranges::any_of(kQueueKeys, [&](const char* key) { return root.has(key); })) {
    SERIN_TRY(settings.queues, read_queues(root));
    settings.queues.timeout_is_deadline = defaults.queues.timeout_is_deadline;
  }
  SERIN_TRY(settings.response_cache, root.boolean("response_cache", settings.response_cache));
  if (const auto ensemble = root.find("ensemble")) {
    if (root.has("sequences")) return ensemble->error("sequences belong to the models of its steps");
    SERIN_TRY(settings.ensemble, read_ensemble(*ensemble));
  }
  if (const auto sequences = root.find("sequences")) {
    SERIN_TRY(settings.sequences, read_sequences(*sequences, folder));
  }
  if (const auto ocr = root.find("ocr")) {
    for (const char* const other : {"ensemble", "sequences", "pre", "post"})
      if (root.has(other)) return ocr->error(fmt::format("does not go with '{}'", other));
    SERIN_TRY(settings.ensemble, read_ocr_ensemble(*ocr, folder));
  }
  if (root.has("pre") || root.has("post")) {
    if (root.has("sequences")) return root.at("sequences")->error("a model of sequences has no 'pre' and no 'post'");
    SERIN_TRY(settings.steps, steps::read_steps(root, [&](const std::string& name) { return file_of_model(folder, "", name); }));
  }
  SERIN_TRY(settings.slo, root.duration("slo", settings.slo));
  SERIN_TRY(settings.max_queue_delay, root.duration("max_queue_delay", settings.max_queue_delay));
  if (settings.max_queue_delay > kLongestQueueDelay) return root.at("max_queue_delay")->error("must be at most 10s");
  if (const auto warmup = root.find("warmup"); warmup && warmup->is_list()) {
    SERIN_TRY(settings.warmup_requests, read_warmup(*warmup, folder));
  } else {
    SERIN_TRY(settings.warmup, root.boolean("warmup", settings.warmup));
  }
  if (const auto device = root.find("device")) {
    SERIN_TRY(const std::string word, device->text());
    const auto parsed = engine::parse_device(word);
    if (!parsed) return device->error("must be cpu, cuda, cuda:N or auto, not '" + word + "'");
    settings.device = *parsed;
  }
  SERIN_TRY(settings.gpu_mem_limit, root.integer("gpu_mem_limit", 1, INT64_MAX, settings.gpu_mem_limit));
  if (const auto priority = root.find("priority")) {
    SERIN_TRY(const std::string word, priority->one_of({"min", "default", "max"}));
    settings.priority = word == "min" ? -1 : word == "max" ? 1 : 0;
  }
  if (const auto buckets = root.find("buckets")) {
    SERIN_TRY(settings.buckets, read_buckets(*buckets));
  }
  if (const auto inputs = root.find("optional_inputs")) {
    SERIN_TRY(settings.optional_inputs, read_optional_inputs(*inputs));
  }
  if (const auto signatures = root.find("signatures")) {
    SERIN_TRY(settings.signatures, read_signatures(*signatures));
  }
  if (const auto labels = root.find("labels")) {
    SERIN_TRY(settings.labels, read_labels(*labels));
  }
  if (const auto precision = root.find("precision")) {
    SERIN_TRY(const std::string word, precision->one_of({"auto", "fp32", "tf32", "fp16", "bf16", "int8"}));
    settings.precision = *parse_precision(word);
  }
  if (const auto samples = root.find("samples")) {
    SERIN_TRY(const std::string own, samples->text());
    if (settings.precision != Precision::kAuto && settings.precision != Precision::kInt8)
      return samples->error("is read by 'precision: auto' and 'precision: int8' only");
    settings.samples = std::filesystem::path(folder) / own;  // beside serin.yaml, unless it is absolute
  }
  return settings;
}

}  // namespace serin::serving
