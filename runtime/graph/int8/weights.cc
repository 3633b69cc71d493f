// weights.cc: converts weights to bytes. The largest number of a channel becomes 127; -128 is not used, so that both sides reach equally
// far. The bytes are made when a kernel packs them, from the f32 weight that waits in its file.

#include "runtime/graph/int8/weights.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace serin::graph::int8 {
namespace {

constexpr float kLargest = 127;

struct Matrix {
  int64_t channels = 0, elements = 0;  ///< elements of a channel
  int64_t channel_step = 0, step = 0;
};

std::vector<float> scales_of(const Constant& weight, const Matrix& m, std::span<const double> least_scales) {
  std::vector<float> scales(static_cast<size_t>(m.channels), 0);
  const auto values = weight.span<float>();
  const auto grow = [&](int64_t c, int64_t i) {
    float& most = scales[static_cast<size_t>(c)];
    most = std::max(most, std::abs(values[static_cast<size_t>(c * m.channel_step + i * m.step)]));
  };
  if (m.step <= m.channel_step) {  // as they lie in memory
    for (int64_t c = 0; c < m.channels; ++c)
      for (int64_t i = 0; i < m.elements; ++i) grow(c, i);
  } else {
    for (int64_t i = 0; i < m.elements; ++i)
      for (int64_t c = 0; c < m.channels; ++c) grow(c, i);
  }
  for (size_t c = 0; c < scales.size(); ++c) {
    scales[c] /= kLargest;
    if (c < least_scales.size()) scales[c] = std::max(scales[c], static_cast<float>(least_scales[c]));
    if (!(scales[c] >= 1e-30f)) scales[c] = 1;  // a channel of zeros, or as good as
  }
  return scales;
}

std::byte byte_of(float value, float per_unit) {
  return static_cast<std::byte>(static_cast<int8_t>(std::lrintf(std::clamp(value * per_unit, -kLargest, kLargest))));
}

/// `channels_last`: how the bytes lie: [elements, channels], else [channels, elements].
ByteWeight quantised(const ConstantPtr& weight, const Shape& shape, const Matrix& m, std::span<const double> least_scales,
                     bool channels_last) {
  const std::vector<float> scales = scales_of(*weight, m, least_scales);
  std::vector<float> per_unit;
  per_unit.reserve(scales.size());
  for (const float scale : scales) per_unit.push_back(1 / scale);
  auto bytes =
      make_constant(DType::kInt8, shape, [weight, m, channels_last, per_unit = std::move(per_unit)](std::span<std::byte> to) -> Status {
        const auto from = weight->span<float>();
        size_t at = 0;
        for (int64_t outer = 0; outer < (channels_last ? m.elements : m.channels); ++outer) {
          for (int64_t inner = 0; inner < (channels_last ? m.channels : m.elements); ++inner) {
            const int64_t c = channels_last ? inner : outer, i = channels_last ? outer : inner;
            to[at++] = byte_of(from[static_cast<size_t>(c * m.channel_step + i * m.step)], per_unit[static_cast<size_t>(c)]);
          }
        }
        return {};
      });
  return {std::move(bytes), make_constant(DType::kFloat32, Shape{m.channels}, scales.data())};
}

}  // namespace

ByteWeight by_rows(const ConstantPtr& weight, std::span<const double> least_scales) {
  const int64_t channels = weight->shape[0], elements = weight->elements() / channels;
  return quantised(weight, weight->shape, {channels, elements, elements, 1}, least_scales, /*channels_last=*/false);
}

ByteWeight by_columns(const ConstantPtr& matrix, bool transposed, std::span<const double> least_scales) {
  const int64_t rows = matrix->shape[0], columns = matrix->shape[1];
  if (transposed) return quantised(matrix, Shape{columns, rows}, {rows, columns, columns, 1}, least_scales, /*channels_last=*/true);
  return quantised(matrix, matrix->shape, {columns, rows, 1, columns}, least_scales, /*channels_last=*/true);
}

}  // namespace serin::graph::int8
