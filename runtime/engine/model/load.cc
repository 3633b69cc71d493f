// load.cc: chooses the reader of a model file by its format.

#include <fmt/format.h>

#include <filesystem>

#include "runtime/engine/engine.h"
#include "runtime/engine/model/shared_weights.h"
#include "runtime/formats/keras/keras.h"
#include "runtime/formats/model_file.h"
#include "runtime/formats/onnx/onnx.h"
#include "runtime/formats/paddle/paddle.h"
#include "runtime/formats/tensorflow/savedmodel.h"
#include "runtime/formats/torch/torch.h"
#include "runtime/formats/trees/trees.h"

namespace serin::engine {
namespace {

/// With instructions if the name tells the format.
Error not_readable(const std::string& path) {
  const auto foreign = formats::describe_foreign_file(std::filesystem::path(path).filename().string());
  return {Code::kUnsupported, foreign ? fmt::format("{}: {}", path, *foreign)
                                      : fmt::format("{}: models of these formats are read: {}", path, formats::kReadableFormats)};
}

/// The model in a folder, or the path itself.
Result<std::string> file_of(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  auto found = formats::find_model_file(path, "model.onnx");
  if (!found) return found.error().in(path);
  return found;
}

}  // namespace

std::shared_ptr<SharedWeights> make_shared_weights() { return std::make_shared<SharedWeights>(); }

Result<graph::Graph> read_model(const std::string& given, const std::set<std::string, std::less<>>& replaceable_inputs) {
  LoadOptions options;
  options.replaceable_inputs = replaceable_inputs;
  return read_model(given, options);
}

Result<graph::Graph> read_model(const std::string& given, const LoadOptions& options) {
  const auto& replaceable_inputs = options.replaceable_inputs;
  SERIN_TRY(const std::string path, file_of(given));
  const auto format = formats::format_of(path);
  if (!format) return not_readable(path);
  if (!options.signature.empty() && *format != formats::Format::kTensorFlow)
    return invalid(fmt::format("signature '{}': only a SavedModel has signatures", options.signature));
  switch (*format) {
    case formats::Format::kOnnx: return formats::read_onnx(path, replaceable_inputs);
    case formats::Format::kPaddle: return formats::read_paddle(path, replaceable_inputs);
    case formats::Format::kTensorFlow:
      return formats::read_saved_model(path, replaceable_inputs, {},
                                       {options.signature, options.shared ? &options.shared->constants : nullptr});
    case formats::Format::kTorch: return formats::read_torch(path);
    case formats::Format::kKeras: return formats::read_keras(path);
    case formats::Format::kXgboost: return formats::read_xgboost(path);
    case formats::Format::kLightGbm: return formats::read_lightgbm(path);
  }
  return not_readable(path);
}

Result<std::shared_ptr<Model>> Model::load(const std::string& path, const kernels::Backend& backend, LoadOptions options) {
  SERIN_TRY(graph::Graph graph, read_model(path, options));
  return from_graph(std::move(graph), backend, std::move(options));
}

}  // namespace serin::engine
