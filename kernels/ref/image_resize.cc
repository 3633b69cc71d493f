// image_resize.cc: Resize, one axis after the other (kernels/resample.h has the taps). Nearest moves elements of any dtype; the other modes compute in
// double and round once: integers are cut toward zero, as the standard's own implementation does.

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/ref/axes.h"
#include "kernels/ref/image.h"
#include "kernels/resample.h"

namespace serin::kernels::ref {

namespace {

/// y along one axis of x; `mix(source, i)` makes output i of the elements that source(index) gives.
template <class T, class Mix>
std::vector<T> resample(const std::vector<T>& x, const AxisView& view, const ResampleTaps& taps, int64_t size, const T& extrapolation,
                        Mix mix) {
  std::vector<T> y(static_cast<size_t>(view.outer * size * view.inner));
  auto next = y.begin();
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t i = 0; i < size; ++i) {
      const bool outside = !taps.outside.empty() && taps.outside[static_cast<size_t>(i)];
      for (int64_t j = 0; j < view.inner; ++j) {
        const auto source = [&](int64_t index) { return x[static_cast<size_t>(view.at(o, index, j))]; };
        *next++ = outside ? extrapolation : mix(source, i);
      }
    }
  }
  return y;
}

/// Along all axes that change; `make_mix(taps)` gives the `mix` of one of them.
template <class T, class MakeMix>
Fault resample_all(const ResampleRule& rule, const Attributes& attributes, Inputs in, const Shape& y, const T& extrapolation,
                   std::vector<T>& data, MakeMix make_mix) {
  std::string why;
  const auto axes = resample_axes(attributes, in[0].shape, y, operand(in, 1), operand(in, 2), operand(in, 3), why);
  if (!axes) return why;
  Shape shape = in[0].shape;
  for (size_t axis = 0; axis < axes->size() && y.elements() != 0; ++axis) {
    if ((*axes)[axis].is_identity(rule)) continue;
    const ResampleTaps taps = resample_taps(rule, (*axes)[axis]);
    data = resample<T>(data, AxisView(shape, axis), taps, y[axis], extrapolation, make_mix(taps));
    shape[axis] = y[axis];
  }
  return kOk;
}

template <class T>
Fault run_nearest(const ResampleRule& rule, const Attributes& attributes, const T& extrapolation, Inputs in, Outputs out) {
  if (out[0].elements() == 0) return kOk;
  const auto x = in[0].span<const T>();
  std::vector<T> data(x.begin(), x.end());
  const Fault fault = resample_all<T>(rule, attributes, in, out[0].shape, extrapolation, data, [](const ResampleTaps& taps) {
    return [&taps](const auto& source, int64_t i) { return source(taps.index[static_cast<size_t>(i)]); };
  });
  if (!fault) std::copy(data.begin(), data.end(), out[0].as<T>());
  return fault;
}

/// A sum that misses a whole number by no more than rounding errors counts as that number.
template <class T>
T rounded(double value) {
  if constexpr (kIsFloatKind<T>) return kernels::cast<T>(value);
  return kernels::cast<T>(value + std::copysign(1e-6, value));
}

template <class T>
Fault run_weighted(const ResampleRule& rule, const Attributes& attributes, Inputs in, Outputs out) {
  if (out[0].elements() == 0) return kOk;
  std::vector<double> data;
  for (const T& element : in[0].span<const T>()) data.push_back(static_cast<double>(load(element)));
  const Fault fault = resample_all<double>(rule, attributes, in, out[0].shape, rule.extrapolation, data, [](const ResampleTaps& taps) {
    return [&taps](const auto& source, int64_t i) {
      double sum = 0;
      for (auto k = static_cast<size_t>(i * taps.count); k < static_cast<size_t>((i + 1) * taps.count); ++k)
        sum += source(taps.index[k]) * taps.weight[k];
      return sum;
    };
  });
  if (!fault) std::transform(data.begin(), data.end(), out[0].as<T>(), rounded<T>);
  return fault;
}

}  // namespace

Prepared resize(const GenericDesc& desc, std::string& why) {
  const auto rule = resample_rule(desc.attributes, why);
  if (!rule) return nullptr;
  const DType dtype = desc.inputs[0].dtype;
  const bool nearest = rule->mode == ResampleMode::kNearest;
  if (nearest && rule->coordinates != ResampleCoordinates::kTfCropAndResize) {  // nothing is computed: strings will do
    return for_sizes(dtype, why, [&]<class T>(Element<T>) -> Prepared {
      return make_kernel([rule = *rule, attributes = desc.attributes](Stream&, Inputs in, Outputs out) -> Fault {
        return run_nearest<T>(rule, attributes, T{}, in, out);
      });
    });
  }
  return for_numbers(dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([rule = *rule, attributes = desc.attributes, nearest](Stream&, Inputs in, Outputs out) -> Fault {
      if (nearest) return run_nearest<T>(rule, attributes, kernels::cast<T>(rule.extrapolation), in, out);
      return run_weighted<T>(rule, attributes, in, out);
    });
  });
}

}  // namespace serin::kernels::ref
