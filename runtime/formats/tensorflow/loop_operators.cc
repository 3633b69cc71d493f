// loop_operators.cc: While -> Loop.
//
// A While has variables, a function that says whether to go on, and one that gives their next values. Most variables are not what they seem:
//
//   unchanged   the body returns its argument; it is read, or shared with the body if it is a constant or a weight
//   counter     starts at 0 and grows by 1: the number of the iteration
//   list        is reserved before, and each iteration sets the item at the counter: a result that the Loop stacks. If each iteration sets
//               item 0 instead, only the last one counts
//   state       all others
//
// A body that is a cell of LSTM or GRU makes the canonical operator instead, of which more is known than of a Loop.
//
// If the condition only compares counters with what does not change ("time < steps and counter < most"), then the least of these bounds is
// the number of iterations. Otherwise the condition is computed in each iteration.

#include "runtime/formats/tensorflow/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/formats/tensorflow/import.h"
#include "runtime/formats/tensorflow/recurrent_cell.h"

namespace serin::formats::tf {

using graph::Op;

namespace {

enum class Role : uint8_t { kUnchanged, kCounter, kList, kState };

/// The node behind an edge, past Identity; an argument has no node, but its place.
struct Source {
  const NodeDef* node = nullptr;
  size_t argument = SIZE_MAX;
};

Source source_of(const Body& body, std::string_view edge) {
  const auto& arguments = body.function->arguments;
  for (size_t steps = 0; steps <= body.nodes.size(); ++steps) {
    const Edge parsed = parse_edge(edge);
    const auto argument = std::ranges::find(arguments, parsed.node);
    if (argument != arguments.end()) return {nullptr, static_cast<size_t>(argument - arguments.begin())};
    const auto node = body.nodes.find(parsed.node);
    if (node == body.nodes.end()) return {};
    if (node->second->op != "Identity" || node->second->inputs.empty()) return {node->second, SIZE_MAX};
    edge = node->second->inputs.front();
  }
  return {};
}

std::string_view returned(const Body& body, size_t i) {
  const auto found = body.function->returns.find(body.function->results[i]);
  return found == body.function->returns.end() ? std::string_view() : found->second;
}

class While {
 public:
  explicit While(NodeImport& n) : n_(n), b_(n.builder()) {}

  void run() {
    if (!read_functions()) return;
    for (size_t i = 0; i < n_.inputs(); ++i) roles_.push_back(role_of(i));
    trip_count_ = read_trip_count();
    if (trip_count_ == kNone) std::ranges::replace(roles_, Role::kCounter, Role::kState);
    if (b_.error() || !build_body() || emit_layer()) return;
    emit();
  }

 private:
  bool read_functions() {
    const auto find = [&](std::string_view key) {
      const Attr* const attr = n_.attr(key);
      return attr ? n_.importer().program().function(attr->function) : nullptr;
    };
    cond_ = find("cond");
    body_ = find("body");
    if (!cond_ || !body_ || body_->function->arguments.size() != n_.inputs() || body_->function->results.size() != n_.inputs() ||
        cond_->function->results.size() != 1) {
      n_.corrupt("its functions are missing, or do not fit its operands");
      return false;
    }
    return true;
  }

  std::optional<int64_t> integer_const(const Body& body, std::string_view edge) const {
    const Source source = source_of(body, edge);
    if (!source.node || source.node->op != "Const") return std::nullopt;
    const auto found = source.node->attrs.find("value");
    if (found == source.node->attrs.end() || !found->second.tensor) return std::nullopt;
    const auto constant = n_.importer().state().constant(*found->second.tensor);
    const auto integers = constant && (*constant)->elements() == 1 ? graph::integers_of(**constant) : std::nullopt;
    return integers ? std::optional(integers->front()) : std::nullopt;
  }

  bool counts(size_t i) const {
    const Source next = source_of(*body_, returned(*body_, i));
    if (!next.node || (next.node->op != "AddV2" && next.node->op != "Add") || next.node->inputs.size() < 2 || !n_.value(i)->tensor())
      return false;
    const auto initial = b_.known_integers(n_.scope().plain(*n_.value(i)));
    const bool by_one = source_of(*body_, next.node->inputs[0]).argument == i && integer_const(*body_, next.node->inputs[1]) == 1;
    return by_one && initial && initial->size() == 1 && initial->front() == 0 && b_.rank(n_.value(i)->plain) == 0;
  }

  Role role_of(size_t i) const {
    if (n_.value(i)->resource || source_of(*body_, returned(*body_, i)).argument == i) return Role::kUnchanged;
    if (n_.value(i)->list) return Role::kList;
    return counts(i) ? Role::kCounter : Role::kState;
  }

  /// The bounds of a conjunction of comparisons; false if it has anything else.
  bool collect_bounds(std::string_view edge, std::vector<ValueId>& bounds, int depth) {
    const Source source = source_of(*cond_, edge);
    if (!source.node || source.node->inputs.size() < 2 || depth > 16) return false;
    if (source.node->op == "LogicalAnd")
      return collect_bounds(source.node->inputs[0], bounds, depth + 1) && collect_bounds(source.node->inputs[1], bounds, depth + 1);
    if (source.node->op != "Less") return false;
    const Source counter = source_of(*cond_, source.node->inputs[0]), bound = source_of(*cond_, source.node->inputs[1]);
    if (counter.argument >= roles_.size() || roles_[counter.argument] != Role::kCounter) return false;
    if (bound.argument < roles_.size() && roles_[bound.argument] == Role::kUnchanged && n_.value(bound.argument)->tensor()) {
      bounds.push_back(b_.cast(n_.in(bound.argument), DType::kInt64));
      return true;
    }
    const auto number = integer_const(*cond_, source.node->inputs[1]);
    if (number) bounds.push_back(b_.constant(graph::make_constant(DType::kInt64, Shape{}, &*number)));
    return number.has_value();
  }

  ValueId read_trip_count() {
    std::vector<ValueId> bounds;
    if (!collect_bounds(returned(*cond_, 0), bounds, 0) || bounds.empty()) return kNone;
    std::vector<ValueId> distinct;
    for (const ValueId bound : bounds) {
      const graph::Dims* const elements = b_.elements(bound);
      const bool again = elements && std::ranges::any_of(distinct, [&](ValueId other) {
                           const graph::Dims* const others = b_.elements(other);
                           return others && *others == *elements;
                         });
      const bool limitless = elements && elements->size() == 1 && elements->front().value() == INT32_MAX;
      if (!again && !(limitless && bounds.size() > 1)) distinct.push_back(bound);
    }
    return distinct.size() == 1 ? distinct[0] : b_.add(Op::kMin, distinct);
  }

  /// An argument of the body that is an input of its graph.
  ValuePtr input(size_t i, ValueId outside, std::vector<ValueId>& inputs) {
    inputs.push_back(outside);
    return plain_value(inner_.graph().add_input(fmt::format("{}_{}", body_->function->arguments[i], i), b_.type(outside)));
  }

  ValuePtr unchanged_argument(size_t i) {
    Value& value = *n_.value(i);
    auto inside = std::make_shared<Value>();
    inside->resource = value.resource;
    const auto share = [&](ValueId id) {
      const graph::ConstantPtr constant = n_.scope().graph().constant(id);
      return constant ? inner_.builder().constant(n_.scope().graph().value(id).name, constant) : input(i, id, read_)->plain;
    };
    if (value.tensor()) inside->plain = share(n_.scope().plain(value));
    if (value.list && value.list->items != kNone) {
      inside->list = std::make_shared<TensorList>();
      inside->list->items = share(value.list->items);
      inside->list->count = share(value.list->count);
    }
    return inside;
  }

  bool build_body() {
    graph::Graph& graph = inner_.graph();
    const ValueId iteration = graph.add_input("iteration", graph::Type::tensor(DType::kInt64, {}));
    graph.add_input("condition", graph::Type::tensor(DType::kBool, {}));
    std::vector<ValuePtr> arguments(n_.inputs());
    for (size_t i = 0; i < n_.inputs(); ++i)
      if (roles_[i] == Role::kState) {
        if (!n_.value(i)->tensor()) return fail("a variable that is no tensor");
        arguments[i] = input(i, n_.in(i), carried_);
      }
    inner_.builder().start(std::string(n_.def().name));
    for (size_t i = 0; i < n_.inputs(); ++i) {
      if (roles_[i] == Role::kUnchanged) arguments[i] = unchanged_argument(i);
      if (roles_[i] == Role::kCounter) arguments[i] = plain_value(inner_.builder().cast(iteration, n_.dtype(i)));
      if (roles_[i] == Role::kList) {
        arguments[i] = std::make_shared<Value>();
        arguments[i]->list = std::make_shared<TensorList>();
      }
    }
    arguments_ = arguments;
    const std::vector<ValuePtr> results = n_.importer().call(inner_, body_->function->name, arguments);
    if (inner_.builder().error()) return fail_inside();
    results_ = results;
    return finish_body(results);
  }

  bool finish_body(const std::vector<ValuePtr>& results) {
    graph::Builder& inner = inner_.builder();
    ValueId condition = kNone;
    if (trip_count_ == kNone) {
      const std::vector<ValuePtr> verdict = n_.importer().call(inner_, cond_->function->name, results);
      if (inner.error()) return fail_inside();
      condition = inner_.plain(*verdict.at(0));
    } else {
      const bool yes = true;
      condition = inner.constant(graph::make_constant(DType::kBool, Shape{}, &yes));
    }
    std::vector<ValueId> outputs = {own(condition)};
    for (size_t i = 0; i < results.size(); ++i)
      if (roles_[i] == Role::kState) {
        const ValueId id = inner_.plain(*results[i]);
        if (id == kNone) return fail("a variable that becomes no tensor");
        outputs.push_back(own(id));
      }
    for (size_t i = 0; i < results.size(); ++i) {
      if (roles_[i] != Role::kList) continue;
      const TensorList* const list = results[i]->list.get();
      if (!list || list->written == kNone) return fail("a list of tensors that an iteration leaves as it is");
      if (is_counter(list->place)) {
        if (!same_number(n_.value(i)->list->count, trip_count_)) return fail("a list of tensors that is longer than the loop");
      } else {
        const auto place = inner.known_integers(list->place), count = b_.known_integers(n_.value(i)->list->count);
        if (place != std::vector<int64_t>{0} || count != std::vector<int64_t>{1})
          return fail("a list of tensors that is not filled from its begin to its end");
        last_only_.insert(i);
      }
      outputs.push_back(own(list->written));
    }
    if (inner.error()) return fail_inside();
    inner_.graph().set_outputs(std::move(outputs));
    return true;
  }

  /// The operand outside behind an input of the body that is read.
  ValueId outside_of(ValueId inside) {
    const auto inputs = inner_.graph().inputs();
    const auto place = static_cast<size_t>(std::ranges::find(inputs, inside) - inputs.begin());
    const size_t own = 2 + carried_.size();
    return place >= own && place - own < read_.size() ? read_[place - own] : kNone;
  }

  /// LSTM or GRU over a list of which each turn takes the item at the counter.
  bool emit_layer() {
    const graph::Graph& body = inner_.graph();
    if (trip_count_ == kNone) return false;
    std::vector<ValueId> states, next;
    for (size_t i = 0; i < roles_.size(); ++i)
      if (roles_[i] == Role::kState) {
        states.push_back(arguments_[i]->plain);
        next.push_back(results_[i]->plain);
      }
    const auto cell = find_cell(body, states, next);
    const graph::NodeId item = cell ? body.producer(cell->step) : kNone;
    if (!cell || !body.is(item, Op::kGather) || body.node(item).integer("axis", -1) != 0 || !is_counter(body.input(item, 1))) return false;
    const ValueId steps = outside_of(body.input(item, 0));
    for (size_t i = 0; i < roles_.size(); ++i)
      if (roles_[i] == Role::kList && results_[i]->list->written != next[0]) return false;
    if (steps == kNone || b_.rank(steps) != 3 || b_.dtype(steps) != DType::kFloat32 || !has_length(steps)) return false;
    std::vector<ValueId> operands = {steps, b_.constant(cell->weight), b_.constant(cell->recurrence), b_.constant(cell->bias), kNone};
    for (const ValueId state : carried_) operands.push_back(b_.unsqueeze(state, {0}));
    graph::Attributes attributes{{"hidden_size", cell->units}, {"direction", std::string("forward")}};
    if (cell->op == Op::kGRU) attributes.emplace("linear_before_reset", int64_t{1});
    const auto made = b_.add_with_results(cell->op, cell->op == Op::kGRU ? 2 : 3, operands, std::move(attributes));
    std::vector<ValueId> results;
    results.reserve(carried_.size());
    for (size_t i = 0; i < carried_.size(); ++i) results.push_back(b_.squeeze(made[i + 1], {0}));
    for (size_t i = 0; i < roles_.size(); ++i)
      if (roles_[i] == Role::kList) results.push_back(last_only_.contains(i) ? made[1] : b_.squeeze(made[0], {1}));
    put_out(results, false);
    return true;
  }

  bool has_length(ValueId steps) const {
    const graph::Dims* const count = b_.elements(trip_count_);
    return count && count->size() == 1 && count->front() == (*b_.dims(steps))[0];
  }

  /// A value that this graph computes: an output is no input and no constant.
  ValueId own(ValueId id) {
    const graph::Graph& graph = inner_.graph();
    return graph.constant(id) || graph.producer(id) == kNone ? inner_.builder().add(Op::kIdentity, {id}) : id;
  }

  bool is_counter(ValueId place) const {
    for (size_t i = 0; i < roles_.size(); ++i)
      if (roles_[i] == Role::kCounter && arguments_[i]->plain == place) return true;
    return false;
  }

  bool same_number(ValueId a, ValueId b) const {
    const graph::Dims* const first = b_.elements(a);
    const graph::Dims* const second = b_.elements(b);
    return a != kNone && b != kNone && (a == b || (first && second && *first == *second));
  }

  void emit() {
    std::vector<ValueId> operands = {trip_count_, kNone};
    if (trip_count_ == kNone) {
      std::vector<ValuePtr> initial;
      initial.reserve(n_.inputs());
      for (size_t i = 0; i < n_.inputs(); ++i) initial.push_back(n_.value(i));
      const std::vector<ValuePtr> verdict = n_.importer().call(n_.scope(), cond_->function->name, initial);
      if (b_.error()) return;
      operands[1] = n_.scope().plain(*verdict.at(0));
    }
    operands.insert(operands.end(), carried_.begin(), carried_.end());
    operands.insert(operands.end(), read_.begin(), read_.end());
    const size_t lists = static_cast<size_t>(std::ranges::count(roles_, Role::kList));
    auto body = std::make_shared<const graph::Graph>(std::move(inner_.graph()));
    const graph::Attributes attributes{{"carried", static_cast<int64_t>(carried_.size())}};
    put_out(b_.add_with_bodies(Op::kLoop, carried_.size() + lists, operands, attributes, {body}), true);
  }

  /// `results`: states, then lists. `whole`: lists of one item still have an item for each turn.
  void put_out(const std::vector<ValueId>& results, bool whole) {
    size_t state = 0, list = carried_.size();
    for (size_t i = 0; i < roles_.size(); ++i) {
      auto value = std::make_shared<Value>();
      switch (roles_[i]) {
        case Role::kUnchanged: value = n_.value(i); break;
        case Role::kState: value->plain = results[state++]; break;
        case Role::kCounter:
          if (trip_count_ != kNone) value->plain = b_.cast(trip_count_, n_.dtype(i));
          break;
        case Role::kList: {
          const ValueId items = results[list++];
          value->list = std::make_shared<TensorList>();
          value->list->items = whole && last_only_.contains(i) ? b_.slice(items, 0, -1, INT64_MAX) : items;
          value->list->count = n_.value(i)->list->count;
          break;
        }
      }
      n_.out_value(std::move(value));
    }
  }

  bool fail(std::string_view problem) {
    n_.unsupported(problem);
    return false;
  }
  bool fail_inside() {
    b_.fail(inner_.builder().error()->code, inner_.builder().error()->message);
    return false;
  }

  NodeImport& n_;
  graph::Builder& b_;
  const Body* cond_ = nullptr;
  const Body* body_ = nullptr;
  std::vector<Role> roles_;
  std::set<size_t> last_only_;  // lists of one item
  ValueId trip_count_ = kNone;
  Scope inner_;
  std::vector<ValuePtr> arguments_, results_;  // of the body
  std::vector<ValueId> carried_, read_;        // operands, outside
};

}  // namespace

void import_while(NodeImport& n, Op) { While(n).run(); }

}  // namespace serin::formats::tf
