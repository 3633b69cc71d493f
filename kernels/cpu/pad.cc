// pad.cc: Pad by runs along the last axis, for every dtype of fixed size. Which row of x a row of y shows is found once for each row; within it what lies
// inside is one copy, and the two margins are filled or gathered.

#include <algorithm>
#include <vector>

#include "kernels/cpu/image.h"
#include "kernels/cpu/parallel.h"
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
    const std::vector<int64_t>& columns = axes[to.rank() - 1];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = columns[static_cast<size_t>(i)];
      target[i] = at < 0 ? value : source[at];
    }
  }
};

template <class T>
Fault run(const Pad& op, const Stream& stream, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;
  const Shape& y = out[0].shape;
  if (out[0].elements() == 0) return kOk;
  std::vector<std::vector<int64_t>> axes;
  for (size_t axis = 0; axis < y.rank(); ++axis) {
    if (op.mode != Pad::Mode::kConstant && x[axis] == 0) return "axis " + std::to_string(axis) + " has no elements to repeat";
    axes.push_back(sources(op.begin[axis], x[axis], y[axis], op.mode));
  }
  const size_t last = y.rank() - 1;
  const int64_t begin = std::clamp<int64_t>(op.begin[last], 0, y[last]);
  const int64_t end = std::clamp<int64_t>(op.begin[last] + x[last], begin, y[last]);
  const PaddedRows<T> rows{op, in[0].as<const T>(), out[0].as<T>(), in.size() > 1 ? in[1].as<const T>()[0] : T{}, axes, x, y, begin, end};
  const int64_t count = out[0].elements() / y[last], tasks = std::min<int64_t>(count, stream.workers ? 16 : 1);
  parallel_for(stream, tasks, [&](int64_t task, int) {
    for (int64_t i = count * task / tasks; i < count * (task + 1) / tasks; ++i) rows.row(i);
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
