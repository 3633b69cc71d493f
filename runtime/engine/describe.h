// describe.h: describes a plan as text and as data, for `serin inspect` and `serin bench`.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/engine/engine.h"

namespace serin::engine {

struct DescribeOptions {
  bool refusals = false;  ///< after each step, list the kernels that refused it, with the reason
};

/// Prints a line for each step: the node, the chosen kernel, its arithmetic and memory traffic, the shapes, the location of the result.
/// Ends with the sums and the arena's size.
std::string describe(const Plan& plan, const DescribeOptions& options = {});

/// One step as data, for programs that read the plan.
struct StepInfo {
  struct Operand {
    std::string name, dtype, shape, storage;
    std::string place;  ///< "arena", "device" (its arena), "input", "output", "constant"
    size_t offset = 0, bytes = 0;
  };
  std::string node, op, kernel;
  int64_t flops = 0, macs = 0, bytes = 0;  ///< cost.h
  std::vector<Operand> inputs, outputs;
  size_t scratch_offset = 0, scratch_bytes = 0;
  bool on_device = false;
  std::vector<std::pair<std::string, std::string>> refusals;
  std::vector<std::vector<StepInfo>> bodies;
};
std::vector<StepInfo> steps(const Plan& plan);

}  // namespace serin::engine
