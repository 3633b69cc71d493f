// program.cc: the JSON of torch's serialised programs as structs. schema.py of torch/_export/serde lists the fields; only those that change
// the results are read.

#include "runtime/formats/torch/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace serin::formats::torch {
namespace {

constexpr int64_t kMajorVersion = 8;

Error bad_program(std::string_view problem) { return {Code::kCorrupt, fmt::format("the program {}", problem)}; }

Result<graph::Dim> size_of(const Json& json) {
  if (const auto number = json["as_int"].integer()) {
    if (*number < 0) return bad_program(fmt::format("has a tensor of size {}", *number));
    return graph::Dim(*number);
  }
  const auto text = json["as_expr"]["expr_str"].text();
  if (!text || text->empty()) return bad_program("has a size that is neither a number nor an expression");
  const auto dim = parse_expression(*text);
  return dim ? *dim : graph::Dim::symbol(*text);
}

Result<std::vector<Argument>> arguments_of(const Json& json, std::string_view what) {
  if (!json.is_array()) return bad_program(fmt::format("has no list of {}", what));
  std::vector<Argument> arguments;
  for (const Json& each : json.items()) arguments.push_back(Argument::of(each));
  return arguments;
}

Result<ProgramNode> read_node(const Json& json) {
  ProgramNode node;
  const auto target = json["target"].text();
  if (!target || !json["inputs"].is_array()) return bad_program("has a node without a target or inputs");
  node.target = *target;
  for (const Json& each : json["inputs"].items()) {
    const auto name = each["name"].text();
    if (!name) return bad_program(fmt::format("has an argument without a name, of a node '{}'", *target));
    const Argument argument = Argument::of(each["arg"]);
    node.positional.push_back(argument);
    if (!name->empty() && !node.arguments.try_emplace(*name, argument).second)
      return bad_program(fmt::format("gives argument '{}' twice to a node '{}'", *name, *target));
  }
  SERIN_TRY(node.results, arguments_of(json["outputs"], "results"));
  if (!node.results.empty()) {
    const Json& first = node.results[0].value;
    const Json named = first.is_array() && first.size() > 0 ? *first.items().begin() : first;
    node.name = named["name"].text().value_or(named["as_name"].text_or(""));
  }
  if (node.name.empty()) node.name = json["name"].text_or(node.target);
  return node;
}

/// A parameter, buffer or constant: the fields of its specification.
struct StoredInput {
  const char* key;
  const char* source;
};
constexpr std::array kStoredInputs = {StoredInput{"parameter", "parameter_name"}, StoredInput{"buffer", "buffer_name"},
                                      StoredInput{"tensor_constant", "tensor_constant_name"}};

Result<ProgramInput> read_input(const Json& spec) {
  if (const Json user = spec["user_input"]) {
    const Argument argument = Argument::of(user["arg"]);
    if (argument.kind == "as_tensor") return ProgramInput{InputKind::kUser, argument.value["name"].text_or(""), {}, {}};
    return Error{Code::kUnsupported,
                 fmt::format("an input that is no tensor ({}); make it a constant of the model before the export", argument.kind)};
  }
  for (const StoredInput& stored : kStoredInputs)
    if (const Json found = spec[stored.key])
      return ProgramInput{std::string_view(stored.key) == "tensor_constant" ? InputKind::kConstant : InputKind::kParameter,
                          found["arg"]["name"].text_or(""),
                          found[stored.source].text_or(""),
                          {}};
  if (const Json constant = spec["constant_input"])
    return ProgramInput{InputKind::kNumber, constant["name"].text_or(""), {}, constant["value"]};
  const std::string kind = spec.is_object() && spec.size() > 0 ? (*spec.members().begin()).key : "none";
  return Error{Code::kUnsupported, fmt::format("an input of kind '{}'", kind)};
}

Result<std::string> read_output(const Json& spec) {
  if (const Json user = spec["user_output"]) {
    const Argument argument = Argument::of(user["arg"]);
    const auto name = argument.value["name"].text();
    if (argument.kind == "as_tensor" && name) return *name;
    if (argument.kind == "as_none") return std::string();
    return Error{Code::kUnsupported, fmt::format("an output that is no tensor ({})", argument.kind)};
  }
  const std::string kind = spec.is_object() && spec.size() > 0 ? (*spec.members().begin()).key : "none";
  return Error{Code::kUnsupported,
               fmt::format("a program with state ('{}'): a request must not change the model; call model.eval() before the export", kind)};
}

}  // namespace

std::optional<DType> dtype_of(int64_t scalar_type) {
  switch (scalar_type) {
    case 1: return DType::kUInt8;
    case 2: return DType::kInt8;
    case 3: return DType::kInt16;
    case 4: return DType::kInt32;
    case 5: return DType::kInt64;
    case 6: return DType::kFloat16;
    case 7: return DType::kFloat32;
    case 8: return DType::kFloat64;
    case 9: return DType::kFloat16;
    case 10: return DType::kFloat32;
    case 11: return DType::kFloat64;
    case 12: return DType::kBool;
    case 13: return DType::kBFloat16;
    case 28: return DType::kUInt16;
    default: return std::nullopt;
  }
}

bool is_complex_type(int64_t scalar_type) { return scalar_type >= 9 && scalar_type <= 11; }

graph::Dims value_sizes(const TensorMeta& meta) {
  graph::Dims sizes = meta.sizes;
  if (meta.complex) sizes.emplace_back(2);
  return sizes;
}

std::vector<std::string> tensor_names(const Argument& argument) {
  const std::string& kind = argument.kind;
  if (kind == "as_tensor") return {argument.value["name"].text_or("")};
  if (kind == "as_optional_tensor") return {argument.value["as_tensor"]["name"].text_or("")};
  std::vector<std::string> names;
  if (kind != "as_tensors" && kind != "as_optional_tensors") return names;
  for (const Json& each : argument.value.items()) names.push_back((kind == "as_tensors" ? each : each["as_tensor"])["name"].text_or(""));
  return names;
}

const TensorMeta* ProgramGraph::meta(std::string_view name) const {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

bool ProgramGraph::is_complex(std::string_view name) const {
  const TensorMeta* const declared = meta(name);
  return declared && declared->complex;
}

bool ProgramGraph::is_complex(const ProgramNode& node) const {
  const auto has = [&](const Argument& argument) {
    return std::ranges::any_of(tensor_names(argument), [&](const std::string& name) { return is_complex(name); });
  };
  return std::ranges::any_of(node.positional, has) || std::ranges::any_of(node.results, has);
}

Argument Argument::of(const Json& json) {
  if (!json.is_object() || json.size() != 1) return {};
  const Json::Member member = *json.members().begin();
  return {member.key, member.value};
}

Result<TensorMeta> read_tensor_meta(const Json& json) {
  TensorMeta meta;
  const auto scalar_type = json["dtype"].integer();
  const auto dtype = scalar_type ? dtype_of(*scalar_type) : std::nullopt;
  if (!scalar_type || !json["sizes"].is_array()) return bad_program("has a tensor without a type or sizes");
  if (!dtype) return Error{Code::kUnsupported, fmt::format("a tensor of torch's type {}", *scalar_type)};
  if (const auto layout = json["layout"].integer(); layout && *layout != 7) return Error{Code::kUnsupported, "a sparse tensor"};
  meta.dtype = *dtype;
  meta.complex = is_complex_type(*scalar_type);
  if (json["sizes"].size() + (meta.complex ? 1 : 0) > Shape::kMaxRank)
    return bad_program(fmt::format("has a tensor of rank {}", json["sizes"].size()));
  for (const Json& size : json["sizes"].items()) {
    SERIN_TRY(const graph::Dim dim, size_of(size));
    meta.sizes.push_back(dim);
  }
  for (const Json& stride : json["strides"].items()) meta.strides.push_back(stride["as_int"].integer());
  meta.storage_offset = json["storage_offset"]["as_int"].integer();
  return meta;
}

Result<ProgramGraph> read_graph(const Json& json) {
  ProgramGraph graph;
  SERIN_TRY(graph.inputs, arguments_of(json["inputs"], "inputs"));
  SERIN_TRY(graph.outputs, arguments_of(json["outputs"], "outputs"));
  if (!json["nodes"].is_array() || !json["tensor_values"].is_object()) return bad_program("has no nodes or no types");
  for (const Json& each : json["nodes"].items()) {
    SERIN_TRY(ProgramNode node, read_node(each));
    graph.nodes.push_back(std::move(node));
  }
  for (const auto& [name, value] : json["tensor_values"].members()) {
    auto meta = read_tensor_meta(value);
    if (!meta) return meta.error().in(fmt::format("'{}'", name));
    graph.tensors.emplace(name, std::move(*meta));
  }
  return graph;
}

Result<Program> read_program(const Json& json) {
  const auto major = json["schema_version"]["major"].integer();
  if (!major) return bad_program("does not say of which version its schema is");
  if (*major != kMajorVersion)
    return Error{Code::kUnsupported,
                 fmt::format("a program of schema {}; version {} is read (torch 2.5 and later)", *major, kMajorVersion)};
  Program program;
  const Json module = json["graph_module"];
  SERIN_TRY(program.graph, read_graph(module["graph"]));
  const Json signature = module["signature"];
  if (!signature["input_specs"].is_array() || !signature["output_specs"].is_array()) return bad_program("has no signature");
  for (const Json& spec : signature["input_specs"].items()) {
    SERIN_TRY(ProgramInput input, read_input(spec));
    if (input.name.empty()) return bad_program("has an input without a name");
    program.inputs.push_back(std::move(input));
  }
  for (const Json& spec : signature["output_specs"].items()) {
    SERIN_TRY(std::string output, read_output(spec));
    if (!output.empty()) program.outputs.push_back(std::move(output));
  }
  if (program.outputs.empty()) return bad_program("has no outputs");
  return program;
}

}  // namespace serin::formats::torch
