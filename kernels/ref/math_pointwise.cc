// math_pointwise.cc: Shrink and PRelu.

#include "kernels/ref/math_families.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

template <class C>
bool is_negative(C x) {
  if constexpr (std::is_unsigned_v<C>)
    return false;
  else
    return x < 0;
}

}  // namespace

/// Toward zero by `bias`, and zero within [-lambd, lambd]; integers have it, too. Computed in double.
Prepared shrink(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  const double bias = desc.attributes.number("bias", 0), lambd = desc.attributes.number("lambd", 0.5);
  return for_numbers(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) {
    return make_kernel([bias, lambd](Stream&, Inputs in, Outputs out) -> Fault {
      const auto elements = in[0].span<const T>();
      const auto y = out[0].span<T>();
      for (size_t i = 0; i < elements.size(); ++i) {
        const auto x = static_cast<double>(load(elements[i]));
        y[i] = kernels::cast<T>(x < -lambd ? x + bias : x > lambd ? x - bias : x != x ? x : 0);
      }
      return kOk;
    });
  });
}

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

}  // namespace serin::kernels::ref
