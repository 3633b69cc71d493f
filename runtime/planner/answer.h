// answer.h: a question about models that would be served, and the answer in bytes and operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "runtime/base/config.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/plan.h"
#include "runtime/serving/settings/settings.h"

namespace serin::planner {

/// The machine that is planned for.
struct Machine {
  const kernels::Backend& backend;
  const kernels::Backend* bf16_backend = nullptr;  ///< null: it cannot multiply bf16
  std::string note = {};                           ///< names the backend
  int cores = 1;                                   ///< for the default number of instances
};

/// How the models would be served. Their own settings (serin.yaml, config.pbtxt), or `serve`'s defaults, decide where a value is absent.
struct Question {
  std::vector<int64_t> batches;  ///< rows of the batches that will run; empty: every size up to max_batch
  std::optional<int> instances, threads;
  std::optional<int> clients;  ///< requests at the same time; default: two for each instance
  std::optional<serving::Precision> precision;
  std::map<std::string, std::vector<int64_t>> sizes;  ///< of open dimensions other than the batch
  std::optional<int64_t> length;                      ///< of a sequence: the only other open dimension, or that which is named so
  std::optional<config::Node> settings = {};          ///< in place of serin.yaml
};

/// An executor for one size, and the memory around it. All bytes are those of one instance.
struct Bucket {
  graph::Bindings sizes;
  int64_t rows = 1;
  size_t arena = 0;                ///< memory between inputs and outputs, scratch included
  size_t live = 0;                 ///< no arena can be smaller
  size_t scratch = 0;              ///< the most that one step has of it for itself
  size_t staging = 0;              ///< where rows of several requests are gathered
  size_t executor = 0;             ///< bookkeeping of a run: the views of each step's operands
  size_t inputs = 0, results = 0;  ///< of one batch
  int64_t flops = 0, macs = 0;
  int64_t moved = 0;  ///< bytes that the steps read and write
  std::shared_ptr<const engine::Plan> plan;
  std::optional<double> seconds;  ///< of one run, by a calibration of this machine (calibration.h)
  double known_share = 0;         ///< of that time, the part in kernels that the calibration has measured
  double correction = 1;          ///< factor in `seconds`, by a server that ran the model (Calibration::correct)
};

struct ModelAnswer {
  std::string name, version, path;
  std::string precision, precision_why;
  int instances = 1, threads = 1, clients = 2;
  int64_t max_batch = 1;
  std::vector<std::string> symbols;         ///< open dimensions of the inputs
  std::string length_symbol;                ///< the one that `length` of the question is the size of; empty: none is
  std::string batch_symbol, not_batchable;  ///< one of them is empty
  std::string not_planned;                  ///< why its memory depends on data; empty: it does not
  engine::WeightBytes weights;              ///< for all buckets together
  size_t parameter_bytes = 0;               ///< all constants as the file has them, each once
  size_t weights_at_load = 0;               ///< most bytes of weights while the version is loaded
  size_t plan_constants = 0;                ///< constants that the plans computed
  size_t structures = 0;                    ///< graph, plans and code of kernels: measured while planning
  size_t code = 0;                          ///< pages of the program and its libraries that planning touched
  std::vector<Bucket> buckets;              ///< rows rising
  size_t held_buckets = 0;                  ///< most of them that an instance keeps at the same time
  std::string corrected_by;                 ///< the server that `correction` of the buckets comes from; empty: none

  size_t each_instance() const;  ///< arenas, staging and executors of the buckets that are kept
  size_t in_flight() const;      ///< requests and answers of all clients, as binary tensors
  size_t as_json() const;        ///< the same as JSON text
  size_t steady() const;         ///< all of it while requests are answered
  size_t peak() const;           ///< the larger of loading and steady()
};

struct Answer {
  std::string backend;  ///< "cpu avx512, oneDNN 3.2.0"
  size_t base = 0;      ///< of the process without a model
  std::vector<ModelAnswer> models;
  double planning_ms = 0;

  bool bounded() const;  ///< every model has a plan
  size_t total() const;  ///< the most that `serin serve` occupies (resident memory); unless bounded(), what it occupies without runs
};

}  // namespace serin::planner
