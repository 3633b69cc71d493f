// settings.cc: serin.yaml. What the design names and this version does not do yet is refused by name, so that nobody believes it works.

#include "runtime/serving/settings.h"

#include <filesystem>

#include "runtime/base/config.h"

namespace serin::serving {

std::optional<Precision> parse_precision(std::string_view word) {
  if (word == "fp32") return Precision::kFp32;
  if (word == "bf16") return Precision::kBf16;
  if (word == "auto") return Precision::kAuto;
  return std::nullopt;
}

Result<ModelSettings> read_model_settings(const std::string& path, const ModelSettings& defaults) {
  auto document = config::Node::load(path);
  if (!document && document.error().code == Code::kNotFound) return defaults;
  if (!document) return document.error();
  const config::Node& root = *document;
  for (const char* key : {"slo", "labels", "buckets", "max_queue_delay"})
    if (root.has(key)) return root.at(key)->error("not supported yet");
  SERIN_CHECK(root.allow_only({"max_batch", "instances", "threads", "precision", "samples", "queue_limit", "warmup"}));

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
  if (const auto precision = root.find("precision")) {
    SERIN_TRY(const std::string word, precision->one_of({"auto", "fp32", "bf16"}));
    settings.precision = *parse_precision(word);
  }
  if (const auto samples = root.find("samples")) {
    SERIN_TRY(const std::string folder, samples->text());
    if (settings.precision != Precision::kAuto) return samples->error("is read by 'precision: auto' only");
    settings.samples = std::filesystem::path(path).parent_path() / folder;  // beside serin.yaml, unless it is absolute
  }
  return settings;
}

}  // namespace serin::serving
