// settings.h: how a model is served: models/<name>/serin.yaml, all of it optional, or config.pbtxt (model_config.h).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/devices.h"
#include "runtime/serving/settings/model_source.h"
#include "runtime/serving/settings/queue_policy.h"
#include "runtime/serving/settings/settings_parts.h"

namespace inference {
class ModelConfig;
}

namespace serin::serving {

/// kTf32 and kFp16 are for devices only.
enum class Precision : uint8_t { kFp32, kTf32, kFp16, kBf16, kInt8, kAuto };
inline constexpr std::array<std::string_view, 6> kPrecisionNames = {"fp32", "tf32", "fp16", "bf16", "int8", "auto"};
std::optional<Precision> parse_precision(std::string_view word);
inline std::string print_precision(Precision precision) { return std::string(kPrecisionNames[static_cast<size_t>(precision)]); }

struct ModelSettings {
  std::string file = "model.onnx";  ///< in each version's folder
  VersionPolicy versions;
  bool batching = true;                                ///< false: each request runs by itself, with as many rows as it has
  int64_t max_batch = 32;                              ///< rows in one run; 1 where the model is not batchable
  std::optional<int> instances;                        ///< runs at the same time; default: one for each compute thread, two for each device
  int threads = 1;                                     ///< cores for one run
  std::set<std::string, std::less<>> optional_inputs;  ///< that requests may leave out: the value holds that the model stores for them
  bool warmup = true;                                  ///< run batch 1 before the version is ready
  Precision precision = Precision::kFp32;
  engine::DeviceChoice device;
  int64_t gpu_mem_limit = INT64_MAX;                             ///< bytes that a version may hold of each device
  int priority = 0;                                              ///< of its work on a device: 1 before that of other models, -1 after it
  std::map<std::string, std::vector<int64_t>> buckets;           ///< sizes of dimensions to be ready for, rising: {seq: [32, 64, 128]}
  Labels labels;                                                 ///< names of versions, for clients of TensorFlow Serving: {stable: 3}
  QueuePolicies queues;                                          ///< of requests that wait
  std::chrono::nanoseconds slo{0};                               ///< from arrival to answer, which batches are formed by; 0: none
  std::chrono::nanoseconds max_queue_delay{0};                   ///< that the first of a batch is held back for others
  std::map<std::string, std::vector<std::string>> class_labels;  ///< of an output's classes, by the output's name
  std::map<std::string, std::string> metric_tags;                ///< labels of its metrics beside model and version
  std::shared_ptr<const inference::ModelConfig> config;          ///< config.pbtxt as it was read; null: there is none
  std::string config_name;  ///< configs/<it>.pbtxt in a model's folder is read in place of config.pbtxt, where there is one; empty: none is
  std::string samples;      ///< a folder of inputs that `precision: auto` decides on and int8 takes its ranges from; empty: made-up ones

  std::vector<WarmupRequest> warmup_requests;  ///< run before the version is ready; each of them has to go well
  bool response_cache = false;                 ///< answers are kept for requests with the same inputs
  std::optional<EnsembleSettings> ensemble;    ///< it has no file: these models run its steps
  std::optional<SequenceSettings> sequences;   ///< its requests belong to sequences

  friend bool operator==(const ModelSettings&, const ModelSettings&) = default;
};

/// `defaults` where there is no such file. Errors name file, line and what is allowed.
Result<ModelSettings> read_model_settings(const std::string& path, const ModelSettings& defaults = {});

/// Whether they differ in nothing that a loaded version depends on: in labels, and in which versions are served.
bool same_but_for_names(ModelSettings a, const ModelSettings& b);

/// The lines of a file in the model's folder.
Result<std::vector<std::string>> read_label_file(const std::string& folder, const std::string& name);

/// What a model's folder says: config.pbtxt (in its place `config`, a ModelConfig as JSON, where that is not empty), and over it serin.yaml. An empty folder has none.
/// `name`: what config.pbtxt must call the model where it calls it anything; empty: whatever it likes.
Result<ModelSettings> read_model_folder(const std::string& folder, const std::string& name, const std::string& config,
                                        const ModelSettings& defaults);

}  // namespace serin::serving
