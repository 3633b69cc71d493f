// load.cc: chooses the reader of a model file by its format.

#include <fmt/format.h>

#include <filesystem>

#include "runtime/engine/engine.h"
#include "runtime/formats/model_file.h"
#include "runtime/formats/onnx/onnx.h"
#include "runtime/formats/paddle/paddle.h"
#include "runtime/formats/tensorflow/savedmodel.h"
#include "runtime/formats/torch/torch.h"
#include "runtime/formats/trees/trees.h"

namespace serin::engine {
namespace {

/// With what to do, where the names there say what it is.
Error not_readable(const std::string& path) {
  const std::filesystem::path given = std::filesystem::path(path).lexically_normal();
  std::error_code ignored;
  const auto foreign = std::filesystem::is_directory(given, ignored) ? formats::describe_foreign_model(path)
                                                                     : formats::describe_foreign_file(given.filename().string());
  return {Code::kUnsupported,
          fmt::format("{}: {}", path, foreign ? "only ONNX models can be read; " + *foreign : "only .onnx files can be read")};
}

}  // namespace

Result<graph::Graph> read_model(const std::string& path, const std::set<std::string, std::less<>>& replaceable_inputs) {
  if (std::error_code ignored; std::filesystem::exists(std::filesystem::path(path) / "saved_model.pb", ignored))  // the folder is the model
    return formats::read_saved_model((std::filesystem::path(path) / "saved_model.pb").string(), replaceable_inputs);
  const auto format = formats::format_of(path);
  if (!format) return not_readable(path);
  switch (*format) {
    case formats::Format::kOnnx: return formats::read_onnx(path, replaceable_inputs);
    case formats::Format::kPaddle: return formats::read_paddle(path, replaceable_inputs);
    case formats::Format::kTensorFlow: return formats::read_saved_model(path, replaceable_inputs);
    case formats::Format::kTorch: return formats::read_torch(path);
    case formats::Format::kXgboost: return formats::read_xgboost(path);
    case formats::Format::kLightGbm: return formats::read_lightgbm(path);
  }
  return not_readable(path);
}

Result<std::shared_ptr<Model>> Model::load(const std::string& path, const kernels::Backend& backend, LoadOptions options) {
  SERIN_TRY(graph::Graph graph, read_model(path, options.replaceable_inputs));
  return from_graph(std::move(graph), backend, std::move(options));
}

}  // namespace serin::engine
