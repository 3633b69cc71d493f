// control_flow.h: computes If, Loop, Scan and SequenceMap on values. Interpreters run their bodies and live as long as the outer one.
#pragma once

#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/interpret/interpreter.h"
#include "runtime/engine/value.h"

namespace serin::engine {

class ControlFlow {
 public:
  ControlFlow(Interpreter& outer, graph::NodeId node) : outer_(outer), id_(node), node_(outer.block_->graph.node(node)) {}

  /// `operands` of the node by position. Errors do not name the node.
  Result<std::vector<Value>> run(std::vector<Value> operands);

 private:
  Result<std::vector<Value>> run_if(std::vector<Value> operands);
  Result<std::vector<Value>> run_loop(std::vector<Value> operands);
  Result<std::vector<Value>> run_scan(std::vector<Value> operands);
  Result<std::vector<Value>> run_scan_batch(std::vector<Value> operands);
  Result<std::vector<Value>> run_sequence_map(std::vector<Value> operands);

  Result<std::vector<Value>> run_body(size_t which, std::vector<Value> inputs);
  Result<std::vector<Value>> scan(std::span<const Value> carried, std::span<const Value> scanned, std::span<const Value> read);
  Status check_cancelled() const;
  size_t max_bytes() const { return outer_.context_.plan.max_arena_bytes; }

  Interpreter& outer_;
  graph::NodeId id_;
  const graph::Node& node_;
};

}  // namespace serin::engine
