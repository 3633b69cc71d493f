// math_bits.cc: the bits of integers: shifts, and, or, xor, not.

#include "kernels/ref/math_families.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

template <class F>
Prepared bits_of_two(const GenericDesc& desc, std::string& why, F f) {
  if (!same_dtype(desc, 0, 2)) return refuse_mixed(why);
  return for_integers(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([f](Stream&, Inputs in, Outputs out) -> Fault {
      const Shape& shape = out[0].shape;
      for_each<2>(shape, {broadcast_strides(in[0].shape, shape), broadcast_strides(in[1].shape, shape)}, [&](int64_t i, const auto& at) {
        const auto a = static_cast<wrap_t<T>>(in[0].as<const T>()[at[0]]), b = static_cast<wrap_t<T>>(in[1].as<const T>()[at[1]]);
        out[0].as<T>()[i] = static_cast<T>(f(a, b));
      });
      return kOk;
    });
  });
}

}  // namespace

/// Bits that leave are lost, zeros come in; a shift by the width or more leaves nothing.
Prepared bit_shift(const GenericDesc& desc, std::string& why) {
  const std::string direction = desc.attributes.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") return refuse(why, "direction is '" + direction + "', it must be LEFT or RIGHT");
  return bits_of_two(desc, why, [left = direction == "LEFT"](auto a, auto b) -> decltype(a) {
    if (b >= sizeof(a) * 8) return 0;
    return static_cast<decltype(a)>(left ? static_cast<uint64_t>(a) << b : static_cast<uint64_t>(a) >> b);
  });
}

Prepared bitwise_and(const GenericDesc& desc, std::string& why) {
  return bits_of_two(desc, why, [](auto a, auto b) { return a & b; });
}

Prepared bitwise_or(const GenericDesc& desc, std::string& why) {
  return bits_of_two(desc, why, [](auto a, auto b) { return a | b; });
}

Prepared bitwise_xor(const GenericDesc& desc, std::string& why) {
  return bits_of_two(desc, why, [](auto a, auto b) { return a ^ b; });
}

Prepared bitwise_not(const GenericDesc& desc, std::string& why) {
  if (!same_dtype(desc, 0, 1)) return refuse_mixed(why);
  return for_integers(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault {
      const auto x = in[0].span<const T>();
      for (size_t i = 0; i < x.size(); ++i) out[0].as<T>()[i] = static_cast<T>(~x[i]);
      return kOk;
    });
  });
}

}  // namespace serin::kernels::ref
