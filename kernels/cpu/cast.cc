// cast.cc: Cast. Conversions between f32 and the types of 8, 16 and 32 bits run on vector loops. All others run on plain loops: indices and
// masks become other integers, floats become indices. The compiler vectorises these, because they have no branches and convert to 32 bits
// where that is enough.

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/ranges.h"
#include "kernels/functors.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

/// Integers and floats to what holds them or wraps them; bool by its value.
template <class S, class D>
void convert(const void* from, void* to, int64_t n) {
  const S* x = static_cast<const S*>(from);
  D* y = static_cast<D*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<D>(x[i]);
}

template <class S>
void to_bool(const void* from, void* to, int64_t n) {
  const S* x = static_cast<const S*>(from);
  uint8_t* y = static_cast<uint8_t*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] != S{0} ? 1 : 0;
}

/// A piece whose elements all fit takes the instruction, which knows nothing of saturation.
void to_i64(const void* from, void* to, int64_t n) {
  constexpr int64_t kPiece = 256;
  const float* x = static_cast<const float*>(from);
  int64_t* y = static_cast<int64_t*>(to);
  for (int64_t first = 0; first < n; first += kPiece) {
    const int64_t end = std::min(n, first + kPiece);
    int32_t outside = 0;
    for (int64_t i = first; i < end; ++i) outside |= std::fabs(x[i]) < 0x1p62f ? 0 : 1;
    if (outside) {
      for (int64_t i = first; i < end; ++i) y[i] = float_to_integer<int64_t>(x[i]);
    } else {
      for (int64_t i = first; i < end; ++i) y[i] = static_cast<int64_t>(x[i]);
    }
  }
}

CastLoop from_f32(DType to) {
  switch (to) {
    case DType::kBool: return to_bool<float>;
    case DType::kInt64: return to_i64;
    case DType::kFloat64: return convert<float, double>;
    default: return nullptr;
  }
}

template <class S>
CastLoop from_integer(DType to) {
  switch (to) {
    case DType::kBool: return to_bool<S>;
    case DType::kInt32: return convert<S, int32_t>;
    case DType::kInt64: return convert<S, int64_t>;
    case DType::kFloat32: return convert<S, float>;
    case DType::kFloat64: return convert<S, double>;
    default: return nullptr;
  }
}

CastLoop plain_loop(DType from, DType to) {
  switch (from) {
    case DType::kFloat32: return from_f32(to);
    case DType::kFloat64: return to == DType::kFloat32 ? convert<double, float> : nullptr;
    case DType::kBool:
    case DType::kUInt8: return from_integer<uint8_t>(to);
    case DType::kInt8: return from_integer<int8_t>(to);
    case DType::kInt32: return from_integer<int32_t>(to);
    case DType::kInt64: return from_integer<int64_t>(to);
    default: return nullptr;
  }
}

}  // namespace

Prepared cast(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (desc.inputs.size() != 1) return refuse(why, "expects one input");
  if (std::get<Cast>(desc.op).saturate) return refuse(why, "the loops do not saturate");
  const DType from = desc.inputs[0].dtype, to = desc.outputs[0].dtype;
  const CastLoop vectors = simd.cast(from, to), loop = vectors ? vectors : plain_loop(from, to);
  if (!loop) return refuse(why, "no loop for this pair of dtypes");
  return make_kernel([loop, x_size = dtype_size(from), y_size = dtype_size(to)](Stream& stream, Inputs in, Outputs out) -> Fault {
    parallel_ranges(stream, in[0].elements(), kElements, [&](int64_t begin, int64_t end) {
      const auto first = static_cast<size_t>(begin);
      loop(in[0].as<const std::byte>() + first * x_size, out[0].as<std::byte>() + first * y_size, end - begin);
    });
    return kOk;
  });
}

}  // namespace serin::kernels::cpu
