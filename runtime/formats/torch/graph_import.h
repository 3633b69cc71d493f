// graph_import.h: the nodes of one graph of a program -> nodes of a graph::Graph.
//
// Programs write into tensors (relu_, copy_), but values of a Graph never change. A write gives the name a new value. A view (slice,
// transpose ...) remembers the tensor that it shows. After a write to that tensor the view is made again when it is read. A write to the view
// is also a write to the tensor.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/formats/torch/node_import.h"
#include "runtime/formats/torch/operators.h"

namespace serin::formats::torch {

class GraphImport final : public Scope {
 public:
  /// Both must outlive the object.
  GraphImport(graph::Builder& builder, const ProgramGraph& program) : b_(builder), program_(program) {}

  void define(const std::string& name, graph::ValueId value);
  /// Imports all nodes. The error is that of the first node that has one.
  Status run();

  graph::ValueId find(std::string_view name) override;
  const TensorMeta* meta(std::string_view name) const override;
  graph::ValueId turned(graph::ValueId weight) override;
  Result<std::vector<graph::ValueId>> inlined(const Json& graph, const std::vector<graph::ValueId>& inputs) override;

 private:
  struct Binding {
    graph::ValueId value = graph::kNone;
    int64_t version = 0;                 ///< number of writes
    std::string parent = {};             ///< of a view: the tensor that it shows
    int64_t parent_version = 0;          ///< when the view was made
    const ProgramNode* maker = nullptr;  ///< of a view; null if the view is the tensor itself
    size_t result = 0;
    Alias alias = Alias::kNone;
  };

  Status import(const ProgramNode& node);
  void write(const std::string& name, graph::ValueId value);
  Alias resolved(std::string_view from, std::string_view to, const OperatorRow& row) const;
  Status check(const ProgramNode& node, std::string_view name, graph::ValueId value);

  graph::Builder& b_;
  const ProgramGraph& program_;
  std::map<std::string, Binding, std::less<>> values_;
  std::map<graph::ValueId, graph::ValueId> turned_;
  int refreshing_ = 0;
};

/// Targets of nodes that are not supported, in graphs within graphs too: "'attn' (aten.frobnicate.default)".
std::vector<std::string> nodes_without_reader(const ProgramGraph& graph);

}  // namespace serin::formats::torch
