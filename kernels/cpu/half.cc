// half.cc: Unary and Binary of 16-bit floats: converted, computed as f32 and converted back, a piece that stays in the first cache at a time.

#include <algorithm>

#include "kernels/cpu/generic.h"
#include "kernels/cpu/ranges.h"
#include "kernels/functors.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kPiece = 1024;

/// From and to f32; both null where the instruction set has no conversion.
struct Conversion {
  CastLoop load = nullptr, store = nullptr;
  Conversion(const Simd& simd, DType dtype) {
    if (dtype != DType::kFloat16 && dtype != DType::kBFloat16) return;
    load = simd.cast(dtype, DType::kFloat32);
    store = simd.cast(DType::kFloat32, dtype);
  }
  explicit operator bool() const { return load && store; }
};

/// y[i] = f(a[i], b[i]) of one run, where a step of 0 is one element for all.
void run_pieces(const Conversion& conversion, BinaryLoop loop, const uint16_t* a, int64_t a_step, const uint16_t* b, int64_t b_step,
                std::byte* y, bool answers_bool, int64_t n) {
  float left[kPiece], right[kPiece], result[kPiece];
  if (a_step == 0) conversion.load(a, left, 1);
  if (b_step == 0) conversion.load(b, right, 1);
  for (int64_t first = 0; first < n; first += kPiece) {
    const int64_t count = std::min(kPiece, n - first);
    if (a_step != 0) conversion.load(a + first, left, count);
    if (b_step != 0) conversion.load(b + first, right, count);
    if (answers_bool) {
      loop(left, a_step == 0, right, b_step == 0, y + first, count);
    } else {
      loop(left, a_step == 0, right, b_step == 0, result, count);
      conversion.store(result, y + first * 2, count);
    }
  }
}

}  // namespace

Prepared unary_half(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  const Unary op = std::get<Unary>(desc.op);
  if (desc.inputs.size() != 1 || desc.inputs[0].dtype != desc.outputs[0].dtype) return refuse(why, "input and output differ in dtype");
  const Conversion conversion(simd, desc.inputs[0].dtype);
  const UnaryLoop loop = simd.unary(op.fn);
  if (!conversion || !loop) return refuse(why, "no conversion of this dtype, or no vector code for this function");
  return make_kernel([=](Stream& stream, Inputs in, Outputs out) -> Fault {
    parallel_ranges(stream, in[0].elements(), kElements, [&](int64_t begin, int64_t end) {
      float piece[kPiece];
      for (int64_t first = begin; first < end; first += kPiece) {
        const int64_t count = std::min(kPiece, end - first);
        conversion.load(in[0].as<const uint16_t>() + first, piece, count);
        loop(piece, piece, count, op.alpha, op.beta);
        conversion.store(piece, out[0].as<uint16_t>() + first, count);
      }
    });
    return kOk;
  });
}

Prepared binary_half(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  const BinaryFn fn = std::get<Binary>(desc.op).fn;
  const bool answers_bool = is_compare(fn);
  if (desc.inputs.size() != 2 || desc.inputs[0].dtype != desc.inputs[1].dtype) return refuse(why, "operands differ in dtype");
  const DType dtype = desc.inputs[0].dtype;
  if (desc.outputs[0].dtype != (answers_bool ? DType::kBool : dtype)) return refuse(why, "output has the wrong dtype");
  const Conversion conversion(simd, dtype);
  const BinaryLoop loop = simd.binary(fn);
  if (!conversion || !loop) return refuse(why, "no conversion of this dtype, or no vector code for this function");
  return make_kernel([=](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Shape& shape = out[0].shape;
    const Collapsed<2> space = collapse<2>(shape, {broadcast_strides(in[0].shape, shape), broadcast_strides(in[1].shape, shape)});
    Shape outer = space.shape;
    const size_t last = outer.rank() - 1;
    const int64_t n = outer[last], a_step = space.strides[0][last], b_step = space.strides[1][last];
    outer[last] = 1;
    if (n == 0) return kOk;
    const size_t y_size = answers_bool ? 1 : 2;
    parallel_rows(stream, outer.elements(), n, [&](int64_t begin, int64_t end) {
      for_each_in<2>(outer, space.strides, begin, end, [&](int64_t i, const auto& at) {
        run_pieces(conversion, loop, in[0].as<const uint16_t>() + at[0], a_step, in[1].as<const uint16_t>() + at[1], b_step,
                   out[0].as<std::byte>() + static_cast<size_t>(i * n) * y_size, answers_bool, n);
      });
    });
    return kOk;
  });
}

}  // namespace serin::kernels::cpu
