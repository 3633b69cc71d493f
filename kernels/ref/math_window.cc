// math_window.cc: windows of signal processing, and the filter bank between frequencies and the Mel scale. All made from a few numbers, so
// they are nearly always folded at load.

#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/ref/math_families.h"
#include "kernels/ref/typed.h"

namespace serin::kernels::ref {

namespace {

/// a0 - a1 cos(x) + a2 cos(2 x), x over one period of `size` elements (periodic) or with both ends equal.
struct Cosines {
  double a0, a1, a2;
};

template <Cosines kCosines>
Prepared window(const GenericDesc& desc, std::string& why) {
  const bool periodic = desc.attributes.integer("periodic", 1) != 0;
  return for_numbers(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([periodic](Stream&, Inputs in, Outputs out) -> Fault {
      const auto size = integer_of(operand(in, 0));
      if (!size || *size != out[0].elements()) return "size does not match the output";
      const double period = static_cast<double>(std::max<int64_t>(1, periodic ? *size : *size - 1));
      for (int64_t i = 0; i < *size; ++i) {
        const double x = 2 * std::numbers::pi * static_cast<double>(i) / period;
        out[0].as<T>()[i] = kernels::cast<T>(kCosines.a0 - kCosines.a1 * std::cos(x) + kCosines.a2 * std::cos(2 * x));
      }
      return kOk;
    });
  });
}

/// The frequency bins at which the triangles of the Mel scale begin, peak and end.
std::vector<int64_t> mel_edges(int64_t bins, int64_t dft_length, double sample_rate, double lowest, double highest) {
  const double low = 2595 * std::log10(1 + lowest / 700), high = 2595 * std::log10(1 + highest / 700);
  const double step = (high - low) / static_cast<double>(bins + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + low) / 2595) - 1);
    edges.push_back(kernels::cast<int64_t>(std::floor(static_cast<double>(dft_length + 1) * hertz / sample_rate)));
  }
  return edges;
}

/// num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz -> [dft_length / 2 + 1, num_mel_bins]
template <class T>
Fault mel_weights(Inputs in, Outputs out) {
  const auto bins = integer_of(&in[0]), dft_length = integer_of(&in[1]);
  const auto rate = scalar_of(&in[2]), lowest = scalar_of(&in[3]), highest = scalar_of(&in[4]);
  if (!bins || !dft_length || !rate || !lowest || !highest) return "operands must be single numbers";
  const int64_t rows = out[0].shape[0];
  if (*bins != out[0].shape[1] || *dft_length / 2 + 1 != rows) return "the output does not have the shape that the operands ask for";
  std::fill_n(out[0].as<T>(), out[0].elements(), kernels::cast<T>(0));
  const std::vector<int64_t> edges = mel_edges(*bins, *dft_length, *rate, *lowest, *highest);
  for (const int64_t edge : edges) {
    if (edge < 0 || edge >= rows) return "the edges in hertz lie outside of the spectrum";
  }
  const auto put = [&](int64_t row, int64_t bin, double value) { out[0].as<T>()[row * *bins + bin] = kernels::cast<T>(value); };
  for (int64_t i = 0; i < *bins; ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t begin = edges[at], peak = edges[at + 1], end = edges[at + 2];
    if (begin == peak) put(peak, i, 1);
    for (int64_t row = begin; begin != peak && row <= peak; ++row)
      put(row, i, static_cast<double>(row - begin) / static_cast<double>(peak - begin));
    for (int64_t row = peak; row < end; ++row) put(row, i, static_cast<double>(end - row) / static_cast<double>(end - peak));
  }
  return kOk;
}

Prepared mel_weight_matrix(const GenericDesc& desc, std::string& why) {
  return for_numbers(desc.outputs[0].dtype, why, [&]<class T>(Element<T>) -> Prepared {
    return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault { return mel_weights<T>(in, out); });
  });
}

constexpr GenericRow kWindowRows[] = {
    {"BlackmanWindow", window<Cosines{0.42, 0.5, 0.08}>},
    {"HammingWindow", window<Cosines{25.0 / 46, 21.0 / 46, 0}>},
    {"HannWindow", window<Cosines{0.5, 0.5, 0}>},
    {"MelWeightMatrix", mel_weight_matrix},
};

}  // namespace

std::span<const GenericRow> window_kernels() { return kWindowRows; }

}  // namespace serin::kernels::ref
