// pad.cc: Pad by runs along the last axis, for every dtype of fixed size. The row of x that a row of y shows is found once for each row.
// The inner part of a row is one copy, and the two margins are filled or gathered. Axes that are not padded are joined with the axis before
// them, so that runs are long.

#include <algorithm>
#include <vector>

#include "kernels/cpu/image.h"
#include "kernels/cpu/ranges.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

/// For each index of an axis of y the index of x that it shows; -1: the pad value.
std::vector<int64_t> sources(int64_t begin, int64_t input, int64_t output, Pad::Mode mode) {
  std::vector<int64_t> result;
  const int64_t period = mode == Pad::Mode::kWrap ? input : std::max<int64_t>(1, 2 * (input - 1));
  for (int64_t i = 0; i < output; ++i) {
    int64_t at = i - begin;
    if (at < 0 || at >= input) {
      if (mode == Pad::Mode::kConstant) {
        at = -1;
      } else if (mode == Pad::Mode::kEdge) {
        at = at < 0 ? 0 : input - 1;
      } else {
        at = (at % period + period) % period;
        if (at >= input) at = period - at;
      }
    }
    result.push_back(at);
  }
  return result;
}

/// A Pad and the shapes it is between.
struct Padding {
  Pad op;
  Shape from, to;
};

/// The same with fewer axes: a value fills whole blocks of a plain axis behind a padded one; where elements are repeated only plain neighbours are one.
Padding collapse_padding(const Pad& op, const Shape& from, const Shape& to) {
  Padding result{.op = {{}, {}, op.mode}, .from = {}, .to = {}};
  std::vector<int64_t> x, y;  // from the last axis to the first
  int64_t block = 1;          // elements of the plain axes behind this one
  bool last_plain = false;
  for (size_t axis = from.rank(); axis-- > 0;) {
    const bool plain = op.begin[axis] == 0 && op.end[axis] == 0;
    if (plain && op.mode == Pad::Mode::kConstant && axis > 0) {
      block *= from[axis];
    } else if (plain && last_plain) {
      x.back() *= from[axis];
      y.back() *= to[axis];
    } else {
      x.push_back(from[axis] * block);
      y.push_back(to[axis] * block);
      result.op.begin.push_back(op.begin[axis] * block);
      result.op.end.push_back(op.end[axis] * block);
      last_plain = plain;
      block = 1;
    }
  }
  std::ranges::reverse(result.op.begin);
  std::ranges::reverse(result.op.end);
  for (size_t i = x.size(); i-- > 0;) {
    result.from.push_back(x[i]);
    result.to.push_back(y[i]);
  }
  return result;
}

template <class T>
struct PaddedRows {
  const Pad& op;
  const T* x;
  T* y;
  T value;
  const std::vector<std::vector<int64_t>>& axes;  ///< sources, by axis
  Shape from, to;
  int64_t inside_begin, inside_end;  ///< of the last axis of y: one run of x

  void row(int64_t index) const {
    const size_t last = to.rank() - 1;
    T* target = y + index * to[last];
    int64_t offset = 0, step = from[last];
    bool inside = true;
    for (size_t axis = last; axis-- > 0; index /= to[axis], step *= from[axis]) {
      const int64_t source = axes[axis][static_cast<size_t>(index % to[axis])];
      inside &= source >= 0;
      offset += source * step;
    }
    if (!inside) {
      std::fill_n(target, to[last], value);
      return;
    }
    const T* source = x + offset;
    margin(source, target, 0, inside_begin);
    std::copy_n(source + std::max<int64_t>(0, -op.begin[last]), inside_end - inside_begin, target + inside_begin);
    margin(source, target, inside_end, to[last]);
  }

  void margin(const T* source, T* target, int64_t begin, int64_t end) const {
    if (op.mode == Pad::Mode::kConstant) {
      std::fill_n(target + begin, end - begin, value);
      return;
    }
    const std::vector<int64_t>& columns = axes[to.rank() - 1];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = columns[static_cast<size_t>(i)];
      target[i] = at < 0 ? value : source[at];
    }
  }
};

template <class T>
Fault run(const Pad& given, const Stream& stream, Inputs in, Outputs out) {
  if (out[0].elements() == 0) return kOk;
  const auto [op, x, y] = collapse_padding(given, in[0].shape, out[0].shape);
  std::vector<std::vector<int64_t>> axes;
  for (size_t axis = 0; axis < y.rank(); ++axis) {
    if (op.mode != Pad::Mode::kConstant && x[axis] == 0) return "axis " + std::to_string(axis) + " has no elements to repeat";
    const bool runs = op.mode == Pad::Mode::kConstant && axis + 1 == y.rank();  // the last axis is a run and two margins
    axes.push_back(runs ? std::vector<int64_t>() : sources(op.begin[axis], x[axis], y[axis], op.mode));
  }
  const size_t last = y.rank() - 1;
  const int64_t inside = std::clamp<int64_t>(op.begin[last], 0, y[last]);
  const int64_t inside_end = std::clamp<int64_t>(op.begin[last] + x[last], inside, y[last]);
  const T value = in.size() > 1 ? in[1].as<const T>()[0] : T{};
  const PaddedRows<T> rows{op, in[0].as<const T>(), out[0].as<T>(), value, axes, x, y, inside, inside_end};
  parallel_rows(stream, out[0].elements() / y[last], y[last], [&rows](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) rows.row(i);
  });
  return kOk;
}

}  // namespace

Prepared pad(const Simd&, const OpDesc& desc, PrepareContext&, std::string& why) {
  const Pad& op = std::get<Pad>(desc.op);
  const size_t rank = desc.inputs[0].shape.rank();
  if (op.begin.size() != rank || op.end.size() != rank || rank == 0) return refuse(why, "pads do not match the input's rank");
  for (const TensorDesc& input : desc.inputs) {
    if (input.dtype != desc.outputs[0].dtype) return refuse(why, "inputs differ in dtype");
  }
  const auto negative = [](int64_t pad) { return pad < 0; };
  const bool crops = std::ranges::any_of(op.begin, negative) || std::ranges::any_of(op.end, negative);
  if (crops && op.mode != Pad::Mode::kConstant) return refuse(why, "negative pads, and elements are repeated");
  const auto make = [&op]<class T>(T) -> Prepared {
    return make_kernel([op](Stream& stream, Inputs in, Outputs out) -> Fault { return run<T>(op, stream, in, out); });
  };
  switch (dtype_size(desc.inputs[0].dtype)) {
    case 1: return make(uint8_t{});
    case 2: return make(uint16_t{});
    case 4: return make(uint32_t{});
    case 8: return make(uint64_t{});
    default: return refuse(why, "no kernel for this dtype");
  }
}

}  // namespace serin::kernels::cpu
