// compare_versions.h: two versions of a model, run on the same inputs, with their steps where they have some.
//
//   SERIN_TRY(const VersionPair pair, VersionPair::load(stable, canary, engine, ...));
//   SERIN_TRY(const ComparedSet found, pair.compare(inputs, tolerance));
//
// With steps, a row runs as the server runs it (runtime/serving/scheduling/row_steps.h): alone, each version with its own steps. If the steps
// make other tensors, the candidate's graph also runs on those of the reference. So its nodes are compared on equal inputs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/cli/engine_flags.h"
#include "runtime/cli/offline/model_place.h"
#include "runtime/cli/tools/compare_tensors.h"
#include "runtime/cli/tools/divergence.h"
#include "runtime/protocol/infer.h"
#include "runtime/steps/pipeline/differences.h"

namespace serin::cli {

/// Tensors for both versions, in the order of the reference's.
struct CompareInputs {
  std::string name;
  std::vector<engine::Value> values;
  std::string request = {};  ///< its ID, if it was recorded
  bool of_clients = false;   ///< they go through the steps; otherwise they are the graphs' own
};

struct ComparedSet {
  std::string inputs;
  int64_t rows = 0, different_rows = 0;    ///< of a request that goes through steps; the rest is of the row that differs most
  int64_t row = 0;                         ///< that one
  std::vector<TensorDifference> prepared;  ///< inputs of the graphs that the steps make otherwise
  std::string apart;                       ///< why the graphs were not compared: they cannot be given the same tensors; empty: they were
  Divergence divergence;
  std::vector<TensorDifference> outputs;  ///< of the graphs
  std::vector<TensorDifference> answers;  ///< behind the steps
  bool match = true;                      ///< outputs and answers of all rows

  /// The largest relative L2 error of an output or answer that differs. Infinite where that says nothing: another type or shape, a NaN or an
  /// infinity instead of a number, anything instead of zeros. Negative: none differs.
  double error() const;
};

/// Not thread-safe.
class VersionPair {
 public:
  static Result<VersionPair> load(const ModelPlace& reference, const ModelPlace& candidate, const EngineFlags& flags, const Engine& engine,
                                  int64_t batch);

  const Pairing& pairing() const { return pairing_; }
  const engine::Model& reference_model() const { return *reference_.model; }
  bool has_steps() const { return reference_.steps.has_value(); }
  /// As clients of the reference see them, with its steps.
  const protocol::Signature& signature() const { return reference_.signature; }
  const std::vector<steps::StepDifference>& step_differences() const { return step_differences_; }

  Result<ComparedSet> compare(const CompareInputs& inputs, const Tolerance& tolerance) const;

 private:
  /// Every paired result is an output of `model`, in front of its own.
  struct Version {
    graph::Graph graph;
    std::shared_ptr<engine::Model> model;
    std::vector<protocol::TensorSpec> inputs, outputs;  // of the graph
    protocol::Signature signature;
    std::optional<serving::RowSteps> steps;  // of both versions or of none
  };
  static Result<Version> load_version(graph::Graph graph, std::span<const graph::ValueId> results, const ModelPlace& place,
                                      const EngineFlags& flags, const Engine& engine, int64_t batch);
  static Status add_steps(Version& version, const ModelPlace& place, const Engine& engine);
  Result<ComparedSet> compare_graphs(const CompareInputs& inputs, const Tolerance& tolerance) const;
  Result<ComparedSet> compare_request(const CompareInputs& inputs, const Tolerance& tolerance) const;
  Result<ComparedSet> compare_row(std::span<const TensorView> first, std::span<const TensorView> second, const Tolerance& tolerance) const;
  void compare_nodes(std::span<const engine::Value> inputs, bool equal_inputs, std::span<const engine::Value> first,
                     std::span<const engine::Value> second, const Tolerance& tolerance, ComparedSet& found) const;
  std::vector<TensorDifference> compare_prepared(const serving::RowSteps::Before& first, const serving::RowSteps::Before& second) const;
  Status compare_answers(std::span<const TensorView> first, const steps::RowFacts& first_facts, std::span<const TensorView> second,
                         const steps::RowFacts& second_facts, const Tolerance& tolerance, ComparedSet& found) const;

  Version reference_, candidate_;
  Pairing pairing_;
  std::vector<size_t> client_order_;  // of the candidate's inputs among those of the reference
  std::vector<steps::StepDifference> step_differences_;
};

}  // namespace serin::cli
