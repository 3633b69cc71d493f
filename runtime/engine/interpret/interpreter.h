// interpreter.h: runs a graph that cannot be planned as a whole, stage by stage (stage.h), on values.
//
//   Interpreter interpreter(block, plan_context);
//   SERIN_TRY(const std::vector<Value> results, interpreter.run(inputs, {}));
//
// One run at a time; not thread-safe. Plans and prepared kernels of one run are reused in the next. The bodies of control flow have their
// own interpreters, which live as long as this one, so that a loop plans its body once.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/base/result.h"
#include "runtime/engine/interpret/stage.h"
#include "runtime/engine/program/block.h"
#include "runtime/engine/value.h"

namespace serin::engine {

/// Shared by the regions of a model and of its bodies: only one of them runs at a time.
struct Workspace {
  AlignedBuffer arena;
  std::unique_ptr<kernels::Workers> workers;
  const std::atomic<bool>* cancelled = nullptr;  ///< for the current run
};

class Interpreter {
 public:
  Interpreter(std::shared_ptr<const Block> block, const Plan::Context& context);

  /// Inputs in the block's order. Errors: kInvalidArgument, kTooLarge, kUnsupported, kCancelled, naming the node.
  Result<std::vector<Value>> run(std::span<const Value> inputs, const std::atomic<bool>* cancelled);

  /// Describes the last run, a line for each stage, for `serin inspect`.
  std::string describe_last_run() const;
  size_t arena_bytes() const { return workspace_->arena.size(); }

 private:
  Interpreter(std::shared_ptr<const Block> block, const Plan::Context& context, std::shared_ptr<Workspace> workspace, int depth);

  Result<std::vector<Value>> run_block(std::vector<Value> inputs);
  Result<std::vector<Value>> run_stages();
  Result<Stage*> next_stage(Stage& before);
  Status run_stage(Stage& stage);
  Status run_region(Region& region);
  Status run_single(Single& single);
  Result<std::vector<Value>> run_control_flow(graph::NodeId id, std::vector<Value> operands);
  Result<std::vector<graph::ConstantPtr>> run_sized_by_contents(graph::NodeId id);
  Status keep(const graph::Node& node, std::vector<graph::ConstantPtr> results);
  Result<std::vector<graph::ConstantPtr>> operands(const graph::Node& node) const;
  Value value(graph::ValueId id) const;
  Value value_in_memory(graph::ValueId id) const;

  std::shared_ptr<const Block> block_;
  std::shared_ptr<Workspace> workspace_;
  int depth_;
  StageContext context_;
  Stage start_;
  size_t stages_ = 0;
  std::vector<Value> values_;        // of the current run, by ValueId
  std::vector<const Stage*> taken_;  // stages of the last run
  std::map<graph::NodeId, std::vector<std::unique_ptr<Interpreter>>> bodies_;
};

}  // namespace serin::engine
