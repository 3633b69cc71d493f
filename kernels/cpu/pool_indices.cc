// pool_indices.cc: MaxPool of images that says where each maximum was. The windows are clipped to the image once for each row and column, so that
// the search has no bounds to look at.

#include <algorithm>

#include "kernels/cpu/generic.h"
#include "kernels/cpu/parallel.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

/// One axis of the windows.
struct Axis {
  int64_t kernel, stride, dilation, pad;
};

/// Elements first, first + dilation ... below end of the image that window number `at` sees.
struct Seen {
  int64_t first, end;
  Seen(const Axis& axis, int64_t at, int64_t size)
      : first(at * axis.stride - axis.pad), end(first + (axis.kernel - 1) * axis.dilation + 1) {
    if (first < 0) first += (-first + axis.dilation - 1) / axis.dilation * axis.dilation;
    end = std::min(end, size);
  }
};

/// The place of the first maximum; that of the first NaN where there is one; -1 where nothing is seen.
int64_t find_largest(const float* x, int64_t width, const Seen& rows, const Seen& columns, int64_t row_step, int64_t column_step) {
  int64_t place = -1;
  float best = 0;
  for (int64_t row = rows.first; row < rows.end; row += row_step) {
    for (int64_t column = columns.first; column < columns.end; column += column_step) {
      const float value = x[row * width + column];
      if (place >= 0 && !(value > best) && !(value != value && best == best)) continue;
      place = row * width + column;
      best = value;
    }
  }
  return place;
}

void pool_plane(const Axis& down, const Axis& across, const float* x, const Shape& in, float* y, int64_t* indices, const Shape& out,
                int64_t plane) {
  for (int64_t row = 0, i = 0; row < out[2]; ++row) {
    const Seen rows(down, row, in[2]);
    for (int64_t column = 0; column < out[3]; ++column, ++i) {
      const int64_t place = find_largest(x, in[3], rows, Seen(across, column, in[3]), down.dilation, across.dilation);
      y[i] = place < 0 ? 0.f : x[place];
      if (indices) indices[i] = plane * in[2] * in[3] + place;
    }
  }
}

}  // namespace

Prepared max_pool_indices(const Simd&, const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& [name, attributes] = std::get<Generic>(desc.op);
  if (name != "MaxPoolWithIndices") return refuse(why, "not MaxPoolWithIndices");
  if (desc.inputs.size() != 1 || desc.inputs[0].dtype != DType::kFloat32) return refuse(why, "f32 only");
  if (desc.inputs[0].shape.rank() != 4 || attributes.integer("storage_order", 0) != 0)
    return refuse(why, "images only, counted row by row");
  const auto kernel = attributes.integers("kernel_shape"), strides = attributes.integers("strides");
  const auto dilations = attributes.integers("dilations"), pads = attributes.integers("pads");
  if (kernel.size() != 2 || strides.size() != 2 || dilations.size() != 2 || pads.size() != 4)
    return refuse(why, "the window does not have two axes");
  if (std::min({strides[0], strides[1], dilations[0], dilations[1]}) < 1) return refuse(why, "a stride or dilation below 1");
  const auto axis = [&](size_t i) { return Axis{kernel[i], strides[i], kernel[i] == 1 ? 1 : dilations[i], pads[i]}; };
  return make_kernel([down = axis(0), across = axis(1)](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Shape &x = in[0].shape, &y = out[0].shape;
    parallel_for(stream, x[0] * x[1], [&](int64_t plane, int) {
      const int64_t first = plane * y[2] * y[3];
      int64_t* const indices = out.size() > 1 ? out[1].as<int64_t>() + first : nullptr;
      pool_plane(down, across, in[0].as<const float>() + plane * x[2] * x[3], x, out[0].as<float>() + first, indices, y, plane);
    });
    return kOk;
  });
}

}  // namespace serin::kernels::cpu
