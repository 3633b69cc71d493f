// quant_conv.cc: QLinearConv with channels last: y[pixels, filters] = windows of the pixels times weights. A window is read from the input
// in place: one piece of memory (the channels of a pixel) for each of its cells. The offsets of the pieces are found once, at preparation.
//
//   few or odd channels   the image is copied into a padded one first; a piece is then a whole row of the window, which lies there without gaps
//   depthwise             no product at all: a loop over the taps
//
// Blocks of rows are large: each panel of weights is read from memory once for all of them, while the input stays in cache.

#include <algorithm>
#include <cstring>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/quant.h"
#include "kernels/indexing.h"
#include "kernels/make_kernel.h"

namespace serin::kernels::cpu {

namespace {

constexpr int64_t kRowsOfBlock = 384;
constexpr int64_t kRowsOfTile = 6;  // of a tile of sums in registers

/// One or two spatial axes as two.
struct Geometry {
  int64_t n, c, h, w, m, oh, ow, group;
  int64_t kh, kw, stride_h, stride_w, dilation_h, dilation_w, top, left, bottom, right;

  int64_t pixels() const { return oh * ow; }
};

std::optional<Geometry> geometry_of(const OpDesc& desc, std::string& why) {
  const Attributes& attributes = attributes_of(desc);
  const Shape &x = desc.inputs[0].shape, &weight = desc.inputs[3].shape, &y = desc.outputs[0].shape;
  const auto strides = attributes.integers("strides"), dilations = attributes.integers("dilations"), pads = attributes.integers("pads");
  const size_t axes = weight.rank() < 3 ? 0 : weight.rank() - 2;
  const bool fits = axes >= 1 && axes <= 2 && x.rank() == axes + 2 && y.rank() == axes + 2 && strides.size() == axes &&
                    dilations.size() == axes && pads.size() == 2 * axes;
  if (!fits || attributes.integer("channels_last", 0) == 0) {
    why = "only one or two spatial axes, channels last";
    return std::nullopt;
  }
  const bool two = axes == 2;
  const size_t last = axes - 1;
  Geometry g{};
  g.n = x[0], g.c = x.back(), g.m = weight[0], g.group = attributes.integer("group", 1);
  g.h = two ? x[1] : 1, g.w = x[axes], g.oh = two ? y[1] : 1, g.ow = y[axes];
  g.kh = two ? weight[2] : 1, g.kw = weight[axes + 1];
  g.stride_h = two ? strides[0] : 1, g.stride_w = strides[last];
  g.dilation_h = two ? dilations[0] : 1, g.dilation_w = dilations[last];
  g.top = two ? pads[0] : 0, g.left = pads[last], g.bottom = two ? pads[2] : 0, g.right = pads[axes + last];
  if (g.group < 1 || g.c % g.group != 0 || g.m % g.group != 0 || weight[1] != g.c / g.group || desc.outputs[0].shape.elements() == 0 ||
      weight.elements() == 0) {
    why = "an empty tensor, or groups that do not fit";
    return std::nullopt;
  }
  return g;
}

/// Where the pieces of each output pixel begin in an image, -1 for padding: [taps, parts of the weight, pixels].
std::vector<int32_t> offsets_of(const Geometry& g, int64_t parts = 1) {
  std::vector<int32_t> offsets;
  offsets.reserve(static_cast<size_t>(g.kh * g.kw * parts * g.pixels()));
  for (int64_t kh = 0; kh < g.kh; ++kh) {
    for (int64_t tap = 0; tap < g.kw * parts; ++tap) {
      const int64_t kw = tap / parts;
      for (int64_t pixel = 0; pixel < g.pixels(); ++pixel) {
        const int64_t h = pixel / g.ow * g.stride_h + kh * g.dilation_h - g.top, w = pixel % g.ow * g.stride_w + kw * g.dilation_w - g.left;
        const bool inside = h >= 0 && h < g.h && w >= 0 && w < g.w;
        offsets.push_back(inside ? static_cast<int32_t>((h * g.w + w) * g.c) : -1);
      }
    }
  }
  return offsets;
}

/// What the result is made of the sums.
struct Finish {
  std::vector<int32_t> bias;
  std::vector<float> scale;
  QuantTo to{};
  std::optional<QuantSum> sum;
  bool has_residual = false;
};

std::optional<Finish> finish_of(const OpDesc& desc, int64_t m, std::string& why) {
  const auto no = [&](const char* reason) {
    why = reason;
    return std::nullopt;
  };
  const bool sums = has_operand(desc, 12);
  const auto x_scale = known_scale(desc, 1), y_scale = known_scale(desc, 6);
  const auto to = known_target(desc, 7, sums ? desc.inputs[7].dtype : desc.outputs[0].dtype, has_relu(desc, "activation"));
  const TensorDesc& w_scale = desc.inputs[4];
  if (!x_scale || !y_scale || !to || !w_scale.constant || w_scale.dtype != DType::kFloat32)
    return no("a scale or zero point is not known at load");
  if (w_scale.shape.elements() != 1 && w_scale.shape.elements() != m) return no("the weight's scale does not fit it");
  Finish finish;
  finish.to = *to;
  const auto* scales = w_scale.constant.as<float>();
  for (int64_t j = 0; j < m; ++j) finish.scale.push_back(*x_scale * scales[w_scale.shape.elements() == 1 ? 0 : j] / *y_scale);
  finish.bias.assign(static_cast<size_t>(m), 0);
  if (has_operand(desc, 8)) {
    const TensorDesc& bias = desc.inputs[8];
    if (!bias.constant || bias.dtype != DType::kInt32 || bias.shape.elements() != m) return no("the bias is not known at load");
    std::memcpy(finish.bias.data(), bias.constant.as<int32_t>(), static_cast<size_t>(m) * sizeof(int32_t));
  }
  if (!sums) return finish;

  const auto sum_scale = known_scale(desc, 12);
  const auto sum_to = known_target(desc, 13, desc.outputs[0].dtype, has_relu(desc, "sum_activation"));
  finish.has_residual = has_operand(desc, 9);
  const auto residual_scale = finish.has_residual ? known_scale(desc, 10) : std::optional(0.f);
  const auto residual_zero = finish.has_residual ? known_zero(desc, 11) : std::optional(0);
  if (!sum_scale || !sum_to || !residual_scale || !residual_zero) return no("a scale or zero point of the sum is not known at load");
  if (finish.has_residual && (!is_byte(desc.inputs[9].dtype) || !(desc.inputs[9].shape == desc.outputs[0].shape)))
    return no("the residual is broadcast");
  QuantSum sum{};
  sum.residual_signed = finish.has_residual && desc.inputs[9].dtype == DType::kInt8;
  sum.residual_zero = *residual_zero;
  sum.residual_scale = *residual_scale / *sum_scale;
  sum.own_scale = *y_scale / *sum_scale;
  sum.to = *sum_to;
  const Attributes& attributes = attributes_of(desc);
  sum.again = attributes.has("again_scale");
  if (sum.again) {
    sum.again_scale = *sum_scale / static_cast<float>(attributes.number("again_scale", 1));
    sum.again_to = {static_cast<int32_t>(attributes.integer("again_zero", 0)), sum.to.low, sum.to.high};
    sum.again_to.low = desc.outputs[0].dtype == DType::kInt8 ? -128 : 0;
    if (has_relu(desc, "again_activation")) sum.again_to.low = std::max(sum.again_to.low, sum.again_to.zero);
  }
  finish.sum = sum;
  return finish;
}

class QuantConvKernel final : public Kernel {
 public:
  QuantConvKernel(const Quant& quant, const Geometry& g, Finish finish, bool is_signed, uint8_t zero)
      : quant_(quant), g_(g), finish_(std::move(finish)), is_signed_(is_signed), zero_(zero) {}

  /// Packs the weight, whose filters have these zero points; with few channels a piece is a row of the window.
  void pack(const OpDesc& desc, std::span<const int32_t> zeros, PrepareContext& context) {
    const int64_t c = g_.c / g_.group, cells = g_.kh * g_.kw, filters = g_.m / g_.group;
    depthwise_ = c == 1 && filters == 1;
    copies_ = !depthwise_ && (c % quant_.group != 0 || (c < 16 && g_.dilation_w == 1 && g_.group == 1));
    const TensorDesc& weight = desc.inputs[3];
    const int32_t zero = is_signed_ ? static_cast<int8_t>(zero_) + 128 : zero_;  // of the flipped bytes
    if (depthwise_) return pack_depthwise(weight, zeros);
    const int64_t parts = parts_of(weight.dtype, zeros);
    TensorDesc group = weight;
    group.shape[0] = filters;
    for (int64_t i = 0; i < g_.group; ++i) {
      const auto own_zeros = zeros.subspan(static_cast<size_t>(i * filters), static_cast<size_t>(filters));
      if (g_.group > 1) {
        group.constant = weight.constant.as<std::byte>() + i * filters * c * cells;
        group.constant_id = 0;
      }
      if (copies_) {
        TensorDesc moved = group;
        moved.constant = ConstantData([&] { return window_rows(group.constant.as<int8_t>(), filters, c, cells); });
        weights_.push_back(pack_weight(quant_, {g_.kh, g_.kw * c, filters, g_.kw * c, 1, c * cells}, moved, own_zeros, parts, context));
      } else {
        weights_.push_back(pack_weight(quant_, {cells, c, filters, 1, cells, c * cells}, group, own_zeros, parts, context));
      }
      for (int64_t j = 0; j < filters; ++j)
        finish_.bias[static_cast<size_t>(i * filters + j)] -= zero * weights_.back().column_sums[static_cast<size_t>(j)];
    }
    if (copies_) {
      Geometry padded = g_;
      padded.h = g_.h + g_.top + g_.bottom, padded.w = g_.w + g_.left + g_.right;
      padded.top = padded.left = padded.bottom = padded.right = 0;
      padded.kw = 1;
      offsets_ = offsets_of(padded, parts);
    } else {
      offsets_ = offsets_of(g_, parts);
    }
  }

  size_t scratch_bytes() const override {
    return copies_ ? static_cast<size_t>((g_.h + g_.top + g_.bottom) * (g_.w + g_.left + g_.right) * g_.c) + kSlack
                   : static_cast<size_t>(g_.c) + kSlack;
  }
  uint32_t packed_inputs() const override { return 1u << 3; }
  std::string_view name() const override { return quant_.name; }

  Fault run(Stream& stream, Inputs in, Outputs out) const override {
    auto* scratch = reinterpret_cast<uint8_t*>(stream.scratch);
    if (!copies_) std::memset(scratch, zero_, scratch_bytes());
    for (int64_t image = 0; image < g_.n; ++image) {
      const uint8_t* x = in[0].as<const uint8_t>() + image * g_.h * g_.w * g_.c;
      if (copies_) copy_padded(x, scratch);
      const int64_t at = image * g_.pixels() * g_.m;
      const uint8_t* residual = finish_.has_residual ? in[9].as<const uint8_t>() + at : nullptr;
      multiply(stream, copies_ ? scratch : x, scratch, residual, out[0].as<uint8_t>() + at);
    }
    return kOk;
  }

 private:
  static constexpr size_t kSlack = 64;  // a piece may be read up to a group past its end

  /// A weight is [m, c, kh, kw]. As rows of the window, (kw, c) is one index: moved into that order.
  static ConstantData::Held window_rows(const int8_t* weight, int64_t filters, int64_t c, int64_t cells) {
    auto rows = std::make_shared<std::vector<int8_t>>(static_cast<size_t>(filters * c * cells));
    for (int64_t j = 0; j < filters; ++j)
      for (int64_t p = 0; p < c; ++p)
        for (int64_t k = 0; k < cells; ++k) (*rows)[static_cast<size_t>((j * cells + k) * c + p)] = weight[(j * c + p) * cells + k];
    return {rows, reinterpret_cast<const std::byte*>(rows->data())};
  }

  void pack_depthwise(const TensorDesc& weight, std::span<const int32_t> zeros) {
    const auto* source = weight.constant.as<uint8_t>();
    const bool is_signed = weight.dtype == DType::kInt8;
    const int64_t cells = g_.kh * g_.kw;
    taps_.resize(static_cast<size_t>(cells * g_.c));
    for (int64_t c = 0; c < g_.c; ++c) {
      for (int64_t t = 0; t < cells; ++t) {
        const uint8_t byte = source[c * cells + t];
        const int32_t w = (is_signed ? static_cast<int8_t>(byte) : byte) - zeros[static_cast<size_t>(c)];
        taps_[static_cast<size_t>(t * g_.c + c)] = w;
        finish_.bias[static_cast<size_t>(c)] -= (is_signed_ ? static_cast<int8_t>(zero_) : zero_) * w;
      }
    }
    offsets_ = offsets_of(g_);
  }

  void copy_padded(const uint8_t* x, uint8_t* padded) const {
    const int64_t row = (g_.w + g_.left + g_.right) * g_.c;
    std::memset(padded, zero_, scratch_bytes());
    for (int64_t h = 0; h < g_.h; ++h)
      std::memcpy(padded + (h + g_.top) * row + g_.left * g_.c, x + h * g_.w * g_.c, static_cast<size_t>(g_.w * g_.c));
  }

  struct TaskSize {
    int64_t rows, panels;
  };

  /// Equal shares for all workers. Cut into rows first: the weight is then read from the common cache by all. Few rows do not divide well; the panels
  /// are divided then, and each worker reads the part of the weight that is its own.
  static TaskSize task_size(int64_t pixels, int64_t panels, int64_t workers) {
    const auto parts = [](int64_t whole, int64_t part) { return (whole + part - 1) / part; };
    const int64_t tiles = parts(pixels, kRowsOfTile);
    const int64_t rounds = parts(pixels, kRowsOfBlock * workers);
    const int64_t tiles_each = parts(tiles, rounds * workers), panels_each = parts(panels, workers);
    const bool divides_rows = tiles_each * rounds * panels <= parts(tiles, rounds) * rounds * panels_each;
    if (divides_rows) return {tiles_each * kRowsOfTile, panels};
    return {parts(tiles, rounds) * kRowsOfTile, panels_each};
  }

  void multiply(const Stream& stream, const uint8_t* base, const uint8_t* padding, const uint8_t* residual, uint8_t* y) const {
    const int64_t pixels = g_.pixels(), filters = g_.m / g_.group, c = g_.c / g_.group;
    const int64_t panels = depthwise_ ? 1 : (filters + quant_.panel_width - 1) / quant_.panel_width;
    const auto [rows, width] = task_size(pixels, panels, stream.workers ? stream.workers->count() : 1);
    const int64_t across = (panels + width - 1) / width;
    parallel_for(stream, (pixels + rows - 1) / rows * across, [&](int64_t task, int) {
      const int64_t first = task / across * rows, first_filter = task % across * width * quant_.panel_width;
      const int64_t last_filter = std::min(filters, first_filter + width * quant_.panel_width);
      QuantGemm gemm{.base = base,
                     .offsets = offsets_.data() + first,
                     .offset_step = pixels,
                     .row_step = 0,
                     .padding = padding,
                     .m = std::min(rows, pixels - first),
                     .n = 0,
                     .taps = 0,
                     .steps = 0,
                     .flip = is_signed_,
                     .panel = nullptr,
                     .columns = {},
                     .y = nullptr,
                     .y_row = g_.m,
                     .next = nullptr,
                     .next_bytes = 0};
      if (depthwise_) return run_depthwise(gemm, y + first * g_.m);
      for (int64_t group = 0; group < g_.group; ++group) {
        const PackedWeight& weight = weights_[static_cast<size_t>(group)];
        gemm.base = base + group * c;
        gemm.taps = weight.taps, gemm.steps = weight.steps;
        for (int64_t j = first_filter; j < last_filter; j += quant_.panel_width) {
          const int64_t column = group * filters + j;
          gemm.n = std::min(quant_.panel_width, filters - j);
          gemm.panel = weight.panel(j, quant_.panel_width);
          gemm.columns = {finish_.bias.data() + column, finish_.scale.data() + column};
          gemm.y = y + first * g_.m + column;
          const int64_t next = j + quant_.panel_width;
          gemm.next = next < last_filter ? weight.panel(next, quant_.panel_width) : nullptr;
          gemm.next_bytes = gemm.next ? weight.bytes(next, quant_.panel_width) : 0;
          store(gemm, residual ? residual + first * g_.m + column : nullptr);
        }
      }
    });
  }

  void store(const QuantGemm& gemm, const uint8_t* residual) const {
    if (!finish_.sum) return quant_.gemm_to_bytes(gemm, finish_.to, nullptr);
    QuantSum sum = *finish_.sum;
    sum.residual = residual;
    quant_.gemm_to_bytes(gemm, finish_.to, &sum);
  }

  void run_depthwise(QuantGemm gemm, uint8_t* y) const {
    gemm.n = g_.c;
    gemm.taps = g_.kh * g_.kw;
    gemm.panel = taps_.data();
    gemm.columns = {finish_.bias.data(), finish_.scale.data()};
    gemm.y = y;
    quant_.depthwise(gemm, finish_.to);
  }

  const Quant& quant_;
  const Geometry g_;
  Finish finish_;
  const bool is_signed_;
  const uint8_t zero_;  ///< as a byte of x
  bool depthwise_ = false;
  bool copies_ = false;
  std::vector<PackedWeight> weights_;  ///< one for each group
  std::vector<int32_t> taps_;          ///< [cells, c] where depthwise
  std::vector<int32_t> offsets_;
};

}  // namespace

std::unique_ptr<Kernel> quant_conv(const Quant& loops, const OpDesc& desc, PrepareContext& context, std::string& why) {
  if (desc.inputs.size() < 8 || desc.outputs.size() != 1) return refuse(why, "unexpected number of operands");
  for (const TensorDesc& operand : desc.inputs) {
    if (operand.bounded) return refuse(why, "the shape is known only at run time");
  }
  if (!is_byte(desc.inputs[0].dtype) || !is_byte(desc.inputs[3].dtype) || !is_byte(desc.outputs[0].dtype)) return refuse(why, "bytes only");
  if (!desc.inputs[3].constant) return refuse(why, "the weight is not known at load");
  const auto geometry = geometry_of(desc, why);
  if (!geometry) return nullptr;
  const auto zeros = known_zeros(desc, 3, 5, geometry->m);
  if (!zeros) return refuse(why, "the zero point of the weight is not known at load");
  const int64_t c = geometry->c / geometry->group;
  const bool depthwise = c == 1 && geometry->m == geometry->group;
  const Quant& fitting = loops_for(&loops, desc.inputs[3], *zeros);
  const Quant& quant = !depthwise && c % fitting.group == 0 ? fitting : loops;  // whole groups
  if (!depthwise && geometry->group > 1 && c % quant.group != 0) return refuse(why, "groups of " + std::to_string(c) + " channels");
  if (!depthwise && c % quant.group != 0 && geometry->dilation_w != 1) return refuse(why, "dilated, with few channels");
  if (geometry->h * geometry->w * geometry->c > INT32_MAX / 2) return refuse(why, "an image of more than a gigabyte");
  const auto zero = known_zero(desc, 2);
  if (!zero) return refuse(why, "the zero point is not known at load");
  auto finish = finish_of(desc, geometry->m, why);
  if (!finish) return nullptr;
  if (!scales_fit(finish->scale, c * geometry->kh * geometry->kw)) return refuse(why, "the scale of the result is very small");
  if (finish->sum) {
    const float ratios[] = {finish->sum->own_scale, finish->sum->residual_scale, finish->sum->again ? finish->sum->again_scale : 0.f};
    if (!scales_fit(ratios, 1)) return refuse(why, "the scale of the sum is very small");
  }
  if (depthwise && finish->sum) return refuse(why, "depthwise, with a sum after it");
  auto kernel = std::make_unique<QuantConvKernel>(quant, *geometry, std::move(*finish), desc.inputs[0].dtype == DType::kInt8,
                                                  static_cast<uint8_t>(*zero));
  kernel->pack(desc, *zeros, context);
  return kernel;
}

}  // namespace serin::kernels::cpu
