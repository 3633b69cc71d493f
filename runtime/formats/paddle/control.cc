// control.cc: while, if, and the conditional blocks of a ProgramDesc.
//
// Bodies of a Graph are closed: a constant from outside is copied into them, any other value is handed in. In a ProgramDesc, a body assigns to
// variables of the block around it: those are what a loop carries. It has no if: two conditional_blocks, of a condition and its opposite, make
// one value each, and select_input chooses between the two. Here the choice imports the blocks, as the branches of one If.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/paddle/block.h"
#include "runtime/formats/paddle/operators.h"
#include "runtime/formats/paddle/scope.h"

namespace serin::formats::paddle {
namespace {

using Names = std::vector<std::string>;

/// Values that bodies read from outside and that are no constants.
Names handed_in(Scope& outer, const std::vector<Names>& reads, const Names& except) {
  Names result;
  for (const Names& names : reads) {
    for (const std::string& name : names) {
      const auto taken = [&](const Names& list) { return std::ranges::find(list, name) != list.end(); };
      if (outer.b.error() || taken(except) || taken(result) || outer.array(name)) continue;
      if (!outer.b.graph().constant(outer.find(name))) result.push_back(name);
    }
  }
  return result;
}

/// A body under construction: its graph is kept apart from the scope that fills it.
struct Body {
  std::shared_ptr<graph::Graph> graph = std::make_shared<graph::Graph>();
  Scope scope;

  explicit Body(Scope& outer) : scope(outer.program, *graph) {
    scope.array_names = outer.array_names;
    for (const auto& [name, value] : outer.values)
      if (const graph::ConstantPtr constant = outer.b.graph().constant(value)) constants_.emplace(name, constant);
  }

  void input(const std::string& name, graph::Type type) { scope.values[name] = graph->add_input(name, std::move(type)); }

  /// Two inputs. Its length may be another in each turn.
  void input_array(const std::string& name, const Array& array, const graph::Builder& from) {
    Array& inner = scope.arrays[name] = array;
    const auto add = [&](ValueId value, int64_t axis, const std::string& input) {
      graph::Type type = from.type(value);
      if (type.shape) (*type.shape)[static_cast<size_t>(axis)] = graph::Dim::symbol("?" + input);
      return graph->add_input(input, std::move(type));
    };
    inner.joined = add(array.joined, array.axis, name + "_joined");
    inner.lengths = add(array.lengths, 0, name + "_lengths");
  }

  /// Constants that the block reads become constants of its graph.
  void run(Scope& outer, size_t block, const Names& reads) {
    for (const std::string& name : reads)
      if (const auto constant = constants_.find(name); constant != constants_.end() && !scope.has(name))
        scope.values[name] = scope.b.constant(name, constant->second);
    if (!outer.b.error()) import_block(scope, block);
  }

  void finish(Scope& outer, const std::vector<ValueId>& outputs) {
    if (scope.b.error()) outer.b.fail(scope.b.error()->code, "in its body: " + scope.b.error()->message);
    std::vector<ValueId> results;
    results.reserve(outputs.size());
    for (const ValueId output : outputs) results.push_back(scope.b.add(Op::kIdentity, {output}));
    graph->set_outputs(std::move(results));
  }

 private:
  std::map<std::string, graph::ConstantPtr, std::less<>> constants_;
};

Names result_names(const Operation& op) {
  Names names;
  for (const Slot& slot : op.outputs) names.insert(names.end(), slot.values.begin(), slot.values.end());
  return names;
}

/// Of that rank; sizes may be others in the next turn.
graph::Type carried_type(const graph::Type& type, const std::string& name) {
  graph::Type result = type;
  if (result.shape) {
    for (size_t i = 0; i < result.shape->size(); ++i) (*result.shape)[i] = graph::Dim::symbol(fmt::format("?{}_d{}", name, i));
  }
  return result;
}

ValueId condition_of(graph::Builder& b, ValueId x) {
  x = b.cast(x, DType::kBool);
  return b.rank(x) == size_t{0} ? x : b.reshape(x, {});
}

/// Arrays of the outer scope among these names, by the name that they were made with.
Names arrays_among(Scope& outer, const Names& names) {
  Names result;
  for (const std::string& name : names) {
    const Array* const array = outer.array(name);
    if (!array) continue;
    const auto made = std::ranges::find_if(outer.arrays, [&](const auto& each) { return &each.second == array; });
    if (std::ranges::find(result, made->first) != result.end()) continue;
    if (array->joined == kNone) outer.b.fail(Code::kUnsupported, "a body with an empty array whose elements have an unknown shape");
    result.push_back(made->first);
  }
  return outer.b.error() ? Names{} : result;
}

/// `inner`: the names that the body gives to what is carried; `next`: the names of condition and values for the next turn.
void import_loop(Node& node, ValueId condition, const std::vector<ValueId>& carried, const Names& inner, const Names& next, size_t block) {
  Scope& outer = node.scope();
  const Names reads = free_values(outer.program, block);
  Names touched = reads;
  for (const std::string& name : defined_values(outer.program, block)) touched.push_back(name);
  const Names outside = handed_in(outer, {reads}, inner), arrays = arrays_among(outer, touched);
  Body body(outer);
  body.graph->add_input("iteration", graph::Type::tensor(DType::kInt64, {}));
  body.graph->add_input("condition", graph::Type::tensor(DType::kBool, {}));
  std::vector<ValueId> operands{kNone, condition_of(node.b, condition)}, results;
  for (size_t i = 0; i < carried.size(); ++i) body.input(inner[i], carried_type(node.b.type(carried[i]), inner[i]));
  operands.insert(operands.end(), carried.begin(), carried.end());
  for (const std::string& name : arrays) {
    operands.insert(operands.end(), {outer.arrays[name].joined, outer.arrays[name].lengths});
    body.input_array(name, outer.arrays[name], node.b);
  }
  for (const std::string& name : outside) {
    operands.push_back(outer.find(name));
    body.input(name, node.b.type(operands.back()));
  }
  body.run(outer, block, reads);
  for (const std::string& name : next) results.push_back(body.scope.find(name));
  if (!results.empty()) results[0] = condition_of(body.scope.b, results[0]);
  for (const std::string& name : arrays) results.insert(results.end(), {body.scope.arrays[name].joined, body.scope.arrays[name].lengths});
  body.finish(outer, results);
  if (node.b.error()) return;
  const size_t count = carried.size() + 2 * arrays.size();
  const auto values = node.b.add_with_bodies(Op::kLoop, count, operands, {{"carried", static_cast<int64_t>(count)}}, {body.graph});
  for (size_t i = 0; i < arrays.size(); ++i) {
    Array& array = outer.arrays[arrays[i]];
    array.joined = values[carried.size() + 2 * i], array.lengths = values[carried.size() + 2 * i + 1];
  }
  const Names targets = outer.program.pir ? result_names(node.source()) : inner;
  for (size_t i = 0; i < std::min(carried.size(), targets.size()); ++i) outer.values[targets[i]] = values[i];
}

void import_while(Node& node, Op /*op*/) {
  Scope& outer = node.scope();
  const Operation& op = node.source();
  if (op.blocks.size() != 1) return node.corrupt("while without exactly one body");
  const Block& block = outer.program.blocks[op.blocks[0]];
  if (!outer.program.pir) {
    const auto assigned = defined_values(outer.program, op.blocks[0]);
    const Slot* cond = nullptr;
    for (const Slot& slot : op.inputs) cond = slot.name == "Condition" ? &slot : cond;
    if (!cond || cond->values.size() != 1 || !assigned.contains(cond->values[0]))
      return node.corrupt("while whose body leaves the condition as it is");
    Names inner, next{cond->values[0]};
    std::vector<ValueId> carried;
    for (const std::string& name : assigned) {
      if (!outer.has(name)) continue;
      inner.push_back(name), next.push_back(name);
      carried.push_back(outer.find(name));
    }
    return import_loop(node, node.in("Condition"), carried, inner, next, op.blocks[0]);
  }
  std::vector<ValueId> carried;
  for (size_t i = 1; i < op.inputs.size(); ++i)
    for (const std::string& name : op.inputs[i].values) carried.push_back(outer.find(name));
  if (block.arguments.size() != carried.size() || block.results.size() != carried.size() + 1)
    return node.corrupt("while whose body has other values");
  import_loop(node, node.in("Condition"), carried, block.arguments, block.results, op.blocks[0]);
}

struct Branch {
  std::optional<size_t> block;  ///< nothing: the values are from outside
  Names results;
};

std::vector<ValueId> import_branches(Node& node, ValueId condition, const Branch& yes, const Branch& no) {
  Scope& outer = node.scope();
  std::vector<Names> reads;
  for (const Branch* const branch : {&yes, &no}) {
    Names names = branch->block ? free_values(outer.program, *branch->block) : Names{};
    const auto made = branch->block ? defined_values(outer.program, *branch->block) : std::set<std::string, std::less<>>{};
    for (const std::string& name : branch->results)
      if (!made.contains(name)) names.push_back(name);
    reads.push_back(std::move(names));
  }
  const Names outside = handed_in(outer, reads, {});
  Names touched;
  for (const Names& names : reads) touched.insert(touched.end(), names.begin(), names.end());
  const Names arrays = arrays_among(outer, touched);
  std::vector<std::shared_ptr<const graph::Graph>> bodies;
  std::vector<ValueId> operands{condition_of(node.b, condition)};
  for (const std::string& name : outside) operands.push_back(outer.find(name));
  for (const std::string& name : arrays) operands.insert(operands.end(), {outer.arrays[name].joined, outer.arrays[name].lengths});
  for (const Branch* const branch : {&yes, &no}) {
    Body body(outer);
    for (size_t i = 0; i < outside.size(); ++i) body.input(outside[i], node.b.type(operands[i + 1]));
    for (const std::string& name : arrays) {
      body.input_array(name, outer.arrays[name], node.b);
      body.scope.arrays[name].fixed = true;
    }
    const Names& names = reads[bodies.size()];
    if (branch->block) body.run(outer, *branch->block, names);
    std::vector<ValueId> results;
    for (const std::string& name : branch->results) {
      if (!body.scope.has(name) && outer.has(name))
        if (const graph::ConstantPtr constant = outer.b.graph().constant(outer.find(name)))
          body.scope.values[name] = body.scope.b.constant(name, constant);
      results.push_back(body.scope.find(name));
    }
    body.finish(outer, results);
    bodies.push_back(body.graph);
  }
  if (node.b.error()) return {};
  return node.b.add_with_bodies(Op::kIf, yes.results.size(), operands, {}, bodies);
}

void import_if(Node& node, Op /*op*/) {
  const Operation& op = node.source();
  const Program& program = node.scope().program;
  if (op.blocks.size() != 2) return node.corrupt("if without two branches");
  const Names &yes = program.blocks[op.blocks[0]].results, &no = program.blocks[op.blocks[1]].results;
  if (yes.size() != no.size()) return node.corrupt("if whose branches have different numbers of results");
  const auto results = import_branches(node, node.in("Cond"), {op.blocks[0], yes}, {op.blocks[1], no});
  const Names names = result_names(op);
  for (size_t i = 0; i < std::min(results.size(), names.size()); ++i) node.scope().values[names[i]] = results[i];
}

/// A block under a condition. What it assigns to existing values is chosen here; its new values wait for a select_input.
void import_conditional_block(Node& node, Op /*op*/) {
  Scope& scope = node.scope();
  const Operation& op = node.source();
  if (op.blocks.size() != 1) return node.corrupt("conditional_block without exactly one body");
  Branch yes{op.blocks[0], {}};
  for (const std::string& name : defined_values(scope.program, op.blocks[0])) {
    if (scope.has(name)) yes.results.push_back(name);
    scope.pending[name] = {scope.place, op.blocks[0]};
  }
  if (yes.results.empty()) return;
  const auto results = import_branches(node, node.in("Cond"), yes, {std::nullopt, yes.results});
  for (size_t i = 0; i < results.size(); ++i) scope.values[yes.results[i]] = results[i];
}

/// The names of X (if not, if so) where both come from pending blocks or from outside.
std::optional<Names> choices(const Operation& op) {
  for (const Slot& slot : op.inputs)
    if (slot.name == "X" && slot.values.size() == 2) return slot.values;
  return std::nullopt;
}

void import_select_input(Node& node, Op /*op*/) {
  Scope& scope = node.scope();
  const std::vector<Operation>& operations = scope.program.blocks[scope.block].operations;
  const auto block_of = [&](const std::string& name) -> std::optional<size_t> {
    const auto found = scope.pending.find(name);
    return scope.has(name) || found == scope.pending.end() ? std::nullopt : std::optional(found->second.block);
  };
  const auto first = choices(node.source());
  if (!first) return node.refuse("select_input of other than two values");
  Branch no{block_of((*first)[0]), {}}, yes{block_of((*first)[1]), {}};
  Names targets;
  for (size_t place = scope.place; place < operations.size() && operations[place].type == "select_input"; ++place) {
    const auto pair = choices(operations[place]);
    if (!pair || block_of((*pair)[0]) != no.block || block_of((*pair)[1]) != yes.block) break;
    no.results.push_back((*pair)[0]), yes.results.push_back((*pair)[1]);
    targets.push_back(operations[place].name);
    scope.done.insert(place);
  }
  const auto results = import_branches(node, node.in("Mask"), yes, no);
  for (size_t i = 0; i < results.size(); ++i) scope.values[targets[i]] = results[i];
}

/// Only the operand that is needed is looked up: the values to choose from are not defined yet.
constexpr OperatorRow kControlRows[] = {
    {"conditional_block", "", "Cond", "Out", import_conditional_block},
    {"", "if", "Cond", "Out", import_if},
    {"select_input", "", "Mask", "Out", import_select_input},
    {"while", "while", "Condition", "Out", import_while},
};

}  // namespace

std::span<const OperatorRow> control_operators() { return kControlRows; }

}  // namespace serin::formats::paddle
