// matmul.cc: MatMul by oneDNN. Activations stay plain (transposes are strides); a constant b is reordered once into the layout that oneDNN
// needs.
//
// Where b is one matrix for all batches, the batches of a are rows of one tall matrix: a single large product instead of many small ones.

#include "kernels/indexing.h"
#include "kernels/onednn/program.h"

namespace serin::kernels::onednn {

namespace {

using dnnl::memory;

/// The operands as oneDNN sees them: all of the rank of y.
struct Operands {
  memory::dims a, b, y, bias, residual;
};

memory::dims with_rank(const Shape& shape, size_t rank) {
  memory::dims dims(rank - shape.rank(), 1);
  dims.insert(dims.end(), shape.begin(), shape.end());
  return dims;
}

/// A matrix whose memory is the transpose of its dims.
memory::desc matrix_desc(memory::dims dims, bool transposed) {
  if (!transposed) return plain_desc(dims);
  const size_t last = dims.size() - 1;
  std::swap(dims[last], dims[last - 1]);
  memory::dims strides = plain_desc(dims).get_strides();
  std::swap(dims[last], dims[last - 1]);
  std::swap(strides[last], strides[last - 1]);
  return {dims, memory::data_type::f32, strides};
}

/// The whole of y in `rows` rows: for one b, a plain a, a bias that is the same in every row, and a residual of y's shape.
bool is_one_product(const MatMul& op, const OpDesc& desc) {
  const Shape& a = desc.inputs[0].shape;
  const Shape& b = desc.inputs[1].shape;
  const Shape& y = desc.outputs[0].shape;
  if (op.transpose_a || product(b, 0, b.rank() - 2) != 1 || a.elements() / a.back() != y.elements() / y.back()) return false;
  if (op.bias && desc.inputs[2].shape.elements() != 1 &&
      desc.inputs[2].shape.elements() != (desc.inputs[2].shape.rank() ? desc.inputs[2].shape.back() : 0)) {
    return false;
  }
  return !op.epilogue.residual || desc.inputs.back().shape == y;
}

Operands operands_of(const MatMul& op, const OpDesc& desc) {
  const Shape& y = desc.outputs[0].shape;
  Operands o;
  if (is_one_product(op, desc)) {
    const Shape& b = desc.inputs[1].shape;
    const int64_t rows = y.elements() / y.back();
    o.a = {rows, desc.inputs[0].shape.back()};
    o.b = {b[b.rank() - 2], b[b.rank() - 1]};
    o.y = o.residual = {rows, y.back()};
    if (op.bias) o.bias = {1, desc.inputs[2].shape.elements()};
  } else {
    o.a = with_rank(desc.inputs[0].shape, y.rank());
    o.b = with_rank(desc.inputs[1].shape, y.rank());
    o.y = with_rank(y, y.rank());
    if (op.bias) o.bias = with_rank(desc.inputs[2].shape, y.rank());
    if (op.epilogue.residual) o.residual = with_rank(desc.inputs.back().shape, y.rank());
  }
  const size_t last = o.y.size() - 1;
  if (op.transpose_a) std::swap(o.a[last], o.a[last - 1]);
  if (op.transpose_b) std::swap(o.b[last], o.b[last - 1]);
  return o;
}

}  // namespace

std::unique_ptr<Kernel> prepare_matmul(const Library& library, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const MatMul& op = std::get<MatMul>(desc.op);
  const Operands o = operands_of(op, desc);
  const memory::desc a = matrix_desc(o.a, op.transpose_a);
  const memory::desc b = matrix_desc(o.b, op.transpose_b);
  const memory::desc y = plain_desc(o.y);
  const memory::desc wanted_b = desc.inputs[1].constant ? memory::desc(o.b, memory::data_type::f32, memory::format_tag::any) : b;

  // A bias along the columns is oneDNN's own, added before alpha could be applied; any other is one of the operands added afterwards.
  const bool own_bias = op.bias && op.alpha == 1.f && std::count_if(o.bias.begin(), o.bias.end(), [](auto d) { return d != 1; }) <= 1 &&
                        o.bias.back() == o.y.back();
  const memory::desc bias = own_bias ? plain_desc(o.bias) : memory::desc();
  struct Added {
    int post_op;
    size_t input;
    memory::desc desc;
  };
  std::vector<Added> added;
  dnnl::post_ops post_ops;
  if (op.alpha != 1.f) post_ops.append_eltwise(dnnl::algorithm::eltwise_linear, op.alpha, 0.f);
  const auto append_add = [&](size_t input, const memory::dims& dims) {
    added.push_back({post_ops.len(), input, plain_desc(dims)});
    post_ops.append_binary(dnnl::algorithm::binary_add, plain_desc(dims));
  };
  if (op.bias && !own_bias) append_add(2, o.bias);
  if (op.epilogue.residual) append_add(desc.inputs.size() - 1, o.residual);
  const bool fused = append_activation(post_ops, op.epilogue);
  const cpu::UnaryLoop activation = fused ? nullptr : library.simd.unary(op.epilogue.activation);
  if (!fused && !activation) {
    why = "neither oneDNN nor Serin has the activation";
    return nullptr;
  }

  const dnnl::matmul::primitive_desc pd(library.engine, a, wanted_b, bias, y, make_attributes(post_ops));
  if (std::string_view(pd.impl_info_str()).starts_with("ref")) {
    why = "oneDNN has only its reference implementation";
    return nullptr;
  }

  Program program(library.engine, desc, context);
  std::vector<Argument> arguments = {{DNNL_ARG_SRC, a, Place::input(0)},
                                     {DNNL_ARG_WEIGHTS, pd.weights_desc(), program.in_layout(1, b, pd.weights_desc())},
                                     {DNNL_ARG_DST, y, Place::output(0)}};
  if (own_bias) arguments.push_back({DNNL_ARG_BIAS, bias, Place::input(2)});
  for (const Added& operand : added) {
    arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(operand.post_op) | DNNL_ARG_SRC_1, operand.desc, Place::input(operand.input)});
  }
  program.main_step(dnnl::matmul(pd), pd, std::move(arguments));
  program.finish(activation, op.epilogue);
  return std::move(program).kernel();
}

}  // namespace serin::kernels::onednn
