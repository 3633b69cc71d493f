// engine_flags.cc: checks the flags. Faults that the user can fix end with exit code 2, limits of the model with exit code 3.

#include "runtime/cli/engine_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "kernels/cuda/loader.h"
#include "runtime/base/cache_folder.h"
#include "runtime/engine/optimize.h"
#include "runtime/samples/int8.h"
#include "runtime/samples/precision.h"

namespace serin::cli {

namespace {

Error usage(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }

Result<kernels::Isa> parse_isa(const std::string& name) {
  std::string allowed;
  for (const kernels::Isa isa : {kernels::Isa::kScalar, kernels::Isa::kAvx2, kernels::Isa::kAvx512}) {
    if (isa > kernels::best_isa()) break;
    if (name == kernels::isa_name(isa)) return isa;
    allowed.append(allowed.empty() ? "" : ", ").append(kernels::isa_name(isa));
  }
  return usage("instruction set '" + name + "' is not one that this machine has; allowed: " + allowed);
}

/// In the order of engine::Precision, which int8 is none of: it is what a graph is made into.
constexpr std::array<std::string_view, 5> kPrecisions = {"fp32", "tf32", "fp16", "bf16", "int8"};

Status check_passes(const std::vector<std::string>& disabled) {
  const std::vector<std::string> known = engine::pass_names();
  for (const std::string& name : disabled) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return usage(fmt::format("there is no pass '{}'; passes are {}", name, fmt::join(known, ", ")));
  }
  return {};
}

}  // namespace

Result<Engine> make_engine(const EngineFlags& flags) {
  const auto precision = std::ranges::find(kPrecisions, flags.precision);
  if (precision == kPrecisions.end())
    return usage(fmt::format("precision '{}' is not supported; allowed: auto, {}", flags.precision, fmt::join(kPrecisions, ", ")));
  if (flags.threads < 1) return usage("--threads must be at least 1, not " + std::to_string(flags.threads));
  SERIN_CHECK(check_passes(flags.disabled_passes));
  kernels::CpuOptions cpu;
  if (!flags.isa.empty()) {
    SERIN_TRY(cpu.isa, parse_isa(flags.isa));
  }
  if (flags.device != "cpu" && flags.device != "cuda" && flags.device != "auto")
    return usage("--device must be cpu, cuda or auto, not '" + flags.device + "'");
  Engine engine;
  std::string found;
  if (flags.device != "cpu") {
    engine.device = kernels::make_cuda_backend(
        {.device = {.tactics_folder = cache_folder(flags.cuda_cache)}, .plugin_path = flags.cuda_plugin}, &found);
    if (!engine.device && flags.device == "cuda") return usage("--device cuda: " + found);
    engine.options.device = engine.device.get();
  }
  if (flags.precision != "int8") engine.options.precision = static_cast<engine::Precision>(precision - kPrecisions.begin());
  if (!engine.device && (flags.precision == "tf32" || flags.precision == "fp16"))
    return usage("precision '" + flags.precision + "': only a device computes in it");
  cpu.bf16 = flags.precision == "bf16" && !engine.device;
  if (cpu.bf16 && !(kernels::multiplies_bf16() && cpu.isa == kernels::Isa::kAvx512))
    return usage("precision 'bf16': this machine, or the requested instruction set, does not multiply bf16");
  engine.backend = kernels::make_cpu_backend(cpu, &engine.note);
  if (flags.device != "cpu") engine.note += (engine.device ? ", cuda: " : ", no cuda: ") + found;
  engine.options.threads = flags.threads;
  engine.options.signature = flags.signature;
  engine.options.disabled_passes.insert(flags.disabled_passes.begin(), flags.disabled_passes.end());
  return engine;
}

namespace {

Result<samples::Int8Model> quantised_model(const EngineFlags& flags, const Engine& engine, graph::Graph graph, int64_t batch) {
  return samples::int8_model(std::move(graph), *engine.backend, engine.options,
                             {flags.samples, {flags.dims.begin(), flags.dims.end()}, batch});
}

/// A model with the backends that it runs on.
Result<std::shared_ptr<engine::Model>> load(const EngineFlags& flags, const std::string& path) {
  SERIN_TRY(Engine made, make_engine(flags));
  const auto engine = std::make_shared<Engine>(std::move(made));
  std::shared_ptr<engine::Model> model;
  if (flags.precision == "int8") {
    SERIN_TRY(graph::Graph graph, engine::read_model(path, engine->options));
    SERIN_TRY(samples::Int8Model quantised, quantised_model(flags, *engine, std::move(graph), 1));
    model = std::move(quantised.model);
  } else {
    SERIN_TRY(model, engine::Model::load(path, *engine->backend, engine->options));
  }
  engine::Model* const plain = model.get();
  return std::shared_ptr<engine::Model>(plain, [engine, model = std::move(model)](engine::Model*) mutable { model.reset(); });
}

}  // namespace

Result<EngineFlags> with_decided_precision(EngineFlags flags, const std::string& path, int64_t batch) {
  if (flags.precision != "auto") return flags;
  flags.precision = "fp32";
  SERIN_TRY(const auto exact, load(flags, path));
  const graph::Bindings sizes(flags.dims.begin(), flags.dims.end());
  SERIN_TRY(const samples::Samples inputs,
            flags.samples.empty() ? samples::made_up_samples(*exact, sizes, batch) : samples::stored_samples(flags.samples, *exact));
  std::vector<std::string_view> faster{"bf16"};
  if (flags.device != "cpu") faster = {"tf32", "fp16", "bf16"};
  if (flags.device == "cpu" && !flags.samples.empty()) faster.emplace_back("int8");  // which sees its ranges on them
  std::vector<samples::Candidate> candidates;
  for (const std::string_view precision : faster) {
    EngineFlags lower = flags;
    lower.precision = precision;
    candidates.push_back({lower.precision, [lower, &path] { return load(lower, path); }});
  }
  SERIN_TRY(const samples::PrecisionDecision decision, samples::decide_precision(*exact, candidates, inputs));
  fmt::print(stderr, "precision: {}\n", decision.why);
  flags.precision = decision.precision;
  return flags;
}

Result<LoadedModel> load_model(const EngineFlags& flags, const Engine& engine, graph::Graph graph, int64_t batch) {
  if (flags.precision != "int8") {
    SERIN_TRY(auto model, engine::Model::from_graph(std::move(graph), *engine.backend, engine.options));
    return LoadedModel{std::move(model), {}};
  }
  SERIN_TRY(samples::Int8Model quantised, quantised_model(flags, engine, std::move(graph), batch));
  fmt::print(stderr, "precision: {}\n", quantised.why);
  if (!quantised.warning.empty()) fmt::print(stderr, "warning: {}\n", quantised.warning);
  return LoadedModel{std::move(quantised.model), std::move(quantised.kept)};
}

Result<LoadedModel> load_model(const EngineFlags& flags, const Engine& engine, const std::string& path, int64_t batch) {
  SERIN_TRY(graph::Graph graph, engine::read_model(path, engine.options));
  return load_model(flags, engine, std::move(graph), batch);
}

Result<graph::Bindings> bindings_of(const engine::Model& model, const EngineFlags& flags, int64_t batch) {
  if (batch < 1) return usage("--batch must be at least 1, not " + std::to_string(batch));
  graph::Bindings bindings(flags.dims.begin(), flags.dims.end());
  const std::vector<std::string> symbols = model.symbols();
  std::string batch_symbol = model.batchable().symbol;
  if (batch_symbol.empty() && std::find(symbols.begin(), symbols.end(), "batch") != symbols.end()) batch_symbol = "batch";
  if (!batch_symbol.empty()) {
    bindings.emplace(batch_symbol, batch);  // --dim wins
  } else if (batch != 1) {
    const std::string why = model.batchable().why_not.empty() ? "its dimensions are fixed" : model.batchable().why_not;
    return usage("the model takes no batch of " + std::to_string(batch) + ": " + why);
  }
  for (const std::string& symbol : symbols) {
    if (!bindings.contains(symbol)) return usage(fmt::format("dimension '{}' has no size: give it with --dim {}=N", symbol, symbol));
  }
  return bindings;
}

void add_engine_flags(CLI::App& command, EngineFlags& flags) {
  command.add_option("--threads", flags.threads, "threads for computing")->capture_default_str()->check(CLI::Range(1, 1024));
  command.add_option("--isa", flags.isa, "scalar, avx2 or avx512; default: the best of this machine");
  command.add_option("--device", flags.device, "cpu, cuda, or auto: cuda if there is a device")->capture_default_str();
  command.add_option("--cuda-plugin", flags.cuda_plugin, "libserin_cuda.so; default: next to the program, if there is a driver");
  command.add_option("--cuda-cache", flags.cuda_cache, kCudaCacheHelp);
  command.add_option("--signature", flags.signature, "of a SavedModel; default: serving_default, or the only one");
  command.add_option("--disable-pass", flags.disabled_passes, "leave out this pass; can be given several times");
  command
      .add_option("--precision", flags.precision,
                  "auto, fp32, bf16 or int8; tf32 or fp16 on a device: how products, convolutions and attention are computed")
      ->capture_default_str();
  command.add_option(
      "--samples", flags.samples,
      "folder with inputs, as for `check`, on which --precision auto decides and int8 measures ranges; default: generated inputs");
}

void add_sizes(CLI::App& command, EngineFlags& flags) {
  const auto add = [&flags](const std::vector<std::string>& sizes) {
    for (const std::string& size : sizes) {
      const size_t equals = std::min(size.find('='), size.size());
      const char* const end = size.data() + size.size();
      int64_t value = 0;
      const auto [rest, error] = std::from_chars(std::min(size.data() + equals + 1, end), end, value);
      if (equals == 0 || error != std::errc() || rest != end) throw CLI::ValidationError("--dim", "'" + size + "' is not NAME=NUMBER");
      flags.dims[size.substr(0, equals)] = value;
    }
  };
  command
      .add_option_function<std::vector<std::string>>("--dim", add, "size of a symbolic dimension, e.g. seq=128; can be given several times")
      ->allow_extra_args(false);
}

}  // namespace serin::cli
