// control_flow.h: computes If, Loop, Scan and SequenceMap on values. Its caller runs the bodies.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/engine/value.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

class ControlFlow {
 public:
  /// Runs a body of the node (`which`: its index) on inputs.
  using RunBody = std::function<Result<std::vector<Value>>(size_t which, std::vector<Value> inputs)>;

  /// `max_bytes`: for all that is scanned out. `cancelled` may be null.
  ControlFlow(const graph::Node& node, RunBody run_body, size_t max_bytes, const std::atomic<bool>* cancelled)
      : node_(node), run_body_(std::move(run_body)), max_bytes_(max_bytes), cancelled_(cancelled) {}

  /// `operands` of the node by position. Errors do not name the node.
  Result<std::vector<Value>> run(std::vector<Value> operands);

 private:
  Result<std::vector<Value>> run_if(std::vector<Value> operands);
  Result<std::vector<Value>> run_loop(std::vector<Value> operands);
  Result<std::vector<Value>> run_scan(std::vector<Value> operands);
  Result<std::vector<Value>> run_scan_batch(std::vector<Value> operands);
  Result<std::vector<Value>> run_sequence_map(std::vector<Value> operands);

  Result<std::vector<Value>> scan(std::span<const Value> carried, std::span<const Value> scanned, std::span<const Value> read);
  Status check_cancelled() const;

  const graph::Node& node_;
  const RunBody run_body_;
  const size_t max_bytes_;
  const std::atomic<bool>* const cancelled_;
};

}  // namespace serin::engine
