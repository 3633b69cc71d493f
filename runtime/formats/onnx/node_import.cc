// node_import.cc: finds operands by scope and attributes by name and type, and puts results into the graph.

#include "runtime/formats/onnx/node_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include "runtime/formats/onnx/names.h"

namespace serin::formats::onnx {
namespace {

std::string_view type_name(AttributeProto::Type type) {
  constexpr std::array<std::string_view, 16> kNames = {
      "nothing", "a float", "an integer", "a string",        "a tensor",       "a graph", "floats", "integers",
      "strings", "tensors", "graphs",     "a sparse tensor", "sparse tensors", "a type",  "types",  "of a type that is not supported"};
  return kNames[static_cast<size_t>(type)];
}

}  // namespace

NodeImport::NodeImport(Scope& scope, const NodeProto& proto, std::string name, std::string_view copied)
    : scope_(scope), proto_(proto), copied_(copied), name_(std::move(name)) {
  for (const std::string_view input : proto.inputs) inputs_.push_back(input.empty() ? graph::kNone : scope.find(input));
  while (!inputs_.empty() && inputs_.back() == graph::kNone) inputs_.pop_back();  // trailing absent operands say nothing
}

void NodeImport::set_input(size_t i, graph::ValueId value) {
  if (i >= inputs_.size()) inputs_.resize(i + 1, graph::kNone);
  inputs_[i] = value;
  while (!inputs_.empty() && inputs_.back() == graph::kNone) inputs_.pop_back();
}

int64_t NodeImport::opset() const { return scope_.opsets().standard; }

int64_t NodeImport::domain_version() const {
  if (without_alias(proto_.domain).empty()) return opset();
  const auto found = scope_.opsets().others.find(proto_.domain);
  return found == scope_.opsets().others.end() ? 1 : found->second;
}

graph::ConstantPtr NodeImport::constant(size_t i) const { return scope_.graph().constant(input(i)); }

std::optional<size_t> NodeImport::rank(size_t i) const {
  if (input(i) == graph::kNone) return std::nullopt;
  const graph::Type& type = scope_.graph().value(input(i)).type;
  return type.shape ? std::optional<size_t>(type.shape->size()) : std::nullopt;
}

std::optional<size_t> NodeImport::inferred_rank(size_t i) {
  if (input(i) == graph::kNone || rank(i)) return rank(i);
  if (!graph::infer_shapes(scope_.graph())) return std::nullopt;  // what is wrong is said once the graph is whole
  return rank(i);
}

bool NodeImport::has(std::string_view key) {
  return std::ranges::any_of(proto_.attributes, [&](const AttributeProto& attribute) { return attribute.name == key; });
}

const AttributeProto* NodeImport::attribute(std::string_view key) {
  const auto found = std::ranges::find(proto_.attributes, key, &AttributeProto::name);
  if (found == proto_.attributes.end()) return nullptr;
  seen_.insert(found->name);
  if (found->reference) corrupt(fmt::format("attribute {} refers to one of a function, and this is none", quote(key)));
  return &*found;
}

const AttributeProto* NodeImport::find(std::string_view key, AttributeProto::Type type) {
  const AttributeProto* const found = attribute(key);
  if (!found || found->type == type) return found;
  corrupt(fmt::format("attribute {} is {}, not {}", quote(key), type_name(found->type), type_name(type)));
  return nullptr;
}

int64_t NodeImport::integer(std::string_view key, int64_t fallback) {
  const AttributeProto* const found = find(key, AttributeProto::Type::kInt);
  return found ? found->i : fallback;
}

int64_t NodeImport::required_integer(std::string_view key) {
  if (!has(key)) corrupt(fmt::format("attribute '{}' is missing", key));
  return integer(key, 0);
}

double NodeImport::number(std::string_view key, double fallback) {
  const AttributeProto* const found = find(key, AttributeProto::Type::kFloat);
  return found ? static_cast<double>(found->f) : fallback;
}

std::string NodeImport::text(std::string_view key, std::string_view fallback) {
  const AttributeProto* const found = find(key, AttributeProto::Type::kString);
  return std::string(found ? found->s : fallback);
}

std::optional<std::vector<int64_t>> NodeImport::integers(std::string_view key) {
  const AttributeProto* const found = find(key, AttributeProto::Type::kInts);
  if (!found) return std::nullopt;
  return found->ints;
}

std::optional<std::vector<double>> NodeImport::numbers(std::string_view key) {
  const AttributeProto* const found = find(key, AttributeProto::Type::kFloats);
  if (!found) return std::nullopt;
  return std::vector<double>(found->floats.begin(), found->floats.end());
}

std::optional<std::vector<std::string>> NodeImport::texts(std::string_view key) {
  const AttributeProto* const found = find(key, AttributeProto::Type::kStrings);
  if (!found) return std::nullopt;
  return std::vector<std::string>(found->strings.begin(), found->strings.end());
}

graph::Attributes NodeImport::copied_attributes() {
  using Type = AttributeProto::Type;
  graph::Attributes copied;
  for (const auto part : std::views::split(copied_, ' ')) {
    const std::string key(part.begin(), part.end());
    const AttributeProto* const found = attribute(key);
    if (!found) continue;
    switch (found->type) {
      case Type::kInt: copied.emplace(key, found->i); break;
      case Type::kFloat: copied.emplace(key, static_cast<double>(found->f)); break;
      case Type::kString: copied.emplace(key, std::string(found->s)); break;
      case Type::kInts: copied.emplace(key, found->ints); break;
      case Type::kFloats: copied.emplace(key, *numbers(key)); break;
      case Type::kStrings: copied.emplace(key, *texts(key)); break;
      default: corrupt(fmt::format("attribute {} is {}", quote(key), type_name(found->type)));
    }
  }
  return copied;
}

graph::ConstantPtr NodeImport::tensor(std::string_view key) {
  const AttributeProto* const found = find(key, AttributeProto::Type::kTensor);
  return found ? constant_or_fail(key, scope_.tensors().read_shared(*found->t)) : nullptr;
}

graph::ConstantPtr NodeImport::sparse_tensor(std::string_view key) {
  const AttributeProto* const found = find(key, AttributeProto::Type::kSparseTensor);
  return found ? constant_or_fail(key, scope_.tensors().read(*found->sparse)) : nullptr;
}

graph::ConstantPtr NodeImport::constant_or_fail(std::string_view key, const Result<graph::ConstantPtr>& constant) {
  if (constant) return *constant;
  const Error error = constant.error().in(fmt::format("attribute '{}'", key));
  fail(error.code, error.message);
  return nullptr;
}

const GraphProto* NodeImport::body(std::string_view key) {
  const AttributeProto* const found = find(key, AttributeProto::Type::kGraph);
  if (!found) corrupt(fmt::format("attribute '{}' is missing", key));
  return found ? found->g.get() : nullptr;
}

graph::NodeId NodeImport::emit(graph::Op op, std::vector<graph::ValueId> inputs, graph::Attributes attributes) {
  graph::Graph& graph = scope_.graph();
  while (!inputs.empty() && inputs.back() == graph::kNone) inputs.pop_back();
  const int declared = graph::schema(op).outputs;  // an optional output that the canonical operator does not have was refused before
  const size_t outputs = declared > 0 ? static_cast<size_t>(declared) : output_count();
  const graph::NodeId id = graph.add_node(op, name_, std::move(inputs), std::move(attributes), outputs);
  for (size_t i = 0; i < std::min(outputs, output_count()); ++i)
    if (wants_output(i)) scope_.define(proto_.outputs[i], graph.output(id, i));
  return id;
}

graph::ValueId NodeImport::step(graph::Op op, std::string_view step, std::vector<graph::ValueId> inputs, graph::Attributes attributes) {
  graph::Graph& graph = scope_.graph();
  return graph.output(graph.add_node(op, fmt::format("{}/{}", name_, step), std::move(inputs), std::move(attributes)));
}

graph::ValueId NodeImport::step_constant(std::string_view step, graph::ConstantPtr constant) {
  return scope_.graph().add_constant(fmt::format("{}/{}", name_, step), std::move(constant));
}

void NodeImport::emit_constant(size_t i, graph::ConstantPtr constant) {
  if (!wants_output(i) || !constant) return;
  scope_.define(proto_.outputs[i], scope_.graph().add_constant(std::string(proto_.outputs[i]), std::move(constant)));
}

void NodeImport::fail(Code code, std::string_view what) {
  if (!error_) error_ = Error{code, std::string(what)};
}

std::optional<std::string_view> NodeImport::unread_attribute() const {
  for (const AttributeProto& attribute : proto_.attributes)
    if (!seen_.contains(attribute.name)) return attribute.name;
  return std::nullopt;
}

}  // namespace serin::formats::onnx
