// pool.cc: Pool: the maximum or the mean of each window. Padding never is the maximum; it counts in the mean only if `count_include_pad`.

#include <limits>

#include "kernels/indexing.h"
#include "kernels/ref/visit.h"
#include "kernels/ref/windows.h"

namespace serin::kernels::ref {

namespace {

template <class T>
T lowest() {
  if constexpr (kIsFloatKind<T>)
    return kernels::cast<T>(-std::numeric_limits<float>::infinity());
  else
    return std::numeric_limits<T>::lowest();
}

template <class T>
Fault run(const Pool& op, const Windows& windows, Inputs in, Outputs out) {
  const TensorView& x = in[0];   // [n, c, spatial...]
  const TensorView& y = out[0];  // [n, c, spatial...]
  const int64_t x_spatial = product(x.shape, 2, x.shape.rank());
  const int64_t y_spatial = product(y.shape, 2, y.shape.rank());
  const int64_t cells = windows.cells();

  for (int64_t i = 0; i < y.elements(); ++i) {
    const T* source = x.as<const T>() + i / y_spatial * x_spatial;
    compute_t<T> best = load(lowest<T>());
    sum_t<T> sum = 0;
    int64_t count = 0;
    for (int64_t k = 0; k < cells; ++k) {
      const Windows::Cell cell = windows.cell(x.shape, y.shape, i % y_spatial, k);
      count += op.count_include_pad ? cell.in_padding : cell.inside;
      if (!cell.inside) continue;
      best = maximum(load(source[cell.offset]), best);
      sum = kernels::binary(BinaryFn::kAdd, sum, widen(source[cell.offset]));
    }
    const T mean = narrow<T>(count == 0 ? sum_t<T>(0) : divide(sum, static_cast<sum_t<T>>(count)));
    y.as<T>()[i] = op.average ? mean : kernels::cast<T>(best);
  }
  return kOk;
}

}  // namespace

Prepared pool(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 1, why)) return nullptr;
  const Pool& op = std::get<Pool>(desc.op);
  if (!one_dtype(desc)) return refuse(why, "input and output differ in dtype");
  const Windows windows{op.kernel, op.strides, op.dilations, op.pads};
  if (!windows.fits(desc.inputs[0].shape)) return refuse(why, "kernel, strides, dilations and pads do not match the input's spatial axes");
  return for_numbers(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([op, windows](Stream&, Inputs in, Outputs out) -> Fault { return run<T>(op, windows, in, out); });
  });
}

}  // namespace serin::kernels::ref
