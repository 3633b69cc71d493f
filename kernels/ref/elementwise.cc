// elementwise.cc: Unary, Binary, Select: one element at a time through functors.h.

#include "kernels/indexing.h"
#include "kernels/ref/visit.h"

namespace serin::kernels::ref {

Prepared unary(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 1, why)) return nullptr;
  const Unary op = std::get<Unary>(desc.op);
  const DType expected = is_predicate(op.fn) ? DType::kBool : desc.inputs[0].dtype;
  if (desc.outputs[0].dtype != expected) return refuse(why, "output must be " + std::string(dtype_name(expected)));

  return visit_dtype(desc.inputs[0].dtype, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (std::is_void_v<T>) {
      return refuse_dtype(why, desc.inputs[0].dtype);
    } else {
      if (!unary_accepts<T>(op.fn)) return refuse_dtype(why, desc.inputs[0].dtype);
      return make_kernel([op](Stream&, Inputs in, Outputs out) -> Fault {
        const auto x = in[0].span<const T>();
        if (is_predicate(op.fn)) {
          const auto y = out[0].span<bool>();
          for (size_t i = 0; i < x.size(); ++i) y[i] = unary_predicate(op.fn, load(x[i]), op.alpha);
        } else if constexpr (std::is_same_v<T, bool>) {
          std::copy(x.begin(), x.end(), out[0].as<bool>());  // Identity
        } else {
          const auto y = out[0].span<T>();
          for (size_t i = 0; i < x.size(); ++i) y[i] = kernels::cast<T>(kernels::unary(op.fn, load(x[i]), op.alpha, op.beta));
        }
        return kOk;
      });
    }
  });
}

Prepared binary(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 2, why)) return nullptr;
  const BinaryFn fn = std::get<Binary>(desc.op).fn;
  const bool predicate = is_compare(fn) || is_logical(fn);
  const DType dtype = desc.inputs[0].dtype;
  if (desc.inputs[1].dtype != dtype) return refuse(why, "inputs differ in dtype");
  if (desc.outputs[0].dtype != (predicate ? DType::kBool : dtype)) return refuse(why, "output has the wrong dtype");

  return visit_dtype(dtype, [&]<class T>(Element<T>) -> Prepared {
    if constexpr (std::is_void_v<T>) {
      return refuse_dtype(why, dtype);
    } else {
      if (!binary_accepts<T>(fn)) return refuse_dtype(why, dtype);
      return make_kernel([fn, predicate](Stream&, Inputs in, Outputs out) -> Fault {
        const T* a = in[0].as<const T>();
        const T* b = in[1].as<const T>();
        const Shape& shape = out[0].shape;
        for_each<2>(shape, {broadcast_strides(in[0].shape, shape), broadcast_strides(in[1].shape, shape)}, [&](int64_t i, const auto& at) {
          if (predicate) {
            out[0].as<bool>()[i] = binary_predicate(fn, load(a[at[0]]), load(b[at[1]]));
          } else if constexpr (!std::is_same_v<T, bool>) {
            out[0].as<T>()[i] = kernels::cast<T>(kernels::binary(fn, load(a[at[0]]), load(b[at[1]])));
          }
        });
        return kOk;
      });
    }
  });
}

Prepared select(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 3, why)) return nullptr;
  if (desc.inputs[0].dtype != DType::kBool) return refuse(why, "the condition must be bool");
  if (!one_dtype(desc, 1)) return refuse(why, "inputs differ in dtype");

  return for_sizes(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault {
      const bool* condition = in[0].as<const bool>();
      const T* a = in[1].as<const T>();
      const T* b = in[2].as<const T>();
      T* y = out[0].as<T>();
      const Shape& shape = out[0].shape;
      for_each<3>(shape,
                  {broadcast_strides(in[0].shape, shape), broadcast_strides(in[1].shape, shape), broadcast_strides(in[2].shape, shape)},
                  [&](int64_t i, const auto& at) { y[i] = condition[at[0]] ? a[at[1]] : b[at[2]]; });
      return kOk;
    });
  });
}

}  // namespace serin::kernels::ref
