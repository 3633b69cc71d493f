// load.cc: which reader a file gets. ONNX is the only format so far.

#include "runtime/engine/engine.h"
#include "runtime/formats/onnx/onnx.h"

namespace serin::engine {

Result<graph::Graph> read_model(const std::string& path) {
  if (!path.ends_with(".onnx")) return Error{Code::kUnsupported, path + ": only .onnx files can be read"};
  return formats::read_onnx(path);
}

Result<std::shared_ptr<Model>> Model::load(const std::string& path, const kernels::Backend& backend, LoadOptions options) {
  SERIN_TRY(graph::Graph graph, read_model(path));
  return from_graph(std::move(graph), backend, std::move(options));
}

}  // namespace serin::engine
