// math_pointwise.cc: functions of one element that have no UnaryFn of their own, and PRelu. Computed in double.

#include <cmath>

#include "kernels/ref/math_families.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

template <class T, class F>
Prepared elementwise_kernel(F f) {
  return make_kernel([f](Stream&, Inputs in, Outputs out) -> Fault {
    const auto x = in[0].span<const T>();
    const auto y = out[0].span<T>();
    for (size_t i = 0; i < x.size(); ++i) y[i] = kernels::cast<T>(f(static_cast<double>(load(x[i]))));
    return kOk;
  });
}

template <class F>
Prepared pointwise(const GenericDesc& desc, std::string& why, F f) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) { return elementwise_kernel<T>(f); });
}

/// A function without parameters.
template <auto kFunction>
Prepared plain(const GenericDesc& desc, std::string& why) {
  return pointwise(desc, why, kFunction);
}

/// max(0, x) + min(0, alpha (exp(x / alpha) - 1))
Prepared celu(const GenericDesc& desc, std::string& why) {
  const double alpha = desc.attributes.number("alpha", 1);
  return pointwise(desc, why, [alpha](double x) { return x > 0 ? x : x == 0 ? x : alpha * std::expm1(x / alpha); });
}

Prepared selu(const GenericDesc& desc, std::string& why) {
  const double alpha = desc.attributes.number("alpha", 1.67326319217681884765625);
  const double gamma = desc.attributes.number("gamma", 1.05070102214813232421875);
  return pointwise(desc, why, [alpha, gamma](double x) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); });
}

Prepared thresholded_relu(const GenericDesc& desc, std::string& why) {
  const double alpha = desc.attributes.number("alpha", 1);
  return pointwise(desc, why, [alpha](double x) { return x <= alpha ? 0 : x; });
}

/// Toward zero by `bias`, and zero within [-lambd, lambd]. The one function here that integers have, too.
Prepared shrink(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  const double bias = desc.attributes.number("bias", 0), lambd = desc.attributes.number("lambd", 0.5);
  return for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) {
    return elementwise_kernel<T>([=](double x) { return x < -lambd ? x + bias : x > lambd ? x - bias : x != x ? x : 0; });
  });
}

/// x tanh(softplus(x)) = x (n + 2) / (n + 2 + 2 / n) with n = exp(x) rewritten so that nothing cancels or overflows:
/// tanh(log(1 + e)) = (e^2 + 2 e) / (e^2 + 2 e + 2).
double mish(double x) {
  if (x > 30) return x;
  const double e = std::exp(x), n = e * (e + 2);
  return x * (n / (n + 2));
}

double softsign(double x) { return std::isinf(x) ? std::copysign(1, x) : x / (1 + std::fabs(x)); }

template <class C>
bool is_negative(C x) {
  if constexpr (std::is_unsigned_v<C>)
    return false;
  else
    return x < 0;
}

constexpr GenericRow kRows[] = {
    {"Acos", plain<[](double x) { return std::acos(x); }>},
    {"Acosh", plain<[](double x) { return std::acosh(x); }>},
    {"Asin", plain<[](double x) { return std::asin(x); }>},
    {"Asinh", plain<[](double x) { return std::asinh(x); }>},
    {"Atan", plain<[](double x) { return std::atan(x); }>},
    {"Atanh", plain<[](double x) { return std::atanh(x); }>},
    {"Celu", celu},
    {"Cosh", plain<[](double x) { return std::cosh(x); }>},
    {"Mish", plain<mish>},
    {"PRelu", prelu},
    {"Selu", selu},
    {"Shrink", shrink},
    {"Sinh", plain<[](double x) { return std::sinh(x); }>},
    {"Softsign", plain<softsign>},
    {"Tan", plain<[](double x) { return std::tan(x); }>},
    {"ThresholdedRelu", thresholded_relu},
};

}  // namespace

/// x where it is not negative, slope * x elsewhere. The slope broadcasts to x.
Prepared prelu(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 2)) return refuse_mixed(why);
  return for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault {
      const Shape &shape = out[0].shape, &slope = in[1].shape;
      if (!broadcasts_to(slope, shape)) return "slope " + slope.str() + " does not broadcast to " + shape.str();
      const T* x = in[0].as<const T>();
      const T* slopes = in[1].as<const T>();
      T* y = out[0].as<T>();
      for_each<1>(shape, {broadcast_strides(slope, shape)}, [&](int64_t i, const auto& at) {
        y[i] = is_negative(load(x[i])) ? kernels::cast<T>(kernels::binary(BinaryFn::kMul, load(x[i]), load(slopes[at[0]]))) : x[i];
      });
      return kOk;
    });
  });
}

std::span<const GenericRow> pointwise_kernels() { return kRows; }

}  // namespace serin::kernels::ref
