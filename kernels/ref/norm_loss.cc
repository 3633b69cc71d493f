// norm_loss.cc: NegativeLogLikelihoodLoss, and SoftmaxCrossEntropyLoss, which is the same after a LogSoftmax.
//
//   loss[n, d...] = -weight[target] * log_prob[n, target, d...]     0 where the target is ignore_index
//   none: that; sum: its sum; mean: the sum divided by that of the weights used

#include <cmath>
#include <vector>

#include "kernels/ref/norm_families.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

enum class Reduction : uint8_t { kNone, kMean, kSum };

struct Loss {
  Reduction reduction = Reduction::kMean;
  std::optional<int64_t> ignored;
};

std::optional<Loss> loss_of(const GenericDesc& desc, std::string& why) {
  Loss loss;
  const std::string reduction = desc.attributes.text("reduction", "mean");
  if (reduction == "none")
    loss.reduction = Reduction::kNone;
  else if (reduction == "sum")
    loss.reduction = Reduction::kSum;
  else if (reduction != "mean") {
    why = "reduction is '" + reduction + "', it must be none, mean or sum";
    return std::nullopt;
  }
  if (desc.attributes.has("ignore_index")) loss.ignored = desc.attributes.integer("ignore_index", 0);
  return loss;
}

int64_t target_at(const TensorView& targets, int64_t i) {
  return targets.dtype == DType::kInt32 ? targets.as<const int32_t>()[i] : targets.as<const int64_t>()[i];
}

/// log_prob(n, class, j) gives the logarithm of a probability.
template <class T, class F>
Fault reduce_loss(const Loss& op, Inputs in, TensorView& out, F&& log_prob) {
  const AxisSpan span(in[0].shape, 1);
  const TensorView* weights = operand(in, 2);
  if (weights && weights->elements() != span.size)
    return "weight must have one value for each of " + std::to_string(span.size) + " classes";
  double sum = 0, used = 0;
  for (int64_t i = 0; i < span.outer * span.inner; ++i) {
    const int64_t target = target_at(in[1], i);
    double loss = 0;
    if (target != op.ignored) {
      if (target < 0 || target >= span.size) {
        return "target " + std::to_string(target) + " is not one of " + std::to_string(span.size) + " classes";
      }
      const double weight = weights ? widen(weights->as<const T>()[target]) : 1.0;
      loss = -weight * log_prob(i / span.inner, target, i % span.inner);
      used += weight;
    }
    if (op.reduction == Reduction::kNone) out.as<T>()[i] = narrow<T>(loss);
    sum += loss;
  }
  if (op.reduction != Reduction::kNone) *out.as<T>() = narrow<T>(op.reduction == Reduction::kMean ? sum / used : sum);
  return kOk;
}

/// The shapes that the loops rely on.
bool shapes_fit(const GenericDesc& desc, std::string& why) {
  const Shape &x = desc.inputs[0].shape, &target = desc.inputs[1].shape;
  const DType dtype = desc.inputs[1].dtype;
  if (dtype != DType::kInt32 && dtype != DType::kInt64) why = "the target must be i32 or i64";
  if (x.rank() < 2 || target.rank() + 1 != x.rank()) why = "scores " + x.str() + " and target " + target.str() + " do not fit";
  for (size_t axis = 0; why.empty() && axis < target.rank(); ++axis) {
    if (target[axis] != x[axis + (axis > 0)]) why = "scores " + x.str() + " and target " + target.str() + " do not fit";
  }
  if (desc.has(2) && desc.inputs[2].dtype != desc.inputs[0].dtype) why = "operands differ in dtype";
  return why.empty();
}

template <class T>
Fault run_softmax_cross_entropy(const Loss& op, Inputs in, Outputs out) {
  const AxisSpan span(in[0].shape, 1);
  std::vector<double> log_sum;  // of the exponentials of each line
  span.for_each_line([&](int64_t first) {
    const T* x = in[0].as<const T>() + first;
    double largest = span.size > 0 ? widen(x[0]) : 0, sum = 0;
    for (int64_t c = 1; c < span.size; ++c) largest = maximum(widen(x[c * span.inner]), largest);
    for (int64_t c = 0; c < span.size; ++c) sum += std::exp(widen(x[c * span.inner]) - largest);
    log_sum.push_back(largest + std::log(sum));
  });
  const auto log_prob = [&](int64_t n, int64_t c, int64_t j) {
    return widen(in[0].as<const T>()[(n * span.size + c) * span.inner + j]) - log_sum[static_cast<size_t>(n * span.inner + j)];
  };
  for (int64_t i = 0; out.size() > 1 && out[1].data && i < in[0].elements(); ++i) {
    out[1].as<T>()[i] = narrow<T>(log_prob(i / span.inner / span.size, i / span.inner % span.size, i % span.inner));
  }
  return reduce_loss<T>(op, in, out[0], log_prob);
}

}  // namespace

/// log probabilities [n, c, d...], target [n, d...], weight [c]? -> loss
Prepared negative_log_likelihood(const GenericDesc& desc, std::string& why) {
  const auto loss = loss_of(desc, why);
  if (!loss || !shapes_fit(desc, why)) return nullptr;
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([op = *loss](Stream&, Inputs in, Outputs out) -> Fault {
      const AxisSpan span(in[0].shape, 1);
      return reduce_loss<T>(op, in, out[0], [&](int64_t n, int64_t c, int64_t j) {
        return widen(in[0].as<const T>()[(n * span.size + c) * span.inner + j]);
      });
    });
  });
}

/// scores [n, c, d...], labels [n, d...], weight [c]? -> loss, log probabilities?
Prepared softmax_cross_entropy(const GenericDesc& desc, std::string& why) {
  const auto loss = loss_of(desc, why);
  if (!loss || !shapes_fit(desc, why)) return nullptr;
  return for_floats(desc.inputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([op = *loss](Stream&, Inputs in, Outputs out) -> Fault { return run_softmax_cross_entropy<T>(op, in, out); });
  });
}

}  // namespace serin::kernels::ref
