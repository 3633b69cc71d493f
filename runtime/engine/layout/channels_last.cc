// channels_last.cc: decides which steps work on images with their channels last, and where tensors change between [n, h, w, c] and [n, c,
// h, w].
//
// Tensor cores multiply runs of channels, so the device's convolutions need their operands in that layout. As in channel_blocks.cc a tensor
// in the other layout is an ordinary dense tensor with another shape, here of the same rank: only convolution and pooling need to know of
// it; whatever maps, reduces, joins or copies elements runs on the permuted shape with its axes renamed.
//
// One walk over the steps. A convolution gives channels last; what follows takes them as long as it can (below, one function for each
// kind). Where a step needs a plain tensor, a copy is put before it, once; where the image is one pixel or has one channel both layouts are
// the same bytes, a view. A transpose from or to [n, h, w, c] that the model itself has (the tokens of a vision transformer, a layer norm
// over channels) is no copy any more, but a view.

#include "runtime/engine/layout/channels_last.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/indexing.h"
#include "runtime/engine/layout/form_walk.h"
#include "runtime/engine/layout/image_walk.h"
#include "runtime/engine/layout/nearest_resize.h"

namespace serin::engine {

namespace {

using kernels::Strides;

constexpr std::array<size_t, 4> kLastOrder = {0, 2, 3, 1};     // axis i of the new layout is that axis of the plain one
constexpr std::array<int64_t, 4> kAxisOfPlain = {0, 3, 1, 2};  // the inverse

template <class List>
void reorder(List& list) {
  const List plain = list;
  for (size_t i = 0; i < 4; ++i) list[i] = plain[kLastOrder[i]];
}

class Layout : FormWalk {
 public:
  Layout(Program& program, ConstantForms& forms) : FormWalk(program), forms_(forms) {}

  bool run() {
    return walk([this](Step& step) { return take(step); }, [this](TensorId id) { want_plain(id); });
  }

 private:
  TensorId view(TensorId base, const Shape& shape, size_t offset = 0) {
    return add({.name = tensor(base).name, .dtype = tensor(base).dtype, .shape = shape, .base = base, .offset = offset});
  }
  TensorId new_form(TensorId id) { return add({.name = tensor(id).name, .dtype = tensor(id).dtype, .shape = form_of(shape(id))}); }

  static Shape form_of(const Shape& plain) { return {plain[0], plain[2], plain[3], plain[1]}; }
  bool is_image(TensorId id) const { return id != kNoTensor && tensor(id).storage == Storage::kFixed && shape(id).rank() == 4; }
  /// A result that may be had in the other layout: nobody has a claim on its bytes.
  bool is_free_image(TensorId id) const { return is_image(id) && tensor(id).base == kNoTensor; }
  static bool same_bytes(const Shape& plain) { return plain[1] == 1 || plain[2] * plain[3] == 1; }

  /// The form of `id` where there is one already: its own, or that of a tensor which it shows whole.
  TensorId last(TensorId id) {
    if (!is_image(id)) return kNoTensor;
    if (form_[at(id)] == kNoTensor && tensor(id).base != kNoTensor && shape(id) == program_.tensors[root(id)].shape &&
        tensor(id).dtype == program_.tensors[root(id)].dtype)
      form_[at(id)] = form_[root(id)];
    return form_[at(id)];
  }
  bool only_last(TensorId id) { return last(id) != kNoTensor && only_form_[root(id)]; }

  /// The form of an image; a step makes it where there is none.
  TensorId want_last(TensorId id) {
    if (const TensorId known = last(id); known != kNoTensor) return known;
    want_plain(id);
    const graph::ConstantPtr constant = tensor(id).constant;
    TensorId made = kNoTensor;
    if (same_bytes(shape(id))) {
      made = view(id, form_of(shape(id)));
    } else {
      made = new_form(id);
      if (constant && constant->bytes() != 0 && is_float(id))
        program_.tensor(made).constant = forms_.get(constant, constant->dtype, {kLastOrder.begin(), kLastOrder.end()});
      else
        copy(id, made, permuted(kernels::row_major_strides(shape(id))));
    }
    return form_[at(id)] = made;
  }
  bool is_float(TensorId id) const {
    const DType dtype = tensor(id).dtype;
    return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  }
  static std::vector<int64_t> permuted(const Strides& plain) {
    return {plain[kLastOrder[0]], plain[kLastOrder[1]], plain[kLastOrder[2]], plain[kLastOrder[3]]};
  }

  void want_plain(TensorId id) {
    if (id == kNoTensor) return;
    const TensorId whole = program_.root(id).first;
    if (!only_form_[at(whole)]) return;
    only_form_[at(whole)] = false;
    const TensorId form = form_[at(whole)];
    const Strides dense = kernels::row_major_strides(shape(form));
    if (same_bytes(shape(whole)) && !output_[at(whole)])
      program_.tensor(whole).base = form;
    else
      copy(form, whole, {dense[0], dense[3], dense[1], dense[2]});
  }

  void copy(TensorId from, TensorId to, std::vector<int64_t> strides) {
    program_.steps.push_back({.node = tensor(from).name,
                              .op = graph::Op::kTranspose,
                              .kernel = kernels::StridedCopy{0, std::move(strides)},
                              .inputs = {from},
                              .outputs = {to}});
    changed_ = true;
  }

  /// Puts `step` with other operands in place of itself; its result has its channels last.
  bool emit(Step& step, std::vector<TensorId> inputs) {
    const TensorId y = step.outputs[0], form = new_form(y);
    note_form(y, form);
    step.outputs = {form};
    return push(step, std::move(inputs));
  }
  /// Its result is the same bytes in both layouts, or plain.
  bool push(Step& step, std::vector<TensorId> inputs) {
    step.inputs = std::move(inputs);
    program_.steps.push_back(std::move(step));
    return changed_ = true;
  }
  void note_form(TensorId y, TensorId form) {
    form_[at(y)] = form;
    only_form_[at(y)] = true;
  }

  bool take(Step& step) {
    if (!step.bodies.empty() || step.outputs.size() != 1) return false;
    if (auto* copy = std::get_if<kernels::StridedCopy>(&step.kernel)) return take_copy(step, *copy);
    if (auto* conv = std::get_if<kernels::Conv>(&step.kernel)) return take_conv(step, *conv);
    if (std::ranges::none_of(step.inputs, [&](TensorId id) { return only_last(id); })) return false;
    if (auto* reduce = std::get_if<kernels::Reduce>(&step.kernel)) return take_reduce(step, *reduce);
    if (auto* arg_max = std::get_if<kernels::ArgMax>(&step.kernel)) return take_arg_max(step, *arg_max);
    if (!is_free_image(step.outputs[0])) return false;
    if (std::holds_alternative<kernels::Unary>(step.kernel) || is_narrowing(step)) return emit(step, {last(step.inputs[0])});
    if (std::holds_alternative<kernels::Binary>(step.kernel) || std::holds_alternative<kernels::Select>(step.kernel)) return take_map(step);
    if (std::holds_alternative<kernels::BatchNorm>(step.kernel)) return take_batch_norm(step);
    if (auto* pool = std::get_if<kernels::Pool>(&step.kernel)) return take_pool(step, *pool);
    if (auto* softmax = std::get_if<kernels::Softmax>(&step.kernel)) return take_softmax(step, *softmax);
    if (auto* concat = std::get_if<kernels::Concat>(&step.kernel)) return take_concat(step, *concat);
    if (auto* pad = std::get_if<kernels::Pad>(&step.kernel)) return take_pad(step, *pad);
    if (const auto repeats = repeats_of(program_, step)) return take_repeats(step, *repeats);
    if (const auto* generic = std::get_if<kernels::Generic>(&step.kernel); generic && generic->name == "Resize")
      return take_resize(step, *generic);
    return false;
  }

  /// What widens comes after the change of layout, which then moves fewer bytes.
  bool is_narrowing(const Step& step) const {
    return std::holds_alternative<kernels::Cast>(step.kernel) && tensor(step.outputs[0]).bytes() <= tensor(step.inputs[0]).bytes();
  }

  bool take_conv(Step& step, kernels::Conv& op) {
    const TensorId x = step.inputs[0], y = step.outputs[0], weight = step.inputs[1];
    if (op.strides.size() != 2 || !is_image(x) || !is_free_image(y) || !is_image(weight) || !is_float(x)) return false;
    if (!tensor(weight).constant || tensor(weight).constant->bytes() == 0) return false;
    if (op.epilogue.residual && !(is_image(step.inputs.back()) && shape(step.inputs.back()) == shape(y))) return false;
    std::vector<TensorId> inputs = step.inputs;
    inputs[0] = want_last(x);
    inputs[1] = want_last(weight);
    if (op.bias) want_plain(inputs[2]);
    if (op.epilogue.residual) inputs.back() = want_last(inputs.back());
    op.channels_last = true;
    return emit(step, std::move(inputs));
  }

  bool take_pool(Step& step, kernels::Pool& op) {
    op.channels_last = true;
    return emit(step, {last(step.inputs[0])});
  }

  /// Operands that broadcast to the result.
  bool take_map(Step& step) {
    std::vector<TensorId> inputs;
    for (const TensorId id : step.inputs) {
      if (tensor(id).storage != Storage::kFixed || shape(id).rank() > 4) return false;
    }
    for (const TensorId id : step.inputs) {
      if (shape(id).elements() == 1) {
        want_plain(id);
        inputs.push_back(id);
      } else {
        inputs.push_back(want_last(with_rank_4(id)));
      }
    }
    return emit(step, std::move(inputs));
  }
  TensorId with_rank_4(TensorId id) {
    const Shape own = shape(id);
    if (own.rank() == 4) return id;
    Shape seen;
    for (size_t axis = own.rank(); axis < 4; ++axis) seen.push_back(1);
    for (const int64_t dim : own) seen.push_back(dim);
    return view(id, seen);
  }

  /// Every pixel is a row of channels.
  bool take_batch_norm(Step& step) {
    std::vector<TensorId> inputs = step.inputs;
    const Shape image = shape(inputs[0]);
    const Shape rows{image[0] * image[2] * image[3], image[1]};
    for (size_t i = 1; i < inputs.size(); ++i) want_plain(inputs[i]);
    inputs[0] = view(last(inputs[0]), rows);
    emit(step, std::move(inputs));
    return show_result_as(rows);
  }
  /// The result of the step that was put last, with another shape.
  bool show_result_as(const Shape& shape) {
    const TensorId shown = view(program_.steps.back().outputs[0], shape);
    program_.steps.back().outputs[0] = shown;
    return true;
  }

  /// To an image, or to what has the same elements in the same order in both layouts: channels or pixels, not both.
  bool take_reduce(Step& step, kernels::Reduce& op) {
    const TensorId x = step.inputs[0], y = step.outputs[0];
    const Shape image = shape(x);
    std::vector<int64_t> axes;
    axes.reserve(op.axes.size());
    for (const int64_t axis : op.axes) axes.push_back(kAxisOfPlain[static_cast<size_t>(axis)]);
    const auto reduces = [&](int64_t axis) {
      return image[static_cast<size_t>(axis)] == 1 || std::ranges::find(op.axes, axis) != op.axes.end();
    };
    const bool keeps_channels = !reduces(1), keeps_pixels = !reduces(2) || !reduces(3), as_image = is_free_image(y);
    if (!as_image && keeps_channels && keeps_pixels) return false;
    std::ranges::sort(axes);
    op.axes = std::move(axes);
    return as_image ? emit(step, {last(x)}) : push(step, {last(x)});
  }

  bool take_arg_max(Step& step, kernels::ArgMax& op) {
    if (op.axis != 1) return false;
    op.axis = 3;
    return push(step, {last(step.inputs[0])});
  }

  bool take_softmax(Step& step, kernels::Softmax& op) {
    op.axis = kAxisOfPlain[static_cast<size_t>(op.axis < 0 ? op.axis + 4 : op.axis)];
    return emit(step, {last(step.inputs[0])});
  }

  bool take_concat(Step& step, kernels::Concat& op) {
    if (!std::ranges::all_of(step.inputs, [&](TensorId id) { return is_image(id); })) return false;
    op.axis = kAxisOfPlain[static_cast<size_t>(op.axis)];
    std::vector<TensorId> inputs;
    inputs.reserve(step.inputs.size());
    for (const TensorId id : step.inputs) inputs.push_back(want_last(id));
    return emit(step, std::move(inputs));
  }

  bool take_pad(Step& step, kernels::Pad& op) {
    if (op.begin.size() != 4 || op.end.size() != 4 || !only_last(step.inputs[0])) return false;
    reorder(op.begin);
    reorder(op.end);
    std::vector<TensorId> inputs = step.inputs;
    inputs[0] = last(inputs[0]);
    if (inputs.size() > 1) want_plain(inputs[1]);
    return emit(step, std::move(inputs));
  }

  /// y as [n, h, rows, w, columns, c], in which x does not move along the repeats.
  bool take_repeats(Step& step, const Repeats& repeats) {
    const TensorId x = last(step.inputs[0]);
    const Shape from = shape(x);
    const Strides dense = kernels::row_major_strides(from);
    step.kernel = kernels::StridedCopy{0, {dense[0], dense[1], 0, dense[2], 0, 1}};
    emit(step, {x});
    return show_result_as({from[0], from[1], repeats.rows, from[2], repeats.columns, from[3]});
  }

  /// Any other resizing works on each axis by itself; its operands (regions, scales, sizes) have a number for each, in their order.
  bool take_resize(Step& step, const kernels::Generic& op) {
    if (op.attributes.has("axes") || !only_last(step.inputs[0])) return false;
    const auto known = [&](TensorId id) {
      if (id == kNoTensor || shape(id).elements() == 0) return true;
      return shape(id).elements() % 4 == 0 && tensor(id).constant && tensor(id).constant->bytes() != 0;
    };
    if (!std::all_of(step.inputs.begin() + 1, step.inputs.end(), known)) return false;
    std::vector<TensorId> inputs = step.inputs;
    inputs[0] = last(inputs[0]);
    for (size_t i = 1; i < inputs.size(); ++i) {
      if (inputs[i] != kNoTensor && shape(inputs[i]).elements() != 0) inputs[i] = reordered(inputs[i]);
    }
    return emit(step, std::move(inputs));
  }
  /// A constant of numbers for the axes, four by four.
  TensorId reordered(TensorId id) {
    const graph::ConstantPtr plain = tensor(id).constant;
    const size_t size = dtype_size(plain->dtype), count = static_cast<size_t>(plain->elements());
    std::byte* to = nullptr;
    Tensor made{.name = tensor(id).name, .dtype = plain->dtype, .shape = plain->shape};
    const auto constant = graph::make_mutable_constant(plain->dtype, plain->shape, &to);
    const auto from = plain->data();
    for (size_t i = 0; i < count; ++i) std::memcpy(to + i * size, from.get() + (i / 4 * 4 + kLastOrder[i % 4]) * size, size);
    made.constant = constant;
    return add(std::move(made));
  }

  // ---- copies ----

  bool take_copy(Step& step, kernels::StridedCopy& op) { return copies_form(step, op) || makes_form(step, op); }

  /// Of a tensor that is there with its channels last alone: cut out of that.
  bool copies_form(Step& step, kernels::StridedCopy& op) {
    const auto [whole, offset] = program_.root(step.inputs[0]);
    if (!only_form_[at(whole)] || !is_image(whole) || offset != 0 || tensor(step.inputs[0]).bytes() != tensor(whole).bytes()) return false;
    const TensorId y = step.outputs[0], form = form_[at(whole)];
    if (tensor(y).storage != Storage::kFixed) return false;
    const Shape target = shape(y);
    auto walk = walk_channels_last(shape(whole), op, target);
    if (!walk) return false;
    if (is_free_image(y) && keeps_axes(*walk)) {
      step.kernel = kernels::StridedCopy{walk->offset, {walk->strides[0], walk->strides[2], walk->strides[3], walk->strides[1]}};
      return emit(step, {form});
    }
    if (is_dense(walk->strides, target) && tensor(y).base == kNoTensor && !output_[at(y)]) {
      program_.tensor(y).base = form;
      program_.tensor(y).offset = static_cast<size_t>(walk->offset) * dtype_size(tensor(y).dtype);
      return changed_ = true;
    }
    op.offset = walk->offset;
    op.strides = std::move(walk->strides);
    return push(step, {form});
  }
  static bool keeps_axes(const ImageWalk& walk) {
    using enum ImageWalk::Along;
    constexpr std::array<ImageWalk::Along, 4> kAxes = {kImages, kChannels, kPixels, kPixels};
    for (size_t i = 0; i < kAxes.size(); ++i) {
      if (walk.along[i] != kNothing && walk.along[i] != kAxes[i]) return false;
    }
    return true;
  }
  static bool is_dense(const std::vector<int64_t>& strides, const Shape& shape) {
    const Strides dense = kernels::row_major_strides(shape);
    for (size_t i = 0; i < shape.rank(); ++i) {
      if (shape[i] != 1 && strides[i] != dense[i]) return false;
    }
    return true;
  }

  /// A transpose from [n, h, w, c]: what it reads is its result with the channels last.
  bool makes_form(Step& step, const kernels::StridedCopy& op) {
    const TensorId x = step.inputs[0], y = step.outputs[0];
    if (!is_free_image(y) || tensor(x).storage != Storage::kFixed || same_bytes(shape(y)) || tensor(program_.root(x).first).constant)
      return false;
    const Shape form = form_of(shape(y));
    std::vector<int64_t> strides = op.strides;
    reorder(strides);
    const auto bytes = static_cast<size_t>(op.offset) * dtype_size(tensor(x).dtype);
    if (!is_dense(strides, form) || bytes + tensor(y).bytes() > tensor(x).bytes()) return false;
    want_plain(x);
    note_form(y, view(x, form, bytes));
    return changed_ = true;
  }

  ConstantForms& forms_;
};

}  // namespace

bool put_channels_last(Program& program, ConstantForms& forms) { return Layout(program, forms).run(); }

}  // namespace serin::engine
