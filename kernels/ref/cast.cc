// cast.cc: Cast between any two element types; what happens to one element is in functors.h.

#include "kernels/ref/visit.h"

namespace serin::kernels::ref {

Prepared cast(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 1, why)) return nullptr;
  const DType from = desc.inputs[0].dtype;
  const DType to = desc.outputs[0].dtype;
  return visit_dtype(from, [&]<class S>(Element<S>) -> Prepared {
    return visit_dtype(to, [&]<class D>(Element<D>) -> Prepared {
      if constexpr (std::is_void_v<S> || std::is_void_v<D>) {
        return refuse(why, "no cast from " + std::string(dtype_name(from)) + " to " + std::string(dtype_name(to)));
      } else {
        return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault {
          const auto x = in[0].span<const S>();
          const auto y = out[0].span<D>();
          for (size_t i = 0; i < x.size(); ++i) y[i] = kernels::cast<D>(x[i]);
          return kOk;
        });
      }
    });
  });
}

}  // namespace serin::kernels::ref
