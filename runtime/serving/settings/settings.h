// settings.h: the settings of a model: models/<name>/serin.yaml, all of it optional, or config.pbtxt (model_config.h).
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

#include "runtime/base/config.h"
#include "runtime/base/result.h"
#include "runtime/engine/devices.h"
#include "runtime/serving/settings/model_source.h"
#include "runtime/serving/settings/queue_policy.h"
#include "runtime/serving/settings/settings_parts.h"
#include "runtime/steps/pipeline/pipeline.h"

namespace inference {
class ModelConfig;
}

namespace serin::serving {

/// kTf32 and kFp16 are for devices only.
enum class Precision : uint8_t { kFp32, kTf32, kFp16, kBf16, kInt8, kAuto };
inline constexpr std::array<std::string_view, 6> kPrecisionNames = {"fp32", "tf32", "fp16", "bf16", "int8", "auto"};
std::optional<Precision> parse_precision(std::string_view word);
inline std::string print_precision(Precision precision) { return std::string(kPrecisionNames[static_cast<size_t>(precision)]); }

/// The platform in a model's metadata; Triton's name for it if a Triton configuration names one.
inline constexpr std::string_view kModelPlatform = "onnx_serin", kTritonPlatform = "onnxruntime_onnx", kTritonBackend = "onnxruntime",
                                  kEnsemblePlatform = "ensemble";

struct ModelSettings {
  std::string file = "model.onnx";  ///< in each version's folder
  VersionPolicy versions;
  bool batching = true;                                ///< false: each request runs alone, with all its rows
  int64_t max_batch = 32;                              ///< rows in one run; 1 if the model is not batchable
  std::optional<int> instances;                        ///< runs at the same time; default: one for each compute thread, two for each device
  int threads = 1;                                     ///< cores for one run
  std::vector<std::string> signatures;                 ///< of a SavedModel, the standard one first; empty: all
  std::set<std::string, std::less<>> optional_inputs;  ///< inputs that requests may omit: the model's stored value is used
  bool warmup = true;                                  ///< run batch 1 before the version is ready
  Precision precision = Precision::kFp32;
  engine::DeviceChoice device;
  int64_t gpu_mem_limit = INT64_MAX;                             ///< bytes that a version may occupy on each device
  int priority = 0;                                              ///< priority of its work on a device: 1 before other models, -1 after them
  std::map<std::string, std::vector<int64_t>> buckets;           ///< sizes of dimensions to prepare, rising: {seq: [32, 64, 128]}
  Labels labels;                                                 ///< names of versions, for clients of TensorFlow Serving: {stable: 3}
  QueuePolicies queues;                                          ///< for waiting requests
  std::chrono::nanoseconds slo{0};                               ///< goal from arrival to answer, used to form batches; 0: none
  std::chrono::nanoseconds max_queue_delay{0};                   ///< how long the first job of a batch is held back for others
  std::map<std::string, std::vector<std::string>> class_labels;  ///< labels of an output's classes, by the output's name
  std::map<std::string, std::string> metric_tags;                ///< labels of its metrics in addition to model and version
  std::shared_ptr<const inference::ModelConfig> config;          ///< config.pbtxt as read; null: there is none
  std::string config_name;  ///< configs/<config_name>.pbtxt in a model's folder replaces config.pbtxt, if it exists; empty: no replacement
  std::string samples;      ///< folder of inputs for `precision: auto` and for the ranges of int8; empty: made-up inputs

  std::vector<WarmupRequest> warmup_requests;  ///< run before the version is ready; each must succeed
  bool response_cache = false;                 ///< answers are cached for requests with the same inputs
  std::optional<EnsembleSettings> ensemble;    ///< the model has no file: these models run its steps
  std::optional<SequenceSettings> sequences;   ///< its requests belong to sequences
  steps::StepsSettings steps;                  ///< pre and post: what is done before the model and after it

  friend bool operator==(const ModelSettings&, const ModelSettings&) = default;
};

/// Returns `defaults` if there is no such file. Errors name file and line, and list the allowed values.
Result<ModelSettings> read_model_settings(const std::string& path, const ModelSettings& defaults = {});
/// The same of a document. `folder`: the model's, of files that it names.
Result<ModelSettings> read_model_settings(const config::Node& root, const std::string& folder, const ModelSettings& defaults);

/// Whether they differ only in parts that no loaded version depends on: labels, and the choice of versions.
bool same_but_for_names(ModelSettings a, const ModelSettings& b);

/// Reads the lines of a file in the model's folder.
Result<std::vector<std::string>> read_label_file(const std::string& folder, const std::string& name);

/// Reads the settings in a model's folder: config.pbtxt, then serin.yaml, which has precedence. A `config` that is not empty (a ModelConfig
/// as JSON) replaces config.pbtxt. An empty folder has no settings. `name`: the name that config.pbtxt must contain, if it has one; empty:
/// any. `yaml`: replaces serin.yaml; null: the folder's.
Result<ModelSettings> read_model_folder(const std::string& folder, const std::string& name, const std::string& config,
                                        const ModelSettings& defaults, const config::Node* yaml = nullptr);

}  // namespace serin::serving
