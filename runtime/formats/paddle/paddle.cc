// paddle.cc: reads a program and its parameters, and makes a graph of them.

#include "runtime/formats/paddle/paddle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <vector>

#include "runtime/formats/input_file.h"
#include "runtime/formats/paddle/block.h"
#include "runtime/formats/paddle/operators.h"
#include "runtime/formats/paddle/params.h"
#include "runtime/formats/paddle/pir.h"
#include "runtime/formats/paddle/program_desc.h"
#include "runtime/formats/paddle/scope.h"
#include "runtime/formats/recognise.h"
#include "runtime/formats/unsupported.h"
#include "runtime/graph/ops/equal_sizes.h"

namespace serin::formats {
namespace {

using namespace paddle;
namespace fs = std::filesystem;

constexpr size_t kPartsOfAnOperation = 32;
constexpr int kDeepestBody = 24;

Result<Program> read_program(const std::string& path, const PaddleLimits& limits) {
  SERIN_TRY(const InputFile file, InputFile::open(path));
  SERIN_TRY(const std::vector<std::byte> bytes, file.read_all(limits.program_bytes));
  const bool pir = path.ends_with(".json");
  auto program = pir ? read_pir({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, limits.operations)
                     : read_program_desc(bytes, kPartsOfAnOperation * limits.operations);
  if (program || program.error().code != Code::kCorrupt) return program;
  const auto other = recognise(bytes);
  if (other && !(pir && other->starts_with("a JSON"))) return Error{Code::kCorrupt, "not a program of Paddle but " + *other};
  return program.error().in("not a program of Paddle, or a damaged one");
}

/// Bodies come after the block that runs them, and belong to one operation: so there are no cycles.
Status check_blocks(const Program& program) {
  std::set<size_t> taken;
  std::vector<int> depth(program.blocks.size(), 0);
  for (size_t i = 0; i < program.blocks.size(); ++i) {
    for (const Operation& op : program.blocks[i].operations) {
      for (const size_t body : op.blocks) {
        if (body <= i || body >= program.blocks.size() || !taken.insert(body).second)
          return Error{Code::kCorrupt,
                       fmt::format("operation '{}' ({}) runs block {}, which is not a body of its own", op.name, op.type, body)};
        depth[body] = depth[i] + 1;
        if (depth[body] > kDeepestBody) return Error{Code::kUnsupported, fmt::format("bodies nest more than {} deep", kDeepestBody)};
      }
    }
  }
  return {};
}

Status check_operators(const Program& program) {
  std::vector<std::string> unknown;
  for (const Block& block : program.blocks)
    for (const Operation& op : block.operations)
      if (!find_operator(program, op.type)) unknown.push_back(fmt::format("'{}' ({})", op.name, op.type));
  if (unknown.empty()) return {};
  return unsupported_nodes(unknown, "operation uses an operator that is", "operations use operators that are");
}

/// PaddleDetection calls the parameters of __model__ __params__.
Result<Parameters> read_parameters(const std::string& path, const Program& program) {
  if (program.parameters.empty()) return Parameters{};
  const fs::path model(path);
  const std::string folder = model.has_parent_path() ? model.parent_path().string() : ".";
  std::error_code ignored;
  if (model.extension().empty()) {
    for (const char* const name : {"__params__", "params"})
      if (fs::exists(fs::path(folder) / name, ignored)) return read_combined((fs::path(folder) / name).string(), program);
    return read_separate(folder, program);
  }
  fs::path combined = model;
  combined.replace_extension(".pdiparams");
  if (fs::exists(combined, ignored)) return read_combined(combined.string(), program);
  const fs::path trained = fs::path(model).replace_extension(".pdparams");
  const bool pickled = fs::exists(trained, ignored);
  return Error{
      Code::kNotFound,
      fmt::format(
          "its {} parameters are in '{}', which is not next to it{}", program.parameters.size(), combined.filename().string(),
          pickled ? fmt::format(" ('{}' is a Python pickle of training; export both with paddle.jit.save(layer, 'NAME', input_spec=[...]))",
                                trained.filename().string())
                  : "")};
}

/// A name of letters, digits and underscores.
std::string symbol_from(std::string_view name) {
  std::string symbol(name);
  for (char& c : symbol)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return symbol.empty() || std::isdigit(static_cast<unsigned char>(symbol[0])) != 0 ? "_" + symbol : symbol;
}

Result<graph::Type> input_type(const Named& feed, const Declared& declared, const graph::EqualSizes& equal) {
  if (declared.dtype == DType::kUndefined) return Error{Code::kUnsupported, fmt::format("input '{}' is no tensor", feed.name)};
  if (!Shape::fits(declared.dims.size()))
    return Error{Code::kUnsupported, fmt::format("input '{}' has {} dimensions", feed.name, declared.dims.size())};
  graph::Dims dims;
  for (size_t axis = 0; axis < declared.dims.size(); ++axis) {
    const int64_t size = declared.dims[axis];
    if (size >= 0) {
      dims.emplace_back(size);
      continue;
    }
    const std::string symbol = axis == 0 ? "batch" : fmt::format("{}_d{}", symbol_from(feed.name), axis);
    const auto other = equal.find(symbol);
    dims.push_back(graph::Dim::symbol(other == equal.end() ? symbol : other->second));
  }
  return graph::Type::tensor(declared.dtype, std::move(dims));
}

/// In the order of their columns; each column once.
Status sort_by_column(std::vector<Named>& list, std::string_view kind) {
  std::ranges::stable_sort(list, {}, &Named::column);
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].column != static_cast<int64_t>(i))
      return Error{Code::kCorrupt, fmt::format("its {} are not numbered one after another", kind)};
  return {};
}

/// `equal`: sizes that have one symbol.
Result<graph::Graph> make_graph(Program& program, const Parameters& parameters, const graph::EqualSizes& equal) {
  if (program.feeds.empty()) return Error{Code::kCorrupt, "has no inputs (feed): it was not saved for inference"};
  if (program.fetches.empty()) return Error{Code::kCorrupt, "has no outputs (fetch): it was not saved for inference"};
  if (!program.pir) SERIN_CHECK(sort_by_column(program.feeds, "inputs"));
  SERIN_CHECK(sort_by_column(program.fetches, "outputs"));

  graph::Graph graph;
  Scope scope(program, graph);
  std::set<std::string, std::less<>> names;
  for (const Named& feed : program.feeds) {
    if (!names.insert(feed.name).second) return Error{Code::kCorrupt, fmt::format("has input '{}' twice", feed.name)};
    SERIN_TRY(graph::Type type, input_type(feed, scope.declared(feed.value), equal));
    scope.values[feed.value] = graph.add_input(feed.name, std::move(type));
  }
  for (const Named& parameter : program.parameters)
    scope.values[parameter.value] = scope.b.constant(parameter.name, parameters.find(parameter.name)->second);
  for (const Named& parameter : program.unstored)
    scope.values[parameter.value] = scope.b.constant(parameter.name, graph::make_scalar(DType::kFloat32, 0));
  import_block(scope, 0);

  std::vector<ValueId> outputs;
  std::vector<std::string> output_names;
  for (const Named& fetch : program.fetches) {
    if (scope.b.error()) break;
    ValueId value = scope.find(fetch.value);
    // An output is the result of a node of its own.
    if (graph.producer(value) == kNone || std::ranges::find(outputs, value) != outputs.end()) {
      scope.b.start(fetch.name);
      value = scope.b.add(Op::kIdentity, {value});
    }
    outputs.push_back(value);
    output_names.push_back(fetch.name);
  }
  if (scope.b.error()) return *scope.b.error();
  graph.set_outputs(std::move(outputs));
  graph.set_output_names(std::move(output_names));
  SERIN_CHECK(graph::verify(graph));
  SERIN_CHECK(graph::infer_shapes(graph));
  return graph;
}

/// Again, as long as a graph shows sizes that have two symbols: programs have no names for them.
Result<graph::Graph> make_graph_with_equal_sizes(Program& program, const Parameters& parameters) {
  constexpr int kMostGraphs = 4;
  graph::EqualSizes equal;
  for (int graphs = 1;; ++graphs) {
    SERIN_TRY(graph::Graph graph, make_graph(program, parameters, equal));
    graph::EqualSizes found = graph::find_equal_sizes(graph, equal);
    if (found == equal || graphs == kMostGraphs) return graph;
    equal = std::move(found);
  }
}

Result<graph::Graph> import(const std::string& path, const ReplaceableInputs& replaceable, const PaddleLimits& limits) try {
  SERIN_TRY(Program program, read_program(path, limits));
  if (!replaceable.empty())
    return invalid(fmt::format("'{}' is no input with a value: a program of Paddle has none", *replaceable.begin()));
  SERIN_CHECK(check_blocks(program));
  SERIN_CHECK(check_operators(program));
  find_reads(program);
  SERIN_TRY(const Parameters parameters, read_parameters(path, program));
  return make_graph_with_equal_sizes(program, parameters);
} catch (const graph::LostConstant& lost) {
  return lost.error();
}

}  // namespace

Result<graph::Graph> read_paddle(const std::string& path, const ReplaceableInputs& replaceable, const PaddleLimits& limits) {
  auto graph = import(path, replaceable, limits);
  if (!graph) return graph.error().in(path.substr(path.rfind('/') + 1));
  return graph;
}

}  // namespace serin::formats
