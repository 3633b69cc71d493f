// words.cc: recognises how Keras and tf.strings.split number the words of texts: indices of the words -> their first column -> the number of words in each text ->
// where each text begins.

#include "runtime/formats/tensorflow/words.h"

#include <algorithm>
#include <map>

namespace serin::formats::tf {

using graph::Op;

namespace {

using List = std::vector<int64_t>;

constexpr int kMostSteps = 32;           // from the words to what is looked up
constexpr int64_t kMostWidth = 1 << 16;  // of a row

/// Functions of one element that cannot fail, which may thus be applied to the places behind the end of a row as well.
constexpr Op kEach[] = {Op::kAdd,          Op::kAnd,          Op::kCast,         Op::kChangeCase, Op::kEqual,
                        Op::kHashBucket,   Op::kIdentity,     Op::kLabelEncoder, Op::kLess,       Op::kGreater,
                        Op::kMax,          Op::kMin,          Op::kMul,          Op::kNot,        Op::kRegexFullMatch,
                        Op::kRegexReplace, Op::kStringConcat, Op::kSub,          Op::kWhere};

/// The node that computed a value, behind casts and other shapes of one number.
graph::NodeId origin(const graph::Graph& graph, ValueId id) {
  graph::NodeId node = graph.producer(id);
  for (int step = 0; step < kMostSteps; ++step) {
    const bool passes = graph.is(node, Op::kCast) || graph.is(node, Op::kIdentity) ||
                        (graph.is(node, Op::kReshape) && graph.value(id).type.shape == graph::Dims{});
    if (!passes) break;
    node = graph.producer(graph.input(node, 0));
  }
  return node;
}

/// Whether the node gives element or column 0 of `of`.
bool gathers_first(const graph::Graph& graph, graph::NodeId node, ValueId of, int64_t axis) {
  if (!graph.is(node, Op::kGather) || graph.input(node, 0) != of || graph.node(node).integer("axis", 0) != axis) return false;
  const graph::ConstantPtr index = graph.constant(graph.input(node, 1));
  return index && index->shape.rank() == 0 && graph::integers_of(*index) == List{0};
}

const CutTexts* texts_of_column(Scope& scope, ValueId numbers) {
  const graph::NodeId node = origin(scope.graph(), numbers);
  const auto found =
      std::ranges::find_if(scope.cut_texts, [&](const CutTexts& cut) { return gathers_first(scope.graph(), node, cut.indices, 1); });
  return found == scope.cut_texts.end() ? nullptr : &*found;
}

bool counts_texts(Scope& scope, const CutTexts& cut, ValueId rows) {
  return gathers_first(scope.graph(), origin(scope.graph(), rows), cut.sizes, 0);
}

/// As import_bincount writes how often each row number occurs: sum over (number == 0, 1, ... rows - 1).
const CutTexts* texts_of_counts(Scope& scope, ValueId counts) {
  const graph::Graph& graph = scope.graph();
  const graph::NodeId sum = origin(graph, counts);
  if (!graph.is(sum, Op::kReduceSum) || graph.node(sum).integers("axes") != List{0} || graph.node(sum).integer("keepdims", 1) != 0)
    return nullptr;
  const graph::NodeId equal = origin(graph, graph.input(sum, 0));
  if (!graph.is(equal, Op::kEqual)) return nullptr;
  const graph::NodeId column = graph.producer(graph.input(equal, 0)), range = graph.producer(graph.input(equal, 1));
  if (!graph.is(column, Op::kUnsqueeze) || graph.node(column).integers("axes") != List{1} || !graph.is(range, Op::kRange)) return nullptr;
  const auto is = [&](size_t operand, int64_t number) {
    const graph::ConstantPtr constant = graph.constant(graph.input(range, operand));
    return constant && graph::integers_of(*constant) == List{number};
  };
  if (!is(0, 0) || !is(2, 1)) return nullptr;
  const CutTexts* const cut = texts_of_column(scope, graph.input(column, 0));
  return cut && counts_texts(scope, *cut, graph.input(range, 1)) ? cut : nullptr;
}

/// The same functions of the words, for all places of rows.
class OnRows {
 public:
  OnRows(graph::Builder& b, ValueId list, ValueId rows) : b_(b) { made_[list] = rows; }

  ValueId of(ValueId id, int step = 0) {
    if (const auto known = made_.find(id); known != made_.end()) return known->second;
    const graph::Graph& graph = b_.graph();
    if (const graph::ConstantPtr constant = graph.constant(id)) return constant->elements() == 1 ? id : kNone;
    const graph::NodeId producer = graph.producer(id);
    if (producer == kNone || step > kMostSteps) return kNone;
    const graph::Node node = graph.node(producer);  // a copy: the graph grows
    if (std::ranges::find(kEach, node.op) == std::end(kEach)) return kNone;
    if (node.op == Op::kCast && b_.dtype(node.inputs[0]) == DType::kString) return kNone;  // may fail
    std::vector<ValueId> operands;
    for (const ValueId input : node.inputs) {
      operands.push_back(input == kNone ? kNone : of(input, step + 1));
      if (input != kNone && operands.back() == kNone) return kNone;
    }
    return made_[id] = b_.add(node.op, std::move(operands), node.attributes);
  }

 private:
  graph::Builder& b_;
  std::map<ValueId, ValueId> made_;
};

}  // namespace

const CutTexts* cut_texts_of_row_numbers(NodeImport& n, ValueId numbers, ValueId rows) {
  const CutTexts* const cut = texts_of_column(n.scope(), numbers);
  return cut && counts_texts(n.scope(), *cut, rows) ? cut : nullptr;
}

/// 0, then the sums of the counts.
const CutTexts* cut_texts_of_splits(NodeImport& n, ValueId splits) {
  const graph::Graph& graph = n.scope().graph();
  const graph::NodeId join = origin(graph, splits);
  if (!graph.is(join, Op::kConcat) || graph.node(join).inputs.size() != 2) return nullptr;
  const graph::ConstantPtr begin = graph.constant(graph.input(join, 0));
  const graph::NodeId sums = origin(graph, graph.input(join, 1));
  if (!begin || graph::integers_of(*begin) != List{0} || !graph.is(sums, Op::kCumSum)) return nullptr;
  const bool plain = graph.node(sums).integer("exclusive", 0) == 0 && graph.node(sums).integer("reverse", 0) == 0;
  return plain ? texts_of_counts(n.scope(), graph.input(sums, 0)) : nullptr;
}

ValueId rows_of_words(NodeImport& n, const CutTexts& cut, ValueId list, ValueId standard, int64_t width) {
  if (width < 0 || width > kMostWidth) return kNone;
  graph::Builder& b = n.builder();
  graph::Attributes attributes = cut.attributes;
  attributes.emplace("width", width);
  const ValueId words = cut.words;
  const auto parts = b.add_with_results(Op::kStringSplit, 2, {cut.texts}, std::move(attributes));
  const ValueId rows = OnRows(b, words, parts[0]).of(list);
  if (rows == kNone) return kNone;
  List places(static_cast<size_t>(width));
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
  const ValueId inside = b.add(Op::kLess, {b.integers(places), b.unsqueeze(parts[1], {1})});
  return b.add(Op::kWhere, {inside, rows, standard});
}

}  // namespace serin::formats::tf
