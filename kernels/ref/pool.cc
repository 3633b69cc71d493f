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
  const Shape x = channels_first(in[0].shape, op.channels_last);   // [n, c, spatial...]
  const Shape y = channels_first(out[0].shape, op.channels_last);  // [n, c, spatial...]
  const int64_t x_spatial = product(x, 2, x.rank());
  const int64_t y_spatial = product(y, 2, y.rank());
  const int64_t cells = windows.cells(), channels = y[1];
  const int64_t pixel = op.channels_last ? channels : 1;  // from one to the next

  for (int64_t i = 0; i < y.elements(); ++i) {
    const int64_t o = op.channels_last ? i / channels % y_spatial : i % y_spatial;
    const T* source = in[0].as<const T>() +
                      (op.channels_last ? i / (y_spatial * channels) * x_spatial * channels + i % channels : i / y_spatial * x_spatial);
    compute_t<T> best = load(lowest<T>());
    sum_t<T> sum = 0;
    int64_t count = 0;
    for (int64_t k = 0; k < cells; ++k) {
      const Windows::Cell cell = windows.cell(x, y, o, k);
      count += op.count_include_pad ? cell.in_padding : cell.inside;
      if (!cell.inside) continue;
      best = maximum(load(source[cell.offset * pixel]), best);
      sum = kernels::binary(BinaryFn::kAdd, sum, widen(source[cell.offset * pixel]));
    }
    const T mean = narrow<T>(count == 0 ? sum_t<T>(0) : divide(sum, static_cast<sum_t<T>>(count)));
    out[0].as<T>()[i] = op.average ? mean : kernels::cast<T>(best);
  }
  return kOk;
}

}  // namespace

Prepared pool(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 1, why)) return nullptr;
  const Pool& op = std::get<Pool>(desc.op);
  if (!one_dtype(desc)) return refuse(why, "input and output differ in dtype");
  const Windows windows{op.kernel, op.strides, op.dilations, op.pads};
  if (desc.inputs[0].shape.rank() < 2 || !windows.fits(channels_first(desc.inputs[0].shape, op.channels_last)))
    return refuse(why, "kernel, strides, dilations and pads do not match the input's spatial axes");
  return for_numbers(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([op, windows](Stream&, Inputs in, Outputs out) -> Fault { return run<T>(op, windows, in, out); });
  });
}

}  // namespace serin::kernels::ref
