// fourier.cc: Fourier transforms along axes. DFT divides by the length on the way back, and only then.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/torch/complex.h"

namespace serin::formats::torch {
namespace {

using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

/// The numbers of torch's fft_norm_mode.
enum Norm : int64_t { kPlain, kByRoot, kByLength };

struct Transform {
  List axes;                ///< of the tensor; those of complex numbers are counted without the parts
  std::vector<Size> sizes;  ///< of the transform, or that of the axis: -1
  Norm norm = kPlain;
  bool inverse = false;
};

/// The length as a number of the type of the data.
ValueId length_of(NodeImport& node, ValueId x, const Transform& how) {
  ValueId length = kNone;
  for (size_t i = 0; i < how.axes.size(); ++i) {
    const auto axis = static_cast<size_t>(how.axes[i]);
    const Size& given = how.sizes[i];
    const ValueId factor = node.scalar(given.number != -1 ? given : sizes_of(node, x, axis, axis + 1)[0]);
    length = length == kNone ? factor : node.b.add(Op::kMul, {length, factor});
  }
  return node.b.cast(length, node.b.dtype(x));
}

/// DFT gives plain sums forwards and divides by the length backwards; the rest of the norm is a factor.
ValueId normalised(NodeImport& node, ValueId y, ValueId length, Norm norm, bool inverse) {
  const double power = (norm == kPlain ? 0.0 : norm == kByRoot ? -0.5 : -1.0) + (inverse ? 1.0 : 0.0);
  if (power == 0) return y;
  return node.b.add(Op::kMul, {y, node.b.add(Op::kPow, {length, node.b.number(node.b.dtype(y), power)})});
}

/// Along one axis of x [..., parts].
ValueId transformed(NodeImport& node, ValueId x, int64_t axis, const Size& size, bool inverse, bool onesided) {
  const ValueId length = size.number == -1 ? kNone : node.scalar(size), at = node.scalar({axis});
  return node.b.add(Op::kDFT, {x, length, at}, {{"inverse", int64_t{inverse}}, {"onesided", int64_t{onesided}}});
}

/// All axes but the last `but`, of complex numbers.
ValueId transformed_along(NodeImport& node, ValueId x, const Transform& how, size_t but) {
  for (size_t i = 0; i + but < how.axes.size(); ++i) x = transformed(node, x, how.axes[i], how.sizes[i], how.inverse, false);
  return x;
}

ValueId of_complex(NodeImport& node, ValueId x, const Transform& how) {
  return normalised(node, transformed_along(node, x, how, 0), length_of(node, x, how), how.norm, how.inverse);
}

/// Of real numbers: the last axis first.
ValueId of_real(NodeImport& node, ValueId x, const Transform& how, bool onesided) {
  const ValueId length = length_of(node, x, how);
  const ValueId last = transformed(node, node.b.unsqueeze(x, {-1}), how.axes.back(), how.sizes.back(), how.inverse, onesided);
  return normalised(node, transformed_along(node, last, how, 1), length, how.norm, how.inverse);
}

/// From the half that the last axis has to real numbers.
ValueId to_real(NodeImport& node, ValueId x, Transform how) {
  Size& last = how.sizes.back();
  if (last.number == -1) {
    const auto axis = static_cast<size_t>(how.axes.back());
    const Size half = sizes_of(node, x, axis, axis + 1)[0];
    if (half.number) {
      last.number = 2 * (*half.number - 1);
    } else {
      const ValueId less = node.b.add(Op::kSub, {half.value, node.scalar({1})});
      last = {std::nullopt, node.b.add(Op::kMul, {less, node.scalar({2})})};
    }
  }
  const ValueId y = transformed(node, transformed_along(node, x, how, 1), how.axes.back(), last, true, true);
  return normalised(node, node.b.squeeze(y, {-1}), length_of(node, x, how), how.norm, true);
}

size_t rank_of_self(NodeImport& node, ValueId x) { return node.rank(x) - (node.is_complex("self") ? 1 : 0); }

/// self, in the type of the result or of its parts.
ValueId operand(NodeImport& node) { return node.b.cast(node.tensor("self"), node.result_dtype()); }

/// The arguments of fft_*: one axis and `n`, or several and `s`.
Transform transform_of(NodeImport& node, ValueId x, bool inverse) {
  const size_t rank = rank_of_self(node, x);
  const std::string& target = node.node().target;
  const bool plane = target.find("fft2.") != std::string::npos, many = plane || target.find("fftn.") != std::string::npos;
  Transform how{.inverse = inverse};
  how.sizes = node.sizes(many ? "s" : "n");
  if (node.has("dim") || !many || plane) {
    const List dims = node.integers("dim", plane ? List{-2, -1} : List{-1});
    for (const int64_t dim : dims) how.axes.push_back(node.axis(dim, rank));
  } else {
    how.axes = order_of(rank);
    if (!how.sizes.empty() && how.sizes.size() < rank)
      how.axes.erase(how.axes.begin(), how.axes.end() - static_cast<std::ptrdiff_t>(how.sizes.size()));
  }
  if (how.sizes.empty()) how.sizes.assign(how.axes.size(), Size{-1, kNone});
  if (how.axes.empty() || how.sizes.size() != how.axes.size() || rank == 0) {
    node.corrupt(fmt::format("{} sizes for {} axes", how.sizes.size(), how.axes.size()));
    how.axes = {0}, how.sizes = {Size{-1, kNone}};
  }
  const std::string norm = node.text("norm", "backward");
  if (norm != "backward" && norm != "forward" && norm != "ortho") node.unsupported(fmt::format("norm is '{}'", norm));
  how.norm = norm == "ortho" ? kByRoot : (norm == "forward") != inverse ? kByLength : kPlain;
  return how;
}

ValueId conjugate(NodeImport& node, ValueId x) {
  const Parts parts = parts_of(node, x);
  return as_complex(node, {parts.real, node.b.add(Op::kNeg, {parts.imaginary})});
}

/// fft_fft, fft_ifft and those of several axes.
void import_fft(NodeImport& node, Op) {
  const bool inverse = node.node().target.find("fft_ifft") != std::string::npos;
  const ValueId x = operand(node);
  const Transform how = transform_of(node, x, inverse);
  if (node.b.error()) return;
  node.give(node.is_complex("self") ? of_complex(node, x, how) : of_real(node, x, how, false));
}

/// fft_rfft ...; fft_ihfft is its conjugate, with the norm of the way back.
void import_rfft(NodeImport& node, Op) {
  const bool hermitian = node.node().target.find("ihfft") != std::string::npos;
  const ValueId x = operand(node);
  Transform how = transform_of(node, x, hermitian);
  how.inverse = false;
  if (node.b.error()) return;
  const ValueId y = of_real(node, x, how, true);
  node.give(hermitian ? conjugate(node, y) : y);
}

/// fft_irfft ...; fft_hfft is that of the conjugate, with the norm of the way there.
void import_irfft(NodeImport& node, Op) {
  const bool hermitian = node.node().target.find("fft_hfft") != std::string::npos;
  ValueId x = operand(node);
  const bool real = !node.is_complex("self");
  Transform how = transform_of(node, x, !hermitian);
  how.inverse = true;
  if (node.b.error()) return;
  if (real) x = as_complex(node, {x, kNone});
  node.give(to_real(node, hermitian ? conjugate(node, x) : x, how));
}

/// _fft_r2c, _fft_c2c, _fft_c2r: axes and the norm as numbers.
void import_core(NodeImport& node, Op) {
  const ValueId x = operand(node);
  const std::string& target = node.node().target;
  Transform how;
  how.axes = node.axes("dim", rank_of_self(node, x));
  how.sizes.assign(how.axes.size(), Size{-1, kNone});
  const int64_t norm = node.integer("normalization", 0);
  if (norm < 0 || norm > 2) return node.unsupported(fmt::format("normalization is {}", norm));
  how.norm = static_cast<Norm>(norm);
  if (how.axes.empty()) return node.unsupported("transforms no axis");
  if (node.b.error()) return;
  if (target.find("r2c") != std::string::npos) return node.give(of_real(node, x, how, node.flag("onesided", true)));
  how.inverse = target.find("c2r") != std::string::npos || !node.flag("forward", true);
  if (target.find("c2c") != std::string::npos) return node.give(of_complex(node, x, how));
  how.sizes.back() = node.size("last_dim_size", -1);
  node.give(to_real(node, x, how));
}

/// The frequencies of a transform of n samples that are d apart; of fft_rfftfreq only those from 0 on.
void import_frequencies(NodeImport& node, Op) {
  const int64_t n = node.integer("n", 0);
  constexpr int64_t kMost = 1 << 24;
  if (n < 1 || n > kMost) return node.unsupported(fmt::format("{} frequencies", n));
  const bool half = node.node().target.find("rfftfreq") != std::string::npos;
  const double step = 1 / (static_cast<double>(n) * node.number("d", 1));
  std::vector<double> values(static_cast<size_t>(half ? n / 2 + 1 : n));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    values[i] = static_cast<double>(!half && at >= (n + 1) / 2 ? at - n : at) * step;
  }
  const Shape shape{static_cast<int64_t>(values.size())};
  node.give(node.b.cast(node.b.constant(graph::make_constant(DType::kFloat64, shape, values.data())), node.result_dtype()));
}

/// fft_fftshift, fft_ifftshift: the second half of each axis first.
void import_shift(NodeImport& node, Op) {
  ValueId x = node.tensor("self");
  const size_t rank = node.rank(x);
  const List axes = node.has("dim") ? node.axes("dim", rank) : order_of(rank);
  const bool back = node.node().target.find("ifftshift") != std::string::npos;
  for (const int64_t axis : axes) {
    const auto length = node.b.size(x, static_cast<size_t>(axis));
    if (!length) return node.unsupported("shifts an axis of unknown length");
    const int64_t cut = back ? *length / 2 : (*length + 1) / 2;
    x = node.b.add(Op::kConcat, {sliced(node.b, x, axis, cut, kEnd), sliced(node.b, x, axis, 0, cut)}, {{"axis", axis}});
  }
  node.give(x);
}

constexpr OperatorRow kFourier[] = {
    {"aten._fft_c2c", import_core, Op::kDFT},    {"aten._fft_c2r", import_core, Op::kDFT},    {"aten._fft_r2c", import_core, Op::kDFT},
    {"aten.fft_fft", import_fft, Op::kDFT},      {"aten.fft_fft2", import_fft, Op::kDFT},     {"aten.fft_fftfreq", import_frequencies},
    {"aten.fft_fftn", import_fft, Op::kDFT},     {"aten.fft_fftshift", import_shift},         {"aten.fft_hfft", import_irfft, Op::kDFT},
    {"aten.fft_ifft", import_fft, Op::kDFT},     {"aten.fft_ifft2", import_fft, Op::kDFT},    {"aten.fft_ifftn", import_fft, Op::kDFT},
    {"aten.fft_ifftshift", import_shift},        {"aten.fft_ihfft", import_rfft, Op::kDFT},   {"aten.fft_irfft", import_irfft, Op::kDFT},
    {"aten.fft_irfft2", import_irfft, Op::kDFT}, {"aten.fft_irfftn", import_irfft, Op::kDFT}, {"aten.fft_rfft", import_rfft, Op::kDFT},
    {"aten.fft_rfft2", import_rfft, Op::kDFT},   {"aten.fft_rfftfreq", import_frequencies},   {"aten.fft_rfftn", import_rfft, Op::kDFT},
};

}  // namespace

std::span<const OperatorRow> fourier_operators() { return kFourier; }

}  // namespace serin::formats::torch
