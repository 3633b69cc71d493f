// math_random.cc: Bernoulli, RandomNormal, RandomUniform, the same with the shape of an operand, Multinomial. Each run starts from the
// node's seed, so that equal requests get equal answers. Where the file has no seed, the importer derives one from the node's name.

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/ref/math_families.h"
#include "kernels/ref/mersenne.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

uint32_t seed_of(const GenericDesc& desc) {
  return static_cast<uint32_t>(kernels::cast<int64_t>(desc.attributes.number("seed", 0)));  // modulo 2^32, as NumPy's legacy seeding
}

/// Fills the output with draw(state).
template <class F>
Prepared fill(const GenericDesc& desc, std::string& why, F draw) {
  const uint32_t seed = seed_of(desc);
  return for_floats(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([seed, draw](Stream&, Inputs, Outputs out) -> Fault {
      RandomState state(seed);
      for (T& y : out[0].span<T>()) y = kernels::cast<T>(draw(state));
      return kOk;
    });
  });
}

Prepared random_uniform(const GenericDesc& desc, std::string& why) {
  const double low = desc.attributes.number("low", 0), high = desc.attributes.number("high", 1);
  return fill(desc, why, [low, high](RandomState& state) { return low + (high - low) * state.uniform(); });
}

Prepared random_normal(const GenericDesc& desc, std::string& why) {
  const double mean = desc.attributes.number("mean", 0), scale = desc.attributes.number("scale", 1);
  return fill(desc, why, [mean, scale](RandomState& state) { return mean + scale * state.normal(); });
}

/// x: the probability of a one, for each element.
Prepared bernoulli(const GenericDesc& desc, std::string& why) {
  const uint32_t seed = seed_of(desc);
  return for_floats(desc.inputs[0].dtype, why, [&]<class S>(Element<S>) -> Prepared {
    return visit_dtype(desc.outputs[0].dtype, [&]<class D>(Element<D>) -> Prepared {
      if constexpr (std::is_void_v<D>) {
        return refuse_dtype(why, desc.outputs[0].dtype);
      } else {
        return make_kernel([seed](Stream&, Inputs in, Outputs out) -> Fault {
          RandomState state(seed);
          const auto p = in[0].span<const S>();
          for (size_t i = 0; i < p.size(); ++i) out[0].as<D>()[i] = kernels::cast<D>(state.bernoulli(widen(p[i])) ? 1 : 0);
          return kOk;
        });
      }
    });
  });
}

/// x [batch, classes]: logarithms of probabilities that need not add up to one -> `samples` class numbers for each row.
Prepared multinomial(const GenericDesc& desc, std::string& why) {
  const uint32_t seed = seed_of(desc);
  if (desc.inputs[0].shape.rank() != 2) return refuse(why, "needs [batch, classes], got " + desc.inputs[0].shape.str());
  return for_floats(desc.inputs[0].dtype, why, [&]<class S>(Element<S>) -> Prepared {
    return for_integers(desc.outputs[0].dtype, why, [&]<class D>(Element<D>) -> Prepared {
      return make_kernel([seed](Stream&, Inputs in, Outputs out) -> Fault {
        const int64_t batch = in[0].shape[0], classes = in[0].shape[1], samples = out[0].shape[1];
        if (classes == 0 && batch * samples != 0) return "there are no classes to draw from";
        RandomState state(seed);
        std::vector<double> below(static_cast<size_t>(classes));  // sums of probabilities
        for (int64_t row = 0; row < batch; ++row) {
          const S* x = in[0].as<const S>() + row * classes;
          double largest = widen(x[0]), sum = 0;
          for (int64_t i = 1; i < classes; ++i) largest = std::max(largest, widen(x[i]));
          for (int64_t i = 0; i < classes; ++i) below[static_cast<size_t>(i)] = sum += std::exp(widen(x[i]) - largest);
          for (int64_t i = 0; i < samples; ++i) {
            const auto chosen = std::upper_bound(below.begin(), below.end(), state.uniform() * sum) - below.begin();
            out[0].as<D>()[row * samples + i] = static_cast<D>(std::min<int64_t>(chosen, classes - 1));
          }
        }
        return kOk;
      });
    });
  });
}

constexpr GenericRow kRandomRows[] = {
    {"Bernoulli", bernoulli},          {"Multinomial", multinomial},
    {"RandomNormal", random_normal},   {"RandomNormalLike", random_normal},
    {"RandomUniform", random_uniform}, {"RandomUniformLike", random_uniform},
};

}  // namespace

std::span<const GenericRow> random_kernels() { return kRandomRows; }

}  // namespace serin::kernels::ref
