// pointwise_chains.cc: joins several steps on single elements into one step (kernels::Pointwise).
//
//     a = x * s          t = x * s + b                       each step reads memory and writes it;
//     b = a + b    ->    y = t < 0 ? 0 : t      one step     together they read x, s and b once and write y once
//     y = relu(b)
//
// It works on the Program, not on the graph, because here the sizes are numbers, the layout has been chosen (in channel blocks a factor for each channel is
// just another shape that broadcasts), and an operator that is several kernels is there in its parts.
//
// A group grows from its last step up: a producer joins where its result has the same shape, where only members read it, and where no other
// tensor shares its memory. Then nothing outside can tell the difference, and the order of the other steps stays. A producer of a smaller
// shape stays out: its work would be done again for every element that it is broadcast to.

#include "runtime/engine/layout/pointwise_chains.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace serin::engine {

namespace {

using kernels::Pointwise;

using Function = decltype(Pointwise::Step::function);

/// Elements of a result from which on its tensors leave the CPU's caches between two steps. Below, steps by themselves are as fast or faster: measured.
constexpr int64_t kWorthFusing = 1 << 16;

/// What the vector kernel has loops for.
std::optional<Function> function_of(const kernels::Op& kernel) {
  if (const auto* unary = std::get_if<kernels::Unary>(&kernel)) {
    return kernels::is_predicate(unary->fn) ? std::nullopt : std::optional<Function>(*unary);
  }
  if (const auto* binary = std::get_if<kernels::Binary>(&kernel)) {
    return kernels::has_vector_form(binary->fn) ? std::optional<Function>(*binary) : std::nullopt;
  }
  if (const auto* select = std::get_if<kernels::Select>(&kernel)) return *select;
  return std::nullopt;
}

class Chains {
 public:
  Chains(Program& program, bool for_device)
      : program_(program), for_device_(for_device), readers_(program.tensors.size()), producer_(program.tensors.size(), kNone) {
    for (size_t i = 0; i < steps().size(); ++i) {
      for (const TensorId id : steps()[i].inputs) {
        if (id != kNoTensor) readers_[at(id)].push_back(i);
      }
      for (const TensorId id : steps()[i].outputs) {
        if (id != kNoTensor) producer_[at(id)] = i;
      }
    }
    shared_.assign(program.tensors.size(), false);
    for (const TensorId id : program.outputs) shared_[at(id)] = true;
    for (const Tensor& tensor : program.tensors) {
      if (tensor.base != kNoTensor) shared_[at(tensor.base)] = true;
    }
    taken_.assign(steps().size(), false);
  }

  bool run() {
    bool changed = false;
    for (size_t last = steps().size(); last-- > 0;) {
      if (taken_[last] || !fits(steps()[last]) || tensor(steps()[last].outputs[0]).dtype == DType::kBool) continue;
      std::vector<size_t> members = grow(last);
      if (members.size() < 2) continue;
      std::ranges::sort(members);
      Step fused = fuse(members);
      for (const size_t member : members) taken_[member] = true;
      steps()[last] = std::move(fused);
      changed = true;
    }
    if (!changed) return false;
    std::vector<Step> kept;
    for (size_t i = 0; i < steps().size(); ++i) {
      if (!taken_[i] || std::holds_alternative<Pointwise>(steps()[i].kernel)) kept.push_back(std::move(steps()[i]));
    }
    program_.steps = std::move(kept);
    return true;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  static size_t at(TensorId id) { return static_cast<size_t>(id); }
  std::vector<Step>& steps() { return program_.steps; }
  const Tensor& tensor(TensorId id) const { return program_.tensor(id); }

  bool is_plain(TensorId id, bool is_bool) const {
    if (id == kNoTensor || tensor(id).storage != Storage::kFixed) return false;
    const DType dtype = tensor(id).dtype;
    if (is_bool) return dtype == DType::kBool;
    return dtype == DType::kFloat32 || (for_device_ && (dtype == DType::kFloat16 || dtype == DType::kBFloat16));
  }
  /// A function of floats; conditions are bool.
  bool fits(const Step& step) const {
    if (!step.bodies.empty() || step.outputs.size() != 1 || !function_of(step.kernel)) return false;
    const auto* binary = std::get_if<kernels::Binary>(&step.kernel);
    const bool compares = binary && kernels::is_compare(binary->fn);
    if (!is_plain(step.outputs[0], compares)) return false;
    if (!for_device_ && tensor(step.outputs[0]).shape.elements() < kWorthFusing) return false;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const bool condition = i == 0 && std::holds_alternative<kernels::Select>(step.kernel);
      if (!is_plain(step.inputs[i], condition)) return false;
    }
    return true;
  }

  static bool contains(const std::vector<size_t>& members, size_t step) { return std::ranges::find(members, step) != members.end(); }

  /// The steps that can be one with `last`, itself first.
  std::vector<size_t> grow(size_t last) {
    const Shape& shape = tensor(steps()[last].outputs[0]).shape;
    std::vector<size_t> members = {last};
    for (bool grown = true; grown && members.size() < Pointwise::kMaxSteps;) {
      grown = false;
      for (const TensorId id : inputs_of(members)) {
        const size_t producer = producer_[at(id)];
        if (producer == kNone || taken_[producer] || shared_[at(id)] || !fits(steps()[producer]) || !(tensor(id).shape == shape)) continue;
        if (!std::ranges::all_of(readers_[at(id)], [&](size_t reader) { return contains(members, reader); })) continue;
        members.push_back(producer);
        if (inputs_of(members).size() <= Pointwise::kMaxInputs) {
          grown = true;
          break;
        }
        members.pop_back();
      }
    }
    return members;
  }

  /// What members read and no member makes, each once.
  std::vector<TensorId> inputs_of(const std::vector<size_t>& members) {
    std::vector<TensorId> inputs;
    for (const size_t member : members) {
      for (const TensorId id : steps()[member].inputs) {
        const size_t producer = producer_[at(id)];
        if (producer != kNone && contains(members, producer)) continue;
        if (std::ranges::find(inputs, id) == inputs.end()) inputs.push_back(id);
      }
    }
    return inputs;
  }

  /// Members in the order of execution.
  Step fuse(const std::vector<size_t>& members) {
    const std::vector<TensorId> inputs = inputs_of(members);
    std::vector<TensorId> values = inputs;
    Pointwise pointwise;
    std::string name;
    for (const size_t member : members) {
      const Step& step = steps()[member];
      Pointwise::Step made{.function = *function_of(step.kernel)};
      for (size_t i = 0; i < step.inputs.size(); ++i)
        made.operands[i] = static_cast<int32_t>(std::ranges::find(values, step.inputs[i]) - values.begin());
      pointwise.steps.push_back(made);
      values.push_back(step.outputs[0]);
      if (name.empty() || steps()[member].node != last_name_) name.append(name.empty() ? "" : "+").append(step.node);
      last_name_ = step.node;
    }
    const Step& last = steps()[members.back()];
    return {.node = std::move(name), .op = last.op, .kernel = std::move(pointwise), .inputs = inputs, .outputs = last.outputs};
  }

  Program& program_;
  const bool for_device_;
  std::vector<std::vector<size_t>> readers_;  // by tensor: steps
  std::vector<size_t> producer_;              // by tensor: the step
  std::vector<bool> shared_;                  // by tensor: an output, or shown by a view
  std::vector<bool> taken_;                   // by step: part of a group
  std::string last_name_;                     // an operator of several steps is named once
};

}  // namespace

bool fuse_pointwise_chains(Program& program, bool for_device) { return Chains(program, for_device).run(); }

}  // namespace serin::engine
