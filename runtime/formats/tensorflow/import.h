// import.h: a signature of the file -> one Graph, with all functions written out.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/formats/tensorflow/node_import.h"
#include "runtime/formats/tensorflow/program.h"
#include "runtime/formats/tensorflow/state.h"

namespace serin::formats::tf {

struct ImportLimits {
  size_t nodes = 1'000'000;  ///< after functions are written out
  int nesting = 64;          ///< of calls
};

class Importer {
 public:
  Importer(const Program& program, State& state, ImportLimits limits) : program_(program), state_(state), limits_(limits) {}

  /// Sizes of inputs that met in a sum or the like, and so must be equal: pairs of symbols. The import that found them has two names for one
  /// size; another one with them as `equal` has one.
  using EqualSizes = std::map<std::string, std::string, std::less<>>;
  Result<graph::Graph> run(const SignatureDef& signature, const EqualSizes& equal = {});
  const EqualSizes& equal_sizes() const { return equal_; }
  void note_equal(const graph::Dim& a, const graph::Dim& b);

  // For operators with functions. Errors are kept by the builder of the scope, and results are empty then.
  State& state() { return state_; }
  const Program& program() const { return program_; }
  std::vector<ValuePtr> call(Scope& scope, std::string_view function, const std::vector<ValuePtr>& arguments);
  /// Lowers a node that no file has, for readers that write layers as nodes of TensorFlow. Results with several names come in the order of the operator's row.
  std::vector<ValuePtr> apply(Scope& scope, const NodeDef& def, std::vector<ValuePtr> inputs);
  /// A function as a closed graph. Constants, variables and tables of `outer` are shared with it; `inputs` says which arguments became inputs.
  struct ClosedBody {
    std::unique_ptr<Scope> scope;
    std::vector<size_t> inputs;       ///< arguments that are inputs of the graph, in order
    std::vector<ValuePtr> arguments;  ///< all, in the new graph
  };
  ClosedBody open_body(Scope& outer, const std::vector<ValuePtr>& arguments, const std::vector<std::string>& names);

 private:
  using Values = std::map<std::string_view, std::vector<ValuePtr>>;

  Status check_operators(const std::vector<std::string_view>& edges) const;
  Result<std::vector<ValuePtr>> evaluate(Scope& scope, const Body& body, Values values, const std::vector<std::string_view>& edges);
  Status import_node(Scope& scope, const NodeDef& def, std::vector<ValuePtr> inputs, std::vector<ValuePtr>& outputs);
  Result<ValuePtr> value_of(const Body& body, const Values& values, const Edge& edge) const;
  Result<graph::Type> input_type(std::string_view key, const TensorInfo& info);

  const Program& program_;
  State& state_;
  const ImportLimits limits_;
  size_t nodes_ = 0;
  int depth_ = 0;
  std::map<std::string, int, std::less<>> symbols_;
  EqualSizes equal_;  ///< symbol -> the one that stands for it
};

}  // namespace serin::formats::tf
