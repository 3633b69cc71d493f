// channel_blocks.cc: ChannelBlocks of elements of any size, both ways. Channels past the last are zeros.

#include <cstring>

#include "kernels/ref/visit.h"

namespace serin::kernels::ref {

namespace {

Fault run(Inputs in, Outputs out) {
  const bool to_blocks = out[0].shape.rank() == 5;
  const TensorView& plain = to_blocks ? in[0] : out[0];    // [n, c, h, w]
  const TensorView& blocked = to_blocks ? out[0] : in[0];  // [n, blocks, h, w, b]
  const int64_t c = plain.shape[1], pixels = plain.shape[2] * plain.shape[3], b = blocked.shape[4], blocks = blocked.shape[1];
  const size_t size = dtype_size(plain.dtype);
  const auto at = [size](const TensorView& view, int64_t element) { return view.as<std::byte>() + static_cast<size_t>(element) * size; };
  for (int64_t i = 0; i < blocked.elements(); ++i) {
    const int64_t pixel = i / b % pixels, channel = i / b / pixels % blocks * b + i % b, image = i / b / pixels / blocks;
    const int64_t k = (image * c + channel) * pixels + pixel;
    if (!to_blocks) {
      if (channel < c) std::memcpy(at(plain, k), at(blocked, i), size);
    } else if (channel < c) {
      std::memcpy(at(blocked, i), at(plain, k), size);
    } else {
      std::memset(at(blocked, i), 0, size);
    }
  }
  return kOk;
}

}  // namespace

Prepared channel_blocks(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 1, why)) return nullptr;
  if (!one_dtype(desc) || dtype_size(desc.inputs[0].dtype) == 0) return refuse(why, "input and output differ in dtype, or it has no size");
  const Shape& x = desc.inputs[0].shape;
  const Shape& y = desc.outputs[0].shape;
  if (x.rank() + y.rank() != 9 || (x.rank() != 4 && y.rank() != 4)) return refuse(why, "expects [n, c, h, w] and [n, blocks, h, w, b]");
  const Shape& plain = x.rank() == 4 ? x : y;
  const Shape& blocked = x.rank() == 4 ? y : x;
  if (blocked[4] < 1 || blocked[0] != plain[0] || blocked[1] != (plain[1] + blocked[4] - 1) / blocked[4] || blocked[2] != plain[2] ||
      blocked[3] != plain[3]) {
    return refuse(why, blocked.str() + " are not the blocks of " + plain.str());
  }
  return make_kernel([](Stream&, Inputs in, Outputs out) { return run(in, out); });
}

}  // namespace serin::kernels::ref
