// pool_volume.cc: Pool in f32 over three spatial axes. A window is a stack of windows over the last two axes, one for each slice of the
// input that it reaches. Their taps are found as in pool.cc, moved to their slices, and reduced together.

#include <algorithm>

#include "kernels/cpu/image.h"
#include "kernels/cpu/window.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

using Axis = Window::Axis;

Axis depth_axis(const Pool& op) { return {op.kernel[0], op.strides[0], op.dilations[0], op.pads[0], op.pads[3]}; }

Window slice_window(const Pool& op) {
  const auto last_two = [](const std::vector<int64_t>& list) { return std::span(list).subspan(1, 2); };
  const int64_t pads[] = {op.pads[1], op.pads[2], op.pads[4], op.pads[5]};
  return Window(last_two(op.kernel), last_two(op.strides), last_two(op.dilations), pads);
}

class PoolVolumeKernel final : public Kernel {
 public:
  PoolVolumeKernel(const Simd& simd, const Pool& op)
      : simd_(simd), average_(op.average), include_pad_(op.count_include_pad), depth_(depth_axis(op)), window_(slice_window(op)) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(window_.cells() * (1 + depth_.kernel)) * sizeof(Tap) + static_cast<size_t>(simd_.width) * sizeof(float);
  }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const Shape &from = in[0].shape, &to = out[0].shape;  // [n, c, d, h, w]
    const Image x(Shape{from[0], from[1], from[3], from[4]}), y(Shape{to[0], to[1], to[3], to[4]});
    for (int64_t od = 0; od < to[2]; ++od) {
      for (int64_t pixel = 0, n = 0; pixel < y.plane(); pixel += n) {
        n = window_.lanes(x, y, pixel, simd_.width);
        auto* const slice = reinterpret_cast<Tap*>(stream.scratch);
        Tap* const taps = slice + window_.cells();
        auto* const counts = reinterpret_cast<float*>(taps + window_.cells() * depth_.kernel);
        const int64_t count = find_taps(x, y, from[2], od, pixel, n, slice, taps);
        if (average_) count_cells(x, y, from[2], od, pixel, n, counts);
        const Taps all{taps, count, window_.w.stride};
        const Planes<const float> source{in[0].as<const float>(), from[2] * x.plane()};
        const Planes<float> target{out[0].as<float>() + od * y.plane() + pixel, to[2] * y.plane()};
        (average_ ? simd_.pool_mean : simd_.pool_max)(all, counts, source, target, y.n * y.c, static_cast<int>(n));
      }
    }
    return kOk;
  }

 private:
  int64_t find_taps(const Image& x, const Image& y, int64_t slices, int64_t od, int64_t pixel, int64_t n, Tap* slice, Tap* taps) const {
    window_.taps(x, y, pixel, n, slice);
    Tap* const end = std::remove_if(slice, slice + window_.cells(), [](const Tap& tap) { return tap.lanes == 0; });
    int64_t count = 0;
    for (int64_t kd = 0; kd < depth_.kernel; ++kd) {
      const int64_t at = depth_.at(od, kd);
      if (at < 0 || at >= slices) continue;
      for (const Tap* tap = slice; tap != end; ++tap) taps[count++] = {tap->offset + at * x.plane(), tap->lanes, tap->elements};
    }
    return count;
  }

  void count_cells(const Image& x, const Image& y, int64_t slices, int64_t od, int64_t pixel, int64_t n, float* counts) const {
    const int64_t deep = depth_.count(od, slices, include_pad_);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t rows = window_.h.count((pixel + i) / y.w, x.h, include_pad_),
                    columns = window_.w.count((pixel + i) % y.w, x.w, include_pad_);
      counts[i] = static_cast<float>(std::max<int64_t>(1, deep * rows * columns));
    }
  }

  const Simd& simd_;
  const bool average_, include_pad_;
  const Axis depth_;
  const Window window_;
};

}  // namespace

Prepared pool_volume(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!is_f32(desc, why)) return nullptr;
  const Pool& op = std::get<Pool>(desc.op);
  const auto positive = [](const std::vector<int64_t>& list) {
    return list.size() == 3 && std::ranges::all_of(list, [](int64_t v) { return v > 0; });
  };
  const bool fits =
      desc.inputs[0].shape.rank() == 5 && positive(op.kernel) && positive(op.strides) && positive(op.dilations) && op.pads.size() == 6;
  if (!fits) return refuse(why, "only three spatial axes");
  return std::make_unique<PoolVolumeKernel>(simd, op);
}

}  // namespace serin::kernels::cpu
