// runnable.h: what is found out at load about a model that is not planned whole, so that nothing is refused at the first request.
#pragma once

#include "runtime/base/result.h"
#include "runtime/engine/interpret/stage.h"
#include "runtime/engine/plan.h"
#include "runtime/engine/program/block.h"

namespace serin::engine {

/// Everything that can be said without a run: every operator has somebody who computes it, in bodies, too (all that have not are named), and
/// what does not depend on data is planned once, with every symbol at its smallest. kUnsupported naming nodes.
Status check_runnable(const Block& block, const Plan::Context& context);

/// The first stage as far as it is known without elements, every unknown size at the smallest that the shapes agree on. kInvalidArgument where
/// there is none.
Result<std::unique_ptr<Stage>> first_stage(StageContext& context, Stage& start);

}  // namespace serin::engine
