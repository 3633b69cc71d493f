// norm_layer.cc: LayerNormalization that returns its statistics, or whose parameters broadcast, and RMSNormalization. The axes from `axis`
// on are normalised; scale and bias broadcast to them. The common LayerNormalization is a kind of its own (norm.cc).

#include <cmath>

#include "kernels/ref/norm_families.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

struct RowNorm {
  size_t axis;
  double epsilon;
  bool centred;  ///< around the mean: LayerNormalization; around 0: RMSNormalization
};

struct Moments {
  double mean = 0, inverse_deviation = 0;
};

template <class T>
Moments moments_of(const T* x, int64_t n, const RowNorm& op) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; op.centred && i < n; ++i) sum += widen(x[i]);
  const double mean = op.centred ? sum / static_cast<double>(n) : 0;
  for (int64_t i = 0; i < n; ++i) squares += (widen(x[i]) - mean) * (widen(x[i]) - mean);
  return {mean, 1 / std::sqrt(squares / static_cast<double>(n) + op.epsilon)};
}

template <class T>
Fault run_row_norm(const RowNorm& op, Inputs in, Outputs out) {
  const Shape& x = in[0].shape;
  Shape row(x.dims().subspan(op.axis));
  const int64_t n = row.elements(), rows = product(x, 0, op.axis);
  const TensorView* bias = operand(in, 2);
  const Shape bias_shape = bias ? bias->shape : Shape{};
  if (!broadcasts_to(in[1].shape, row) || !broadcasts_to(bias_shape, row)) return "scale and bias must broadcast to " + row.str();
  const Strides scales = broadcast_strides(in[1].shape, row), biases = broadcast_strides(bias_shape, row);
  for (int64_t r = 0; r < rows; ++r) {
    const T* source = in[0].as<const T>() + r * n;
    T* target = out[0].as<T>() + r * n;
    const Moments moments = moments_of(source, n, op);
    for_each<2>(row, {scales, biases}, [&](int64_t i, const auto& at) {
      const double normal = (widen(source[i]) - moments.mean) * moments.inverse_deviation;
      target[i] = narrow<T>(normal * widen(in[1].as<const T>()[at[0]]) + (bias ? widen(bias->as<const T>()[at[1]]) : 0.0));
    });
    if (out.size() > 1 && out[1].data) store_number(out[1], r, moments.mean);
    if (out.size() > 2 && out[2].data) store_number(out[2], r, moments.inverse_deviation);
  }
  return kOk;
}

Prepared row_norm(const GenericDesc& desc, std::string& why, bool centred) {
  if (!same_dtype(desc, 0, 3)) return refuse_mixed(why);
  const auto axis = resolve_axis(desc.attributes.integer("axis", -1), desc.inputs[0].shape);
  if (!axis) return refuse(why, "axis is out of range for " + desc.inputs[0].shape.str());
  const RowNorm op{*axis, desc.attributes.number("epsilon", 1e-5F), centred};
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([op](Stream&, Inputs in, Outputs out) -> Fault { return run_row_norm<T>(op, in, out); });
  });
}

}  // namespace

/// x, scale, bias? -> y, mean?, 1 / deviation?
Prepared layer_norm_with_statistics(const GenericDesc& desc, std::string& why) { return row_norm(desc, why, true); }

/// x, scale -> y
Prepared rms_norm(const GenericDesc& desc, std::string& why) { return row_norm(desc, why, false); }

}  // namespace serin::kernels::ref
