#include "runtime/registry/mlflow_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "runtime/base/config.h"
#include "runtime/registry/versions.h"

namespace serin::registry {
namespace {

using config::Node;

/// What MLflow puts next to an ONNX file. All other files there may be its weights, whose names ONNX chooses.
constexpr std::array<std::string_view, 8> kBesideModels{"MLmodel",
                                                        "conda.yaml",
                                                        "python_env.yaml",
                                                        "requirements.txt",
                                                        "input_example.json",
                                                        "serving_input_example.json",
                                                        "registered_model_meta",
                                                        "model_config.yaml"};

std::string_view how_to_export(std::string_view flavor) {
  if (flavor == "sklearn") return "convert it with skl2onnx.to_onnx(model, X[:1]) and log it with mlflow.onnx.log_model";
  if (flavor == "pytorch") return "export it with torch.onnx.export(model, example, 'model.onnx') and log it with mlflow.onnx.log_model";
  if (flavor == "keras") return "log it with mlflow.tensorflow.log_model";
  if (flavor == "transformers" || flavor == "sentence_transformers")
    return "export it with optimum-cli export onnx and log it with mlflow.onnx.log_model";
  return "convert it to ONNX and log it with mlflow.onnx.log_model";
}

class MlmodelReader {
 public:
  MlmodelReader(const std::string& name, const std::vector<ListedFile>& files) : name_(name), files_(files) {}

  Result<MlflowModel> read(const Node& flavors) const {
    for (const auto& [flavor, reading] : {std::pair("onnx", &MlmodelReader::onnx), std::pair("tensorflow", &MlmodelReader::tensorflow),
                                          std::pair("xgboost", &MlmodelReader::xgboost), std::pair("lightgbm", &MlmodelReader::lightgbm)}) {
      const auto node = flavors.find(flavor);
      if (!node) continue;
      SERIN_TRY(std::vector<ModelFile> chosen, (this->*reading)(*node));
      return MlflowModel{flavor, std::move(chosen)};
    }
    std::vector<std::string> others = flavors.keys();
    std::erase(others, "python_function");
    return Error{Code::kUnsupported, fmt::format("{}: its flavour is {}; Serin reads onnx, tensorflow, xgboost and lightgbm: {}", name_,
                                                 others.empty() ? "python_function" : fmt::format("{}", fmt::join(others, ", ")),
                                                 how_to_export(others.empty() ? "" : others.front()))};
  }

 private:
  using Chosen = Result<std::vector<ModelFile>>;

  /// The path that a key names, relative to the folder of the model.
  Result<std::string> path_of(const Node& flavor, std::string_view key, std::string fallback) const {
    SERIN_TRY(std::string path, flavor.text(key, std::move(fallback)));
    while (path.ends_with('/')) path.pop_back();
    if (!is_safe_path(path)) return flavor.error(fmt::format("'{}' must be a path in the folder of the model", key));
    return path;
  }
  Result<ModelFile> file(const std::string& path, std::string name) const {
    const auto found = std::ranges::find(files_, path, &ListedFile::path);
    if (found == files_.end()) return Error{Code::kNotFound, fmt::format("{}: names {}, which is not there", name_, path)};
    return ModelFile{*found, std::move(name)};
  }
  std::vector<ModelFile> below(const std::string& folder) const {
    std::vector<ModelFile> chosen;
    for (const ListedFile& each : files_)
      if (each.path.starts_with(folder + "/")) chosen.push_back({each, each.path.substr(folder.size() + 1)});
    return chosen;
  }
  Error refusal(std::string_view flavor, std::string_view what, std::string_view remedy) const {
    return {Code::kUnsupported, fmt::format("{}: flavour {}: {}; {}", name_, flavor, what, remedy)};
  }

  Chosen onnx(const Node& node) const {
    SERIN_TRY(const std::string path, path_of(node, "data", "model.onnx"));
    SERIN_TRY(ModelFile model, file(path, "model.onnx"));
    std::vector<ModelFile> chosen{std::move(model)};
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    for (const ListedFile& each : files_) {
      if (!each.path.starts_with(folder) || each.path == path) continue;
      const std::string rest = each.path.substr(folder.size());
      if (rest.find('/') == std::string::npos && rest != "model.onnx" && std::ranges::find(kBesideModels, rest) == kBesideModels.end())
        chosen.push_back({each, rest});
    }
    return chosen;
  }
  Chosen tensorflow(const Node& node) const {
    std::string folder;
    if (node.has("saved_model_dir")) {
      SERIN_TRY(folder, path_of(node, "saved_model_dir", ""));
    } else {
      SERIN_TRY(const std::string data, path_of(node, "data", "data"));
      folder = data + "/model";
      if (const auto keras = file(folder + ".keras", "model.keras")) return std::vector<ModelFile>{*keras};
    }
    if (!file(folder + "/saved_model.pb", ""))
      return refusal("tensorflow", folder + " is no SavedModel, and there is no .keras file",
                     "log it with mlflow.tensorflow.log_model of MLflow 2 or later");
    return below(folder);
  }
  Chosen xgboost(const Node& node) const {
    SERIN_TRY(const std::string path, path_of(node, "data", "model.xgb"));
    for (const std::string_view end : {".json", ".ubj"})
      if (path.ends_with(end)) {
        SERIN_TRY(ModelFile model, file(path, fmt::format("model{}", end)));
        return std::vector<ModelFile>{std::move(model)};
      }
    return refusal("xgboost", path + " is neither .json nor .ubj", "log it with mlflow.xgboost.log_model(..., model_format='json')");
  }
  Chosen lightgbm(const Node& node) const {
    SERIN_TRY(const std::string path, path_of(node, "data", "model.lgb"));
    if (path.ends_with(".pkl"))
      return refusal("lightgbm", path + " is a pickle", "log its booster: mlflow.lightgbm.log_model(model.booster_, ...)");
    SERIN_TRY(ModelFile model, file(path, "model.txt"));
    return std::vector<ModelFile>{std::move(model)};
  }

  const std::string& name_;
  const std::vector<ListedFile>& files_;
};

}  // namespace

Result<MlflowModel> read_mlmodel(std::string_view text, const std::string& name, const std::vector<ListedFile>& files) {
  SERIN_TRY(const Node document, Node::parse(text, name));
  SERIN_TRY(const Node flavors, document.at("flavors"));
  if (!flavors.is_map()) return flavors.error("must be a map of flavours");
  return MlmodelReader(name, files).read(flavors);
}

}  // namespace serin::registry
