// planner.h: answers how much memory and arithmetic models need to be served, before any of them is loaded.
//
//   Planner planner({.backend = *backend, .bf16_backend = bf16_backend.get(), .cores = 4});
//   SERIN_TRY(const Answer answer, planner.plan({"models/"}, {.batches = {1, 8}, .instances = 2}));
//   std::cout << print_text(answer, 10);            // report.h
//
// The bytes come from the code that allocates: engine::Plan for arenas and scratch, the kernels for packed weights, and
// runtime/serving/scheduling/sizes.h for buckets, staging and results. Nothing is packed, and no large weight is read.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/planner/answer.h"

namespace serin::planner {

class Planner {
 public:
  explicit Planner(Machine machine) : machine_(std::move(machine)) {}

  /// `places`: the files and folders that `serve` would be given. Errors name the model: kNotFound, kInvalidArgument (a dimension without
  /// a size), kUnsupported (an operator without a kernel, naming the node).
  Result<Answer> plan(const std::vector<std::string>& places, const Question& question) const;

 private:
  const Machine machine_;
};

}  // namespace serin::planner
