// runnable.h: checks at load a model that cannot be planned as a whole, so that its first request is not refused.
#pragma once

#include "runtime/base/result.h"
#include "runtime/engine/interpret/stage.h"
#include "runtime/engine/plan.h"
#include "runtime/engine/program/block.h"

namespace serin::engine {

/// Checks everything that is known without a run. Every operator must be computable, in bodies too (the error names all that are not).
/// Steps that do not depend on data are planned once, with every symbol at its smallest. kUnsupported, naming nodes.
Status check_runnable(const Block& block, const Plan::Context& context);

/// Returns the first stage as far as it is known without elements. Every unknown size is the smallest that the shapes allow.
/// kInvalidArgument if there is no such size.
Result<std::unique_ptr<Stage>> first_stage(StageContext& context, Stage& start);

}  // namespace serin::engine
