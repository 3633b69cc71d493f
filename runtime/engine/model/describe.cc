// describe.cc: prints the schedule of a plan:
//
//     FusedConv  onednn:jit:avx512_core   2.36MF   102KB  f32[8,16,8,8] at arena+0, scratch 4096 at arena+32768  conv1+bn1+relu1
//     Gemm       onednn:brg:avx512_core  10.2KF  5.44KB  f32[8,10] at output 0  fc
//     in all 2.37MFLOP and 108KB moved
//     arena 32768 bytes (no packing is smaller than 32768)

#include "runtime/engine/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "runtime/engine/plan.h"
#include "runtime/engine/plan/cost.h"

namespace serin::engine {

namespace {

std::string_view place_name(Place::In in) {
  switch (in) {
    case Place::In::kArena: return "arena";
    case Place::In::kInput: return "input";
    case Place::In::kOutput: return "output";
    case Place::In::kConstant: return "constant";
    case Place::In::kNowhere: return "nowhere";
  }
  return "?";
}

StepInfo::Operand operand(const Plan& plan, TensorId id) {
  if (id == kNoTensor) return {"", "", "", "", "absent", 0, 0};
  const Tensor& tensor = plan.program.tensor(id);
  const Place& place = plan.places[static_cast<size_t>(id)];
  std::string where(place.in == Place::In::kArena && tensor.memory == Memory::kDevice ? "device" : place_name(place.in));
  if (place.in == Place::In::kInput || place.in == Place::In::kOutput) where += " " + std::to_string(place.index);
  return {tensor.name,        std::string(dtype_name(tensor.dtype)),
          tensor.shape.str(), std::string(storage_name(tensor.storage)),
          std::move(where),   place.offset,
          tensor.bytes()};
}

std::string padded(std::string text, size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

/// Three digits and a unit: "7.71GF", "602KB".
std::string count(int64_t number, std::string_view unit) {
  double value = static_cast<double>(number);
  const char* const prefixes[] = {"", "K", "M", "G", "T"};
  size_t prefix = 0;
  for (; value >= 999.5 && prefix + 1 < std::size(prefixes); ++prefix) value /= 1000;
  return fmt::format("{:.{}f}{}{}", value, prefix == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, prefixes[prefix], unit);
}

void append(std::string& text, const std::vector<StepInfo>& steps, const DescribeOptions& options, const std::string& indent) {
  size_t op = 0, kernel = 0;
  for (const StepInfo& step : steps) {
    op = std::max(op, step.op.size());
    kernel = std::max(kernel, step.kernel.size());
  }
  for (const StepInfo& step : steps) {
    text += fmt::format("{}{}  {}  {:>7} {:>7} ", indent, padded(step.op, op), padded(step.kernel, kernel), count(step.flops, "F"),
                        count(step.bytes, "B"));
    for (const StepInfo::Operand& out : step.outputs) {
      text += " " + out.dtype + out.shape + (out.storage == "fixed" ? "" : " " + out.storage) + " at " + out.place;
      if (out.place == "arena" || out.place == "device" || out.offset != 0) text += "+" + std::to_string(out.offset);
    }
    if (step.scratch_bytes != 0)
      text += ", scratch " + std::to_string(step.scratch_bytes) + (step.on_device ? " at device+" : " at arena+") +
              std::to_string(step.scratch_offset);
    text += "  " + step.node + "\n";
    if (options.refusals) {
      for (const auto& [row, why] : step.refusals) text += fmt::format("{}    not {}: {}\n", indent, row, why);
    }
    for (size_t body = 0; body < step.bodies.size(); ++body) {
      text += indent + "  " + (body == 0 ? "then:\n" : "else:\n");
      append(text, step.bodies[body], options, indent + "    ");
    }
  }
}

/// How much of the work is there, and what is not.
std::string device_line(const Plan& plan) {
  size_t there = 0, copies = 0;
  std::set<std::string_view> here;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.program.steps[i];
    const bool copy = step.op == graph::Op::kIdentity;  // placement.cc puts them in
    if (copy)
      ++copies;
    else if (plan.steps[i].memory == Memory::kDevice)
      ++there;
    else
      here.insert(graph::op_name(step.op));
  }
  return fmt::format("  device {} bytes; {} of {} steps run there, {} copy{}{}\n", plan.device_bytes, there, plan.steps.size() - copies,
                     copies, here.empty() ? "" : "; on the CPU: ", fmt::join(here, ", "));
}

}  // namespace

std::vector<StepInfo> steps(const Plan& plan) {
  std::vector<StepInfo> result;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.program.steps[i];
    const PreparedStep& prepared = plan.steps[i];
    StepInfo info;
    info.node = step.node;
    info.op = graph::op_name(step.op);
    info.kernel = prepared.kernel_name;
    const Cost cost = cost_of(plan, i);
    info.flops = cost.flops;
    info.macs = cost.macs;
    info.bytes = cost.bytes;
    for (const TensorId id : step.inputs) info.inputs.push_back(operand(plan, id));
    for (const TensorId id : step.outputs) info.outputs.push_back(operand(plan, id));
    info.scratch_offset = prepared.scratch_offset;
    info.scratch_bytes = prepared.scratch_bytes;
    info.on_device = prepared.memory == Memory::kDevice;
    info.refusals = prepared.refusals;
    for (const auto& body : prepared.bodies) info.bodies.push_back(body ? steps(*body) : std::vector<StepInfo>());
    result.push_back(std::move(info));
  }
  return result;
}

std::string describe(const Plan& plan, const DescribeOptions& options) {
  std::string text;
  append(text, steps(plan), options, "  ");
  const Cost sum = cost_of(plan);
  text += fmt::format("  in all {} and {} moved\n", count(sum.flops, "FLOP"), count(sum.bytes, "B"));
  text += "  arena " + std::to_string(plan.arena_bytes) + " bytes (no packing is smaller than " + std::to_string(plan.live_bytes) + ")\n";
  if (plan.device_bytes > 0) text += device_line(plan);
  return text;
}

}  // namespace serin::engine
