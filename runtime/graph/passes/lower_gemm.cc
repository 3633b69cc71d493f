// lower_gemm.cc
//
//   Gemm(a, b, c) = alpha a b + beta c   ->   FusedMatMul(a, alpha b, beta c)
//
// where alpha and beta are 1 or what they scale is a constant. A Gemm that scales what is computed at run time stays.

#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

bool can_scale(const Graph& graph, ValueId value, double factor) {
  const ConstantPtr constant = graph.constant(value);
  return value == kNone || factor == 1.0 || (constant && constant->dtype == DType::kFloat32);
}

ValueId scaled(const Graph& graph, Patch& patch, ValueId value, double factor) {
  if (value == kNone || factor == 1.0) return value;
  const ConstantPtr from = graph.constant(value);
  return patch.constant(value, make_constant(DType::kFloat32, from->shape, [from, factor](std::span<std::byte> memory) -> Status {
                          auto* to = reinterpret_cast<float*>(memory.data());
                          for (const float element : from->span<float>()) *to++ = static_cast<float>(element * factor);
                          return {};
                        }));
}

}  // namespace

Result<bool> LowerGemm::run(Graph& graph) const {
  bool changed = false;
  for (const NodeId gemm : graph.nodes(Op::kGemm)) {
    const double alpha = graph.node(gemm).number("alpha", 1), beta = graph.node(gemm).number("beta", 1);
    const ValueId weight = graph.input(gemm, 1), bias = beta == 0 ? kNone : graph.input(gemm, 2);
    if (!can_scale(graph, weight, alpha) || !can_scale(graph, bias, beta)) continue;

    Patch patch(graph, {gemm});
    Attributes attributes;
    for (const char* key : {"transA", "transB"}) {
      if (graph.node(gemm).integer(key, 0) != 0) attributes[key] = int64_t{1};
    }
    const ValueId y =
        patch.add(Op::kFusedMatMul, {graph.input(gemm, 0), scaled(graph, patch, weight, alpha), scaled(graph, patch, bias, beta)},
                  std::move(attributes));
    patch.replace(graph.output(gemm), y);
    changed = true;
  }
  return changed;
}

}  // namespace serin::graph
