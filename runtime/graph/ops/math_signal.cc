// math_signal.cc: shape rules of signal processing. Sizes that the data decides (the length of a window that a client sends) have no bound
// here.

#include "runtime/graph/ops/families.h"

namespace serin::graph {
namespace {

/// A transform needs several times its length in memory beside its operands.
constexpr int64_t kMaxTransform = int64_t{1} << 24;

/// The one element of an integer operand; nothing where it is not known yet.
Result<std::optional<Dim>> scalar(const Context& c, size_t operand, std::string_view what) {
  if (const Dims* x = c.dims(operand); x && !(product(*x) == Dim(1)) && known_shape(*x))
    return c.fail("{} has shape {}, it must be one number", what, print(*x));
  const Dims* element = c.elements(operand);
  return element && element->size() == 1 ? std::optional(element->front()) : std::nullopt;
}

Status require_length(const Context& c, std::string_view what, const Dim& length) {
  const auto value = length.value();
  if (!value || (*value >= 1 && *value <= kMaxTransform)) return {};
  return c.fail("{} is {}, it must be between 1 and {}", what, *value, kMaxTransform);
}

}  // namespace

Status infer_window(Context& c) {
  SERIN_CHECK(c.index_dtype(0));
  SERIN_TRY(const DType dtype, c.dtype_attribute("dtype", DType::kFloat32));
  SERIN_TRY(const auto size, scalar(c, 0, "size"));
  return c.set(0, dtype, Dims{size ? *size : c.unknown_dim()});
}

Status infer_mel_weight_matrix(Context& c) {
  SERIN_TRY(const DType dtype, c.dtype_attribute("dtype", DType::kFloat32));
  SERIN_TRY(const auto bins, scalar(c, 0, "num_mel_bins"));
  SERIN_TRY(const auto length, scalar(c, 1, "dft_length"));
  return c.set(0, dtype, Dims{length ? floor_div(*length, 2) + 1 : c.unknown_dim(), bins ? *bins : c.unknown_dim()});
}

Status infer_dft(Context& c) {
  const Dims* x = c.dims(0);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  const bool inverse = c.node().integer("inverse", 0) != 0, onesided = c.node().integer("onesided", 0) != 0;
  const auto parts = x->empty() ? std::nullopt : x->back().value();
  if (x->size() < 2 || (parts && *parts != 1 && *parts != 2))
    return c.fail("input has shape {}, its last axis must hold 1 or 2 parts", print(*x));

  SERIN_TRY(const auto given, scalar(c, 1, "dft_length"));
  SERIN_TRY(const auto given_axis, scalar(c, 2, "axis"));
  if (c.has(2) && (!given_axis || !given_axis->known())) return c.set(0, c.dtype(0), c.unknown_dims(x->size()));
  SERIN_TRY(const int64_t axis, c.axis(given_axis ? *given_axis->value() : -2, x->size()));
  const auto at = static_cast<size_t>(axis);
  if (at + 1 == x->size()) return c.fail("axis {} is the one of real and imaginary parts", axis);

  Dims y = *x;
  y.back() = inverse && onesided ? 1 : 2;
  if (c.has(1) && !given) {
    y[at] = c.unknown_dim();
    return c.set(0, c.dtype(0), std::move(y));
  }
  const Dim length = given ? *given : inverse && onesided ? Dim(2) * ((*x)[at] - 1) : (*x)[at];
  SERIN_CHECK(require_length(c, "dft_length", length));
  y[at] = onesided && !inverse ? floor_div(length, 2) + 1 : length;
  return c.set(0, c.dtype(0), std::move(y));
}

Status infer_stft(Context& c) {
  const Dims *x = c.dims(0), *window = c.dims(2);
  if (!x) return c.set(0, c.dtype(0), std::nullopt);
  if (x->size() != 2 && x->size() != 3) return c.fail("signal has shape {}, it must be [batch, n, 1 or 2] or [batch, n]", print(*x));
  if (window && window->size() != 1) return c.fail("window has shape {}, it must be a list", print(*window));
  SERIN_TRY(const auto step, scalar(c, 1, "frame_step"));
  SERIN_TRY(const auto given, scalar(c, 3, "frame_length"));
  if (step && step->known() && *step->value() < 1) return c.fail("frame_step is {}, it must be at least 1", *step->value());

  std::optional<Dim> length = given;
  if (!length && !c.has(3)) length = !c.has(2) ? std::optional((*x)[1]) : window ? std::optional((*window)[0]) : std::nullopt;
  if (length) SERIN_CHECK(require_length(c, "frame_length", *length));
  const auto room = length ? ((*x)[1] - *length).value() : std::nullopt;
  if (room && *room < 0) return c.fail("a frame of {} does not fit a signal of {}", length->str(), (*x)[1].str());
  const bool onesided = c.node().integer("onesided", 1) != 0;
  const Dim frames = step && step->known() && length ? floor_div((*x)[1] - *length, *step) + 1 : c.unknown_dim();
  const Dim bins = !length ? c.unknown_dim() : onesided ? floor_div(*length, 2) + 1 : *length;
  return c.set(0, c.dtype(0), Dims{(*x)[0], frames, bins, 2});
}

}  // namespace serin::graph
