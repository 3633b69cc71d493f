// prelu.cc: PRelu with one slope for all, or one for each channel: LeakyRelu over long runs.

#include <algorithm>

#include "kernels/cpu/generic.h"
#include "kernels/cpu/parallel.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

Prepared prelu(const Simd& simd, const OpDesc& desc, PrepareContext&, std::string& why) {
  if (std::get<Generic>(desc.op).name != "PRelu") return refuse(why, "not PRelu");
  if (desc.inputs.size() != 2 || !is_f32(desc, why)) return refuse(why, "f32 only");
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

}  // namespace serin::kernels::cpu
