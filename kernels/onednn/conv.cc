// conv.cc: Conv by oneDNN, which chooses its own layouts (blocked by channels, mostly). Tensors between our kernels are plain [n, c, spatial...], so
// activations are reordered on the way in and out, in scratch; measured, that costs far less than a convolution on plain layouts does.

#include "kernels/onednn/program.h"

namespace serin::kernels::onednn {

namespace {

using dnnl::memory;

memory::dims dims_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// [m, c / group, kernel...] as [group, m / group, c / group, kernel...].
memory::dims weight_dims(const Shape& weight, int64_t group) {
  memory::dims dims = dims_of(weight);
  if (group == 1) return dims;
  dims[0] /= group;
  dims.insert(dims.begin(), group);
  return dims;
}

}  // namespace

std::unique_ptr<Kernel> prepare_conv(const Library& library, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const Conv& op = std::get<Conv>(desc.op);
  const size_t axes = op.strides.size();
  const memory::desc x = plain_desc(dims_of(desc.inputs[0].shape));                            // [n, c, spatial...]
  const memory::desc weight = plain_desc(weight_dims(desc.inputs[1].shape, op.group));         // [g?, m, c, kernel...]
  const memory::desc y = plain_desc(dims_of(desc.outputs[0].shape));                           // [n, m, spatial...]
  const memory::desc bias = op.bias ? plain_desc({desc.inputs[2].shape[0]}) : memory::desc();  // [m]
  const size_t residual_input = desc.inputs.size() - 1;
  if (op.epilogue.residual && !(desc.inputs[residual_input].shape == desc.outputs[0].shape)) {
    why = "the residual is broadcast";
    return nullptr;
  }

  const auto any = [](const memory::desc& plain) {
    return memory::desc(plain.get_dims(), memory::data_type::f32, memory::format_tag::any);
  };
  dnnl::post_ops post_ops;
  if (op.epilogue.residual) post_ops.append_binary(dnnl::algorithm::binary_add, any(y));
  const bool fused = append_activation(post_ops, op.epilogue);
  const cpu::UnaryLoop activation = fused ? nullptr : library.simd.unary(op.epilogue.activation);
  if (!fused && !activation) {
    why = "neither oneDNN nor we have the activation";
    return nullptr;
  }
  memory::dims dilations(axes);  // oneDNN counts the gaps
  for (size_t i = 0; i < axes; ++i) dilations[i] = op.dilations[i] - 1;
  const memory::dims begin(op.pads.begin(), op.pads.begin() + static_cast<std::ptrdiff_t>(axes));
  const memory::dims end(op.pads.begin() + static_cast<std::ptrdiff_t>(axes), op.pads.end());
  const dnnl::convolution_forward::primitive_desc pd(library.engine, dnnl::prop_kind::forward_inference,
                                                     dnnl::algorithm::convolution_direct, any(x), any(weight), bias, any(y), op.strides,
                                                     dilations, begin, end, make_attributes(post_ops));
  if (std::string_view(pd.impl_info_str()).starts_with("ref")) {
    why = "oneDNN has only its reference implementation";
    return nullptr;
  }

  Program program(library.engine, desc, context);
  std::vector<Argument> arguments = {{DNNL_ARG_SRC, pd.src_desc(), program.in_layout(0, x, pd.src_desc())},
                                     {DNNL_ARG_WEIGHTS, pd.weights_desc(), program.in_layout(1, weight, pd.weights_desc())}};
  if (op.bias) arguments.push_back({DNNL_ARG_BIAS, bias, Place::input(2)});
  if (op.epilogue.residual) {
    const int id = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;
    const memory::desc wanted = pd.query_md(dnnl::query::exec_arg_md, id);
    arguments.push_back({id, wanted, program.in_layout(residual_input, y, wanted)});
  }
  const Place result = program.result(y, pd.dst_desc());
  arguments.push_back({DNNL_ARG_DST, pd.dst_desc(), result});
  program.main_step(dnnl::convolution_forward(pd), pd, std::move(arguments));
  program.store(result, y, pd.dst_desc());
  program.finish(activation, op.epilogue);
  return std::move(program).kernel();
}

}  // namespace serin::kernels::onednn
