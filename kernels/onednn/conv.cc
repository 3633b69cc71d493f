// conv.cc: Conv by oneDNN. Tensors between Serin's kernels are plain [n, c, spatial...]. oneDNN's fastest convolutions need the channels
// innermost, so activations are reordered in scratch before and after. Measured on one core of an AVX-512 machine, reorders included:
//
//   3x3, 64 -> 64 at 56x56    own layout  965 us   plain 1489 us
//   3x3, 256 -> 256 at 14x14  own layout  822 us   plain 1155 us
//   1x1, 64 -> 64 at 56x56    own layout  205 us   plain  120 us      a plain matrix product: nothing to rearrange
//
// so a pointwise convolution stays plain and all others choose their layout. The plain one has no vector code for what follows the product (ten
// times slower with it): our own loop runs the activation, and one with a residual chooses its layout, too.

#include <algorithm>

#include "kernels/onednn/program.h"

namespace serin::kernels::onednn {

namespace {

using dnnl::memory;
using PrimitiveDesc = dnnl::convolution_forward::primitive_desc;

memory::dims dims_of(std::span<const int64_t> dims) { return {dims.begin(), dims.end()}; }

/// The operands in their plain layout.
struct Operands {
  memory::desc x;       // [n, c, spatial...]
  memory::desc weight;  // [group?, m, c / group, kernel...]
  memory::desc bias;    // [m], or empty
  memory::desc y;       // [n, m, spatial...]

  Operands(const Conv& op, const OpDesc& desc) {
    x = plain_desc(dims_of(desc.inputs[0].shape.dims()));
    y = plain_desc(dims_of(desc.outputs[0].shape.dims()));
    if (op.bias) bias = plain_desc(dims_of(desc.inputs[2].shape.dims()));
    memory::dims filters = dims_of(desc.inputs[1].shape.dims());
    if (op.group > 1) {
      filters[0] /= op.group;
      filters.insert(filters.begin(), op.group);
    }
    weight = plain_desc(filters);
  }
};

memory::desc any(const memory::desc& plain) { return {plain.get_dims(), memory::data_type::f32, memory::format_tag::any}; }

bool is_pointwise(const Conv& op, const Shape& weight) {
  const auto all = [](std::span<const int64_t> values, int64_t wanted) {
    return std::ranges::all_of(values, [wanted](int64_t value) { return value == wanted; });
  };
  return op.group == 1 && all(weight.dims().subspan(2), 1) && all(op.strides, 1) && all(op.pads, 0);
}

PrimitiveDesc describe(const dnnl::engine& engine, const Conv& op, const Operands& plain, bool own_layout, const dnnl::post_ops& post_ops) {
  const auto axes = static_cast<std::ptrdiff_t>(op.strides.size());
  memory::dims gaps = op.dilations;  // oneDNN counts the elements between two cells
  for (auto& gap : gaps) --gap;
  const memory::dims begin(op.pads.begin(), op.pads.begin() + axes), end(op.pads.begin() + axes, op.pads.end());
  return {engine,
          dnnl::prop_kind::forward_inference,
          dnnl::algorithm::convolution_direct,
          own_layout ? any(plain.x) : plain.x,
          any(plain.weight),
          plain.bias,
          own_layout ? any(plain.y) : plain.y,
          op.strides,
          gaps,
          begin,
          end,
          make_attributes(post_ops)};
}

}  // namespace

std::unique_ptr<Kernel> prepare_conv(const Library& library, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const Conv& op = std::get<Conv>(desc.op);
  const size_t residual_input = desc.inputs.size() - 1;
  if (op.epilogue.residual && !(desc.inputs[residual_input].shape == desc.outputs[0].shape)) {
    why = "the residual is broadcast";
    return nullptr;
  }
  if (desc.outputs[0].shape.rank() != desc.inputs[1].shape.rank()) {
    why = "in channel blocks, which Serin's own kernels take";
    return nullptr;
  }
  const Operands plain(op, desc);
  const bool stay_plain = !op.epilogue.residual && is_pointwise(op, desc.inputs[1].shape);
  dnnl::post_ops post_ops;
  if (op.epilogue.residual) post_ops.append_binary(dnnl::algorithm::binary_add, any(plain.y));
  const bool nothing = op.epilogue.activation == UnaryFn::kIdentity;
  const bool fused = nothing || (!stay_plain && append_activation(post_ops, op.epilogue));
  const cpu::UnaryLoop activation = fused ? nullptr : library.simd.unary(op.epilogue.activation);
  if (!fused && !activation) {
    why = "neither oneDNN nor Serin has the activation";
    return nullptr;
  }
  const PrimitiveDesc pd = describe(library.engine, op, plain, !stay_plain, post_ops);
  if (std::string_view(pd.impl_info_str()).starts_with("ref")) {
    why = "oneDNN has only its reference implementation";
    return nullptr;
  }

  Program program(library.engine, desc, context);
  std::vector<Argument> arguments = {{DNNL_ARG_SRC, pd.src_desc(), program.in_layout(0, plain.x, pd.src_desc())},
                                     {DNNL_ARG_WEIGHTS, pd.weights_desc(), program.in_layout(1, plain.weight, pd.weights_desc())}};
  if (op.bias) arguments.push_back({DNNL_ARG_BIAS, plain.bias, Place::input(2)});
  if (op.epilogue.residual) {
    const int id = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;
    const memory::desc wanted = pd.query_md(dnnl::query::exec_arg_md, id);
    arguments.push_back({id, wanted, program.in_layout(residual_input, plain.y, wanted)});
  }
  const Place result = program.result(plain.y, pd.dst_desc());
  arguments.push_back({DNNL_ARG_DST, pd.dst_desc(), result});
  program.main_step(dnnl::convolution_forward(pd), pd, std::move(arguments));
  program.store(result, plain.y, pd.dst_desc());
  program.finish(activation, op.epilogue);
  return std::move(program).kernel();
}

}  // namespace serin::kernels::onednn
