// program.h: an exported program of torch, as the archive's JSON states it: nodes, types of their results, inputs and outputs.
//
// The arguments of nodes stay JSON, as {"as_int": 3}: node_import.h reads them by the kind that the operator needs.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/formats/json_document.h"
#include "runtime/graph/graph.h"

namespace serin::formats::torch {

/// The type of a number in ScalarType of torch/_export/serde/schema.py; of a complex one, that of its parts. Nothing for quantised ones.
std::optional<DType> dtype_of(int64_t scalar_type);
bool is_complex_type(int64_t scalar_type);

struct TensorMeta {
  DType dtype = DType::kUndefined;  ///< of complex numbers: of their parts
  bool complex = false;             ///< the value has one more axis at its end: real and imaginary part
  graph::Dims sizes;                ///< an expression that a Dim cannot express is a symbol of its own
  std::vector<std::optional<int64_t>> strides;
  std::optional<int64_t> storage_offset;
};

/// {"as_tensor": {"name": "x"}}: the kind of an argument, and its value.
struct Argument {
  std::string kind;
  Json value;

  static Argument of(const Json& json);
};

struct ProgramNode {
  std::string target;  ///< "torch.ops.aten.relu.default"
  std::string name;    ///< of the first result, for errors
  std::map<std::string, Argument, std::less<>> arguments;
  std::vector<Argument> positional;  ///< all arguments in their order: operators of Python have no names for theirs
  std::vector<Argument> results;
};

struct ProgramGraph {
  std::vector<Argument> inputs, outputs;
  std::vector<ProgramNode> nodes;
  std::map<std::string, TensorMeta, std::less<>> tensors;

  /// Null if the program declares none of that name.
  const TensorMeta* meta(std::string_view name) const;
  bool is_complex(std::string_view name) const;
  /// Whether a node reads or makes complex numbers.
  bool is_complex(const ProgramNode& node) const;
};

/// The names of the tensors that an argument or a result has; empty where a list has None.
std::vector<std::string> tensor_names(const Argument& argument);

/// The graph of a program or of an argument {"as_graph": ...}. kCorrupt if a part is missing or of another kind.
Result<ProgramGraph> read_graph(const Json& json);

enum class InputKind : uint8_t { kUser, kParameter, kConstant, kNumber };

struct ProgramInput {
  InputKind kind;
  std::string name;    ///< in the graph
  std::string source;  ///< of a parameter, buffer or constant: its name in the module
  Json number;         ///< of a number: {"as_int": 1}
};

struct Program {
  ProgramGraph graph;
  std::vector<ProgramInput> inputs;  ///< in the order of the graph's
  std::vector<std::string> outputs;  ///< names of values, in the order of the user's
};

/// kUnsupported for a schema of another major version, and for programs that change their parameters, buffers or inputs.
Result<Program> read_program(const Json& json);

/// The sizes of the value that stands for a tensor: those of complex numbers have an axis for the parts.
graph::Dims value_sizes(const TensorMeta& meta);

/// The type of a tensor: {"dtype": 7, "sizes": [{"as_int": 3}, {"as_expr": {"expr_str": "s0"}}], ...}.
Result<TensorMeta> read_tensor_meta(const Json& json);

/// "Add(Symbol('s0'), Integer(1))". Nothing for a function that Dims do not have.
std::optional<graph::Dim> parse_expression(std::string_view text);

}  // namespace serin::formats::torch
