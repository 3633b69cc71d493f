// operators.cc: what a step holds follows from the places of its operands: an offset in the arena is in use from the step that writes it to the last one that
// reads it.

#include "runtime/planner/operators.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/engine/describe.h"

namespace serin::planner {
namespace {

struct Use {
  size_t first, last, end;
};

/// The highest end of any range in use is a lower bound of the arena at that step; what is in use adds up.
std::vector<size_t> live_bytes(const std::vector<engine::StepInfo>& steps) {
  std::map<std::pair<size_t, std::string>, Use> uses;  // an offset and a tensor's name: offsets are used again
  const auto note = [&](const engine::StepInfo::Operand& operand, size_t step) {
    if (operand.place != "arena" || operand.bytes == 0) return;
    auto [use, is_new] = uses.try_emplace({operand.offset, operand.name}, Use{step, step, operand.bytes});
    use->second.last = step;
    use->second.end = std::max(use->second.end, operand.bytes);
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const auto& operand : steps[i].inputs) note(operand, i);
    for (const auto& operand : steps[i].outputs) note(operand, i);
  }
  std::vector<size_t> live(steps.size(), 0);
  for (const auto& [key, use] : uses)
    for (size_t i = use.first; i <= use.last; ++i) live[i] += use.end;
  for (size_t i = 0; i < steps.size(); ++i) live[i] += steps[i].scratch_bytes;
  return live;
}

}  // namespace

std::vector<Operator> operators(const Bucket& bucket) {
  const std::vector<engine::StepInfo> steps = engine::steps(*bucket.plan);
  const std::vector<size_t> live = live_bytes(steps);
  std::vector<Operator> list;
  for (size_t i = 0; i < steps.size(); ++i) {
    const engine::StepInfo& step = steps[i];
    list.push_back(
        {step.node, step.op, step.kernel, step.flops, step.macs, step.bytes, step.scratch_bytes, std::min(live[i], bucket.arena), i});
  }
  return list;
}

}  // namespace serin::planner
