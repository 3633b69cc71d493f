// plan_model.cc: loads the model for its plans only, and asks for the plans that an instance would make. The model is kept until all are made, so that packed
// weights that several sizes share count once.

#include "runtime/planner/plan_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "runtime/base/aligned_buffer.h"
#include "runtime/engine/describe.h"
#include "runtime/planner/process.h"
#include "runtime/samples/int8.h"
#include "runtime/serving/scheduling/sizes.h"

namespace serin::planner {
namespace {

using serving::Precision;

constexpr std::string_view kRows = "batch";  // how exporters name it, where the independence of rows is not proven

/// The dimension that a sequence's length is the size of.
std::string length_symbol(const engine::Model& model) {
  std::vector<std::string> open = model.symbols();
  std::erase_if(
      open, [&](const std::string& symbol) { return symbol == kRows || (model.batchable().yes && symbol == model.batchable().symbol); });
  if (open.size() == 1) return open.front();
  for (const std::string& symbol : open)
    if (symbol.find("seq") != std::string::npos || symbol.find("len") != std::string::npos) return symbol;
  return {};
}

/// What the question says about dimensions goes where the settings name them.
Status add_sizes(const engine::Model& model, const Question& question, serving::ModelSettings& settings) {
  const std::vector<std::string> symbols = model.symbols();
  for (const auto& [dimension, sizes] : question.sizes) {
    if (dimension == model.batchable().symbol && model.batchable().yes)
      return invalid(fmt::format("'{}' is the batch: its sizes are given with --batch", dimension));
    if (std::ranges::find(symbols, dimension) != symbols.end()) settings.buckets[dimension] = sizes;
  }
  if (const std::string own = length_symbol(model); question.length && !own.empty() && !question.sizes.contains(own))
    settings.buckets[own] = {*question.length};
  const bool counts_rows = !model.batchable().yes && std::ranges::find(symbols, kRows) != symbols.end();
  if (counts_rows && !question.batches.empty()) settings.buckets.try_emplace(std::string(kRows), question.batches);
  if (!model.planned()) return {};
  for (const std::string& symbol : symbols) {
    const bool batch = model.batchable().yes && symbol == model.batchable().symbol;
    const auto sizes = serving::sizes_to_be_ready_for(model, settings, 1);
    if (!batch && sizes.empty() && !settings.buckets.contains(symbol))
      return invalid(fmt::format("dimension '{}' has no size: give it with --dim {}=N, or as `buckets` in serin.yaml", symbol, symbol));
  }
  return {};
}

size_t executor_bytes(const engine::Plan& plan) {
  constexpr size_t kStep = 320;  // of engine::Runner, for each step: the call, its stream, segments
  size_t operands = 0;
  for (const engine::Step& step : plan.program.steps) operands += step.inputs.size() + step.outputs.size();
  return plan.program.steps.size() * kStep + operands * (sizeof(TensorView) + 32);
}

Bucket bucket_of(std::shared_ptr<const engine::Plan> plan, const graph::Bindings& sizes, int64_t rows) {
  Bucket bucket{.sizes = sizes, .rows = rows, .arena = plan->arena_bytes, .live = plan->live_bytes};
  for (const engine::PreparedStep& step : plan->steps) bucket.scratch = std::max(bucket.scratch, step.scratch_bytes);
  std::vector<TensorView> results;
  for (const engine::TensorInfo& info : plan->inputs) {
    const TensorView view{info.dtype, info.shape, nullptr};
    bucket.staging += AlignedBuffer::rounded_up(serving::staging_bytes(view));
    bucket.inputs += view.bytes();
  }
  for (const engine::TensorInfo& info : plan->outputs) results.push_back({info.dtype, info.shape, nullptr});
  bucket.results = serving::result_bytes(results);
  bucket.executor = executor_bytes(*plan);
  for (const engine::StepInfo& step : engine::steps(*plan)) {
    bucket.flops += step.flops;
    bucket.macs += step.macs;
    bucket.moved += step.bytes;
  }
  bucket.plan = std::move(plan);
  return bucket;
}

/// Constants that a plan made and that are not the graph's: each once.
size_t own_constants(const engine::Model& model, const std::vector<Bucket>& buckets) {
  std::set<const void*> seen;
  const graph::Graph& graph = model.graph();
  for (size_t i = 0; i < graph.value_capacity(); ++i)
    if (const graph::ConstantPtr constant = graph.constant(static_cast<graph::ValueId>(i))) {
      seen.insert(constant->resident.get());
      seen.insert(constant->recipe.get());
    }
  size_t bytes = 0;
  for (const Bucket& bucket : buckets)
    for (const engine::Tensor& tensor : bucket.plan->program.tensors) {
      if (!tensor.constant || (!tensor.constant->resident && !tensor.constant->recipe)) continue;
      const void* const held =
          tensor.constant->resident ? static_cast<const void*>(tensor.constant->resident.get()) : tensor.constant->recipe.get();
      if (seen.insert(held).second) bytes += tensor.constant->bytes();
    }
  return bytes;
}

/// The rows that run: those asked for as the buckets that hold them, and 1, which is run before the version is ready.
std::set<int64_t> rows_that_run(const Question& question, int64_t max_batch, bool warmup) {
  std::set<int64_t> rows;
  for (const int64_t batch : question.batches) rows.insert(serving::bucket_rows(batch, max_batch));
  if (warmup) rows.insert(1);
  return rows;
}

}  // namespace

Parameters parameters_of(const graph::Graph& graph) {
  std::set<uint64_t> seen;
  Parameters all;
  for (size_t i = 0; i < graph.value_capacity(); ++i) {
    const auto id = static_cast<graph::ValueId>(i);
    const graph::ConstantPtr constant = graph.constant(id);
    if (!constant || graph.reader_count(id) == 0 || !seen.insert(constant->id).second) continue;
    all.count += constant->elements();
    all.bytes += constant->bytes();
  }
  return all;
}

/// As EngineScheduler::load_engine does it.
Result<LoadedModel> load_model(const FoundModel& found, const Machine& machine, bool only_plans) {
  const serving::ModelSettings& settings = found.settings;
  engine::LoadOptions load;
  load.only_plans = only_plans;
  load.threads = settings.threads;
  load.replaceable_inputs = settings.optional_inputs;
  load.max_plans = serving::kMostSizes;
  if (!settings.signatures.empty()) load.signature = settings.signatures.front();
  switch (settings.precision) {
    case Precision::kFp32:
    case Precision::kAuto: {  // decided by running it; fp32 is the largest of the candidates
      SERIN_TRY(auto model, engine::Model::load(found.path, machine.backend, load));
      const bool decided = settings.precision == Precision::kFp32;
      return LoadedModel{std::move(model), Precision::kFp32, decided ? "" : "auto is decided by running the model; planned as fp32"};
    }
    case Precision::kBf16: {
      if (!machine.bf16_backend)
        return Error{Code::kUnsupported, "precision bf16: this machine, or the instruction set that was asked for, does not multiply bf16"};
      SERIN_TRY(auto model, engine::Model::load(found.path, *machine.bf16_backend, load));
      return LoadedModel{std::move(model), Precision::kBf16, {}};
    }
    case Precision::kInt8: {
      SERIN_TRY(graph::Graph graph, engine::read_model(found.path, load));
      SERIN_TRY(samples::Int8Model made, samples::int8_model(std::move(graph), machine.backend, load, {settings.samples, {}, 1}));
      return LoadedModel{std::move(made.model), made.on_bytes ? Precision::kInt8 : Precision::kFp32, made.why};
    }
    case Precision::kTf32:
    case Precision::kFp16: break;
  }
  return Error{Code::kUnsupported, fmt::format("precision {}: only a device computes in it", serving::print_precision(settings.precision))};
}

int64_t rows_of(const engine::Model& model, const graph::Bindings& sizes) {
  const auto batch = sizes.find(model.batchable().symbol);
  return model.batchable().yes && batch != sizes.end() ? batch->second : 1;
}

Result<std::vector<graph::Bindings>> sizes_of(const engine::Model& model, const Question& question, serving::ModelSettings& settings) {
  SERIN_CHECK(add_sizes(model, question, settings));
  if (!model.planned()) return std::vector<graph::Bindings>();
  if (!question.batches.empty()) settings.max_batch = std::ranges::max(question.batches);
  const int64_t max_batch = serving::most_rows(model, settings);
  const auto wanted = rows_that_run(question, max_batch, settings.warmup);
  auto sizes = serving::sizes_to_be_ready_for(model, settings, max_batch);
  if (sizes.size() > serving::kMostSizes)
    return invalid(fmt::format("{} combinations of sizes; at most {}", sizes.size(), serving::kMostSizes));
  if (!question.batches.empty() && model.batchable().yes)
    std::erase_if(sizes, [&](const graph::Bindings& each) { return !wanted.contains(rows_of(model, each)); });
  return sizes;
}

Result<ModelAnswer> plan_model(const FoundModel& found, const Question& question, const Machine& machine) {
  serving::ModelSettings settings = found.settings;
  const Resident before = resident();
  SERIN_TRY(const LoadedModel loaded, load_model(found, machine, /*only_plans=*/true));
  engine::Model& model = *loaded.model;
  SERIN_TRY(const std::vector<graph::Bindings> sizes, sizes_of(model, question, settings));

  ModelAnswer answer{.name = found.name, .version = found.version, .path = found.path};
  answer.precision = serving::print_precision(loaded.precision);
  answer.precision_why = loaded.why;
  answer.threads = settings.threads;
  answer.symbols = model.symbols();
  if (question.length) answer.length_symbol = length_symbol(model);
  answer.instances = serving::cpu_instances(settings, machine.cores);
  answer.clients = question.clients.value_or(2 * answer.instances);
  answer.max_batch = serving::most_rows(model, settings);
  if (model.batchable().yes)
    answer.batch_symbol = model.batchable().symbol;
  else
    answer.not_batchable = model.batchable().why_not.empty() ? "its dimensions are fixed" : model.batchable().why_not;
  answer.parameter_bytes = parameters_of(model.graph()).bytes;
  answer.weights_at_load = model.weights().while_packing;
  if (!model.planned()) answer.not_planned = model.why_interpreted();
  size_t warm = 0;
  for (const graph::Bindings& each : sizes) {
    SERIN_TRY(auto plan, model.plan(each));
    answer.buckets.push_back(bucket_of(std::move(plan), each, rows_of(model, each)));
    warm += answer.buckets.back().rows == 1 ? 1 : 0;
  }
  answer.held_buckets = std::max(serving::kSizesOfAnInstance, warm);
  std::ranges::stable_sort(answer.buckets, {}, &Bucket::rows);
  answer.weights = model.weights();
  if (!model.planned()) answer.weights.constants = std::max(answer.weights.constants, answer.parameter_bytes);  // which a run reads
  answer.plan_constants = own_constants(model, answer.buckets);
  const Resident after = resident();
  answer.structures = after.own - std::min(after.own, before.own);
  answer.code = after.files - std::min(after.files, before.files);
  return answer;
}

}  // namespace serin::planner
