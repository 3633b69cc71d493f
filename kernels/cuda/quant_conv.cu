// quant_conv.cu: ConvInteger and QLinearConv over one or two spatial axes, channels first or last.
//
// A convolution is a product of bytes (byte_tiles.h) whose rows are the windows of the pixels: k goes through the cells of a window and, innermost, the channels
// of a cell, so that with channels last 16 of k lie side by side. A cell in the padding brings the zero point: the difference is nothing. Groups of few channels
// (depthwise ones most of all) leave tiles empty: there a thread sums up a result by itself.

#include "kernels/cuda/byte_tiles.h"
#include "kernels/cuda/rows.h"
#include "kernels/indexing.h"

namespace serin::kernels::cuda {

namespace {

/// One axis has a leading one of size 1.
struct Geometry {
  int64_t h = 1, w = 1, kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, top = 0, left = 0;
  int64_t group_channels = 0, group_filters = 0, groups = 1;
  int64_t image_step = 0, pixel_step = 1, channel_step = 1;  ///< of x, in bytes
  Division filters, plane, row;                              ///< of y: its channels, its pixels, those of a row
  Division channels, cells_of_line;                          ///< of k: the channels of a cell, the cells of a line of the window
  bool channels_last = false;

  int64_t cells() const { return kernel_h * kernel_w; }
};

/// Where the window of a pixel begins in x.
struct Corner {
  int64_t image, h, w;
  __device__ Corner(const Geometry& g, int64_t row) {
    image = g.plane.quotient(row);
    const int64_t pixel = row - image * g.plane.d, line = g.row.quotient(pixel);
    h = line * g.stride_h - g.top;
    w = (pixel - line * g.row.d) * g.stride_w - g.left;
  }
};

/// The loader of byte_tiles.h: a product is a group.
struct ImageWindows {
  struct Place {
    const uint8_t* channels;  ///< of the group, at the image's first pixel
    int64_t h, w;
    uint32_t padding;  ///< four bytes of it
  };
  Geometry g;
  const uint8_t* x;
  ZeroPoints zero;
  int64_t k;
  uint32_t flip;
  int run;  ///< bytes of k that lie side by side and aligned: 16, 4 or 1

  __device__ Place place(int64_t group, int64_t row) const {
    const Corner corner(g, row);
    const uint32_t padding = (static_cast<uint32_t>(zero(0)) & 0xFFu) * 0x01010101u;
    return {x + corner.image * g.image_step + group * g.group_channels * g.channel_step, corner.h, corner.w, padding ^ flip};
  }
  /// Null in the padding.
  __device__ const uint8_t* find(const Place& place, int64_t at) const {
    const int64_t cell = g.channels.quotient(at), line = g.cells_of_line.quotient(cell);
    const int64_t h = place.h + line * g.dilation_h, w = place.w + (cell - line * g.kernel_w) * g.dilation_w;
    if (h < 0 || h >= g.h || w < 0 || w >= g.w) return nullptr;
    return place.channels + (h * g.w + w) * g.pixel_step + (at - cell * g.group_channels) * g.channel_step;
  }
  __device__ ByteChunk chunk(const Place& place, int64_t at) const {
    ByteChunk chunk;
    if (run == 16) {
      const uint8_t* const from = find(place, at);
      if (from) chunk = *reinterpret_cast<const ByteChunk*>(from);
      for (uint32_t& word : chunk.words) word = from ? word ^ flip : place.padding;
      return chunk;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (run == 4) {
        if (at + 4 * i >= k) continue;
        const uint8_t* const from = find(place, at + 4 * i);
        chunk.words[i] = from ? *reinterpret_cast<const uint32_t*>(from) ^ flip : place.padding;
        continue;
      }
      for (int byte = 0; byte < 4; ++byte) {
        if (at + 4 * i + byte >= k) continue;
        const uint8_t* const from = find(place, at + 4 * i + byte);
        const uint32_t value = (from ? *from ^ flip : place.padding) & 0xFFu;
        chunk.words[i] |= value << (8 * byte);
      }
    }
    return chunk;
  }
};

constexpr int kThreads = 128;

/// A thread for each result; weights as they come: [filters, channels of a group, cells].
__global__ void convolve_groups(Geometry g, int64_t results, const uint8_t* x, const uint8_t* weight, ZeroPoints x_zero, ZeroPoints w_zero,
                                bool x_signed, bool w_signed, ByteFinish finish, void* y) {
  for (int64_t i = first_element(); i < results; i += element_step()) {
    int64_t row = i, filter = 0;
    if (g.channels_last) {
      row = g.filters.quotient(i);
      filter = i - row * g.filters.d;
    } else {
      const int64_t line = g.plane.quotient(i), image = g.filters.quotient(line);
      filter = line - image * g.filters.d;
      row = image * g.plane.d + i - line * g.plane.d;
    }
    const Corner corner(g, row);
    const uint8_t* const channels = x + corner.image * g.image_step + filter / g.group_filters * g.group_channels * g.channel_step;
    const uint8_t* const weights = weight + filter * g.group_channels * g.kernel_h * g.kernel_w;
    const int x_middle = x_zero(0), w_middle = w_zero(filter);
    uint32_t sum = 0;
    for (int64_t a = 0; a < g.kernel_h; ++a) {
      const int64_t h = corner.h + a * g.dilation_h;
      if (h < 0 || h >= g.h) continue;
      for (int64_t b = 0; b < g.kernel_w; ++b) {
        const int64_t w = corner.w + b * g.dilation_w;
        if (w < 0 || w >= g.w) continue;
        const uint8_t* const pixel = channels + (h * g.w + w) * g.pixel_step;
        for (int64_t c = 0; c < g.group_channels; ++c) {
          const int value = as_number(pixel[c * g.channel_step], x_signed) - x_middle;
          const int factor = as_number(weights[(c * g.kernel_h + a) * g.kernel_w + b], w_signed) - w_middle;
          sum += static_cast<uint32_t>(value * factor);
        }
      }
    }
    finish.store(y, i, static_cast<int>(sum), row, filter);
  }
}

/// Axis of x and y: 0 the images, 1 the channels, from 2 on the spatial ones.
size_t axis_at(size_t axis, size_t rank, bool last) { return !last || axis == 0 ? axis : axis == 1 ? rank - 1 : axis - 1; }

std::optional<Geometry> geometry_of(const OpDesc& desc, size_t x_operand, size_t w_operand, std::string& why) {
  const auto& attributes = std::get<Generic>(desc.op).attributes;
  const Shape &x = desc.inputs[x_operand].shape, &weight = desc.inputs[w_operand].shape, &y = desc.outputs[0].shape;
  const auto strides = attributes.integers("strides"), dilations = attributes.integers("dilations"), pads = attributes.integers("pads");
  const size_t axes = weight.rank() - 2;
  const bool last = attributes.integer("channels_last", 0) != 0;
  if (weight.rank() < 3 || axes > 2 || x.rank() != weight.rank()) return why = "only one or two spatial axes", std::nullopt;
  if (strides.size() != axes || dilations.size() != axes || pads.size() != 2 * axes)
    return why = "strides, dilations or pads do not fit", std::nullopt;
  const auto of = [&](const Shape& shape, size_t axis) { return shape[axis_at(axis, shape.rank(), last)]; };
  Geometry g;
  g.channels_last = last;
  g.groups = attributes.integer("group", 1);
  g.group_channels = weight[1];
  const int64_t filters = weight[0];
  if (g.groups < 1 || filters % g.groups != 0 || of(x, 1) != g.group_channels * g.groups || of(y, 1) != filters)
    return why = "the groups do not fit the channels", std::nullopt;
  g.group_filters = filters / g.groups;
  const size_t inner = axes - 1;
  g.w = of(x, inner + 2), g.kernel_w = weight[inner + 2], g.stride_w = strides[inner], g.dilation_w = dilations[inner],
  g.left = pads[inner];
  if (axes == 2) g.h = of(x, 2), g.kernel_h = weight[2], g.stride_h = strides[0], g.dilation_h = dilations[0], g.top = pads[0];
  const int64_t channels = of(x, 1), rows = y.elements() / std::max<int64_t>(filters, 1), plane = y[0] == 0 ? 0 : rows / y[0];
  g.image_step = channels * g.h * g.w, g.pixel_step = last ? channels : 1, g.channel_step = last ? 1 : g.h * g.w;
  const int64_t results = y.elements() + 1, k = g.group_channels * g.kernel_h * g.kernel_w + kByteGroup;
  g.filters = Division(filters, results), g.plane = Division(plane, results), g.row = Division(of(y, inner + 2), results);
  g.channels = Division(g.group_channels, k), g.cells_of_line = Division(g.kernel_w, k);
  return g;
}

/// Prepared once: by tiles, or group by group.
struct Plan {
  Geometry g;
  size_t x, w, x_zero, w_zero;  ///< the operands
  bool by_tiles = true;
  int64_t results = 0;
  ByteProduct product;
  ByteLayout layout;
  std::shared_ptr<const PackedWeights::Buffer> packed;

  /// Last, when nothing refuses the operator any more.
  void pack(const OpDesc& desc, PrepareContext& context) {
    if (by_tiles && desc.inputs[w].constant) packed = pack_bytes(desc.inputs[w], layout, context);
  }
  KernelTraits traits() const { return {.scratch_bytes = by_tiles && !packed ? layout.bytes() : 0, .packed_inputs = packed ? 1u << w : 0}; }

  Fault run(const Stream& stream, Inputs in, const ByteFinish& finish, void* y) const {
    const bool x_signed = in[x].dtype == DType::kInt8, w_signed = in[w].dtype == DType::kInt8;
    if (!by_tiles) {
      return launch(stream, {blocks_for(results, kThreads), kThreads}, convolve_groups, g, results, in[x].as<const uint8_t>(),
                    in[w].as<const uint8_t>(), zero_points(in, x_zero), zero_points(in, w_zero, 1), x_signed, w_signed, finish, y);
    }
    ByteProduct call = product;
    call.a_zero = zero_points(in, x_zero), call.b_zero = zero_points(in, w_zero, 1);
    auto* const own = reinterpret_cast<uint8_t*>(stream.scratch);
    call.b = packed ? reinterpret_cast<const uint8_t*>(packed->data) : own;
    if (!packed) {
      if (Fault fault = pack_bytes(stream, layout, 1, 0, in[w], own)) return fault;
    }
    const auto address = reinterpret_cast<uintptr_t>(in[x].data);
    const bool side_by_side = g.channel_step == 1;
    const auto runs_of = [&](int64_t n) {
      return side_by_side && g.group_channels % n == 0 && g.pixel_step % n == 0 && address % static_cast<size_t>(n) == 0;
    };
    const ImageWindows windows{g,      in[x].as<const uint8_t>(), call.a_zero,
                               call.k, x_signed ? 0 : kFlipBytes, runs_of(16) ? 16 : runs_of(4) ? 4 : 1};
    return multiply_byte_tiles(stream, call, windows, finish, y);
  }
};

std::optional<Plan> plan_of(const OpDesc& desc, size_t x, size_t w, size_t x_zero, size_t w_zero, std::string& why) {
  if (!has_operand(desc, x) || !has_operand(desc, w) || !is_byte(desc.inputs[x].dtype) || !is_byte(desc.inputs[w].dtype))
    return why = "operands are not bytes", std::nullopt;
  const auto g = geometry_of(desc, x, w, why);
  if (!g) return std::nullopt;
  const auto fits = [&](size_t i, int64_t count) {
    return !has_operand(desc, i) || desc.inputs[i].shape.elements() == 1 || desc.inputs[i].shape.elements() == count;
  };
  const int64_t filters = g->groups * g->group_filters;
  if (!fits(x_zero, 1) || !fits(w_zero, filters)) return why = "a zero point has a wrong size", std::nullopt;
  Plan plan{.g = *g, .x = x, .w = w, .x_zero = x_zero, .w_zero = w_zero, .product = {}, .layout = {}, .packed = nullptr};
  plan.results = desc.outputs[0].shape.elements();
  constexpr int64_t kFewChannels = 16;
  plan.by_tiles = g->groups == 1 || (g->group_channels >= kFewChannels && g->groups <= 65535);
  if (!plan.by_tiles) return plan;
  const int64_t cells = g->cells();
  plan.layout = {filters, cells, g->group_channels, g->group_channels * cells, 1, cells};
  ByteProduct& p = plan.product;
  p.rows = plan.results / std::max<int64_t>(filters, 1), p.columns = g->group_filters;
  p.k = plan.layout.k(), p.k_padded = plan.layout.k_padded();
  p.products = g->groups, p.first_columns = g->group_filters, p.b_step = g->group_filters * p.k_padded;
  p.a_signed = desc.inputs[x].dtype == DType::kInt8, p.b_signed = desc.inputs[w].dtype == DType::kInt8;
  p.wants_row_sums = !is_symmetric(desc, w, w_zero);
  p.plane = g->plane;
  p.image_step = g->plane.d * filters;
  p.row_step = g->channels_last ? filters : 1, p.column_step = g->channels_last ? 1 : g->plane.d;
  p.product_step = g->group_filters * p.column_step;
  return plan;
}

/// After the nine operands of ONNX: a residual with scale and zero point, the scale and zero point of its sum (runtime/graph/op.h).
bool has_finish(const OpDesc& desc, int64_t filters, std::string& why) {
  const auto is_target = [&](size_t i) {
    return is_scale(desc, i) && is_number(desc, i) && is_number(desc, i + 1) && is_byte(desc.inputs[i + 1].dtype);
  };
  const bool sums = has_operand(desc, 12), residual = has_operand(desc, 9);
  if (!is_scale(desc, 1) || !is_number(desc, 1) || !is_scale(desc, 4) || !is_target(6) || (sums && !is_target(12)) ||
      (residual && !is_target(10)))
    why = "scales are not f32, or zero points not bytes";
  else if (desc.inputs[4].shape.elements() != 1 && desc.inputs[4].shape.elements() != filters)
    why = "the scale of the weight does not fit the output channels";
  else if (has_operand(desc, 8) && (desc.inputs[8].dtype != DType::kInt32 || desc.inputs[8].shape.elements() != filters))
    why = "the bias is not one i32 for each output channel";
  else if (residual && (!sums || !(desc.inputs[9].shape == desc.outputs[0].shape) || !is_byte(desc.inputs[9].dtype)))
    why = "the residual is not bytes of the result's shape";
  else if (!is_byte(desc.outputs[0].dtype))
    why = "the result is not bytes";
  return why.empty();
}

}  // namespace

Prepared prepare_conv_integer(const OpDesc& desc, PrepareContext& context, std::string& why) {
  auto plan = plan_of(desc, 0, 1, 2, 3, why);
  if (!plan) return nullptr;
  plan->pack(desc, context);
  return make_kernel([plan = *plan](Stream& stream, Inputs in, Outputs out) -> Fault { return plan.run(stream, in, {}, out[0].data); },
                     plan->traits());
}

Prepared prepare_qlinear_conv(const OpDesc& desc, PrepareContext& context, std::string& why) {
  auto plan = plan_of(desc, 0, 3, 2, 5, why);
  if (!plan || !has_finish(desc, plan->g.groups * plan->g.group_filters, why)) return nullptr;
  plan->pack(desc, context);
  const auto& attributes = std::get<Generic>(desc.op).attributes;
  const auto relu = [&](std::string_view key) { return attributes.text(key, "") == "Relu"; };
  ByteFinish prepared;
  prepared.kind = ByteFinish::Kind::kBytes;
  prepared.b_scale_step = desc.inputs[4].shape.elements() == 1 ? 0 : 1;
  prepared.sums = has_operand(desc, 12);
  prepared.again = attributes.has("again_scale");
  prepared.again_scale = static_cast<float>(attributes.number("again_scale", 1));
  prepared.again_zero = static_cast<float>(attributes.integer("again_zero", 0));
  prepared.again_signed = desc.outputs[0].dtype == DType::kInt8, prepared.again_relu = relu("again_activation");
  const DType first = prepared.sums ? desc.inputs[7].dtype : desc.outputs[0].dtype;
  return make_kernel(
      [plan = *plan, prepared, first, first_relu = relu("activation"), sum_relu = relu("sum_activation")](Stream& stream, Inputs in,
                                                                                                          Outputs out) -> Fault {
        ByteFinish finish = prepared;
        finish.a_scale = in[1].as<const float>(), finish.b_scale = in[4].as<const float>();
        finish.bias = operand_as<int32_t>(in, 8);
        finish.to = target_of(in, 6, first, first_relu);
        if (prepared.sums) finish.sum_to = target_of(in, 12, out[0].dtype, sum_relu);
        if (const auto* residual = operand_as<uint8_t>(in, 9)) {
          finish.residual = residual, finish.residual_signed = in[9].dtype == DType::kInt8;
          finish.residual_scale = in[10].as<const float>(), finish.residual_zero = zero_points(in, 11);
        }
        return plan.run(stream, in, finish, out[0].data);
      },
      plan->traits());
}

}  // namespace serin::kernels::cuda
