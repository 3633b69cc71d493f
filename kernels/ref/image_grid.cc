// image_grid.cc: GridSample reads the input at points between its elements, AffineGrid makes such points.
//
// For each point the elements it sees and their weights are found once, as the product of those along each axis, and used for every channel.
// A coordinate that is NaN lies outside.

#include <vector>

#include "kernels/grid_sample.h"
#include "kernels/ref/axes.h"
#include "kernels/ref/image.h"

namespace serin::kernels::ref {

namespace {

/// What a point sees along all axes: offsets into a plane.
class SampledPlane {
 public:
  SampledPlane(const GridRule& rule, const Shape& x) {
    for (size_t axis = 2; axis < x.rank(); ++axis) axes_.emplace_back(rule, x[axis]), sizes_.push_back(x[axis]);
  }

  template <class T>
  const std::vector<GridTap>& taps(const T* point) {  // its last coordinate belongs to the first axis
    taps_.assign(1, {0, 1});
    for (size_t axis = 0; axis < axes_.size(); ++axis) {
      const GridTaps along = axes_[axis].at(static_cast<double>(load(point[axes_.size() - 1 - axis])));
      product_.clear();
      for (const GridTap& outer : taps_) {
        for (const GridTap& inner : along) product_.push_back({outer.index * sizes_[axis] + inner.index, outer.weight * inner.weight});
      }
      taps_.swap(product_);
    }
    return taps_;
  }

 private:
  std::vector<GridAxis> axes_;
  std::vector<int64_t> sizes_;
  std::vector<GridTap> taps_, product_;
};

template <class T, class G>
Fault run_sample(const GridRule& rule, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;  // [n, c, spatial...]
  const auto axes = static_cast<int64_t>(x.rank()) - 2;
  const int64_t plane = product(x, 2, x.rank()), points = product(out[0].shape, 2, x.rank());
  if (plane == 0 && out[0].elements() != 0) return "an input of shape " + x.str() + " has no elements to sample";
  SampledPlane sampled(rule, x);
  for (int64_t n = 0; n < x[0]; ++n) {
    for (int64_t p = 0; p < points; ++p) {
      const std::vector<GridTap>& taps = sampled.taps(in[1].as<const G>() + (n * points + p) * axes);
      for (int64_t c = 0; c < x[1]; ++c) {
        const T* source = in[0].as<const T>() + (n * x[1] + c) * plane;
        double sum = 0;
        for (const GridTap& tap : taps) sum += static_cast<double>(load(source[tap.index])) * tap.weight;
        out[0].as<T>()[(n * x[1] + c) * points + p] = kernels::cast<T>(sum);
      }
    }
  }
  return kOk;
}

/// The i-th of `count` points from -1 to 1: on both ends, or in the middle of equal parts.
double grid_point(int64_t i, int64_t count, bool align_corners) {
  const auto at = static_cast<double>(i), size = static_cast<double>(count);
  if (!align_corners) return (2 * at + 1) / size - 1;
  return count == 1 ? 0 : 2 * at / (size - 1) - 1;
}

/// y[n, spatial..., axes] = theta[n, axes, axes + 1] * (x, y, [z,] 1) of each point.
template <class T>
Fault run_affine(bool align_corners, Inputs in, Outputs out) {
  const Shape& y = out[0].shape;
  const size_t axes = y.rank() - 2;
  const int64_t points = product(y, 1, axes + 1);
  T* next = out[0].as<T>();
  for (int64_t n = 0; n < y[0]; ++n) {
    const T* theta = in[0].as<const T>() + n * static_cast<int64_t>(axes * (axes + 1));
    for (int64_t p = 0; p < points; ++p) {
      double coordinates[4] = {0, 0, 0, 0};
      int64_t rest = p;
      for (size_t axis = axes; axis-- > 0; rest /= y[axis + 1])
        coordinates[axes - 1 - axis] = grid_point(rest % y[axis + 1], y[axis + 1], align_corners);
      coordinates[axes] = 1;
      for (size_t row = 0; row < axes; ++row) {
        double sum = 0;
        for (size_t k = 0; k <= axes; ++k) sum += static_cast<double>(load(theta[row * (axes + 1) + k])) * coordinates[k];
        *next++ = kernels::cast<T>(sum);
      }
    }
  }
  return kOk;
}

}  // namespace

Prepared grid_sample(const GenericDesc& desc, std::string& why) {
  const auto rule = grid_rule(desc.attributes, why);
  if (!rule) return nullptr;
  const size_t rank = desc.inputs[0].shape.rank();
  if (rank < 3 || rank > 5 || desc.inputs[1].shape.rank() != rank) return refuse(why, "one to three spatial axes are supported");
  return for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return visit_dtype(desc.inputs[1].dtype, [&]<class G>(Element<G>) -> Prepared {
      if constexpr (!kIsFloatKind<G>)
        return refuse(why, "the grid must be of floats");
      else
        return make_kernel([rule = *rule](Stream&, Inputs in, Outputs out) -> Fault { return run_sample<T, G>(rule, in, out); });
    });
  });
}

Prepared affine_grid(const GenericDesc& desc, std::string& why) {
  const size_t rank = desc.outputs[0].shape.rank();
  if (rank != 4 && rank != 5) return refuse(why, "two or three spatial axes are supported");
  const bool align_corners = desc.attributes.integer("align_corners", 0) != 0;
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([align_corners](Stream&, Inputs in, Outputs out) -> Fault { return run_affine<T>(align_corners, in, out); });
  });
}

}  // namespace serin::kernels::ref
