// sampling.cu: GridSample and RoiAlign: results that lie between the elements of images (kernels/sampling.h says where).
//
// What a point sees is the same for all channels: in GridSample a thread takes a point, finds its taps once and goes through a run of channels, so that
// neighbouring threads write neighbouring results. In RoiAlign a thread takes a bin of one channel: its samples are few.

#include "kernels/grid_sample.h"
#include "kernels/sampling.h"

#include "kernels/cuda/index.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/space.h"
#include "kernels/functors.h"
#include "kernels/ref/generic.h"

namespace serin::kernels::cuda {

namespace {

using ref::Element;

constexpr int kThreads = 128;
constexpr int kAxes = 3;
constexpr int kChannels = 16;  // that a thread goes through

/// Fewer axes have leading ones of size 1, which no coordinate belongs to.
struct Grid3 {
  GridRule rule;
  int axes = 0;
  int64_t points = 0, all_points = 0, channels = 0, plane = 0;
  Division of_image;
  int64_t size[kAxes] = {1, 1, 1};
};

/// kTaps: along each axis.
template <int kTaps, class T>
__global__ void sample_points(Grid3 g, const T* x, const T* grid, T* y) {
  using C = compute_t<T>;
  const int64_t first_channel = static_cast<int64_t>(blockIdx.y) * kChannels;
  const int64_t last_channel = g.channels < first_channel + kChannels ? g.channels : first_channel + kChannels;
  for (int64_t i = first_element(); i < g.all_points; i += element_step()) {
    const int64_t image = g.of_image.quotient(i), point = i - image * g.points;
    int64_t index[kAxes][kTaps];
    C weight[kAxes][kTaps];
#pragma unroll
    for (int axis = 0; axis < kAxes; ++axis) {
      const int of_grid = kAxes - 1 - axis;  // a point's last coordinate belongs to the first axis
      for (int k = 0; k < kTaps; ++k) index[axis][k] = k == 0 ? 0 : -1, weight[axis][k] = C(1);
      if (of_grid < g.axes)
        SampledAxis<C>{g.rule, g.size[axis]}.template find<kTaps>(static_cast<C>(load(grid[i * g.axes + of_grid])), index[axis],
                                                                  weight[axis]);
    }
    for (int64_t channel = first_channel; channel < last_channel; ++channel) {
      const T* const plane = x + (image * g.channels + channel) * g.plane;
      C sum = 0;
#pragma unroll
      for (int a = 0; a < kTaps; ++a) {
        if (index[0][a] < 0) continue;
#pragma unroll
        for (int b = 0; b < kTaps; ++b) {
          if (index[1][b] < 0) continue;
          const T* const row = plane + (index[0][a] * g.size[1] + index[1][b]) * g.size[2];
#pragma unroll
          for (int c = 0; c < kTaps; ++c) {
            if (index[2][c] >= 0) sum += static_cast<C>(load(row[index[2][c]])) * (weight[0][a] * weight[1][b] * weight[2][c]);
          }
        }
      }
      y[(image * g.channels + channel) * g.points + point] = cast<T>(sum);
    }
  }
}

template <int kTaps, class T>
Fault run_sample(const Grid3& g, const Stream& stream, Inputs in, Outputs out) {
  const dim3 blocks(blocks_for(g.all_points, kThreads), static_cast<unsigned>(ceil_div(g.channels, kChannels)));
  return launch(stream, {blocks, kThreads}, sample_points<kTaps, T>, g, in[0].as<const T>(), in[1].as<const T>(), out[0].as<T>());
}

struct Align {
  double spatial_scale;
  int64_t sampling_ratio;
  bool maximum, half_pixel;
  int64_t images, height, width, elements;
  Division columns, rows, channels;  ///< bins of a row; rows of bins; channels
};

/// The mean of the samples of a bin, or the largest of the products that make them up (so the standard has it).
template <class T, class C>
__device__ C align_bin(const Align& op, const AlignedAxis<C>& rows, const AlignedAxis<C>& columns, int64_t row, int64_t column,
                       const T* plane) {
  C result = 0;
  bool begun = false;
  const auto add = [&](const AlignedSample<C>& v, const AlignedSample<C>& h, bool lower, bool right) {
    const C weight = (lower ? v.part : C(1) - v.part) * (right ? h.part : C(1) - h.part);
    const C product = static_cast<C>(load(plane[(lower ? v.high : v.low) * op.width + (right ? h.high : h.low)])) * weight;
    result = !op.maximum ? result + product : begun ? maximum(product, result) : product;
    begun = true;
  };
  bool outside = false;
  for (int64_t i = 0; i < rows.per_bin; ++i) {
    AlignedSample<C> v;
    const bool row_inside = rows.sample(row, i, op.height, v);
    for (int64_t j = 0; j < columns.per_bin; ++j) {
      AlignedSample<C> h;
      if (!row_inside || !columns.sample(column, j, op.width, h)) {
        outside = true;
        continue;
      }
      for (int corner = 0; corner < 4; ++corner) add(v, h, corner >= 2, corner % 2 != 0);
    }
  }
  if (op.maximum) return outside ? maximum(C(0), result) : result;  // what lies outside counts as zero
  const int64_t samples = rows.per_bin * columns.per_bin;
  return result / static_cast<C>(samples > 0 ? samples : 1);
}

constexpr int kBoxTooLarge = 1;  // beside axis 0 of the images, as a fault's axis

template <class T, class I>
__global__ void align_boxes(Align op, const T* x, const T* boxes, const I* images, T* y, IndexFaults faults) {
  using C = compute_t<T>;
  for (int64_t i = first_element(); i < op.elements; i += element_step()) {
    const int64_t line = op.columns.quotient(i), plane = op.rows.quotient(line), box = op.channels.quotient(plane);
    const int64_t image = images[box];
    if (image < 0 || image >= op.images) {
      faults.report(image, 0);
      continue;
    }
    const T* const corners = boxes + box * 4;  // x1, y1, x2, y2
    const auto corner = [&](int k) {
      return static_cast<C>(load(corners[k])) * static_cast<C>(op.spatial_scale) - (op.half_pixel ? C(0.5) : C(0));
    };
    const AlignedAxis<C> rows(corner(1), corner(3), op.rows.d, op.sampling_ratio, op.half_pixel);
    const AlignedAxis<C> columns(corner(0), corner(2), op.columns.d, op.sampling_ratio, op.half_pixel);
    if (rows.per_bin < 0 || columns.per_bin < 0) {
      faults.report(box, kBoxTooLarge);
      continue;
    }
    const T* const from = x + (image * op.channels.d + plane - box * op.channels.d) * op.height * op.width;
    y[i] = cast<T>(align_bin(op, rows, columns, line - plane * op.rows.d, i - line * op.columns.d, from));
  }
}

class AlignKernel final : public Kernel {
 public:
  using Run = Fault (*)(const Align&, const Stream&, Inputs, Outputs);
  AlignKernel(Run typed, const Align& op) : run_(typed), op_(op) {}
  Fault run(Stream& stream, Inputs in, Outputs out) const override { return run_(op_, stream, in, out); }
  std::string explain(int64_t detail) const override {
    if ((detail & 15) == kBoxTooLarge) return "box " + std::to_string(detail >> 4) + " is too large";
    return *ref::out_of_range(detail >> 4, 0, op_.images);
  }

 private:
  const Run run_;
  const Align op_;
};

template <class T, class I>
Fault run_align(const Align& op, const Stream& stream, Inputs in, Outputs out) {
  return launch(stream, {blocks_for(op.elements, kThreads), kThreads}, align_boxes<T, I>, op, in[0].as<const T>(), in[1].as<const T>(),
                in[2].as<const I>(), out[0].as<T>(), IndexFaults(stream));
}

}  // namespace

Prepared prepare_grid_sample(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto rule = grid_rule(std::get<Generic>(desc.op).attributes, why);
  if (!rule) return nullptr;
  const Shape &x = desc.inputs[0].shape, &y = desc.outputs[0].shape;
  if (x.rank() < 3 || x.rank() > 5 || desc.inputs[1].shape.rank() != x.rank())
    return refuse(why, "one to three spatial axes are supported");
  if (x.elements() == 0) return refuse(why, "the input has nothing to sample");
  Grid3 g;
  g.rule = *rule, g.axes = static_cast<int>(x.rank()) - 2;
  g.points = product(y, 2, y.rank()), g.all_points = x[0] * g.points, g.channels = x[1], g.plane = product(x, 2, x.rank());
  g.of_image = Division(g.points, g.all_points);
  for (size_t axis = 2; axis < x.rank(); ++axis) g.size[kAxes + axis - x.rank()] = x[axis];
  if (!ref::one_dtype(desc)) return refuse(why, "input and grid differ in dtype");
  return ref::for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([g](Stream& stream, Inputs in, Outputs out) -> Fault {
      switch (g.rule.mode) {
        case GridMode::kNearest: return run_sample<1, T>(g, stream, in, out);
        case GridMode::kLinear: return run_sample<2, T>(g, stream, in, out);
        case GridMode::kCubic: break;
      }
      return run_sample<4, T>(g, stream, in, out);
    });
  });
}

Prepared prepare_roi_align(const OpDesc& desc, PrepareContext&, std::string& why) {
  const auto& attributes = std::get<Generic>(desc.op).attributes;
  const Shape &x = desc.inputs[0].shape, &y = desc.outputs[0].shape;
  if (x.rank() != 4 || y.rank() != 4 || x.elements() == 0) return refuse(why, "expects images that are not empty");
  if (desc.inputs[1].dtype != desc.inputs[0].dtype) return refuse(why, "images and boxes differ in dtype");
  if (desc.inputs[1].shape[0] != y[0] || desc.inputs[2].shape.elements() != y[0])
    return refuse(why, "boxes and batch indices differ in number");
  const int64_t n = y.elements();
  const Align op{attributes.number("spatial_scale", 1),
                 attributes.integer("sampling_ratio", 0),
                 attributes.text("mode", "avg") == "max",
                 attributes.text("coordinate_transformation_mode", "half_pixel") == "half_pixel",
                 x[0],
                 x[2],
                 x[3],
                 n,
                 Division(y[3], n),
                 Division(y[2], n),
                 Division(y[1], n)};
  return ref::for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return for_indices(desc.inputs[2].dtype, why,
                       [&]<class I>(Element<I>) -> Prepared { return std::make_unique<AlignKernel>(run_align<T, I>, op); });
  });
}

}  // namespace serin::kernels::cuda
