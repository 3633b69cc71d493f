// image_grid.cc: GridSample reads the input at points between its elements, AffineGrid makes such points.
//
// For each point the elements it sees and their weights are found once, as the product of those along each axis, and used for every channel.
// A coordinate that is NaN lies outside.

#include <cmath>
#include <vector>

#include "kernels/ref/axes.h"
#include "kernels/ref/image.h"

namespace serin::kernels::ref {

namespace {

enum class Sampling : uint8_t { kNearest, kLinear, kCubic };
enum class Padding : uint8_t { kZeros, kBorder, kReflection };

struct Sampler {
  Sampling mode;
  Padding padding;
  bool align_corners;
};

/// x mirrored at low and high until it lies between them.
double reflect(double x, double low, double high) {
  const double span = high - low;
  if (span <= 0) return low;
  const double distance = x < low ? low - x : x > high ? x - high : -1;
  if (distance < 0) return x;
  const double turns = std::floor(distance / span), rest = distance - turns * span;
  const bool from_low = (x < low) == (std::fmod(turns, 2) == 0);
  return from_low ? low + rest : high - rest;
}

double keys(double x) {  // Keys' cubic kernel with a = -0.75
  constexpr double kA = -0.75;
  x = std::fabs(x);
  if (x <= 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * kA - 4 * kA : 0;
}

struct Tap {
  int64_t offset;
  double weight;
};

/// One axis of `size` elements as a sampler sees it.
class SampledAxis {
 public:
  SampledAxis(const Sampler& sampler, int64_t size)
      : sampler_(sampler),
        size_(size),
        low_(sampler.align_corners ? 0 : -0.5),
        high_(sampler.align_corners ? static_cast<double>(size - 1) : static_cast<double>(size) - 0.5) {}

  /// Those elements that a normalised coordinate (-1 to 1 over the axis) sees; what falls on zeros is left out.
  void taps(double normalised, std::vector<Tap>& taps) const {
    taps.clear();
    const double x = coordinate(normalised);
    const auto base = static_cast<int64_t>(std::floor(x));
    const double part = x - std::floor(x);
    switch (sampler_.mode) {
      case Sampling::kNearest: return add(base, 1, taps);
      case Sampling::kLinear: add(base, 1 - part, taps); return add(base + 1, part, taps);
      case Sampling::kCubic: break;
    }
    for (int64_t i = -1; i <= 2; ++i) add(base + i, keys(part - static_cast<double>(i)), taps);
  }

 private:
  double coordinate(double normalised) const {
    const auto size = static_cast<double>(size_);
    double x = sampler_.align_corners ? (normalised + 1) / 2 * (size - 1) : ((normalised + 1) * size - 1) / 2;
    if (x != x) return -4;
    if (sampler_.mode == Sampling::kNearest) x = std::nearbyint(x);
    if (x < low_ || x > high_) {
      if (sampler_.padding == Padding::kBorder) x = std::clamp(x, 0.0, size - 1);
      if (sampler_.padding == Padding::kReflection) x = reflect(x, low_, high_);
    }
    return std::clamp(x, -4.0, size + 4);  // further out there is nothing to see
  }

  void add(int64_t index, double weight, std::vector<Tap>& taps) const {
    if (index < 0 || index >= size_) {
      if (sampler_.padding == Padding::kZeros) return;
      if (sampler_.padding == Padding::kReflection) index = static_cast<int64_t>(reflect(static_cast<double>(index), low_, high_));
      index = std::clamp<int64_t>(index, 0, size_ - 1);
    }
    taps.push_back({index, weight});
  }

  Sampler sampler_;
  int64_t size_;
  double low_, high_;
};

/// What a point sees along all axes: offsets into a plane.
class SampledPlane {
 public:
  SampledPlane(const Sampler& sampler, const Shape& x) {
    for (size_t axis = 2; axis < x.rank(); ++axis) axes_.emplace_back(sampler, x[axis]), sizes_.push_back(x[axis]);
  }

  template <class T>
  const std::vector<Tap>& taps(const T* point) {  // its last coordinate belongs to the first axis
    taps_.assign(1, {0, 1});
    for (size_t axis = 0; axis < axes_.size(); ++axis) {
      axes_[axis].taps(static_cast<double>(load(point[axes_.size() - 1 - axis])), along_);
      product_.clear();
      for (const Tap& outer : taps_) {
        for (const Tap& inner : along_) product_.push_back({outer.offset * sizes_[axis] + inner.offset, outer.weight * inner.weight});
      }
      taps_.swap(product_);
    }
    return taps_;
  }

 private:
  std::vector<SampledAxis> axes_;
  std::vector<int64_t> sizes_;
  std::vector<Tap> taps_, along_, product_;
};

template <class T, class G>
Fault run_sample(const Sampler& sampler, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;  // [n, c, spatial...]
  const auto axes = static_cast<int64_t>(x.rank()) - 2;
  const int64_t plane = product(x, 2, x.rank()), points = product(out[0].shape, 2, x.rank());
  if (plane == 0 && out[0].elements() != 0) return "an input of shape " + x.str() + " has nothing to sample";
  SampledPlane sampled(sampler, x);
  for (int64_t n = 0; n < x[0]; ++n) {
    for (int64_t p = 0; p < points; ++p) {
      const std::vector<Tap>& taps = sampled.taps(in[1].as<const G>() + (n * points + p) * axes);
      for (int64_t c = 0; c < x[1]; ++c) {
        const T* source = in[0].as<const T>() + (n * x[1] + c) * plane;
        double sum = 0;
        for (const Tap& tap : taps) sum += static_cast<double>(load(source[tap.offset])) * tap.weight;
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

bool find_sampler(const Attributes& attributes, Sampler& sampler, std::string& why) {
  const std::string mode = attributes.text("mode", "linear"), padding = attributes.text("padding_mode", "zeros");
  if (mode == "nearest")
    sampler.mode = Sampling::kNearest;
  else if (mode == "linear")
    sampler.mode = Sampling::kLinear;
  else if (mode == "cubic")
    sampler.mode = Sampling::kCubic;
  else
    return why = "mode '" + mode + "' is unknown", false;
  if (padding != "zeros" && padding != "border" && padding != "reflection") return why = "padding_mode '" + padding + "' is unknown", false;
  sampler.padding = padding == "zeros" ? Padding::kZeros : padding == "border" ? Padding::kBorder : Padding::kReflection;
  sampler.align_corners = attributes.integer("align_corners", 0) != 0;
  return true;
}

}  // namespace

Prepared grid_sample(const GenericDesc& desc, std::string& why) {
  Sampler sampler{};
  if (!find_sampler(desc.attributes, sampler, why)) return nullptr;
  const size_t rank = desc.inputs[0].shape.rank();
  if (rank < 3 || rank > 5 || desc.inputs[1].shape.rank() != rank) return refuse(why, "one to three spatial axes are supported");
  return for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return visit_dtype(desc.inputs[1].dtype, [&]<class G>(Element<G>) -> Prepared {
      if constexpr (!kIsFloatKind<G>)
        return refuse(why, "the grid must be of floats");
      else
        return make_kernel([sampler](Stream&, Inputs in, Outputs out) -> Fault { return run_sample<T, G>(sampler, in, out); });
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
