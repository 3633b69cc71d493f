// control_operators.cc: constants, variables, calls, branches, and lists of tensors. Loops are in loop_operators.cc.

#include <fmt/format.h>

#include <algorithm>

#include "runtime/formats/tensorflow/import.h"
#include "runtime/formats/tensorflow/loop.h"
#include "runtime/formats/tensorflow/operators.h"

namespace serin::formats::tf {

using graph::Op;

namespace {

void import_const(NodeImport& n, Op) {
  const Attr* const value = n.attr("value");
  if (!value || !value->tensor) return n.corrupt("has no value");
  const auto constant = n.importer().state().constant(*value->tensor);
  if (!constant) return n.builder().fail(constant.error().code, constant.error().message);
  n.out(n.builder().constant(std::string(n.def().name), *constant));
}

void import_handle(NodeImport& n, Op) {
  n.out_value(std::make_shared<Value>(Value{.plain = kNone, .first = kNone, .resource = &n.def(), .list = nullptr}));
}

ValuePtr value_of_variable(NodeImport& n, const NodeDef* handle) {
  ValuePtr& value = n.scope().variables[handle];
  if (value) return value;
  value = plain_value(kNone);
  const auto constant = n.importer().state().variable(*handle);
  if (!constant)
    n.builder().fail(constant.error().code, constant.error().message);
  else
    value->plain = n.builder().constant(std::string(handle->name), *constant);
  return value;
}

ValuePtr read_variable(NodeImport& n, size_t i) {
  const NodeDef* const handle = n.value(i)->resource;
  if (handle) return value_of_variable(n, handle);
  n.corrupt(fmt::format("operand {} is no variable", i));
  return plain_value(kNone);
}

/// A variable of TensorFlow 1 is read by its name.
void import_old_variable(NodeImport& n, Op) { n.out_value(value_of_variable(n, &n.def())); }

void import_read_variable(NodeImport& n, Op) { n.out_value(read_variable(n, 0)); }

void import_resource_gather(NodeImport& n, Op) {
  if (n.integer("batch_dims", 0) != 0) return n.unsupported("batch_dims");
  const ValuePtr table = read_variable(n, 0);
  n.out(n.builder().add(Op::kGather, {n.scope().plain(*table), n.in(1)}, {{"axis", int64_t{0}}}));
}

void import_placeholder(NodeImport& n, Op) { n.unsupported("is no input of the signature"); }

std::string_view callee_of(NodeImport& n, std::string_view key) {
  const Attr* const attr = n.attr(key);
  if (!attr || attr->function.empty()) n.corrupt(fmt::format("attribute '{}' names no function", key));
  return attr ? attr->function : std::string_view();
}

std::vector<ValuePtr> operands_from(NodeImport& n, size_t begin) {
  std::vector<ValuePtr> operands;
  for (size_t i = begin; i < n.inputs(); ++i) operands.push_back(n.value(i));
  return operands;
}

void import_call(NodeImport& n, Op) {
  const std::string_view callee = callee_of(n, "f");
  for (ValuePtr& result : n.importer().call(n.scope(), callee, operands_from(n, 0))) n.out_value(std::move(result));
}

/// The branches have the same operands; those that are constants are shared with them.
void import_if(NodeImport& n, Op op) {
  graph::Builder& b = n.builder();
  const std::string_view callees[] = {callee_of(n, "then_branch"), callee_of(n, "else_branch")};
  const std::vector<ValuePtr> operands = operands_from(n, 1);
  const graph::ConstantPtr condition = n.scope().graph().constant(n.in(0));
  if (condition && condition->elements() == 1) {
    const auto number = graph::number_of(*condition);
    const auto integers = graph::integers_of(*condition);
    const bool yes = integers ? integers->front() != 0 : number.value_or(0) != 0;
    for (ValuePtr& result : n.importer().call(n.scope(), callees[yes ? 0 : 1], operands)) n.out_value(std::move(result));
    return;
  }
  std::vector<std::string> names;
  names.reserve(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) names.push_back(fmt::format("operand_{}", i));
  std::vector<std::shared_ptr<const graph::Graph>> bodies;
  std::vector<ValueId> inputs = {b.cast(n.in(0), DType::kBool)};
  size_t results = 0;
  for (const std::string_view callee : callees) {
    Importer::ClosedBody body = n.importer().open_body(n.scope(), operands, names);
    std::vector<ValueId> outputs;
    for (const ValuePtr& result : n.importer().call(*body.scope, callee, body.arguments)) {
      ValueId id = body.scope->plain(*result);
      if (id == kNone)
        return body.scope->builder().error() ? b.fail(body.scope->builder().error()->code, body.scope->builder().error()->message)
                                             : n.unsupported("a branch gives what is no tensor");
      const auto& graph = body.scope->graph();
      if (graph.constant(id) || graph.producer(id) == kNone) id = body.scope->builder().add(Op::kIdentity, {id});
      outputs.push_back(id);
    }
    if (const auto& error = body.scope->builder().error()) return b.fail(error->code, error->message);
    if (bodies.empty()) {
      results = outputs.size();
      for (const size_t i : body.inputs) inputs.push_back(n.scope().plain(*operands[i]));
    } else if (outputs.size() != results) {
      return n.corrupt("its branches give different numbers of results");
    }
    body.scope->graph().set_outputs(std::move(outputs));
    bodies.push_back(std::make_shared<const graph::Graph>(std::move(body.scope->graph())));
  }
  for (const ValueId result : b.add_with_bodies(op, results, inputs, {}, bodies)) n.out(result);
}

// ---- lists of tensors ----

ValuePtr list_value(const TensorList& list) {
  auto value = std::make_shared<Value>();
  value->list = std::make_shared<TensorList>(list);
  return value;
}

TensorList* list_operand(NodeImport& n, size_t i) {
  TensorList* const list = n.value(i)->list.get();
  if (!list) n.unsupported(fmt::format("operand {} is no list of tensors", i));
  return list;
}

ValueId list_items(NodeImport& n, size_t i) {
  TensorList* const list = list_operand(n, i);
  if (list && list->items == kNone) n.unsupported("reads a list of tensors before all of it is written");
  return list ? list->items : kNone;
}

void import_list_from_tensor(NodeImport& n, Op) {
  graph::Builder& b = n.builder();
  const ValueId items = n.in(0);
  const ValueId count =
      b.add(Op::kGather, {b.add(Op::kShape, {items}), b.constant(graph::make_scalar(DType::kInt64, 0))}, {{"axis", int64_t{0}}});
  n.out_value(list_value({items, count, kNone, kNone}));
}

void import_list_reserve(NodeImport& n, Op) { n.out_value(list_value({kNone, n.builder().cast(n.in(1), DType::kInt64), kNone, kNone})); }

void import_list_get(NodeImport& n, Op) {
  const ValueId items = list_items(n, 0);
  if (items != kNone) n.out(n.builder().add(Op::kGather, {items, n.in(1)}, {{"axis", int64_t{0}}}));
}

void import_list_stack(NodeImport& n, Op) { n.out(list_items(n, 0)); }

void import_list_length(NodeImport& n, Op) {
  const TensorList* const list = list_operand(n, 0);
  if (list) n.out(n.builder().cast(list->count, DType::kInt32));
}

/// In the body of a loop the item becomes the part of the result that this iteration adds.
void import_list_set(NodeImport& n, Op) {
  const TensorList* const list = list_operand(n, 0);
  if (!list) return;
  if (list->items != kNone || list->written != kNone) return n.unsupported("writes a list of tensors twice in a step");
  n.out_value(list_value({kNone, list->count, n.in(2), n.in(1)}));
}

constexpr OperatorRow kControl[] = {
    {"Const", 0, 0, import_const},
    {"HashTable", 0, 0, import_handle},
    {"HashTableV2", 0, 0, import_handle},
    {"If", 1, -1, import_if, Op::kIf},
    {"MutableHashTableV2", 0, 0, import_handle},
    {"PartitionedCall", 0, -1, import_call},
    {"Placeholder", 0, 0, import_placeholder},
    {"ReadVariableOp", 1, 1, import_read_variable},
    {"ResourceGather", 2, 2, import_resource_gather},
    {"StatefulPartitionedCall", 0, -1, import_call},
    {"StatelessIf", 1, -1, import_if, Op::kIf},
    {"StatelessWhile", 1, -1, import_while},
    {"TensorListFromTensor", 2, 2, import_list_from_tensor},
    {"TensorListGetItem", 3, 3, import_list_get},
    {"TensorListLength", 1, 1, import_list_length},
    {"TensorListReserve", 2, 2, import_list_reserve},
    {"TensorListSetItem", 3, 3, import_list_set},
    {"TensorListStack", 2, 2, import_list_stack},
    {"VarHandleOp", 0, 0, import_handle},
    {"Variable", 0, 0, import_old_variable},
    {"VariableV2", 0, 0, import_old_variable},
    {"While", 1, -1, import_while},
};

}  // namespace

std::span<const OperatorRow> control_operators() { return kControl; }

}  // namespace serin::formats::tf
