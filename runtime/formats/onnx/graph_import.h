// graph_import.h: one GraphProto -> one Graph; bodies of If and Loop are graphs within it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/formats/onnx/node_import.h"
#include "runtime/formats/onnx/proto.h"
#include "runtime/formats/onnx/tensor.h"
#include "runtime/graph/graph.h"

namespace serin::formats::onnx {

/// What all graphs of a model share.
struct ModelImport {
  int64_t opset = 0;
  size_t node_limit = 0;
  TensorReader tensors;
  std::set<std::pair<std::string_view, std::string_view>> functions = {};  ///< domain and name of those the model defines
  std::map<std::string_view, int64_t> domains = {};                        ///< versions of the operator sets beside the default one
  size_t nodes = 0;
  std::vector<std::string> unsupported = {};                  ///< "'attn' (com.acme.Frobnicate)": all of them are reported at once
  std::unordered_map<std::string, std::string> symbols = {};  ///< dim_param -> name in the graph
  std::set<std::string, std::less<>> symbols_taken = {};
};

/// A name for people: cut where it is very long, control characters shown as '?'.
std::string printable(std::string_view name);
std::string quote(std::string_view name);  ///< the same within quotes

class GraphImport {
 public:
  GraphImport(ModelImport& model, GraphImport* outer = nullptr) : model_(model), outer_(outer) {}

  /// A value that a body reads from outside becomes an input of it.
  struct Capture {
    std::string_view name;
    graph::ValueId outside;
  };

  /// Bodies: inputs are those of `proto`, then the captures.
  Result<graph::Graph> run(const GraphProto& proto, const std::vector<Capture>& captures = {});

  /// What the bodies read from here (constants aside, which are copied into them), in the order of first use.
  std::vector<Capture> captures(const std::vector<const GraphProto*>& bodies);

  /// The value of that name; a constant of an outer graph is shared with this one. kNone where there is none.
  graph::ValueId find(std::string_view name);
  void define(std::string_view name, graph::ValueId value);

  graph::Graph& graph() { return graph_; }
  ModelImport& model() { return model_; }

 private:
  Status add_initializers(const GraphProto& proto);
  Status add_inputs(const GraphProto& proto);
  Status add_node(const NodeProto& proto);
  Status set_outputs(const GraphProto& proto);
  Status check_operands(const NodeProto& proto, const std::string& name);
  Result<graph::Type> type_from(const TypeProto& proto, std::string_view name);
  graph::Dim dim_from(const DimensionProto& proto, std::string_view name, size_t axis);
  std::string unique_node_name(const NodeProto& proto);
  void refuse_node(const NodeProto& proto, const std::string& name, std::string_view why);

  ModelImport& model_;
  GraphImport* outer_;
  graph::Graph graph_;
  std::unordered_map<std::string_view, graph::ValueId> values_;
  std::unordered_map<std::string_view, std::string_view> made_by_;  ///< output name -> op_type of the node of the file that makes it
  std::set<std::string, std::less<>> node_names_;
  std::optional<Error> error_;  ///< two definitions of one name
};

}  // namespace serin::formats::onnx
