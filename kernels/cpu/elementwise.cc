// elementwise.cc: Unary and Binary on vector loops.
//
// Binary knows one form of broadcasting for all: the axes are collapsed as far as both operands allow, and along the innermost one each operand
// is either dense or one value. The same shape is then a single run; a row, a scalar or a channel [c, 1, 1] is a loop of long ones.

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/ranges.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

using Space = Collapsed<2>;

Space binary_space(const Shape& a, const Shape& b, const Shape& y) {
  return collapse<2>(y, {broadcast_strides(a, y), broadcast_strides(b, y)});
}

void run_binary(BinaryLoop loop, const Stream& stream, const Space& space, const float* a, const float* b, std::byte* y, size_t y_size) {
  Shape outer = space.shape;
  const size_t last = outer.rank() - 1;
  const int64_t n = outer[last], a_step = space.strides[0][last], b_step = space.strides[1][last];
  outer[last] = 1;
  const int64_t rows = outer.elements();
  if (rows == 1) {
    parallel_ranges(stream, n, kElements, [&](int64_t begin, int64_t end) {
      loop(a + begin * a_step, a_step == 0, b + begin * b_step, b_step == 0, y + static_cast<size_t>(begin) * y_size, end - begin);
    });
    return;
  }
  parallel_rows(stream, rows, n, [&](int64_t begin, int64_t end) {
    for_each_in<2>(outer, space.strides, begin, end, [&](int64_t i, const auto& at) {
      loop(a + at[0], a_step == 0, b + at[1], b_step == 0, y + static_cast<size_t>(i * n) * y_size, n);
    });
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
  return make_kernel([op, loop](Stream& stream, Inputs in, Outputs out) -> Fault {
    parallel_ranges(stream, in[0].elements(), kElements, [&](int64_t begin, int64_t end) {
      loop(in[0].as<const float>() + begin, out[0].as<float>() + begin, end - begin, op.alpha, op.beta);
    });
    return kOk;
  });
}

Prepared binary(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.size() != 2 || !is_f32(desc, why, true)) return refuse(why, "f32 only");
  const BinaryLoop loop = simd.binary(std::get<Binary>(desc.op).fn);
  if (!loop) return refuse(why, "no vector code for this function");
  const size_t y_size = dtype_size(desc.outputs[0].dtype);

  if (is_bounded(desc)) {
    return make_kernel([loop, y_size](Stream& stream, Inputs in, Outputs out) -> Fault {
      const Space space = binary_space(in[0].shape, in[1].shape, out[0].shape);
      run_binary(loop, stream, space, in[0].as<const float>(), in[1].as<const float>(), out[0].as<std::byte>(), y_size);
      return kOk;
    });
  }
  const Space space = binary_space(desc.inputs[0].shape, desc.inputs[1].shape, desc.outputs[0].shape);
  return make_kernel([loop, y_size, space](Stream& stream, Inputs in, Outputs out) -> Fault {
    run_binary(loop, stream, space, in[0].as<const float>(), in[1].as<const float>(), out[0].as<std::byte>(), y_size);
    return kOk;
  });
}

}  // namespace serin::kernels::cpu
