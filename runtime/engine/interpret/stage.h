// stage.h: determines how much of a graph can run with the facts known at one moment of a run.
//
//   stage = region (all nodes whose sizes follow from the shapes that are known: one plan, all fast kernels)
//         + singles (nodes that only a run can size: data-dependent kernels, control flow, sequences, strings),
//           whose results open the next stage
//
// The facts that decide a stage are the shapes of inputs and of results of singles, and the elements of small integer operands that a shape
// rule needs. The same facts give the same stage, so stages are kept in a tree. It stores a stage's successors by their facts, and evicts
// the least recently used first. A run with known facts plans nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/recently_used.h"
#include "runtime/base/result.h"
#include "runtime/engine/lower/solo.h"
#include "runtime/engine/plan.h"
#include "runtime/engine/plan/region.h"
#include "runtime/engine/program/block.h"
#include "runtime/engine/value.h"
#include "runtime/graph/ops/infer.h"

namespace serin::engine {

/// The properties of one value that a stage assumes.
struct Fact {
  graph::ValueKind kind = graph::ValueKind::kTensor;
  DType dtype = DType::kUndefined;
  Shape shape;
  graph::ConstantPtr contents;  ///< only if a rule needs them

  bool holds(const Value& value) const;
};
Fact fact_of(const Value& value, bool with_contents);

/// A node that runs by itself.
struct Single {
  enum class Kind : uint8_t {
    kKernel,    ///< sized by its kernel: `solo` serves every run of this stage
    kContents,  ///< sized by the elements of its operands: prepared anew for each run
    kStrings,   ///< moves strings
    kValues,    ///< control flow, sequences, optionals
  };
  graph::NodeId node = graph::kNone;
  Kind kind = Kind::kValues;
  std::unique_ptr<Solo> solo;
};

struct Stage {
  std::unique_ptr<Region> region;
  std::vector<Single> singles;
  std::vector<graph::NodeId> nodes;  ///< nodes that this stage computes
  std::vector<graph::ValueId> dead;  ///< values that no later stage reads
  const Stage* before = nullptr;
  bool last = false;

  // These decide the next stage.
  std::vector<graph::ValueId> shaped;  ///< values whose shapes are new: the block's inputs, or results of the singles
  std::vector<graph::ValueId> asked;   ///< values whose elements some successor depends on
  struct Next {
    std::vector<Fact> facts;  ///< of `shaped`, then of those in `asked` at the time
    std::unique_ptr<Stage> stage;
  };
  RecentlyUsed<Next> next;
  Stage* find_next(const std::vector<Value>& values);
};

/// Working data to make the stages of one block; belongs to one run at a time.
struct StageContext {
  const Block& block;
  Plan::Context plan;
  graph::Graph work;           ///< a copy whose types are those of the current run
  graph::Inference inference;  ///< over `work`

  StageContext(const Block& the_block, const Plan::Context& the_plan)
      : block(the_block), plan(the_plan), work(the_block.graph), inference(work) {}
};

/// Whether the values have elements, or only types and shapes.
enum class Contents : uint8_t { kKnown, kUnknown };

/// Makes the stage after `before` for these values (by ValueId; those that exist). Adds to before.asked. Errors: kInvalidArgument if shapes
/// contradict each other, kUnsupported naming nodes.
Result<std::unique_ptr<Stage>> make_stage(StageContext& context, Stage& before, const std::vector<Value>& values,
                                          Contents contents = Contents::kKnown);

}  // namespace serin::engine
