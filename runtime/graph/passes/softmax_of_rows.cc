// softmax_of_rows.cc
//
// Until opset 13 Softmax joined all axes from `axis` on, so that it is read as
//
//   Reshape(Softmax(Flatten(x, axis)), Shape(x))
//
// where the file does not say how many axes there are. If `axis` is the last one nothing is joined: it is Softmax(x, axis=-1). The attention of models that were
// exported then is seen after this only, and their lengths are an axis of their own.

#include "runtime/graph/passes/match.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/patch.h"

namespace serin::graph {
namespace {

bool unfold(Graph& graph, NodeId softmax) {
  const int64_t axis = graph.node(softmax).integer("axis", -1);
  const NodeId flatten = only_producer(graph, graph.input(softmax, 0), Op::kFlatten), reshape = only_reader(graph, graph.output(softmax));
  if (flatten == kNone || !graph.is(reshape, Op::kReshape) || (axis != -1 && axis != 1)) return false;
  const ValueId x = graph.input(flatten, 0);
  const Dims* const dims = dims_of_value(graph, x);
  const int64_t first = graph.node(flatten).integer("axis", 1), last = dims ? static_cast<int64_t>(dims->size()) - 1 : 0;
  if (!dims || (first != -1 && first != last) || last < 0 || !same_type(graph, x, graph.output(reshape))) return false;
  Patch patch(graph, {flatten, softmax, reshape});
  patch.replace(graph.output(reshape), patch.add(graph.node(softmax).op, {x}, {{"axis", int64_t{-1}}}));
  return true;
}

}  // namespace

Result<bool> SoftmaxOfRows::run(Graph& graph) const {
  bool changed = false;
  for (const Op op : {Op::kSoftmax, Op::kLogSoftmax})
    for (const NodeId softmax : graph.nodes(op)) changed |= unfold(graph, softmax);
  return changed;
}

}  // namespace serin::graph
