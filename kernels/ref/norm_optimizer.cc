// norm_optimizer.cc: one step of training: Adagrad, Adam, Momentum. Operands: the rate R, the count T of updates so far, then for n tensors
// all X, all gradients G, and all states (one or two lists). Results: all new X, then all new states.

#include <cmath>

#include "kernels/ref/norm_families.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

/// What is updated for each element: x and its one or two states.
struct Element3 {
  double x, first, second;
};

/// update(rate, count) gives a function (x, gradient, states) -> new x and states.
template <class F>
Prepared optimizer(const GenericDesc& desc, std::string& why, size_t states, F update) {
  const size_t lists = 2 + states, count = desc.inputs.size() - 2;
  if (count % lists != 0 || desc.outputs.size() != count / lists * (1 + states))
    return refuse(why, "the operands do not come in lists of one length");
  const size_t n = count / lists;
  for (size_t i = 0; i < count; ++i) {
    if (!desc.has(2 + i) || desc.inputs[2 + i].dtype != desc.outputs[0].dtype) return refuse_mixed(why);
    if (!(desc.inputs[2 + i].shape == desc.inputs[2 + i % n].shape))
      return refuse(why, "a tensor and its gradient or state differ in shape");
  }
  return for_floats(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([=](Stream&, Inputs in, Outputs out) -> Fault {
      const auto step = update(scalar_of(&in[0]).value_or(0), scalar_of(&in[1]).value_or(0));
      for (size_t k = 0; k < n; ++k) {
        const auto source = [&](size_t list, size_t i) { return widen(in[2 + list * n + k].template as<const T>()[i]); };
        for (size_t i = 0; i < static_cast<size_t>(in[2 + k].elements()); ++i) {
          const Element3 next = step(source(0, i), source(1, i), source(2, i), states > 1 ? source(3, i) : 0.0);
          out[k].template as<T>()[i] = narrow<T>(next.x);
          out[n + k].template as<T>()[i] = narrow<T>(next.first);
          if (states > 1) out[2 * n + k].template as<T>()[i] = narrow<T>(next.second);
        }
      }
      return kOk;
    });
  });
}

}  // namespace

Prepared adagrad(const GenericDesc& desc, std::string& why) {
  const double decay = desc.attributes.number("decay_factor", 0), epsilon = desc.attributes.number("epsilon", 1e-6F);
  const double norm = desc.attributes.number("norm_coefficient", 0);
  return optimizer(desc, why, 1, [=](double rate, double count) {
    const double r = rate / (1 + count * decay);
    return [=](double x, double gradient, double squares, double) -> Element3 {
      const double g = norm * x + gradient, next = squares + g * g;
      return {x - r * g / (std::sqrt(next) + epsilon), next, 0};
    };
  });
}

Prepared adam(const GenericDesc& desc, std::string& why) {
  const double alpha = desc.attributes.number("alpha", 0.9F), beta = desc.attributes.number("beta", 0.999F);
  const double epsilon = desc.attributes.number("epsilon", 1e-6F), norm = desc.attributes.number("norm_coefficient", 0);
  const double norm_post = desc.attributes.number("norm_coefficient_post", 0);
  return optimizer(desc, why, 2, [=](double rate, double count) {
    const double r = count > 0 ? rate * std::sqrt(1 - std::pow(beta, count)) / (1 - std::pow(alpha, count)) : rate;
    return [=](double x, double gradient, double mean, double squares) -> Element3 {
      const double g = norm * x + gradient;
      const double next_mean = alpha * mean + (1 - alpha) * g, next_squares = beta * squares + (1 - beta) * g * g;
      return {(1 - norm_post) * (x - r * next_mean / (std::sqrt(next_squares) + epsilon)), next_mean, next_squares};
    };
  });
}

Prepared momentum(const GenericDesc& desc, std::string& why) {
  const std::string mode = desc.attributes.text("mode", "standard");
  if (mode != "standard" && mode != "nesterov") return refuse(why, "mode is '" + mode + "', it must be standard or nesterov");
  const double alpha = desc.attributes.number("alpha", 0), beta = desc.attributes.number("beta", 0);
  const double norm = desc.attributes.number("norm_coefficient", 0);
  return optimizer(desc, why, 1, [=, nesterov = mode == "nesterov"](double rate, double count) {
    const double gain = count > 0 ? beta : 1;
    return [=](double x, double gradient, double velocity, double) -> Element3 {
      const double g = norm * x + gradient, next = alpha * velocity + gain * g;
      return {x - rate * (nesterov ? g + alpha * next : next), next, 0};
    };
  });
}

}  // namespace serin::kernels::ref
