// admission.h: whether a server may load one more model: by its plan, in the memory that its control group or its machine has left.
//
// A plan is an upper bound, so it alone must not refuse: what is certain does. That is what the process holds now, the weights, and the values that
// a warm-up writes into the arenas of all instances.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/planner/answer.h"
#include "runtime/planner/places.h"
#include "runtime/planner/process.h"

namespace serin::planner {

struct Admission {
  bool cannot_fit = false;
  std::string sentence;  ///< that of `serin plan`: "needs 1.2 GB, and the limit has 512 MB: reduce batch to 8"; empty: it fits
};

/// `limit`: bytes that the process may have; `now`: those that it has, of which the files' can be given back. A model that has no plan fits: its load says why it has none.
Admission admit(const Machine& machine, const FoundModel& model, size_t limit, const Resident& now);

}  // namespace serin::planner
