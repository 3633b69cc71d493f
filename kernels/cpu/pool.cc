// pool.cc: Pool in f32 over one or two spatial axes. The window of each vector of output pixels is found once, and reduced for every plane
// (kernels/cpu/simd/window.h).

#include <algorithm>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/window.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kPlanes = 32;  // taken through all their pixels before the next ones: they stay in the L2 cache

class PoolKernel final : public Kernel {
 public:
  PoolKernel(const Simd& simd, const Pool& op) : simd_(simd), op_(op), window_(op.kernel, op.strides, op.dilations, op.pads) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(window_.cells()) * sizeof(Tap) + static_cast<size_t>(simd_.width) * sizeof(float);
  }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    const Image x(in[0].shape), y(out[0].shape);
    auto* taps = reinterpret_cast<Tap*>(stream.scratch);
    auto* counts = reinterpret_cast<float*>(taps + window_.cells());
    for (int64_t plane = 0; plane < y.n * y.c; plane += kPlanes) {
      const Planes<const float> source{in[0].as<const float>() + plane * x.plane(), x.plane()};
      const int64_t planes = std::min(kPlanes, y.n * y.c - plane);
      for (int64_t pixel = 0; pixel < y.plane();) {
        const int64_t n = window_.lanes(x, y, pixel, simd_.width);
        window_.taps(x, y, pixel, n, taps);
        Tap* const end = std::remove_if(taps, taps + window_.cells(), [](const Tap& tap) { return tap.lanes == 0; });
        if (op_.average) count_cells(x, y, pixel, n, counts);
        (op_.average ? simd_.pool_mean : simd_.pool_max)({taps, end - taps, window_.w.stride}, counts, source,
                                                         {out[0].as<float>() + plane * y.plane() + pixel, y.plane()}, planes,
                                                         static_cast<int>(n));
        pixel += n;
      }
    }
    return kOk;
  }

 private:
  /// What the sums of n outputs from `pixel` on are divided by; 1 where nothing is summed.
  void count_cells(const Image& x, const Image& y, int64_t pixel, int64_t n, float* counts) const {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t rows = window_.h.count((pixel + i) / y.w, x.h, op_.count_include_pad);
      const int64_t columns = window_.w.count((pixel + i) % y.w, x.w, op_.count_include_pad);
      counts[i] = static_cast<float>(std::max<int64_t>(1, rows * columns));
    }
  }

  const Simd& simd_;
  const Pool op_;
  const Window window_;
};

}  // namespace

Prepared pool(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!is_f32(desc, why)) return nullptr;
  const Pool& op = std::get<Pool>(desc.op);
  if (!Window::fits(desc.inputs[0].shape, op.kernel.size(), op.strides, op.dilations, op.pads)) {
    return refuse(why, "only one or two spatial axes");
  }
  return std::make_unique<PoolKernel>(simd, op);
}

}  // namespace serin::kernels::cpu
