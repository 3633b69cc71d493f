// model_platform.cc: a repository that comes from Triton names platforms that are not served here. Its files say more than that name does (a
// backend's model may well be ONNX), so they are asked first.

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

constexpr Platform kElsewhere[] = {
    {"pytorch_libtorch", "model.pt"}, {"pytorch", "model.pt"},    {"tensorflow_graphdef", "model.graphdef"},
    {"tensorrt_plan", "model.plan"},  {"tensorrt", "model.plan"}, {"openvino", "model.xml"},
    {"python", "model.py"},           {"fil", "xgboost.model"},
};

/// Of the first version that says it. `onnx`: a model that could be served in its place.
std::optional<std::string> describe_files(const std::string& folder, std::optional<std::string>& onnx) {
  const auto inside = list_folder(folder);
  if (!inside) return std::nullopt;
  for (const std::string& version : inside->folders) {
    if (!version_of_folder(version)) continue;
    const std::string path = (std::filesystem::path(folder) / version).string();
    if (auto foreign = formats::describe_foreign_model(path)) return foreign;
    const auto files = list_folder(path);
    if (!files) continue;
    const auto found = std::ranges::find_if(files->files, formats::has_model_ending);
    if (found != files->files.end()) onnx = version + "/" + *found;
  }
  return formats::describe_foreign_model(folder);
}

std::string what_to_do(const std::string& named, const std::string& folder) {
  std::optional<std::string> onnx;
  if (auto foreign = describe_files(folder, onnx)) return *foreign;
  if (onnx) return fmt::format("'{}' seems to be one: leave platform and backend out", *onnx);
  const auto* const known = std::ranges::find(kElsewhere, named, &Platform::name);
  return known == std::end(kElsewhere) ? "export it to ONNX" : fmt::format("that is {}", formats::foreign_kind(known->file));
}

}  // namespace

Status check_platform(const inference::ModelConfig& config, const std::string& folder) {
  const std::string& named = config.platform().empty() ? config.backend() : config.platform();
  const bool ensemble = config.has_ensemble_scheduling() || config.platform() == kEnsemblePlatform;
  if (named.empty() || ensemble || named.find("onnx") != std::string::npos || named.starts_with("serin")) return {};
  if (named == "tensorflow" || named == "tensorflow_savedmodel") return {};  // a graph that is no SavedModel is refused by its file
  return Error{
      Code::kUnsupported,
      fmt::format("platform or backend '{}': models of ONNX are served (onnxruntime_onnx), and of TensorFlow (tensorflow_savedmodel); {}",
                  named, what_to_do(named, folder))};
}

}  // namespace serin::serving
