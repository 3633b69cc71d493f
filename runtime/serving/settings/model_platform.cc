// model_platform.cc: a repository of Triton may name platforms that are not served here. Its files say more than that name does (a TensorFlow model
// is a SavedModel or a graph, a backend's model may be ONNX), so they are examined first.

#include "runtime/serving/settings/model_platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include "runtime/formats/model_file.h"
#include "runtime/serving/settings/model_folder.h"
#include "runtime/serving/settings/settings.h"

namespace serin::serving {
namespace {

struct Platform {
  std::string_view name;  ///< or the backend's
  std::string_view file;  ///< as its models are called
};

/// Platforms and backends of Triton whose models are read here, with a name that Triton gives their files.
constexpr Platform kRead[] = {
    {"tensorflow_savedmodel", "model.savedmodel"},
    {"tensorflow", "model.savedmodel"},
    {"fil", "xgboost.json"},
};

constexpr Platform kElsewhere[] = {
    {"pytorch_libtorch", "model.pt"}, {"pytorch", "model.pt"},    {"tensorflow_graphdef", "model.graphdef"},
    {"tensorrt_plan", "model.plan"},  {"tensorrt", "model.plan"}, {"openvino", "model.xml"},
    {"python", "model.py"},
};

/// Of the first version that says it. `readable`: a model that could be served in its place.
std::optional<std::string> describe_files(const std::string& folder, std::optional<std::string>& readable) {
  const auto inside = list_folder(folder);
  if (!inside) return std::nullopt;
  for (const std::string& version : inside->folders) {
    if (!version_of_folder(version)) continue;
    const std::string path = (std::filesystem::path(folder) / version).string();
    if (auto foreign = formats::describe_foreign_model(path)) return foreign;
    const auto files = list_folder(path);
    if (!files) continue;
    const auto found = std::ranges::find_if(files->files, formats::has_model_ending);
    if (found != files->files.end()) readable = version + "/" + *found;
  }
  return formats::describe_foreign_model(folder);
}

std::string what_to_do(const std::string& named, const std::string& folder) {
  std::optional<std::string> readable;
  if (auto foreign = describe_files(folder, readable)) return *foreign;
  if (readable) return fmt::format("'{}' seems to be one: leave platform and backend out", *readable);
  const auto* const known = std::ranges::find(kElsewhere, named, &Platform::name);
  return known == std::end(kElsewhere) ? "export it to ONNX" : fmt::format("that is {}", formats::foreign_kind(known->file));
}

}  // namespace

Status check_platform(const inference::ModelConfig& config, const std::string& folder) {
  const std::string& named = config.platform().empty() ? config.backend() : config.platform();
  const bool ensemble = config.has_ensemble_scheduling() || config.platform() == kEnsemblePlatform;
  if (named.empty() || ensemble || named.find("onnx") != std::string::npos || named.starts_with("serin")) return {};
  if (std::ranges::find(kRead, named, &Platform::name) != std::end(kRead)) return {};
  return Error{Code::kUnsupported, fmt::format("platform or backend '{}': models of these formats are served: {}; {}", named,
                                               formats::kReadableFormats, what_to_do(named, folder))};
}

std::string file_of_platform(const inference::ModelConfig& config) {
  const auto* const found = std::ranges::find(kRead, config.platform().empty() ? config.backend() : config.platform(), &Platform::name);
  return found == std::end(kRead) ? "" : std::string(found->file);
}

std::string_view platform_of(const inference::ModelConfig* config, const std::string& path) {
  if (config) {
    if (config->platform() == kTritonPlatform || config->backend() == kTritonBackend) return kTritonPlatform;
    const auto* const found =
        std::ranges::find(kRead, config->platform().empty() ? config->backend() : config->platform(), &Platform::name);
    if (found != std::end(kRead)) return found->name;
  }
  switch (formats::format_of(path).value_or(formats::Format::kOnnx)) {
    case formats::Format::kOnnx: return kModelPlatform;
    case formats::Format::kTorch: return "torch_serin";
    case formats::Format::kXgboost: return "xgboost_serin";
    case formats::Format::kLightGbm: return "lightgbm_serin";
    case formats::Format::kTensorFlow: return "tensorflow_serin";
    case formats::Format::kKeras: return "keras_serin";
    case formats::Format::kPaddle: return "paddle_serin";
  }
  return kModelPlatform;
}

}  // namespace serin::serving
