// lower_conv_transpose.cc
//
// Two kinds of ConvTranspose are a Conv, which has the fastest kernels and stays in the layout of its neighbours:
//
//   stride 1                    each result sees the inputs around it: a Conv by the window turned around, padded by what the window reaches over the edge
//   windows side by side        (kernel = stride, no padding: the upsampling of U-Nets) each input makes s x s results of its own: a 1 x 1 Conv with s x s
//                               times the filters, DepthToSpace
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

/// [kh * kw * m, c, 1, 1]: filters in the order in which DepthToSpace deals them out.
ConstantPtr side_by_side_weight(const Deconvolution& d) {
  return make_constant(DType::kFloat32, Shape{d.h * d.w * d.filters, d.channels, 1, 1}, [d](std::span<std::byte> memory) -> Status {
    const auto from = d.weight->span<float>();
    auto* to = reinterpret_cast<float*>(memory.data());
    for (int64_t cell = 0; cell < d.h * d.w; ++cell) {
      for (int64_t m = 0; m < d.filters; ++m) {
        for (int64_t c = 0; c < d.channels; ++c) *to++ = d.at(from.data(), c, m, cell / d.w, cell % d.w);
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

void lower_side_by_side(Graph& graph, NodeId id, const Deconvolution& d) {
  Patch patch(graph, {id});
  const ValueId bias_id = graph.input(id, 2);
  const ValueId weight = patch.constant(graph.input(id, 1), side_by_side_weight(d));
  const ValueId bias = bias_id == kNone ? kNone : patch.constant(bias_id, repeated(*graph.constant(bias_id), d.h * d.w));
  const ValueId y = patch.add(Op::kConv, {graph.input(id, 0), weight, bias}, {});
  patch.replace(graph.output(id), patch.add(Op::kDepthToSpace, {y}, {{"blocksize", d.h}, {"mode", std::string("DCR")}}));
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
  if (window->strides == std::vector<int64_t>{1, 1}) {
    for (size_t i = 0; i < 4; ++i) {
      if (window->pads[i] < 0 || window->pads[i] > (window->kernel[i % 2] - 1) * window->dilations[i % 2]) return false;
    }
    lower_stride_one(graph, id, d, *window, extra);
    return true;
  }
  const bool plain =
      window->pads == std::vector<int64_t>(4, 0) && window->dilations == std::vector<int64_t>{1, 1} && extra == std::vector<int64_t>{0, 0};
  if (!plain || window->strides != window->kernel || d.h != d.w || d.groups != 1 || d.filters % kWholeBlocks != 0) return false;
  lower_side_by_side(graph, id, d);
  return true;
}

}  // namespace

Result<bool> LowerConvTranspose::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId id : graph.nodes(Op::kConvTranspose)) changed |= lower(graph, id);
  return changed;
}

}  // namespace serin::graph
