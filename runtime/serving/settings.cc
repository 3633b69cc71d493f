// settings.cc: serin.yaml. What the design names and this version does not do yet is refused by name, so that nobody believes it works.

#include "runtime/serving/settings.h"

#include <algorithm>
#include <filesystem>

#include "runtime/base/config.h"

namespace serin::serving {

std::optional<Precision> parse_precision(std::string_view word) {
  const auto name = std::ranges::find(kPrecisionNames, word);
  if (name == kPrecisionNames.end()) return std::nullopt;
  return static_cast<Precision>(name - kPrecisionNames.begin());
}

namespace {

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

}  // namespace

Result<ModelSettings> read_model_settings(const std::string& path, const ModelSettings& defaults) {
  auto document = config::Node::load(path);
  if (!document && document.error().code == Code::kNotFound) return defaults;
  if (!document) return document.error();
  const config::Node& root = *document;
  for (const char* key : {"slo", "max_queue_delay"})
    if (root.has(key)) return root.at(key)->error("not supported yet");
  SERIN_CHECK(root.allow_only({"max_batch", "buckets", "instances", "threads", "device", "gpu_mem_limit", "priority", "precision",
                               "samples", "queue_limit", "warmup", "labels"}));

  ModelSettings settings = defaults;
  SERIN_TRY(settings.max_batch, root.integer("max_batch", 1, 4096, settings.max_batch));
  if (root.has("instances")) {
    SERIN_TRY(const int64_t instances, root.integer("instances", 1, 64, 1));
    settings.instances = static_cast<int>(instances);
  }
  SERIN_TRY(const int64_t threads, root.integer("threads", 1, 256, settings.threads));
  settings.threads = static_cast<int>(threads);
  SERIN_TRY(const int64_t queue_limit, root.integer("queue_limit", 1, 1'000'000, static_cast<int64_t>(settings.queue_limit)));
  settings.queue_limit = static_cast<size_t>(queue_limit);
  SERIN_TRY(settings.warmup, root.boolean("warmup", settings.warmup));
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
  if (const auto labels = root.find("labels")) {
    SERIN_TRY(settings.labels, read_labels(*labels));
  }
  if (const auto precision = root.find("precision")) {
    SERIN_TRY(const std::string word, precision->one_of({"auto", "fp32", "tf32", "fp16", "bf16", "int8"}));
    settings.precision = *parse_precision(word);
  }
  if (const auto samples = root.find("samples")) {
    SERIN_TRY(const std::string folder, samples->text());
    if (settings.precision != Precision::kAuto && settings.precision != Precision::kInt8)
      return samples->error("is read by 'precision: auto' and 'precision: int8' only");
    settings.samples = std::filesystem::path(path).parent_path() / folder;  // beside serin.yaml, unless it is absolute
  }
  return settings;
}

}  // namespace serin::serving
