// signal.cc: spectra of the windows of a signal and the way back, and window functions.

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "runtime/formats/torch/complex.h"

namespace serin::formats::torch {
namespace {

using graph::Attributes;
using graph::kNone;
using graph::Op;
using graph::ValueId;
using List = std::vector<int64_t>;

ValueId padded(NodeImport& node, ValueId x, const List& pads, const std::string& mode = "constant") {
  return node.b.add(Op::kPad, {x}, {{"mode", mode}, {"pads", pads}});
}

/// The arguments that stft and istft share.
struct Frames {
  int64_t length = 0;  ///< n_fft
  int64_t step = 0;
  int64_t window_length = 0;
  bool normalised = false;
};

Frames frames_of(NodeImport& node) {
  Frames frames;
  frames.length = node.integer("n_fft", 0);
  frames.step = node.integer("hop_length", frames.length / 4);
  frames.window_length = node.integer("win_length", frames.length);
  frames.normalised = node.flag("normalized", false);
  constexpr int64_t kMost = 1 << 24;
  if (frames.length < 1 || frames.length > kMost || frames.step < 1 || frames.step > kMost || frames.window_length < 1 ||
      frames.window_length > frames.length)
    node.corrupt(fmt::format("frames of {} by steps of {}, with a window of {}", frames.length, frames.step, frames.window_length));
  return frames;
}

/// The window, or ones, in the middle of a frame. kNone: ones everywhere.
ValueId window_of(NodeImport& node, const Frames& frames, DType dtype) {
  if (node.is_complex("window")) return node.unsupported("a window of complex numbers"), kNone;
  ValueId window = node.optional_tensor("window");
  if (window == kNone && frames.window_length == frames.length) return kNone;
  window = window == kNone ? expanded(node, node.b.number(dtype, 1), node.b.integers({frames.window_length})) : node.b.cast(window, dtype);
  const int64_t room = frames.length - frames.window_length;
  return room == 0 ? window : padded(node, window, {room / 2, room - room / 2});
}

/// [batch, n] or [n], of complex numbers too -> [batch, bins, frames] of complex numbers.
void import_stft(NodeImport& node, Op op) {
  const bool complex = node.is_complex("self");
  const Frames frames = frames_of(node);
  if (node.b.error()) return;
  const DType dtype = node.result_dtype();
  ValueId x = node.b.cast(node.tensor("self"), dtype);
  if (!complex) x = node.b.unsqueeze(x, {-1});
  const size_t rank = node.rank(x);
  if (rank != 2 && rank != 3) return node.corrupt(fmt::format("a signal of rank {}", rank - 1));
  if (rank == 2) x = node.b.unsqueeze(x, {0});
  if (node.overload() == "center" && node.flag("center", true)) {
    const std::string mode = node.text("pad_mode", "reflect");
    if (mode != "reflect" && mode != "constant" && mode != "replicate") return node.unsupported(fmt::format("pad_mode is '{}'", mode));
    x = padded(node, x, {0, frames.length / 2, 0, 0, frames.length / 2, 0}, mode == "replicate" ? "edge" : mode);
  }
  const bool onesided = node.flag("onesided", !complex);
  if (onesided && complex) return node.unsupported("half the spectrum of complex numbers");
  const ValueId window = window_of(node, frames, dtype);
  ValueId y = node.b.add(op, {x, node.scalar({frames.step}), window, node.scalar({frames.length})}, {{"onesided", int64_t{onesided}}});
  y = node.b.transpose(y, {0, 2, 1, 3});
  if (frames.normalised) y = multiplied(node, y, 1 / std::sqrt(static_cast<double>(frames.length)));
  node.give(rank == 2 ? node.b.squeeze(y, {0}) : y);
}

/// The frames [batch, frames, length], each `step` after the one before, as one signal: where they overlap, they are added. A frame is cut
/// into pieces of a step, so that the r-th pieces of all frames lie side by side.
ValueId overlapped(NodeImport& node, ValueId x, const Frames& frames) {
  const int64_t pieces = (frames.length + frames.step - 1) / frames.step, rest = pieces * frames.step - frames.length;
  constexpr int64_t kMostPieces = 256;
  if (pieces > kMostPieces) return node.unsupported(fmt::format("{} frames overlap; at most {} may", pieces, kMostPieces)), x;
  if (rest > 0) x = padded(node, x, {0, 0, 0, 0, 0, rest});
  if (pieces > 1) {
    const ValueId cut = node.b.reshape(x, {0, 0, pieces, frames.step});
    x = kNone;
    for (int64_t i = 0; i < pieces; ++i) {
      const ValueId moved =
          padded(node, node.b.add(Op::kGather, {cut, node.scalar({i})}, {{"axis", int64_t{2}}}), {0, i, 0, 0, pieces - 1 - i, 0});
      x = x == kNone ? moved : node.b.add(Op::kAdd, {x, moved});
    }
  }
  const ValueId signal = node.b.reshape(x, {0, -1});
  return rest > 0 ? sliced(node.b, signal, 1, 0, -rest) : signal;
}

/// [batch, frames, bins, 2] -> [batch, frames, length]
ValueId real_frames(NodeImport& node, ValueId x, const Frames& frames, bool onesided) {
  if (!onesided) x = sliced(node.b, x, 2, 0, frames.length / 2 + 1);
  const Attributes way_back = {{"inverse", int64_t{1}}, {"onesided", int64_t{1}}};
  const ValueId y = node.b.squeeze(node.b.add(Op::kDFT, {x, node.scalar({frames.length}), node.scalar({2})}, way_back), {-1});
  return frames.normalised ? multiplied(node, y, std::sqrt(static_cast<double>(frames.length))) : y;
}

/// The elements begin .. begin + length - 1 of [batch, n], and zeros where it ends before.
ValueId cut_out(NodeImport& node, ValueId x, int64_t begin, int64_t length) {
  const auto size = node.b.size(x, 1);
  const int64_t missing = size ? begin + length - *size : length;
  const ValueId y = sliced(node.b, missing > 0 ? padded(node, x, {0, 0, 0, missing}) : x, 1, begin, begin + length);
  return node.b.reshape(y, {0, length});
}

/// The sum of the frames, divided by that of the squares of their windows.
void import_istft(NodeImport& node, Op) {
  const Frames frames = frames_of(node);
  if (node.b.error()) return;
  if (node.flag("return_complex", false)) return node.unsupported("gives a signal of complex numbers");
  ValueId x = node.b.cast(node.tensor("self"), node.result_dtype());
  const size_t rank = node.rank(x);
  if (rank != 3 && rank != 4) return node.corrupt(fmt::format("a spectrum of rank {}", rank - 1));
  if (rank == 3) x = node.b.unsqueeze(x, {0});
  const bool onesided = node.flag("onesided", node.b.size(x, 1) != frames.length);
  x = real_frames(node, node.b.transpose(x, {0, 2, 1, 3}), frames, onesided);
  ValueId window = window_of(node, frames, node.result_dtype());
  if (window == kNone) window = expanded(node, node.b.number(node.result_dtype(), 1), node.b.integers({frames.length}));
  const ValueId squares = node.b.add(Op::kMul, {window, window});
  const ValueId count = node.shape_of({Size{1, kNone}, sizes_of(node, x, 1, 2)[0], Size{frames.length, kNone}});
  ValueId signal = overlapped(node, node.b.add(Op::kMul, {x, window}), frames),
          weights = overlapped(node, expanded(node, squares, count), frames);
  const int64_t begin = node.flag("center", true) ? frames.length / 2 : 0;
  const Size length = node.size("length", -1);
  if (!length.number) return node.unsupported("a length that the model computes");
  if (*length.number < 0) {
    if (begin > 0) signal = sliced(node.b, signal, 1, begin, -begin), weights = sliced(node.b, weights, 1, begin, -begin);
    signal = node.b.add(Op::kDiv, {signal, weights});
  } else {
    // Behind the last frame the signal is 0, and so is the sum of the windows.
    const ValueId given = cut_out(node, weights, begin, *length.number), zero = node.b.number(node.result_dtype(), 0);
    const ValueId none = node.b.add(Op::kEqual, {given, zero});
    weights = node.b.add(Op::kWhere, {none, node.b.number(node.result_dtype(), 1), given});
    signal = node.b.add(Op::kDiv, {cut_out(node, signal, begin, *length.number), weights});
  }
  node.give(rank == 3 ? node.b.squeeze(signal, {0}) : signal);
}

/// The modified Bessel function of the first kind and order 0, by its power series.
double bessel(double x) {
  double sum = 1, term = 1;
  for (int k = 1; k < 500 && term > sum * 1e-17; ++k) {
    term *= (x / (2 * k)) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

/// hann_window, hamming_window, blackman_window, bartlett_window, kaiser_window.
void import_window(NodeImport& node, Op) {
  const int64_t length = node.integer("window_length", 0);
  constexpr int64_t kMost = 1 << 24;
  if (length < 0 || length > kMost) return node.unsupported(fmt::format("a window of {}", length));
  const std::string& target = node.node().target;
  const auto is = [&](const char* name) { return target.find(name) != std::string::npos; };
  const double last = static_cast<double>(node.flag("periodic", true) ? length : length - 1);
  const double alpha = node.number("alpha", is("hamming") ? 0.54 : 0.5), beta = node.number("beta", is("kaiser")    ? 12.0
                                                                                                    : is("hamming") ? 0.46
                                                                                                                    : 0.5);
  std::vector<double> values;
  for (int64_t i = 0; i < length; ++i) {
    const double share = length == 1 ? 0.5 : static_cast<double>(i) / last, turn = 2 * std::numbers::pi * share;
    if (length == 1)
      values.push_back(1);
    else if (is("bartlett"))
      values.push_back(1 - std::abs(2 * share - 1));
    else if (is("kaiser"))
      values.push_back(bessel(beta * std::sqrt(std::max(0.0, 1 - (2 * share - 1) * (2 * share - 1)))) / bessel(beta));
    else if (is("blackman"))
      values.push_back(0.42 - 0.5 * std::cos(turn) + 0.08 * std::cos(2 * turn));
    else
      values.push_back(alpha - beta * std::cos(turn));
  }
  node.give(node.b.cast(node.b.constant(graph::make_constant(DType::kFloat64, Shape{length}, values.data())), node.result_dtype()));
}

constexpr OperatorRow kSignals[] = {
    {"aten.bartlett_window", import_window}, {"aten.blackman_window", import_window}, {"aten.hamming_window", import_window},
    {"aten.hann_window", import_window},     {"aten.istft", import_istft, Op::kDFT},  {"aten.kaiser_window", import_window},
    {"aten.stft", import_stft, Op::kSTFT},
};

}  // namespace

std::span<const OperatorRow> signal_operators() { return kSignals; }

}  // namespace serin::formats::torch
