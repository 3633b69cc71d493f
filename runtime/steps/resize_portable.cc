#include "runtime/steps/resize_down.h"

namespace serin::steps {
namespace {

void across_portable(const uint8_t* row, const uint8_t* /*end*/, std::span<const Taps> taps, int channels, uint8_t* to) {
  if (channels == 3) return sum_all_pixels<3>(row, taps, to);
  sum_all_pixels<1>(row, taps, to);
}

}  // namespace

const ResizeLoops kPortableResize = {across_portable, sum_rows};

const ResizeLoops& resize_loops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return kAvx2Resize;
#endif
  return kPortableResize;
}

}  // namespace serin::steps
