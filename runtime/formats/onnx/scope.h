// scope.h: the interface through which the importer of a node reads and extends the graph that the node is part of.
//
// GraphImport implements it. Importers see only this interface, so that graph_import includes them, and they do not include it back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/formats/onnx/proto.h"
#include "runtime/formats/onnx/tensor.h"
#include "runtime/graph/graph.h"

namespace serin::formats::onnx {

/// Versions of the operator sets that a graph or a function uses.
struct Opsets {
  int64_t standard = 0;                             ///< version of the default domain
  std::map<std::string_view, int64_t> others = {};  ///< versions by domain
};

/// A value that a body reads from outside becomes an input of it.
struct Capture {
  std::string_view name;
  graph::ValueId outside;
};

class Scope {
 public:
  /// Versions of the operator sets in this scope.
  virtual const Opsets& opsets() const = 0;
  virtual graph::Graph& graph() = 0;
  virtual TensorReader& tensors() = 0;

  /// The value of that name; a constant of an outer graph is shared with this one. kNone if there is none.
  virtual graph::ValueId find(std::string_view name) = 0;
  virtual void define(std::string_view name, graph::ValueId value) = 0;

  /// Returns the values that the bodies read from here, in the order of first use. Constants are not among them: they are copied into the
  /// bodies.
  virtual std::vector<Capture> captures(const std::vector<const GraphProto*>& bodies) = 0;

  /// A body as a graph within this one. Its inputs are those of `proto`, then the captures.
  virtual Result<graph::Graph> body(const GraphProto& proto, const std::vector<Capture>& captures) = 0;

  /// Inserts the nodes of `body` into this graph, with `inputs` as its inputs; returns the values of its outputs.
  virtual Result<std::vector<graph::ValueId>> inlined(const GraphProto& body, const std::vector<graph::ValueId>& inputs,
                                                      const std::string& name) = 0;

 protected:
  Scope() = default;
  Scope(const Scope&) = default;
  ~Scope() = default;
};

}  // namespace serin::formats::onnx
