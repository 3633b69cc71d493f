// narrow_floats.cc: decides which steps work on 16-bit floats, and where tensors change their type.
//
// One walk over the steps. Steps that multiply with tensor cores (convolution, product, attention) or read a table of weights start a
// narrow region; steps that move or map elements continue it. All other steps get f32, by a cast that is made once; so do the program's
// outputs. A value that was never narrow stays f32: positions, angles and sizes are computed by the same functions as activations, and ten
// bits (bf16: eight) are too few for them.
//
// Every kernel computes in f32 and rounds once, when it stores. Sums over many elements stay f32, where an f16 would overflow. A constant or a mask may hold
// the most negative f32, which means minus infinity and must not become it: a row of nothing else would be NaN. So what is narrowed saturates.

#include "runtime/engine/layout/narrow_floats.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "runtime/engine/layout/form_walk.h"
#include "runtime/engine/plan.h"

namespace serin::engine {

namespace {

/// Operators by name, and how many of their first operands hold activations or weights; what follows (sizes, coordinates, masks) keeps its type.
struct ByName {
  std::string_view name;
  size_t operands;
};
constexpr std::array<ByName, 7> kByName = {{{"Attention", 3},
                                            {"RMSNormalization", 2},
                                            {"InstanceNormalization", 3},
                                            {"GroupNormalization", 3},
                                            {"ConvTranspose", 3},
                                            {"PRelu", 2},
                                            {"Resize", 1}}};

class Narrowing : FormWalk {
 public:
  Narrowing(Program& program, DType to, ConstantForms& forms, const std::function<bool(const kernels::OpDesc&)>& takes)
      : FormWalk(program), to_(to), forms_(forms), takes_(takes), writers_(program.tensors.size(), 0) {
    for (const Step& step : program.steps) {
      for (const TensorId id : step.outputs) {
        if (id != kNoTensor) ++writers_[root(id)];
      }
    }
  }

  bool run() {
    return walk([this](Step& step) { return step.bodies.empty() && step.outputs.size() == 1 && take(step); },
                [this](TensorId id) { want_wide(id); });
  }

 private:
  bool is_float(TensorId id) const {
    if (id == kNoTensor) return false;
    const Tensor& whole = tensor(program_.root(id).first);
    return tensor(id).dtype == DType::kFloat32 && whole.dtype == DType::kFloat32 && whole.storage == Storage::kFixed &&
           tensor(id).storage == Storage::kFixed && is_written_once(root(id));
  }
  /// By one step, or by none: a weight. Tensors that were added are.
  bool is_written_once(size_t id) const { return id >= writers_.size() || writers_[id] <= 1; }
  /// A result of which nobody has bytes yet: all of a tensor.
  bool is_free_float(TensorId id) const {
    return is_float(id) && tensor(id).bytes() == program_.tensors[root(id)].bytes() && form_[root(id)] == kNoTensor;
  }
  bool is_narrow(TensorId id) const { return is_float(id) && form_[root(id)] != kNoTensor && !tensor(program_.root(id).first).constant; }
  bool is_known(TensorId id) const {
    const graph::ConstantPtr& constant = tensor(program_.root(id).first).constant;
    return constant && constant->bytes() != 0;
  }

  /// `id` as part of the narrow form of its root.
  TensorId seen_in(TensorId narrow_root, TensorId id) {
    const auto [whole, offset] = program_.root(id);
    if (id == whole) return narrow_root;
    const Tensor& wide = tensor(id);
    return add({.name = wide.name, .dtype = to_, .shape = wide.shape, .base = narrow_root, .offset = offset / 2});
  }

  TensorId want_narrow(TensorId id) {
    const TensorId whole = program_.root(id).first;
    if (form_[at(whole)] == kNoTensor) {
      Tensor form{.name = tensor(whole).name, .dtype = to_, .shape = tensor(whole).shape};
      if (tensor(whole).constant) form.constant = forms_.get(tensor(whole).constant, to_);
      const TensorId made = add(std::move(form));
      form_[at(whole)] = made;
      if (!tensor(whole).constant) cast(whole, made);
    }
    return seen_in(form_[at(whole)], id);
  }

  void want_wide(TensorId id) {
    if (id == kNoTensor) return;
    const TensorId whole = program_.root(id).first;
    if (!only_form_[at(whole)]) return;
    only_form_[at(whole)] = false;
    cast(form_[at(whole)], whole);
  }

  void cast(TensorId from, TensorId to) {
    program_.steps.push_back(
        {.node = tensor(from).name, .op = graph::Op::kCast, .kernel = kernels::Cast{.saturate = true}, .inputs = {from}, .outputs = {to}});
    changed_ = true;
  }

  /// The first `operands` of the step's inputs narrow, the others as they are, and its result narrow where it is a float.
  bool emit(Step& step, size_t operands) {
    std::vector<TensorId> inputs = step.inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i < operands && is_float(inputs[i]))
        inputs[i] = want_narrow(inputs[i]);
      else
        want_wide(inputs[i]);
    }
    step.inputs = std::move(inputs);
    if (const TensorId y = step.outputs[0]; tensor(y).dtype == DType::kFloat32) {
      const TensorId whole = program_.root(y).first;
      const TensorId form = add({.name = tensor(whole).name, .dtype = to_, .shape = tensor(whole).shape});
      form_[at(whole)] = form;
      only_form_[at(whole)] = true;
      step.outputs[0] = seen_in(form, y);
    }
    program_.steps.push_back(std::move(step));
    return changed_ = true;
  }

  /// Starts a region.
  bool start(Step& step) {
    return is_free_float(step.outputs[0]) && std::ranges::all_of(step.inputs, [&](TensorId id) { return is_float(id); }) &&
           emit(step, SIZE_MAX);
  }

  /// Goes on with one: an operand is narrow, the others can be.
  bool follow(Step& step, size_t first, size_t count) {
    bool any = false;
    for (size_t i = first; i < std::min(step.inputs.size(), first + count); ++i) {
      if (!is_float(step.inputs[i])) return false;
      any = any || is_narrow(step.inputs[i]);
    }
    const TensorId y = step.outputs[0];
    return any && (tensor(y).dtype != DType::kFloat32 || is_free_float(y)) && emit(step, first + count);
  }

  bool take(Step& step) {
    return std::visit([&](const auto& op) { return take_kind(step, op); }, step.kernel);
  }
  bool take_kind(Step& step, const kernels::Conv&) { return start(step); }
  /// An outer product multiplies nothing that tensor cores would: it spreads positions over frequencies.
  bool take_kind(Step& step, const kernels::MatMul& op) {
    const Shape& a = tensor(step.inputs[0]).shape;
    const int64_t k = a.rank() < 2 ? 1 : op.transpose_a ? a[a.rank() - 2] : a.back();
    return k > 1 ? start(step) : follow(step, 0, step.inputs.size());
  }
  /// Rows of a table of weights; what has fewer columns is a list of boxes or sizes.
  bool take_kind(Step& step, const kernels::Gather&) {
    constexpr int64_t kEmbedding = 16;
    const TensorId x = step.inputs[0];
    const bool is_table = is_float(x) && is_known(x) && tensor(x).shape.rank() == 2 && tensor(x).shape.back() >= kEmbedding;
    if (is_table && is_free_float(step.outputs[0])) return emit(step, 1);
    return follow(step, 0, 1);
  }
  bool take_kind(Step& step, const kernels::Unary&) { return follow(step, 0, 1); }
  bool take_kind(Step& step, const kernels::Binary&) { return follow(step, 0, 2); }
  bool take_kind(Step& step, const kernels::Select&) { return follow(step, 1, 2); }
  bool take_kind(Step& step, const kernels::Cast&) {
    return is_narrow(step.inputs[0]) && tensor(step.outputs[0]).dtype != DType::kFloat32 && emit(step, 1);
  }
  bool take_kind(Step& step, const kernels::Pool&) { return follow(step, 0, 1); }
  bool take_kind(Step& step, const kernels::Reduce& op) {
    const bool stays_in_range = op.fn == kernels::ReduceFn::kMean || op.fn == kernels::ReduceFn::kMax || op.fn == kernels::ReduceFn::kMin;
    return stays_in_range && follow(step, 0, 1);
  }
  bool take_kind(Step& step, const kernels::Softmax&) { return follow(step, 0, 1); }
  bool take_kind(Step& step, const kernels::LayerNorm&) { return follow(step, 0, step.inputs.size()); }
  /// Statistics stay f32: a variance may be too small for 16 bits.
  bool take_kind(Step& step, const kernels::BatchNorm&) { return follow(step, 0, 1); }
  bool take_kind(Step& step, const kernels::StridedCopy&) { return follow(step, 0, 1); }
  bool take_kind(Step& step, const kernels::Concat&) { return follow(step, 0, step.inputs.size()); }
  bool take_kind(Step& step, const kernels::Pad&) { return follow(step, 0, step.inputs.size()); }
  bool take_kind(Step& step, const kernels::ArgMax&) { return follow(step, 0, 1); }
  bool take_kind(Step& step, const kernels::Generic& op) {
    const auto known = std::ranges::find(kByName, op.name, &ByName::name);
    if (known == kByName.end() || !is_free_float(step.outputs[0])) return false;
    const size_t operands = std::min(known->operands, step.inputs.size());
    const auto first = step.inputs.begin(), last = first + static_cast<std::ptrdiff_t>(operands);
    if (!std::all_of(first, last, [&](TensorId id) { return id == kNoTensor || is_float(id); })) return false;
    const bool starts = op.name == "Attention" || op.name == "ConvTranspose";
    if (!starts && std::none_of(first, last, [&](TensorId id) { return is_narrow(id); })) return false;
    return has_kernel(step, operands) && emit(step, operands);
  }
  template <class Other>
  bool take_kind(Step&, const Other&) {
    return false;
  }

  bool has_kernel(const Step& step, size_t operands) const {
    kernels::OpDesc desc{step.kernel, {}, {describe(program_, step.outputs[0])}};
    desc.outputs[0].dtype = to_;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      desc.inputs.push_back(describe(program_, step.inputs[i]));
      if (i >= operands || !is_float(step.inputs[i])) continue;
      desc.inputs[i].dtype = to_;
      desc.inputs[i].constant = {};
      desc.inputs[i].constant_id = 0;
    }
    return takes_(desc);
  }

  const DType to_;
  ConstantForms& forms_;
  const std::function<bool(const kernels::OpDesc&)>& takes_;
  std::vector<int> writers_;  // by root of the given program: steps that write it
};

}  // namespace

bool narrow_floats(Program& program, DType to, ConstantForms& forms, const std::function<bool(const kernels::OpDesc&)>& takes) {
  return Narrowing(program, to, forms, takes).run();
}

}  // namespace serin::engine
