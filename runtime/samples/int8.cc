// int8.cc: quantises a model by samples. The model runs on the samples in f32, with all candidate values among its results. Then it is
// quantised and runs once more; where there are enough samples, on others than those that gave the ranges.
//
// Ranges measured on the inputs of users are valid for what users send. Generated inputs are not used: a network for pixels from 0 to 16
// whose ranges were measured on numbers from -1 to 1 got 9 % of the digits right. Without samples only products quantise, which find the
// range of each row when they run.

#include "runtime/samples/int8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "runtime/engine/lower/fold.h"
#include "runtime/engine/optimize.h"
#include "runtime/graph/passes/pass.h"
#include "runtime/samples/calibration.h"
#include "runtime/samples/precision.h"

namespace serin::samples {

namespace {

using graph::Op;

/// What must have happened before nodes are looked at: constants are constants, and a BatchNormalization is part of its Conv. The rest of the passes
/// comes afterwards.
Status prepare(graph::Graph& graph, const engine::LoadOptions& options) {
  constexpr std::string_view kBefore[] = {"fold_shapes", "inline_if",    "constant_folding",    "constant_operands", "remove_identity",
                                          "dead_code",   "widen_halves", "fuse_conv_batchnorm", "fuse_gate"};
  const engine::Folder folder;
  graph::PassOptions passes;
  passes.evaluate = [&folder](const graph::Graph& g, graph::NodeId node) { return folder.evaluate(g, node); };
  for (const auto& pass : graph::all_passes({})) {
    const std::string name(pass->name());
    if (std::ranges::find(kBefore, name) == std::end(kBefore) || options.disabled_passes.contains(name)) passes.disabled.insert(name);
  }
  SERIN_CHECK(graph::verify(graph));
  SERIN_CHECK(graph::infer_shapes(graph));
  SERIN_CHECK(graph::run_passes(graph, passes));
  return {};
}

/// NaN and infinity have no place in a range, and an input of them is a mistake.
Status check_finite(const Samples& samples, const engine::Model& model) {
  for (size_t s = 0; s < samples.inputs.size(); ++s) {
    for (size_t i = 0; i < samples.inputs[s].size(); ++i) {
      const engine::Value& value = samples.inputs[s][i];
      if (!value.is_tensor() || !value.tensor || value.tensor->dtype != DType::kFloat32) continue;
      const auto numbers = value.tensor->span<float>();
      const auto bad = std::ranges::find_if(numbers, [](float x) { return !std::isfinite(x); });
      if (bad == numbers.end()) continue;
      return Error{Code::kInvalidArgument,
                   fmt::format("{}: input '{}' of sample {} holds {} at element {}: ranges cannot be measured on it", samples.source,
                               model.inputs()[i].name, s, *bad, bad - numbers.begin())};
    }
  }
  return {};
}

/// The model in f32, whose results are its own and then `values`.
Result<std::shared_ptr<engine::Model>> model_showing(graph::Graph graph, std::span<const graph::ValueId> values,
                                                     const kernels::Backend& backend, engine::LoadOptions options) {
  std::vector<graph::ValueId> outputs(graph.outputs().begin(), graph.outputs().end());
  std::vector<std::string> names(graph.output_names().begin(), graph.output_names().end());
  names.resize(outputs.size());
  for (const graph::ValueId value : values) {
    outputs.push_back(value);
    names.push_back(graph.value(value).name);
  }
  graph.set_outputs(std::move(outputs));
  graph.set_output_names(std::move(names));
  options.after_pass = nullptr;
  return engine::Model::from_graph(std::move(graph), backend, std::move(options));
}

struct Seen {
  graph::Ranges ranges;
  std::map<graph::ValueId, std::string> unfit;
  std::vector<std::vector<engine::Value>> exact;  // the model's results, by judged sample
};

std::span<const float> numbers_of(const engine::Value& value) {
  const bool floats = value.is_tensor() && value.tensor && value.tensor->dtype == DType::kFloat32;
  return floats ? std::span(reinterpret_cast<const float*>(value.tensor->resident.get()), static_cast<size_t>(value.tensor->elements()))
                : std::span<const float>();
}

Result<Seen> see(engine::Model& showing, const graph::Graph& graph, std::span<const graph::ValueId> values, const Samples& samples) {
  Seen seen;
  Calibration calibration(values.size());
  const size_t own = graph.outputs().size();
  for (size_t s = 0; s < samples.inputs.size(); ++s) {
    SERIN_TRY(auto results, showing.run(samples.inputs[s]));
    for (size_t i = 0; is_fitted(samples, s) && i < values.size(); ++i) calibration.see(i, numbers_of(results[own + i]));
    results.resize(own);
    if (is_judged(samples, s)) seen.exact.push_back(std::move(results));
  }
  for (size_t s = 0; !values.empty() && s < samples.inputs.size(); ++s) {
    if (!is_fitted(samples, s)) continue;
    SERIN_TRY(const auto results, showing.run(samples.inputs[s]));
    for (size_t i = 0; i < values.size(); ++i) calibration.count(i, numbers_of(results[own + i]));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string& name = graph.value(values[i]).name;
    const auto range = calibration.range(i);
    if (range && graph::byte_scale(*range))
      seen.ranges[values[i]] = *range;
    else if (range)
      seen.unfit[values[i]] = fmt::format("'{}' reaches from {:.3g} to {:.3g}", name, range->low, range->high);
    else
      seen.unfit[values[i]] = fmt::format("'{}' is not finite on the samples", name);
  }
  return seen;
}

/// "53 of 53 convolutions and 1 of 2 products"
std::string describe(const graph::Graph& graph, const graph::Int8Choice& choice) {
  size_t convs = 0, products = choice.dynamic.size(), kept_convs = 0;
  for (const graph::NodeId id : choice.units) {
    convs += graph.is(id, Op::kConv) ? 1 : 0;
    products += graph.is(id, Op::kMatMul) || graph.is(id, Op::kGemm) ? 1 : 0;
  }
  for (const graph::KeptInFloat& kept : choice.kept) kept_convs += kept.op == Op::kConv ? 1 : 0;
  const size_t kept_products = choice.kept.size() - kept_convs;
  std::string text;
  if (convs + kept_convs > 0) text = fmt::format("{} of {} convolutions", convs, convs + kept_convs);
  if (products + kept_products > 0)
    text += fmt::format("{}{} of {} products", text.empty() ? "" : " and ", products, products + kept_products);
  return text;
}

Result<Int8Model> as_it_is(graph::Graph graph, const kernels::Backend& backend, const engine::LoadOptions& options) {
  Int8Model result;
  SERIN_TRY(result.model, engine::Model::from_graph(std::move(graph), backend, options));
  result.on_bytes = graph::multiplies_bytes(result.model->graph());
  return result;
}

/// Nothing runs, so nothing is seen: sizes and kernels are the same whatever the ranges are.
Result<Int8Model> as_planned(graph::Graph graph, graph::Int8Choice& choice, const kernels::Backend& backend,
                             const engine::LoadOptions& options) {
  graph::Ranges ranges;
  for (const graph::ValueId value : choice.values) ranges[value] = {-1, 1};
  graph::insert_int8(graph, choice, ranges);
  Int8Model result;
  SERIN_TRY(result.model, engine::Model::from_graph(std::move(graph), backend, options));
  result.on_bytes = true;
  result.why = "int8: planned without samples, as if each value that could become bytes did";
  result.kept = std::move(choice.kept);
  return result;
}

/// What the user should know before relying on it.
std::string warning_of(const Int8Model& made, const graph::Int8Choice& choice) {
  if (!(made.error <= kWorthAWarning)) return fmt::format("int8 differs from fp32 by {:.2g}, which is much", made.error);
  if (choice.without_ranges == 0) return {};
  return fmt::format("int8: {} convolutions compute in fp32: the ranges of what they read are seen on samples, so give some",
                     choice.without_ranges);
}

}  // namespace

Result<Int8Model> int8_model(graph::Graph graph, const kernels::Backend& backend, engine::LoadOptions options,
                             const SampleSource& source) try {
  if (graph::is_quantised(graph)) {
    SERIN_TRY(Int8Model result, as_it_is(std::move(graph), backend, options));
    result.why = result.on_bytes ? "int8: as the file was quantised" : "fp32: the file is quantised, but nothing in it multiplies bytes";
    return result;
  }
  if (options.device) return Error{Code::kUnsupported, "precision int8: the file is not quantised, and Serin quantises for the CPU only"};
  options.precision = engine::Precision::kFp32;  // of what is not quantised, which the model that shows its ranges is not at all
  SERIN_CHECK(prepare(graph, options));
  const bool ranges = !source.folder.empty();
  SERIN_TRY(graph::Int8Choice choice, graph::choose_int8(graph, {}, ranges));
  if (choice.units.empty() && choice.dynamic.empty()) {
    SERIN_TRY(Int8Model result, as_it_is(std::move(graph), backend, options));
    result.why = choice.without_ranges == 0 ? "fp32: nothing in it is a convolution of images or a product with a known f32 weight"
                                            : "fp32: there are no samples to measure the ranges of its convolutions on";
    result.warning = warning_of(result, choice);
    result.kept = std::move(choice.kept);
    return result;
  }

  if (options.only_plans) return as_planned(std::move(graph), choice, backend, options);
  SERIN_TRY(auto showing, model_showing(graph, choice.values, backend, options));
  SERIN_TRY(const Samples samples,
            source.folder.empty() ? made_up_samples(*showing, source.sizes, source.batch) : stored_samples(source.folder, *showing));
  SERIN_CHECK(check_finite(samples, *showing));
  SERIN_TRY(const Seen seen, see(*showing, graph, choice.values, samples));
  showing.reset();  // its packed weights should not lie beside those of bytes
  if (!seen.unfit.empty()) {
    SERIN_TRY(choice, graph::choose_int8(graph, seen.unfit, ranges));
  }

  Int8Model result;
  result.on_bytes = !choice.units.empty() || !choice.dynamic.empty();
  result.kept = choice.kept;
  result.why = describe(graph, choice);
  graph::insert_int8(graph, choice, seen.ranges);
  SERIN_TRY(result.model, engine::Model::from_graph(std::move(graph), backend, options));
  const Samples compared = judged(samples);
  SERIN_TRY(result.error, worst_error(*result.model, compared, seen.exact));
  result.why = fmt::format("{}: {} on bytes; differs from fp32 by {:.2g} (relative L2, the worst of {} {})",
                           result.on_bytes ? "int8" : "fp32", result.why, result.error, compared.inputs.size(), compared.source);
  result.warning = warning_of(result, choice);
  return result;
} catch (const graph::LostConstant& lost) {
  return lost.error();
}

}  // namespace serin::samples
