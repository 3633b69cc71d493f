// activations.cc: functions of single elements that have no UnaryFn of their own, as two or three loops over pieces that stay in the first
// cache.

#include <algorithm>
#include <array>

#include "kernels/cpu/generic.h"
#include "kernels/cpu/parallel.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kPiece = 2048;

/// f(x, y, n) for pieces of the input.
template <class F>
Prepared in_pieces(F f) {
  return make_kernel([f](Stream& stream, Inputs in, Outputs out) -> Fault {
    const int64_t n = in[0].elements();
    parallel_for(stream, (n + kPiece - 1) / kPiece, [&](int64_t task, int) {
      const int64_t first = task * kPiece;
      f(in[0].as<const float>() + first, out[0].as<float>() + first, std::min(kPiece, n - first));
    });
    return kOk;
  });
}

/// x tanh(log(1 + e^x))
Prepared mish(const Simd& simd) {
  const UnaryLoop softplus = simd.unary(UnaryFn::kSoftplus), tanh = simd.unary(UnaryFn::kTanh);
  return in_pieces([=, multiply = simd.binary(BinaryFn::kMul)](const float* x, float* y, int64_t n) {
    std::array<float, kPiece> gate;
    softplus(x, gate.data(), n, 0.f, 0.f);
    tanh(gate.data(), gate.data(), n, 0.f, 0.f);
    multiply(x, false, gate.data(), false, y, n);
  });
}

/// x / (1 + |x|); an infinity would be NaN this way, so 1 / (1 + 1 / |x|) is not an option either: it is rare enough to be clipped first.
Prepared softsign(const Simd& simd) {
  const UnaryLoop abs = simd.unary(UnaryFn::kAbs), clip = simd.unary(UnaryFn::kClip);
  return in_pieces([=, normalize = simd.normalize, divide = simd.binary(BinaryFn::kDiv)](const float* x, float* y, int64_t n) {
    std::array<float, kPiece> divisor;
    clip(x, y, n, -1e30f, 1e30f);
    abs(y, divisor.data(), n, 0.f, 0.f);
    normalize(divisor.data(), divisor.data(), n, -1.f, 1.f, 0.f);
    divide(y, false, divisor.data(), false, y, n);
  });
}

/// outer * elu(inner * x), with elu's own alpha: Selu and Celu.
Prepared scaled_elu(const Simd& simd, float inner, float alpha, float outer) {
  const UnaryLoop elu = simd.unary(UnaryFn::kElu);
  return in_pieces([=, multiply = simd.binary(BinaryFn::kMul)](const float* x, float* y, int64_t n) {
    if (inner != 1) multiply(x, false, &inner, true, y, n);
    elu(inner == 1 ? x : y, y, n, alpha, 0.f);
    multiply(y, false, &outer, true, y, n);
  });
}

/// One slope for all, or for each channel (axis 1).
Prepared prelu(const Simd& simd, const OpDesc& desc, std::string& why) {
  const Shape &x = desc.inputs[0].shape, &slope = desc.inputs[1].shape;
  const int64_t slopes = slope.elements();
  size_t trailing = 0;  // dimensions of 1 at the end of the slope
  while (trailing < slope.rank() && slope[slope.rank() - 1 - trailing] == 1) ++trailing;
  const bool along_channels = x.rank() >= 2 && slopes == x[1] && trailing + 2 == x.rank();
  if (slopes != 1 && !along_channels) return refuse(why, "one slope for all or for each channel");
  return make_kernel([leaky = simd.unary(UnaryFn::kLeakyRelu), slopes](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Shape& shape = in[0].shape;
    const int64_t lines = slopes == 1 ? 1 : shape[0] * shape[1], n = lines == 0 ? 0 : in[0].elements() / lines;
    parallel_for(stream, lines, [&](int64_t line, int) {
      leaky(in[0].as<const float>() + line * n, out[0].as<float>() + line * n, n, in[1].as<const float>()[line % slopes], 0.f);
    });
    return kOk;
  });
}

}  // namespace

Prepared activations(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& [name, attributes] = std::get<Generic>(desc.op);
  const bool known = name == "Celu" || name == "Mish" || name == "PRelu" || name == "Selu" || name == "Softsign";
  if (!known) return refuse(why, "not one of these activations");
  if (!is_f32(desc, why)) return nullptr;
  if (name == "PRelu") return prelu(simd, desc, why);
  if (name == "Mish") return mish(simd);
  if (name == "Softsign") return softsign(simd);
  const auto number = [&a = attributes](std::string_view key, double fallback) { return static_cast<float>(a.number(key, fallback)); };
  if (name == "Selu") return scaled_elu(simd, 1.f, number("alpha", 1.67326319217681884765625), number("gamma", 1.05070102214813232421875));
  const float alpha = number("alpha", 1);
  if (alpha == 0) return refuse(why, "alpha is 0");
  return scaled_elu(simd, 1 / alpha, 1.f, alpha);
}

}  // namespace serin::kernels::cpu
