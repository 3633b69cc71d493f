// image_regions.cc: parts of images: RoiAlign and MaxRoiPool shrink boxes to one size, CenterCropPad cuts or pads around the middle.

#include <cmath>
#include <vector>

#include "kernels/ref/axes.h"
#include "kernels/ref/image.h"
#include "kernels/sampling.h"

namespace serin::kernels::ref {

namespace {

struct AlignRule {
  double spatial_scale;
  int64_t sampling_ratio;
  bool maximum, half_pixel;
};

using Sample = AlignedSample<double>;

/// The samples of each bin along one axis of a box. Those outside of the image weigh nothing, so that only their number is kept.
struct BinSamples {
  std::vector<std::vector<Sample>> bins;
  int64_t per_bin = 0;  ///< with those outside

  Fault find(const AlignRule& rule, double begin, double end, int64_t size, int64_t count) {
    const AlignedAxis<double> axis(begin, end, count, rule.sampling_ratio, rule.half_pixel);
    if (axis.per_bin < 0) return "a box from " + std::to_string(begin) + " to " + std::to_string(end) + " is too large";
    per_bin = axis.per_bin;
    bins.assign(static_cast<size_t>(count), {});
    for (int64_t b = 0; b < count; ++b) {
      for (int64_t i = 0; i < per_bin; ++i) {
        if (Sample sample{}; axis.sample(b, i, size, sample)) bins[static_cast<size_t>(b)].push_back(sample);
      }
    }
    return kOk;
  }
};

/// What the bins of a box see, bin after bin: the same for all channels.
struct BoxTaps {
  struct Tap {
    int64_t offset;
    double weight;
  };
  std::vector<Tap> taps;
  std::vector<size_t> ends;   ///< of each bin's taps
  std::vector<bool> outside;  ///< a sample of the bin lies outside of the image, where it counts as zero
  int64_t samples = 0;        ///< of each bin

  void find(const BinSamples& rows, const BinSamples& columns, int64_t width) {
    taps.clear(), ends.clear(), outside.clear();
    samples = rows.per_bin * columns.per_bin;
    for (const std::vector<Sample>& row : rows.bins) {
      for (const std::vector<Sample>& column : columns.bins) {
        for (const Sample& v : row) {
          for (const Sample& h : column) {
            taps.push_back({v.low * width + h.low, (1 - v.part) * (1 - h.part)});
            taps.push_back({v.low * width + h.high, (1 - v.part) * h.part});
            taps.push_back({v.high * width + h.low, v.part * (1 - h.part)});
            taps.push_back({v.high * width + h.high, v.part * h.part});
          }
        }
        ends.push_back(taps.size());
        outside.push_back(static_cast<int64_t>(row.size() * column.size()) < samples);
      }
    }
  }
};

/// Mean of the samples of each bin, or the largest of the products that make them up (so the standard has it).
template <class T>
void pool_bins(const BoxTaps& box, const T* plane, bool maximum, T* y) {
  size_t begin = 0;
  for (size_t bin = 0; bin < box.ends.size(); begin = box.ends[bin++]) {
    double result = 0;
    const auto product = [&](size_t i) { return static_cast<double>(load(plane[box.taps[i].offset])) * box.taps[i].weight; };
    if (maximum) {
      if (!box.outside[bin] && begin < box.ends[bin]) result = product(begin);
      for (size_t i = begin; i < box.ends[bin]; ++i) result = kernels::maximum(product(i), result);
    } else {
      for (size_t i = begin; i < box.ends[bin]; ++i) result += product(i);
      result /= static_cast<double>(std::max<int64_t>(box.samples, 1));
    }
    y[bin] = kernels::cast<T>(result);
  }
}

template <class T>
Fault run_align(const AlignRule& rule, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;   // [n, c, h, w]
  const Shape& y = out[0].shape;  // [boxes, c, h, w]
  if (in[1].shape[0] != y[0] || in[2].elements() != y[0])
    return "there are " + in[1].shape.str() + " boxes and " + in[2].shape.str() + " batch indices";
  if (x[2] * x[3] == 0 && out[0].elements() != 0) return "images of shape " + x.str() + " have no elements to align";
  BinSamples rows, columns;
  BoxTaps taps;
  for (int64_t box = 0; box < y[0]; ++box) {
    const T* corners = in[1].as<const T>() + box * 4;  // x1, y1, x2, y2
    const auto corner = [&](size_t i) { return static_cast<double>(load(corners[i])) * rule.spatial_scale - (rule.half_pixel ? 0.5 : 0); };
    if (Fault fault = rows.find(rule, corner(1), corner(3), x[2], y[2])) return fault;
    if (Fault fault = columns.find(rule, corner(0), corner(2), x[3], y[3])) return fault;
    const int64_t image = index_at(in[2], box);
    if (image < 0 || image >= x[0]) return out_of_range(image, 0, x[0]);
    taps.find(rows, columns, x[3]);
    for (int64_t c = 0; c < x[1]; ++c)
      pool_bins(taps, in[0].as<const T>() + (image * x[1] + c) * x[2] * x[3], rule.maximum,
                out[0].as<T>() + (box * x[1] + c) * y[2] * y[3]);
  }
  return kOk;
}

/// Elements [begin, end) of an axis of `size` that bin `i` of `bins` covers, for a box from `first` to `last`.
struct BinRange {
  int64_t begin, end;
  BinRange(double first, double last, int64_t i, int64_t bins, int64_t size) {
    const double length = std::max(last - first + 1, 1.0) / static_cast<double>(bins);
    const auto clip = [size](double at) { return static_cast<int64_t>(std::clamp(at, 0.0, static_cast<double>(size))); };
    begin = clip(std::floor(static_cast<double>(i) * length) + first);
    end = clip(std::ceil(static_cast<double>(i + 1) * length) + first);
  }
};

template <class T>
Fault run_max_roi(double spatial_scale, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;   // [n, c, h, w]
  const Shape& y = out[0].shape;  // [boxes, c, h, w]
  T* next = out[0].as<T>();
  for (int64_t box = 0; box < y[0]; ++box) {
    const T* roi = in[1].as<const T>() + box * 5;  // image, x1, y1, x2, y2
    const auto corner = [&](size_t i) { return std::round(static_cast<double>(load(roi[i])) * spatial_scale); };
    const auto given = static_cast<double>(load(roi[0]));
    if (!(given >= 0 && given < static_cast<double>(x[0]))) return out_of_range(kernels::cast<int64_t>(given), 0, x[0]);
    for (size_t i = 1; i < 5; ++i) {
      if (!std::isfinite(corner(i))) return "box " + std::to_string(box) + " has a corner that is not a number";
    }
    for (int64_t c = 0; c < x[1]; ++c) {
      const T* plane = in[0].as<const T>() + (static_cast<int64_t>(given) * x[1] + c) * x[2] * x[3];
      for (int64_t bin = 0; bin < y[2] * y[3]; ++bin) {
        const BinRange rows(corner(2), corner(4), bin / y[3], y[2], x[2]), columns(corner(1), corner(3), bin % y[3], y[3], x[3]);
        bool empty = true;
        compute_t<T> best = 0;  // of a bin without elements
        for (int64_t row = rows.begin; row < rows.end; ++row) {
          for (int64_t column = columns.begin; column < columns.end; ++column, empty = false) {
            const auto value = load(plane[row * x[3] + column]);
            best = empty ? value : kernels::maximum(value, best);
          }
        }
        *next++ = kernels::cast<T>(best);
      }
    }
  }
  return kOk;
}

template <class T>
Fault run_center(Inputs in, Outputs out) {
  const Shape& x = in[0].shape;
  const Shape& y = out[0].shape;
  const Strides strides = row_major_strides(x);
  for (int64_t i = 0; i < out[0].elements(); ++i) {
    int64_t offset = 0, rest = i;
    bool inside = true;
    for (size_t axis = y.rank(); axis-- > 0; rest /= y[axis]) {
      const int64_t shift = x[axis] >= y[axis] ? (x[axis] - y[axis]) / 2 : -((y[axis] - x[axis]) / 2);
      const int64_t source = rest % y[axis] + shift;
      inside &= source >= 0 && source < x[axis];
      offset += source * strides[axis];
    }
    out[0].as<T>()[i] = inside ? in[0].as<const T>()[offset] : T{};
  }
  return kOk;
}

}  // namespace

Prepared roi_align(const GenericDesc& desc, std::string& why) {
  if (desc.inputs[0].shape.rank() != 4 || desc.inputs[1].shape.rank() != 2 || desc.inputs[1].shape[1] != 4)
    return refuse(why, "images must be [n, c, h, w] and boxes [count, 4]");
  if (desc.inputs[1].dtype != desc.inputs[0].dtype || !is_index_dtype(desc.inputs[2].dtype)) return refuse(why, "dtypes do not fit");
  const std::string mode = desc.attributes.text("mode", "avg");
  if (mode != "avg" && mode != "max") return refuse(why, "mode '" + mode + "' is unknown");
  const AlignRule rule{desc.attributes.number("spatial_scale", 1), desc.attributes.integer("sampling_ratio", 0), mode == "max",
                       desc.attributes.text("coordinate_transformation_mode", "half_pixel") == "half_pixel"};
  return for_floats(desc.inputs[0].dtype, why, [rule]<class T>(Element<T>) -> Prepared {
    return make_kernel([rule](Stream&, Inputs in, Outputs out) -> Fault { return run_align<T>(rule, in, out); });
  });
}

Prepared max_roi_pool(const GenericDesc& desc, std::string& why) {
  if (desc.inputs[0].shape.rank() != 4 || desc.inputs[1].shape.rank() != 2 || desc.inputs[1].shape[1] != 5)
    return refuse(why, "images must be [n, c, h, w] and boxes [count, 5]");
  if (desc.inputs[1].dtype != desc.inputs[0].dtype) return refuse(why, "dtypes do not fit");
  const double scale = desc.attributes.number("spatial_scale", 1);
  return for_floats(desc.inputs[0].dtype, why, [scale]<class T>(Element<T>) -> Prepared {
    return make_kernel([scale](Stream&, Inputs in, Outputs out) -> Fault { return run_max_roi<T>(scale, in, out); });
  });
}

Prepared center_crop_pad(const GenericDesc& desc, std::string& why) {
  return for_sizes(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault { return run_center<T>(in, out); });
  });
}

}  // namespace serin::kernels::ref
