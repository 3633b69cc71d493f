// engine_flags.h: from the flags that `bench`, `check` and `inspect` share to a backend, options and bindings.
#pragma once

#include <memory>
#include <string>

#include "kernels/backend.h"
#include "runtime/base/result.h"
#include "runtime/cli/commands.h"
#include "runtime/engine/engine.h"
#include "runtime/graph/int8/int8.h"

namespace serin::cli {

struct Engine {
  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<kernels::Backend> device;  ///< null: everything runs on the CPU
  std::string note;                          ///< what was loaded: "cpu avx512, oneDNN 3.2.0"
  engine::LoadOptions options;
};

/// kInvalidArgument for an unknown instruction set, precision or pass, saying what is allowed.
Result<Engine> make_engine(const EngineFlags& flags);

/// `flags` with "auto" replaced by what was decided (runtime/samples/precision.h), which is said on standard error.
Result<EngineFlags> with_decided_precision(EngineFlags flags, const std::string& model, int64_t batch);

/// The model of a file, or of what was read of one, in the precision of the flags. What int8 made of it is said on standard error; `kept` is
/// samples::Int8Model's.
struct LoadedModel {
  std::shared_ptr<engine::Model> model;
  std::vector<graph::KeptInFloat> kept;
};
Result<LoadedModel> load_model(const EngineFlags& flags, const Engine& engine, const std::string& path, int64_t batch);
Result<LoadedModel> load_model(const EngineFlags& flags, const Engine& engine, graph::Graph graph, int64_t batch);

/// Sizes for the model's symbols: --dim, and --batch for the symbol that is the batch. kInvalidArgument naming a symbol that has no size, or
/// saying why the model does not take batches.
Result<graph::Bindings> bindings_of(const engine::Model& model, const EngineFlags& flags, int64_t batch);

}  // namespace serin::cli
