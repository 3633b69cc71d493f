// onnx.cc: reads bytes into messages, messages into a graph, and checks the graph.

#include "runtime/formats/onnx/onnx.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/onnx/graph_import.h"
#include "runtime/formats/onnx/names.h"
#include "runtime/formats/onnx/operators.h"
#include "runtime/formats/onnx/proto.h"
#include "runtime/formats/recognise.h"
#include "runtime/formats/unsupported.h"

namespace serin::formats {
namespace {

using namespace onnx;

constexpr int64_t kOldestIr = 1;
constexpr int64_t kFirstIrWithOpsets = 3;  // older models are written in opset 1
constexpr int64_t kNewestIr = 13;
constexpr size_t kTensorFileBytes = size_t{2} << 30;

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

Error not_onnx(Bytes bytes, const Error& error) {
  if (error.code == Code::kTooLarge) return error;
  if (const auto what = recognise(bytes)) return Error{Code::kCorrupt, "not an ONNX model but " + *what};
  return error.in("not an ONNX model, or a damaged one");
}

Result<int64_t> opset_of(const ModelProto& model) {
  std::optional<int64_t> opset;
  for (const auto& [domain, version] : model.opset_import) {
    if (!domain.empty() && domain != "ai.onnx") continue;  // matters only if a node uses it, and then the node is refused
    if (opset && *opset != version) return Error{Code::kCorrupt, fmt::format("imports opset {} and opset {}", *opset, version)};
    opset = version;
  }
  if (!opset && model.ir_version < kFirstIrWithOpsets) return 1;
  if (!opset && model.opset_import.empty()) return Error{Code::kCorrupt, "does not say which opset it uses (opset_import is empty)"};
  if (!opset) return 0;  // of other domains only
  if (*opset < kOldestOpset) return Error{Code::kCorrupt, fmt::format("uses opset {}, which does not exist", *opset)};
  if (*opset > kNewestOpset)
    return Error{Code::kUnsupported, fmt::format("uses opset {}; {} to {} are read (export it with opset_version={})", *opset, kOldestOpset,
                                                 kNewestOpset, kNewestOpset)};
  return *opset;
}

Result<ModelProto> decode(Bytes bytes, const OnnxLimits& limits) {
  Decoding decoding{.begin = bytes.data(), .message_limit = 4 * limits.nodes, .nesting_limit = limits.nesting + 1, .error = {}};
  ModelProto model = read_model(Message(decoding, "ModelProto", bytes));
  if (decoding.error) return not_onnx(bytes, *decoding.error);
  if (!model.graph) return not_onnx(bytes, Error{Code::kCorrupt, "has no graph"});
  if (model.ir_version < kOldestIr || model.ir_version > kNewestIr)
    return Error{Code::kUnsupported, fmt::format("has IR version {}; {} to {} are read", model.ir_version, kOldestIr, kNewestIr)};
  return model;
}

Result<graph::Graph> import(FileImage image, const std::string& folder, const ReplaceableInputs& replaceable,
                            const OnnxLimits& limits) try {
  SERIN_TRY(const ModelProto model, decode(image.bytes(), limits));
  SERIN_TRY(const int64_t opset, opset_of(model));
  ModelImport shared{.opsets = {.standard = opset},
                     .node_limit = limits.nodes,
                     .nesting_limit = limits.nesting + 1,
                     .tensors = TensorReader(image, folder, limits.sparse_bytes),
                     .replaceable = replaceable};
  for (const auto& [domain, version] : model.opset_import) shared.opsets.others.emplace(domain, version);
  for (const FunctionProto& function : model.functions)
    if (!shared.functions.try_emplace({without_alias(function.domain), function.name, function.overload}, &function).second)
      return Error{Code::kCorrupt, fmt::format("function {} is defined twice", quote(function.name))};

  SERIN_TRY(graph::Graph graph, GraphImport(shared).run(*model.graph));
  SERIN_CHECK(shared.tensors.finish());
  if (!shared.unsupported.empty()) return unsupported_nodes(shared.unsupported);
  SERIN_CHECK(graph::verify(graph));
  SERIN_CHECK(graph::infer_shapes(graph));
  return graph;
} catch (const graph::LostConstant& lost) {
  return lost.error();
}

}  // namespace

Result<graph::Graph> read_onnx(const std::string& path, const ReplaceableInputs& replaceable, const OnnxLimits& limits) {
  SERIN_TRY(FileImage image, FileImage::read_model(path, limits.file_bytes));
  auto graph = import(std::move(image), folder_of(path), replaceable, limits);
  if (!graph) return graph.error().in(file_name(path));
  return graph;
}

Result<graph::Graph> read_onnx_bytes(std::shared_ptr<const std::byte> data, size_t size, const std::string& folder,
                                     const ReplaceableInputs& replaceable, const OnnxLimits& limits) {
  return import(FileImage(std::move(data), size), folder, replaceable, limits);
}

Result<graph::ConstantPtr> read_tensor_file(const std::string& path, std::string* name) {
  SERIN_TRY(FileImage image, FileImage::read(path, kTensorFileBytes));
  Decoding decoding{.begin = image.bytes().data(), .error = {}};
  const TensorProto tensor = read_tensor(Message(decoding, "TensorProto", image.bytes()));
  if (decoding.error) return decoding.error->in(file_name(path) + ": not a tensor");
  if (name) *name = tensor.name;
  auto constant = TensorReader(image, "").read(tensor);
  if (!constant) return constant.error().in(file_name(path));
  return constant;
}

}  // namespace serin::formats
