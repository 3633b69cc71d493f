// settings_parts.h: settings for warm-up requests, the steps of ensembles and sequences, as serin.yaml or another source defines them.
//
//   warmup:
//     - {name: typical, batch_size: 4, count: 2, inputs: {pixels: {dtype: FP32, dims: [64], random: true}}}
//       # or, instead of random: zero: true, or file: pixels.bin
//   ensemble:
//     steps:
//       - {model: tokenize, inputs: {TEXT: text}, outputs: {IDS: ids}}
//       - {model: classify, version: 3, inputs: {ids: ids}, outputs: {scores: scores}}
//   sequences:
//     {strategy: oldest, max_candidates: 16, idle: 5s,
//      controls: {START: {kind: start, dtype: INT32, values: [0, 1]}, ID: {kind: id, dtype: UINT64}},
//      state: [{input: past, output: present, dims: [4], file: first.bin}]}
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/config.h"
#include "runtime/base/result.h"
#include "runtime/protocol/infer.h"
#include "runtime/steps/pipeline/ocr.h"

namespace serin::serving {

/// The content of a tensor that no client sent.
struct Filling {
  enum class Kind : uint8_t { kZero, kRandom, kFile };
  Kind kind = Kind::kZero;
  std::string file;  ///< for kFile: bytes in the format of messages (protocol/raw_tensor.h)

  friend bool operator==(const Filling&, const Filling&) = default;
};

/// An input of a warm-up request; one row of it if the model is batchable.
struct WarmupInput {
  DType dtype = DType::kUndefined;  ///< undefined: the model's type
  std::vector<int64_t> dims = {};   ///< without the batch; none: the model's dimensions
  Filling data = {};

  friend bool operator==(const WarmupInput&, const WarmupInput&) = default;
};

struct WarmupRequest {
  std::string name;
  int64_t batch_size = 1;  ///< identical rows; 1 if the model is not batchable
  int count = 1;           ///< number of runs on each instance
  std::map<std::string, WarmupInput> inputs = {};

  friend bool operator==(const WarmupRequest&, const WarmupRequest&) = default;
};

/// A model that an ensemble runs. The ensemble's tensors have their own names, to which the model's are mapped.
struct EnsembleStep {
  std::string model;
  std::string version = {};  ///< empty: the latest
  std::map<std::string, std::string> inputs = {}, outputs = {};

  friend bool operator==(const EnsembleStep&, const EnsembleStep&) = default;
};

struct EnsembleSettings {
  std::vector<EnsembleStep> steps;
  /// Inputs and outputs of the ensemble, in this order. Types and shapes are checked if given. None: the tensors that no step produces, and
  /// those that no step reads.
  std::vector<protocol::TensorSpec> inputs = {}, outputs = {};
  /// The steps are a detector and a recognizer of texts, and no tensors have names.
  std::optional<steps::OcrSettings> ocr = {};

  friend bool operator==(const EnsembleSettings&, const EnsembleSettings&) = default;
};

/// An input that tells the model where in its sequence a row is.
struct SequenceControl {
  enum class Kind : uint8_t { kStart, kEnd, kReady, kId };
  std::string input;
  Kind kind = Kind::kStart;
  DType dtype = DType::kUndefined;        ///< undefined: the model's type
  std::array<double, 2> values = {0, 1};  ///< for no and yes; not for kId

  friend bool operator==(const SequenceControl&, const SequenceControl&) = default;
};

/// A tensor that goes from one request of a sequence into the next.
struct SequenceState {
  std::string input, output;
  std::vector<int64_t> dims = {};  ///< dimensions of the first one, without the batch; none: the model's
  Filling initial = {};            ///< zeros or a file

  friend bool operator==(const SequenceState&, const SequenceState&) = default;
};

struct SequenceSettings {
  int64_t max_candidates = 0;  ///< active sequences of each instance; 0: one for each of its rows (Triton's `direct`)
  std::chrono::nanoseconds idle{std::chrono::seconds(1)};  ///< after that time without a request, a sequence ends
  std::vector<SequenceControl> controls = {};
  std::vector<SequenceState> states = {};

  friend bool operator==(const SequenceSettings&, const SequenceSettings&) = default;
};

/// Returns the path of a file named in settings. kInvalidArgument if it is outside the folder, or the model has no folder.
Result<std::string> file_of_model(const std::string& folder, std::string_view subfolder, const std::string& name);
/// `folder`: the model's folder, whose subfolders warmup/ and initial_state/ contain the files.
Result<std::vector<WarmupRequest>> read_warmup(const config::Node& node, const std::string& folder);
inline constexpr int64_t kMostBatch = int64_t{1} << 20;  ///< largest number of rows in one run that settings may request

/// At least one, each once.
Result<std::vector<std::string>> read_signatures(const config::Node& node);
Result<std::set<std::string, std::less<>>> read_optional_inputs(const config::Node& node);
Result<EnsembleSettings> read_ensemble(const config::Node& node);
/// The key `ocr`: an ensemble of two models.
Result<EnsembleSettings> read_ocr_ensemble(const config::Node& node, const std::string& folder);
Result<SequenceSettings> read_sequences(const config::Node& node, const std::string& folder);

}  // namespace serin::serving
