// center_crop_pad.cc: CenterCropPad by runs: all axes from the last one that changes size on are one run of bytes in each row.

#include <algorithm>
#include <cstring>

#include "kernels/cpu/image.h"
#include "kernels/cpu/ranges.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

/// Where y's first element of an axis lies in x; below 0 if y is padded.
int64_t shift_of(int64_t x, int64_t y) { return x >= y ? (x - y) / 2 : -((y - x) / 2); }

}  // namespace

Prepared center_crop_pad(const Simd&, const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& op = std::get<Generic>(desc.op);
  if (op.name != "CenterCropPad") return refuse(why, "not a CenterCropPad");
  const size_t width = dtype_size(desc.inputs[0].dtype);
  if (width == 0 || desc.inputs[0].shape.rank() == 0) return refuse(why, "elements that cannot be copied as bytes, or only one");
  return make_kernel([width](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Shape &x = in[0].shape, &y = out[0].shape;
    if (out[0].elements() == 0) return kOk;
    size_t last = y.rank() - 1;
    while (last > 0 && x[last] == y[last]) --last;
    const auto inner = static_cast<size_t>(product(y, last + 1, y.rank())) * width;  // bytes
    const Strides strides = row_major_strides(x);
    const int64_t shift = shift_of(x[last], y[last]);
    const auto row_bytes = static_cast<size_t>(y[last]) * inner, copied = static_cast<size_t>(std::min(x[last], y[last])) * inner;
    const auto before = static_cast<size_t>(std::max<int64_t>(-shift, 0)) * inner,
               skipped = static_cast<size_t>(std::max<int64_t>(shift, 0)) * inner;
    parallel_rows(stream, product(y, 0, last), static_cast<int64_t>(row_bytes / width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t offset = 0, rest = row;
        bool inside = true;
        for (size_t axis = last; axis-- > 0; rest /= y[axis]) {
          const int64_t source = rest % y[axis] + shift_of(x[axis], y[axis]);
          inside &= source >= 0 && source < x[axis];
          offset += source * strides[axis];
        }
        std::byte* to = out[0].as<std::byte>() + static_cast<size_t>(row) * row_bytes;
        if (!inside) {
          std::memset(to, 0, row_bytes);
          continue;
        }
        std::memset(to, 0, before);
        if (copied > 0) std::memcpy(to + before, in[0].as<const std::byte>() + static_cast<size_t>(offset) * width + skipped, copied);
        std::memset(to + before + copied, 0, row_bytes - before - copied);
      }
    });
    return kOk;
  });
}

}  // namespace serin::kernels::cpu
