// norm_training.cc: operators that do more while a model is trained: BatchNormalization that measures its statistics, and Dropout.

#include <cmath>
#include <vector>

#include "kernels/ref/mersenne.h"
#include "kernels/ref/norm_families.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

struct ChannelMoments {
  double mean = 0, variance = 0;
};

template <class T>
ChannelMoments channel_moments(const TensorView& x, int64_t channel) {
  const AxisSpan span(x.shape, 1);
  const double n = static_cast<double>(span.outer * span.inner);
  ChannelMoments moments;
  const auto each = [&](auto&& f) {
    for (int64_t o = 0; o < span.outer; ++o) {
      for (int64_t j = 0; j < span.inner; ++j) f(widen(x.as<const T>()[(o * span.size + channel) * span.inner + j]));
    }
  };
  each([&](double value) { moments.mean += value / n; });
  each([&](double value) { moments.variance += (value - moments.mean) * (value - moments.mean) / n; });
  return moments;
}

}  // namespace

/// x [n, c, ...], scale, bias, mean, variance -> y, and the running mean and variance moved towards those of x
Prepared batch_norm_training(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  const Shape& x = desc.inputs[0].shape;
  if (x.rank() < 2) return refuse(why, "input must have rank 2 or more");
  for (size_t i = 1; i < 5; ++i) {
    if (desc.inputs[i].shape.elements() != x[1]) return refuse(why, "parameters must have one value for each channel");
  }
  const double epsilon = desc.attributes.number("epsilon", 1e-5F), momentum = desc.attributes.number("momentum", 0.9F);
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([=](Stream&, Inputs in, Outputs out) -> Fault {
      const AxisSpan span(in[0].shape, 1);
      const auto scale = numbers_of(in[1]), bias = numbers_of(in[2]), mean = numbers_of(in[3]), variance = numbers_of(in[4]);
      for (int64_t c = 0; c < span.size; ++c) {
        const auto at = static_cast<size_t>(c);
        const ChannelMoments now = channel_moments<T>(in[0], c);
        const double factor = scale[at] / std::sqrt(now.variance + epsilon);
        for (int64_t i = 0; i < span.outer * span.inner; ++i) {
          const int64_t element = (i / span.inner * span.size + c) * span.inner + i % span.inner;
          out[0].as<T>()[element] = narrow<T>((widen(in[0].as<const T>()[element]) - now.mean) * factor + bias[at]);
        }
        if (out.size() > 1 && out[1].data) store_number(out[1], c, mean[at] * momentum + now.mean * (1 - momentum));
        if (out.size() > 2 && out[2].data) store_number(out[2], c, variance[at] * momentum + now.variance * (1 - momentum));
      }
      return kOk;
    });
  });
}

/// x, ratio?, training_mode? -> y, mask?. Nothing is dropped unless training_mode says so; then the seed decides what.
Prepared dropout(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  const auto seed = static_cast<uint32_t>(desc.attributes.integer("seed", 0));
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([seed](Stream&, Inputs in, Outputs out) -> Fault {
      const double ratio = scalar_of(operand(in, 1)).value_or(0.5);
      const bool training = scalar_of(operand(in, 2)).value_or(0) != 0;
      if (training && !(ratio >= 0 && ratio < 1)) return "ratio is " + std::to_string(ratio) + ", it must be at least 0 and less than 1";
      RandomState state(seed);
      const auto x = in[0].span<const T>();
      for (size_t i = 0; i < x.size(); ++i) {
        const bool kept = !training || ratio == 0 || state.uniform() >= ratio;
        out[0].as<T>()[i] = !kept ? kernels::cast<T>(0) : training ? narrow<T>(widen(x[i]) / (1 - ratio)) : x[i];
        if (out.size() > 1 && out[1].data) store_number(out[1], static_cast<int64_t>(i), kept);
      }
      return kOk;
    });
  });
}

}  // namespace serin::kernels::ref
