// lower_conv_transpose.cc
//
// Three kinds of ConvTranspose are a Conv, which has the fastest kernels and stays in the layout of its neighbours:
//
//   stride 1                    each result sees the inputs around it: a Conv by the window turned around, padded by what the window reaches over the edge
//   windows side by side        (kernel = stride, no padding: the upsampling of U-Nets) each input makes s x s results of its own: a 1 x 1 Conv with s x s
//                               times the filters, DepthToSpace
//   windows that overlap        (kernel 4, stride 2, padding 1: generators) each of the s x s results of an input sees some of its 3 x 3 neighbours: the same
//                               with a 3 x 3 Conv. More than half of its weights are zeros, but Winograd's way makes up for that and more
//
// With weights that are known, over two spatial axes.

#include <algorithm>

#include "runtime/graph/ops/window.h"
#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

/// Filters of a result that become channels of a Conv side by side stay whole blocks of channels, whatever the vectors of the machine.
constexpr int64_t kWholeBlocks = 16;

/// Windows that overlap gain by Winograd's way only (F(4,3); kernels/cpu/conv_blocked_winograd.cc), which takes so many filters x channels at most, and so
/// many pixels of an axis at least. The best of five on Zen 3, 4 x 4 cells, stride 2, with a 3 x 3
/// Conv before it: 64 to 32 channels at 64 x 64 8.6 -> 6.9 ms, 512 to 256 at 8 x 8 11.1 -> 13.7 ms.
constexpr int64_t kFewWeights = (1 << 20) / 36, kFewPixels = 8;

/// The weight [c, m / group, kh, kw] of a ConvTranspose.
struct Deconvolution {
  ConstantPtr weight;
  int64_t channels, filters, h, w, groups;  ///< filters: of a group
  float at(const float* from, int64_t c, int64_t m, int64_t y, int64_t x) const { return from[((c * filters + m) * h + y) * w + x]; }
};

/// [m, c / group, kh, kw], each window turned around.
ConstantPtr turned_weight(const Deconvolution& d) {
  const int64_t each = d.channels / d.groups;
  return make_constant(DType::kFloat32, Shape{d.filters * d.groups, each, d.h, d.w}, [d, each](std::span<std::byte> memory) -> Status {
    const auto from = d.weight->span<float>();
    auto* to = reinterpret_cast<float*>(memory.data());
    for (int64_t filter = 0; filter < d.filters * d.groups; ++filter) {
      const int64_t first = filter / d.filters * each;  // channel of the group
      for (int64_t c = first; c < first + each; ++c) {
        for (int64_t y = d.h; y-- > 0;) {
          for (int64_t x = d.w; x-- > 0;) *to++ = d.at(from.data(), c, filter % d.filters, y, x);
        }
      }
    }
    return {};
  });
}

/// Along one axis: the results s * i to s * i + s - 1 see the inputs i + low to i + high. Result s * i + r sees input i + j by the window's cell
/// r + pad - s * j.
struct Neighbours {
  int64_t stride, pad, low, high;
  Neighbours(int64_t kernel, int64_t step, int64_t cut)
      : stride(step), pad(cut), low(-((kernel - 1 - cut) / step)), high((step - 1 + cut) / step) {}
  int64_t count() const { return high - low + 1; }
  int64_t cell(int64_t result, int64_t neighbour) const { return result + pad - stride * (neighbour + low); }
};

/// [s * s * m, c, neighbours, neighbours]: filters in the order in which DepthToSpace deals them out.
ConstantPtr neighbours_weight(const Deconvolution& d, const Neighbours& h, const Neighbours& w) {
  const Shape shape{h.stride * w.stride * d.filters, d.channels, h.count(), w.count()};
  return make_constant(DType::kFloat32, shape, [d, h, w](std::span<std::byte> memory) -> Status {
    const auto from = d.weight->span<float>();
    auto* to = reinterpret_cast<float*>(memory.data());
    for (int64_t result = 0; result < h.stride * w.stride; ++result) {
      for (int64_t m = 0; m < d.filters; ++m) {
        for (int64_t c = 0; c < d.channels; ++c) {
          for (int64_t i = 0; i < h.count() * w.count(); ++i) {
            const int64_t y = h.cell(result / w.stride, i / w.count()), x = w.cell(result % w.stride, i % w.count());
            *to++ = y >= 0 && y < d.h && x >= 0 && x < d.w ? d.at(from.data(), c, m, y, x) : 0.f;
          }
        }
      }
    }
    return {};
  });
}

ConstantPtr repeated(const Constant& bias, int64_t times) {
  std::byte* memory = nullptr;
  auto result = make_mutable_constant(DType::kFloat32, Shape{bias.elements() * times}, &memory);
  const auto from = bias.span<float>();
  for (int64_t i = 0; i < times; ++i) std::copy(from.begin(), from.end(), reinterpret_cast<float*>(memory) + i * bias.elements());
  return result;
}

void lower_stride_one(Graph& graph, NodeId id, const Deconvolution& d, const Window& window, const std::vector<int64_t>& extra) {
  std::vector<int64_t> pads(4);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reach = (window.kernel[i] - 1) * window.dilations[i];
    pads[i] = reach - window.pads[i];
    pads[i + 2] = reach - window.pads[i + 2] + extra[i];
  }
  Patch patch(graph, {id});
  const ValueId weight = patch.constant(graph.input(id, 1), turned_weight(d));
  patch.replace(graph.output(id), patch.add(Op::kConv, {graph.input(id, 0), weight, graph.input(id, 2)},
                                            {{"dilations", window.dilations}, {"group", d.groups}, {"pads", pads}}));
}

void lower_to_neighbours(Graph& graph, NodeId id, const Deconvolution& d, const Neighbours& h, const Neighbours& w) {
  Patch patch(graph, {id});
  const ValueId bias_id = graph.input(id, 2);
  const ValueId weight = patch.constant(graph.input(id, 1), neighbours_weight(d, h, w));
  const ValueId bias = bias_id == kNone ? kNone : patch.constant(bias_id, repeated(*graph.constant(bias_id), h.stride * w.stride));
  Attributes attributes;
  if (h.count() > 1) attributes["pads"] = std::vector<int64_t>{-h.low, -w.low, h.high, w.high};
  const ValueId y = patch.add(Op::kConv, {graph.input(id, 0), weight, bias}, std::move(attributes));
  patch.replace(graph.output(id), patch.add(Op::kDepthToSpace, {y}, {{"blocksize", h.stride}, {"mode", std::string("DCR")}}));
}

bool lower(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const Dims* x = dims_of_value(graph, graph.input(id, 0));
  const ConstantPtr weight = graph.constant(graph.input(id, 1)), bias = graph.constant(graph.input(id, 2));
  if (!x || x->size() != 4 || !weight || weight->dtype != DType::kFloat32 || weight->shape.rank() != 4 || weight->elements() == 0)
    return false;
  if (graph.input(id, 2) != kNone && (!bias || bias->dtype != DType::kFloat32)) return false;
  const Deconvolution d{weight, weight->shape[0], weight->shape[1], weight->shape[2], weight->shape[3], node.integer("group", 1)};
  const auto window = resolve_transposed_window(node, std::span(*x).subspan(2), {d.h, d.w});
  if (!window || window->pads.empty() || d.groups < 1 || d.channels % d.groups != 0) return false;
  auto extra = node.integers("output_padding");
  extra.resize(2, 0);
  // output_shape may ask for more than windows reach.
  const auto makes = [&](size_t i, const Dim& size) { return window->output[i] == size; };
  if (window->strides == std::vector<int64_t>{1, 1}) {
    for (size_t i = 0; i < 2; ++i) {
      const int64_t reach = (window->kernel[i] - 1) * window->dilations[i], begin = window->pads[i], end = window->pads[i + 2];
      if (begin < 0 || begin > reach || end < 0 || end > reach || !makes(i, (*x)[i + 2] + Dim(reach - begin - end + extra[i])))
        return false;
    }
    lower_stride_one(graph, id, d, *window, extra);
    return true;
  }
  const int64_t stride = window->strides[0];
  if (window->strides[1] != stride || window->dilations != std::vector<int64_t>{1, 1} || d.groups != 1 || d.filters % kWholeBlocks != 0)
    return false;
  for (size_t i = 0; i < 2; ++i) {  // each input has stride x stride results
    const int64_t begin = window->pads[i], end = window->pads[i + 2], kernel = window->kernel[i];
    if (begin < 0 || begin >= kernel || kernel - begin - end + extra[i] != stride || !makes(i, (*x)[i + 2] * Dim(stride))) return false;
  }
  const Neighbours h(d.h, stride, window->pads[0]), w(d.w, stride, window->pads[1]);
  const int64_t filters = stride * stride * d.filters;
  const bool winograd =
      h.count() == 3 && w.count() == 3 && d.channels >= kWholeBlocks && d.channels * filters <= kFewWeights &&
      std::all_of(x->begin() + 2, x->end(), [](const Dim& dim) { return dim.value().value_or(kFewPixels) >= kFewPixels; });
  if (!winograd && (h.count() != 1 || w.count() != 1)) return false;
  lower_to_neighbours(graph, id, d, h, w);
  return true;
}

}  // namespace

Result<bool> LowerConvTranspose::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId id : graph.nodes(Op::kConvTranspose)) changed |= lower(graph, id);
  return changed;
}

}  // namespace serin::graph
