// engine_flags.h: turns the flags that `bench`, `check` and `inspect` share into a backend, options and bindings.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "runtime/base/result.h"
#include "runtime/engine/engine.h"
#include "runtime/graph/int8/int8.h"

namespace CLI {  // NOLINT(readability-identifier-naming): as CLI11 has it
class App;
}

namespace serin::cli {

inline constexpr const char* kCudaCacheHelp =
    "folder where measurements of a device's kernels are kept; default: serin in $XDG_CACHE_HOME or in ~/.cache; none: nowhere";

struct EngineFlags {
  int threads = 1;
  std::string isa;             ///< empty: the best available
  std::string device = "cpu";  ///< or cuda, or auto
  std::string cuda_plugin;     ///< libserin_cuda.so; empty: next to the program, if there is a driver
  std::string cuda_cache;      ///< kCudaCacheHelp
  std::string precision = "fp32";
  std::string samples;    ///< folder of inputs for `--precision auto` and for the ranges of int8; empty: made-up inputs
  std::string signature;  ///< of a SavedModel; empty: the standard one
  std::vector<std::string> disabled_passes;
  std::map<std::string, int64_t> dims;  ///< --dim seq=128
};

/// The flags that `bench`, `check` and `inspect` share.
void add_engine_flags(CLI::App& command, EngineFlags& flags);
/// --dim.
void add_sizes(CLI::App& command, EngineFlags& flags);

struct Engine {
  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<kernels::Backend> device;  ///< null: everything runs on the CPU
  std::string note;                          ///< names what was loaded: "cpu avx512, oneDNN 3.2.0"
  engine::LoadOptions options;
};

/// Returns kInvalidArgument for an unknown instruction set, precision or pass; the message lists the allowed ones.
Result<Engine> make_engine(const EngineFlags& flags);

/// Returns `flags` with "auto" replaced by the decision (runtime/samples/precision.h), which is printed on standard error.
Result<EngineFlags> with_decided_precision(EngineFlags flags, const std::string& model, int64_t batch);

/// Loads the model of a file, or a graph, in the precision of the flags. The result of int8 is printed on standard error. `kept` is that of
/// samples::Int8Model.
struct LoadedModel {
  std::shared_ptr<engine::Model> model;
  std::vector<graph::KeptInFloat> kept;
};
Result<LoadedModel> load_model(const EngineFlags& flags, const Engine& engine, const std::string& path, int64_t batch);
Result<LoadedModel> load_model(const EngineFlags& flags, const Engine& engine, graph::Graph graph, int64_t batch);

/// Returns sizes for the model's symbols: from --dim, and from --batch for the symbol of the batch. The error is kInvalidArgument: it names
/// a symbol without a size, or says why the model does not take batches.
Result<graph::Bindings> bindings_of(const engine::Model& model, const EngineFlags& flags, int64_t batch);

}  // namespace serin::cli
