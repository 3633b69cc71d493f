// norms.cc: the normalisations other than LayerNorm and BatchNorm, in f32. Each task computes one group of elements, and the tasks run on
// all cores:
//
//   instance, group   y = x - mean; y = y * (scale / deviation) + bias       the variance is that of y, summed after the mean is known
//   mean, variance    the same without scale and bias, of a channel in all images
//   rms               y = x * (1 / root mean square) * scale                 a row at a time, which stays in the cache
//   lrn               y = x * exp(-beta log(bias + alpha / size * sum))      the sum of the squares of `size` neighbouring channels

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "kernels/cpu/generic.h"
#include "kernels/cpu/parallel.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

/// The loops that these kernels are made of.
struct Loops {
  ReduceRowsLoop mean, squares;
  BinaryLoop multiply, add;
  UnaryLoop exp, log;
  decltype(Simd::normalize) normalize;

  explicit Loops(const Simd& simd)
      : mean(simd.reduce_rows(ReduceFn::kMean)),
        squares(simd.reduce_rows(ReduceFn::kSumSquare)),
        multiply(simd.binary(BinaryFn::kMul)),
        add(simd.binary(BinaryFn::kAdd)),
        exp(simd.unary(UnaryFn::kExp)),
        log(simd.unary(UnaryFn::kLog)),
        normalize(simd.normalize) {}
};

/// Sums of many elements are taken in pieces of this many, joined in double: a float sum of a whole image would lose digits.
constexpr int64_t kPiece = 4096;

double mean_of(const Loops& loops, const float* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t piece = std::min(kPiece, n - i);
    float mean = 0;
    loops.mean(x + i, &mean, 1, piece);
    sum += static_cast<double>(mean) * static_cast<double>(piece);
  }
  return sum / static_cast<double>(n);
}

double mean_square_of(const Loops& loops, const float* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += kPiece) {
    float squares = 0;
    loops.squares(x + i, &squares, 1, std::min(kPiece, n - i));
    sum += static_cast<double>(squares);
  }
  return sum / static_cast<double>(n);
}

Prepared group_norm(const Simd& simd, const OpDesc& desc, int64_t groups, double epsilon, std::string& why) {
  const Shape& x = desc.inputs[0].shape;
  if (x.rank() < 2 || groups < 1 || x[1] % groups != 0) return refuse(why, "channels do not make groups");
  for (size_t i = 1; i < 3; ++i) {
    if (desc.inputs[i].shape.elements() != x[1]) return refuse(why, "scale and bias must have one value for each channel");
  }
  if (product(x, 2, x.rank()) < 4) return refuse(why, "fewer than 4 elements to a channel");
  return make_kernel([loops = Loops(simd), groups, epsilon](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Shape& shape = in[0].shape;
    const int64_t channels = shape[1] / groups, spatial = product(shape, 2, shape.rank()), n = channels * spatial;
    parallel_for(stream, shape[0] * groups, [&](int64_t group, int) {
      const float* source = in[0].as<const float>() + group * n;
      float* y = out[0].as<float>() + group * n;
      loops.normalize(source, y, n, static_cast<float>(mean_of(loops, source, n)), 1.f, 0.f);
      const double factor = 1 / std::sqrt(mean_square_of(loops, y, n) + epsilon);
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t channel = group % groups * channels + c;
        const auto scale = static_cast<float>(factor * static_cast<double>(in[1].as<const float>()[channel]));
        loops.normalize(y + c * spatial, y + c * spatial, spatial, 0.f, scale, in[2].as<const float>()[channel]);
      }
    });
    return kOk;
  });
}

/// Whether the reduced axes are some at the beginning and some at the end, with what is kept between them: where that begins and ends.
std::optional<std::pair<size_t, size_t>> kept_between(const Shape& shape, const std::vector<int64_t>& axes) {
  std::array<bool, Shape::kMaxRank> reduced{};
  for (const int64_t axis : axes) {
    const int64_t at = axis < 0 ? axis + static_cast<int64_t>(shape.rank()) : axis;
    if (at < 0 || at >= static_cast<int64_t>(shape.rank())) return std::nullopt;
    reduced[static_cast<size_t>(at)] = true;
  }
  size_t begin = 0, end = shape.rank();
  while (end > 0 && reduced[end - 1]) --end;
  while (begin < end && reduced[begin]) ++begin;
  for (size_t axis = begin; axis < end; ++axis) {
    if (reduced[axis]) return std::nullopt;
  }
  return std::pair(begin, end);
}

Prepared mean_variance_norm(const Simd& simd, const OpDesc& desc, const Attributes& attributes, std::string& why) {
  const Shape& x = desc.inputs[0].shape;
  const auto kept = kept_between(x, attributes.has("axes") ? attributes.integers("axes") : std::vector<int64_t>{0, 2, 3});
  if (!kept || product(x, kept->second, x.rank()) < 4) return refuse(why, "the averaged elements do not lie in runs of 4 or more");
  return make_kernel([loops = Loops(simd), kept = *kept](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Shape& shape = in[0].shape;  // [images, channels, n]
    const int64_t images = product(shape, 0, kept.first), channels = product(shape, kept.first, kept.second);
    const int64_t n = product(shape, kept.second, shape.rank());
    if (images == 0) return kOk;
    parallel_for(stream, channels, [&](int64_t channel, int) {
      const float* source = in[0].as<const float>() + channel * n;
      float* y = out[0].as<float>() + channel * n;
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < images; ++i) mean += mean_of(loops, source + i * channels * n, n);
      for (int64_t i = 0; i < images; ++i) {
        float* piece = y + i * channels * n;
        loops.normalize(source + i * channels * n, piece, n, static_cast<float>(mean / static_cast<double>(images)), 1.f, 0.f);
        variance += mean_square_of(loops, piece, n);
      }
      const auto factor = static_cast<float>(1 / (std::sqrt(variance / static_cast<double>(images)) + 1e-9));
      for (int64_t i = 0; i < images; ++i) loops.normalize(y + i * channels * n, y + i * channels * n, n, 0.f, factor, 0.f);
    });
    return kOk;
  });
}

Prepared rms_norm(const Simd& simd, const OpDesc& desc, const Attributes& attributes, std::string& why) {
  const Shape& x = desc.inputs[0].shape;
  const int64_t given = attributes.integer("axis", -1), axis = given < 0 ? given + static_cast<int64_t>(x.rank()) : given;
  if (axis < 0 || axis >= static_cast<int64_t>(x.rank())) return refuse(why, "axis out of range");
  const auto from = static_cast<size_t>(axis);
  if (desc.inputs[1].shape.elements() != product(x, from, x.rank()))
    return refuse(why, "the scale must have one value for each element of a row");
  const double epsilon = attributes.number("epsilon", 1e-5F);
  return make_kernel([loops = Loops(simd), from, epsilon](Stream& stream, Inputs in, Outputs out) -> Fault {
    const int64_t rows = product(in[0].shape, 0, from), n = product(in[0].shape, from, in[0].shape.rank());
    constexpr int64_t kRows = 8;  // to a task
    parallel_for(stream, (rows + kRows - 1) / kRows, [&](int64_t task, int) {
      for (int64_t row = task * kRows; row < std::min(rows, (task + 1) * kRows); ++row) {
        const float* source = in[0].as<const float>() + row * n;
        float* y = out[0].as<float>() + row * n;
        const auto factor = static_cast<float>(1 / std::sqrt(mean_square_of(loops, source, n) + epsilon));
        loops.multiply(source, false, &factor, true, y, n);
        loops.multiply(y, false, in[1].as<const float>(), false, y, n);
      }
    });
    return kOk;
  });
}

constexpr int64_t kColumns = 256;  ///< LRN holds the squares of so many elements of each channel at a time

struct Lrn {
  float alpha, beta, bias;  ///< alpha already divided by size
  int64_t before, after;
};

/// `n` neighbouring elements of each channel of an image, `stride` floats from channel to channel.
void lrn_columns(const Loops& loops, const Lrn& op, const float* x, float* y, int64_t channels, int64_t stride, int64_t n, float* squares) {
  for (int64_t c = 0; c < channels; ++c) loops.multiply(x + c * stride, false, x + c * stride, false, squares + c * n, n);
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t begin = std::max<int64_t>(0, c - op.before), end = std::min(channels - 1, c + op.after);
    float* sum = y + c * stride;
    std::copy_n(squares + begin * n, n, sum);
    for (int64_t k = begin + 1; k <= end; ++k) loops.add(sum, false, squares + k * n, false, sum, n);
    loops.normalize(sum, sum, n, 0.f, op.alpha, op.bias);
    loops.log(sum, sum, n, 0.f, 0.f);
    loops.normalize(sum, sum, n, 0.f, -op.beta, 0.f);
    loops.exp(sum, sum, n, 0.f, 0.f);
    loops.multiply(sum, false, x + c * stride, false, sum, n);
  }
}

Prepared lrn(const Simd& simd, const OpDesc& desc, const Attributes& attributes, int threads, std::string& why) {
  const int64_t size = attributes.integer("size", 0);
  if (desc.inputs[0].shape.rank() < 2 || size < 1) return refuse(why, "needs channels and a size");
  const Lrn op{static_cast<float>(attributes.number("alpha", 1e-4F) / static_cast<double>(size)),
               static_cast<float>(attributes.number("beta", 0.75)), static_cast<float>(attributes.number("bias", 1)), (size - 1) / 2,
               size / 2};
  const auto run = [loops = Loops(simd), op](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Shape& shape = in[0].shape;
    const int64_t channels = shape[1], spatial = product(shape, 2, shape.rank()), pieces = (spatial + kColumns - 1) / kColumns;
    parallel_for(stream, shape[0] * pieces, [&](int64_t task, int worker) {
      const int64_t first = task / pieces * channels * spatial + task % pieces * kColumns;
      const int64_t n = std::min(kColumns, spatial - task % pieces * kColumns);
      float* const squares = reinterpret_cast<float*>(stream.scratch) + worker * channels * std::min(kColumns, spatial);
      lrn_columns(loops, op, in[0].as<const float>() + first, out[0].as<float>() + first, channels, spatial, n, squares);
    });
    return kOk;
  };
  const Shape& bound = desc.inputs[0].shape;
  const int64_t squares = bound[1] * std::min(kColumns, product(bound, 2, bound.rank()));
  return make_kernel(run, {.scratch_bytes = static_cast<size_t>(threads * squares) * sizeof(float)});
}

}  // namespace

Prepared norms(const Simd& simd, const OpDesc& desc, PrepareContext& context, std::string& why) {
  const auto& [name, attributes] = std::get<Generic>(desc.op);
  const bool instance = name == "InstanceNormalization", group = name == "GroupNormalization";
  const bool mean_variance = name == "MeanVarianceNormalization";
  if (!instance && !group && !mean_variance && name != "RMSNormalization" && name != "LRN") return refuse(why, "not one of these norms");
  if (!is_f32(desc, why)) return nullptr;
  if (name == "RMSNormalization") return rms_norm(simd, desc, attributes, why);
  if (mean_variance) return mean_variance_norm(simd, desc, attributes, why);
  if (name == "LRN") return lrn(simd, desc, attributes, std::max(1, context.threads), why);
  const int64_t channels = desc.inputs[0].shape.rank() < 2 ? 0 : desc.inputs[0].shape[1];
  return group_norm(simd, desc, instance ? channels : attributes.integer("num_groups", 0), attributes.number("epsilon", 1e-5F), why);
}

}  // namespace serin::kernels::cpu
