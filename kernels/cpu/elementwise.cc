// elementwise.cc: Unary, Binary and Cast on vector loops.
//
// Binary knows one form of broadcasting for all: the axes are collapsed as far as both operands allow, and along the innermost one each operand
// is either dense or one value. The same shape is then a single run; a row, a scalar or a channel [c, 1, 1] is a loop of long ones.

#include "kernels/cpu/cpu.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

using Space = Collapsed<2>;

Space binary_space(const Shape& a, const Shape& b, const Shape& y) {
  return collapse<2>(y, {broadcast_strides(a, y), broadcast_strides(b, y)});
}

void run_binary(BinaryLoop loop, const Space& space, const float* a, const float* b, std::byte* y, size_t y_size) {
  Shape outer = space.shape;
  const size_t last = outer.rank() - 1;
  const int64_t n = outer[last];
  outer[last] = 1;
  const bool a_scalar = space.strides[0][last] == 0, b_scalar = space.strides[1][last] == 0;
  for_each<2>(outer, space.strides, [&](int64_t i, const auto& at) {
    loop(a + at[0], a_scalar, b + at[1], b_scalar, y + static_cast<size_t>(i * n) * y_size, n);
  });
}

}  // namespace

bool is_f32(const OpDesc& desc, std::string& why, bool any_output) {
  bool f32 = any_output || desc.outputs[0].dtype == DType::kFloat32;
  for (const TensorDesc& input : desc.inputs) f32 &= input.dtype == DType::kFloat32;
  if (!f32) why = "f32 only";
  return f32;
}

bool is_bounded(const OpDesc& desc) {
  bool bounded = false;
  for (const TensorDesc& tensor : desc.inputs) bounded |= tensor.bounded;
  for (const TensorDesc& tensor : desc.outputs) bounded |= tensor.bounded;
  return bounded;
}

Prepared unary(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.size() != 1 || !is_f32(desc, why)) return refuse(why, "f32 only");
  const Unary op = std::get<Unary>(desc.op);
  const UnaryLoop loop = simd.unary(op.fn);
  if (!loop) return refuse(why, "no vector code for this function");
  return make_kernel([op, loop](Stream&, Inputs in, Outputs out) -> Fault {
    loop(in[0].as<const float>(), out[0].as<float>(), in[0].elements(), op.alpha, op.beta);
    return kOk;
  });
}

Prepared binary(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.size() != 2 || !is_f32(desc, why, true)) return refuse(why, "f32 only");
  const BinaryLoop loop = simd.binary(std::get<Binary>(desc.op).fn);
  if (!loop) return refuse(why, "no vector code for this function");
  const size_t y_size = dtype_size(desc.outputs[0].dtype);

  if (is_bounded(desc)) {
    return make_kernel([loop, y_size](Stream&, Inputs in, Outputs out) -> Fault {
      const Space space = binary_space(in[0].shape, in[1].shape, out[0].shape);
      run_binary(loop, space, in[0].as<const float>(), in[1].as<const float>(), out[0].as<std::byte>(), y_size);
      return kOk;
    });
  }
  const Space space = binary_space(desc.inputs[0].shape, desc.inputs[1].shape, desc.outputs[0].shape);
  return make_kernel([loop, y_size, space](Stream&, Inputs in, Outputs out) -> Fault {
    run_binary(loop, space, in[0].as<const float>(), in[1].as<const float>(), out[0].as<std::byte>(), y_size);
    return kOk;
  });
}

Prepared cast(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.size() != 1) return refuse(why, "expects one input");
  const CastLoop loop = simd.cast(desc.inputs[0].dtype, desc.outputs[0].dtype);
  if (!loop) return refuse(why, "no vector code for this pair of dtypes");
  return make_kernel([loop](Stream&, Inputs in, Outputs out) -> Fault {
    loop(in[0].data, out[0].data, in[0].elements());
    return kOk;
  });
}

}  // namespace serin::kernels::cpu
