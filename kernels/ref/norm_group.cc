// norm_group.cc: InstanceNormalization and GroupNormalization: x [n, c, ...] is normalised over its spatial axes and the channels of a
// group. In an instance norm each channel is a group.

#include <cmath>

#include "kernels/ref/norm_families.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

template <class T>
Fault run_group_norm(int64_t groups, double epsilon, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;
  const int64_t channels = x[1], spatial = product(x, 2, x.rank());
  if (groups < 1 || channels % groups != 0) return std::to_string(channels) + " channels do not make " + std::to_string(groups) + " groups";
  const int64_t n = channels / groups * spatial, parameters = in[1].elements();
  if (in[2].elements() != parameters || parameters < 1 || channels % parameters != 0) return "scale and bias must fit the channels";
  for (int64_t g = 0; g < x[0] * groups; ++g) {
    const T* source = in[0].as<const T>() + g * n;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) sum += widen(source[i]);
    const double mean = sum / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) squares += (widen(source[i]) - mean) * (widen(source[i]) - mean);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + epsilon);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t channel = g % groups * (channels / groups) + i / spatial;
      const int64_t at = channel * parameters / channels;  // one for each channel, or (opset 18) for each group
      const double scale = widen(in[1].as<const T>()[at]), bias = widen(in[2].as<const T>()[at]);
      out[0].as<T>()[g * n + i] = narrow<T>((widen(source[i]) - mean) * factor * scale + bias);
    }
  }
  return kOk;
}

Prepared prepare(const GenericDesc& desc, std::string& why, int64_t groups) {
  if (!same_dtype(desc, 0, 3)) return refuse_mixed(why);
  const double epsilon = desc.attributes.number("epsilon", 1e-5F);
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([=](Stream&, Inputs in, Outputs out) -> Fault { return run_group_norm<T>(groups, epsilon, in, out); });
  });
}

}  // namespace

Prepared instance_norm(const GenericDesc& desc, std::string& why) {
  if (desc.inputs[0].shape.rank() < 2) return refuse(why, "input must have rank 2 or more");
  return prepare(desc, why, std::max<int64_t>(1, desc.inputs[0].shape[1]));
}

Prepared group_norm(const GenericDesc& desc, std::string& why) {
  if (desc.inputs[0].shape.rank() < 2) return refuse(why, "input must have rank 2 or more");
  return prepare(desc, why, desc.attributes.integer("num_groups", 0));
}

}  // namespace serin::kernels::ref
