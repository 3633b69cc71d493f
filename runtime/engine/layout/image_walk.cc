// image_walk.cc: follows the axes of a strided copy through an image. An image has three axes that matter: images, channels, and pixels,
// row by row in both layouts. Each axis of a copy is found among them by its stride, and must stay along that axis, wherever the other axes
// of the copy have led it.

#include "runtime/engine/layout/image_walk.h"

namespace serin::engine {

std::optional<ImageWalk> walk_channels_last(const Shape& image, const kernels::StridedCopy& copy, const Shape& y) {
  if (image.elements() == 0) return std::nullopt;
  const int64_t channels = image[1], pixels = image[2] * image[3];
  struct Axis {
    int64_t size, plain, last;  ///< its strides in both layouts
    int64_t reach;              ///< where on it the last element so far is
  };
  std::array<Axis, 3> axes = {Axis{image[0], channels * pixels, channels * pixels, 0}, Axis{channels, pixels, 1, 0},
                              Axis{pixels, 1, channels, 0}};
  ImageWalk walk;
  for (Axis& axis : axes) {
    axis.reach = copy.offset / axis.plain % axis.size;
    walk.offset += axis.reach * axis.last;
  }
  for (size_t i = 0; i < y.rank(); ++i) {
    walk.strides.push_back(0);
    const int64_t stride = copy.strides[i], steps = y[i] - 1;
    if (stride == 0 || steps <= 0) continue;
    if (stride < 0) return std::nullopt;
    for (size_t a = 0; a < axes.size() && walk.along[i] == ImageWalk::Along::kNothing; ++a) {
      Axis& axis = axes[a];
      const int64_t reach = axis.reach + stride / axis.plain * steps;
      if (stride % axis.plain != 0 || reach >= axis.size) continue;
      axis.reach = reach;
      walk.strides[i] = stride / axis.plain * axis.last;
      walk.along[i] = static_cast<ImageWalk::Along>(a + 1);
    }
    if (walk.along[i] == ImageWalk::Along::kNothing) return std::nullopt;
  }
  return walk;
}

}  // namespace serin::engine
