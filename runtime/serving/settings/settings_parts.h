// settings_parts.h: what a model's settings say of requests to warm it with, of the steps of an ensemble and of sequences; as serin.yaml spells it, and for
// whoever fills it in from elsewhere.
//
//   warmup:
//     - {name: typical, batch_size: 4, count: 2, inputs: {pixels: {dtype: FP32, dims: [64], random: true}}}      # or zero: true, or file: pixels.bin
//   ensemble:
//     steps:
//       - {model: tokenize, inputs: {TEXT: text}, outputs: {IDS: ids}}
//       - {model: classify, version: 3, inputs: {ids: ids}, outputs: {scores: scores}}
//   sequences:
//     {strategy: oldest, max_candidates: 16, idle: 5s, controls: {START: {kind: start, dtype: INT32, values: [0, 1]}, ID: {kind: id, dtype: UINT64}},
//      state: [{input: past, output: present, dims: [4], file: first.bin}]}
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/config.h"
#include "runtime/base/result.h"
#include "runtime/protocol/infer.h"

namespace serin::serving {

/// What a tensor is filled with that no client sent.
struct Filling {
  enum class Kind : uint8_t { kZero, kRandom, kFile };
  Kind kind = Kind::kZero;
  std::string file;  ///< of kFile: bytes as they travel (protocol/raw_tensor.h)

  friend bool operator==(const Filling&, const Filling&) = default;
};

/// An input of a warm-up request, one row of it where the model is batchable.
struct WarmupInput {
  DType dtype = DType::kUndefined;  ///< undefined: the model's
  std::vector<int64_t> dims = {};   ///< without the batch; none: the model's
  Filling data = {};

  friend bool operator==(const WarmupInput&, const WarmupInput&) = default;
};

struct WarmupRequest {
  std::string name;
  int64_t batch_size = 1;  ///< rows, all alike; 1 where the model is not batchable
  int count = 1;           ///< times that each instance runs it
  std::map<std::string, WarmupInput> inputs = {};

  friend bool operator==(const WarmupRequest&, const WarmupRequest&) = default;
};

/// A model that an ensemble runs. Tensors of the ensemble have names of their own, which the model's are mapped to.
struct EnsembleStep {
  std::string model;
  std::string version = {};  ///< empty: the latest
  std::map<std::string, std::string> inputs = {}, outputs = {};

  friend bool operator==(const EnsembleStep&, const EnsembleStep&) = default;
};

struct EnsembleSettings {
  std::vector<EnsembleStep> steps;
  /// Of the ensemble, in this order; types and shapes are checked where they are given. None: what no step produces, and what no step reads.
  std::vector<protocol::TensorSpec> inputs = {}, outputs = {};

  friend bool operator==(const EnsembleSettings&, const EnsembleSettings&) = default;
};

/// An input that tells the model where in its sequence a row is.
struct SequenceControl {
  enum class Kind : uint8_t { kStart, kEnd, kReady, kId };
  std::string input;
  Kind kind = Kind::kStart;
  DType dtype = DType::kUndefined;        ///< undefined: the model's
  std::array<double, 2> values = {0, 1};  ///< for no and yes; not of kId

  friend bool operator==(const SequenceControl&, const SequenceControl&) = default;
};

/// A tensor that goes from one request of a sequence into the next.
struct SequenceState {
  std::string input, output;
  std::vector<int64_t> dims = {};  ///< of the first, without the batch; none: the model's
  Filling initial = {};            ///< zeros or a file

  friend bool operator==(const SequenceState&, const SequenceState&) = default;
};

struct SequenceSettings {
  int64_t max_candidates = 0;  ///< sequences that each instance has under way; 0: as many as it has rows (Triton's `direct`)
  std::chrono::nanoseconds idle{std::chrono::seconds(1)};  ///< without a request for so long, a sequence is over
  std::vector<SequenceControl> controls = {};
  std::vector<SequenceState> states = {};

  friend bool operator==(const SequenceSettings&, const SequenceSettings&) = default;
};

/// Path of a file that settings name. Errors: kInvalidArgument where it would lie elsewhere, or the model has no folder.
Result<std::string> file_of_model(const std::string& folder, std::string_view subfolder, const std::string& name);
/// `folder`: the model's, where files are looked for under warmup/ and initial_state/.
Result<std::vector<WarmupRequest>> read_warmup(const config::Node& node, const std::string& folder);
inline constexpr int64_t kMostBatch = int64_t{1} << 20;  ///< rows in one run that settings may ask for

Result<std::set<std::string, std::less<>>> read_optional_inputs(const config::Node& node);
Result<EnsembleSettings> read_ensemble(const config::Node& node);
Result<SequenceSettings> read_sequences(const config::Node& node, const std::string& folder);

}  // namespace serin::serving
