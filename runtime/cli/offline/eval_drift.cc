#include "runtime/cli/offline/eval_drift.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/cli/offline/file_digest.h"
#include "runtime/datasets/convert.h"
#include "runtime/datasets/open.h"
#include "runtime/evaluation/drift.h"

namespace serin::cli {
namespace {

constexpr int64_t kMostCompared = 10'000, kMostElements = 1 << 16;

/// One sample for each element of an input.
using Samples = std::vector<std::vector<double>>;

/// The input's numbers in evenly spaced rows, in the form in which the model gets them. Rows that cannot be read are left out: the
/// evaluation reports them.
Result<Samples> samples_of(const datasets::Dataset& data, const ColumnMap& map, size_t input, const steps::TensorFacts& facts) {
  std::vector<size_t> columns;
  for (const size_t position : map.inputs[input]) columns.push_back(map.columns[position]);
  const auto elements = static_cast<size_t>(facts.shape.elements());
  Samples samples(elements);
  const int64_t taken = std::min(kMostCompared, data.rows());
  std::vector<std::byte> bytes;
  for (int64_t i = 0; i < taken; ++i) {
    SERIN_TRY(const datasets::Rows rows, data.read(i * data.rows() / taken, 1, columns));
    if (rows.faults[0]) continue;
    bytes.clear();
    const auto shape = datasets::append_elements(rows.row(0), DType::kFloat64, facts.shape, bytes);
    if (!shape || bytes.size() != elements * sizeof(double)) continue;
    const auto* const numbers = reinterpret_cast<const double*>(bytes.data());
    for (size_t e = 0; e < elements; ++e) samples[e].push_back(numbers[e]);
  }
  return samples;
}

InputDrift compare_samples(const std::string& name, Samples now, Samples then) {
  InputDrift drift{.input = name, .elements = static_cast<int64_t>(now.size())};
  for (size_t e = 0; e < now.size(); ++e) {
    const evaluation::SampleDistance found = evaluation::kolmogorov_smirnov(std::move(now[e]), std::move(then[e]));
    if (e > 0 && found.distance <= drift.distance) continue;
    drift.worst = static_cast<int64_t>(e);
    drift.distance = found.distance;
    drift.p_value = std::min(1.0, found.p_value * static_cast<double>(now.size()));
  }
  return drift;
}

}  // namespace

double EvalDrift::largest() const {
  double most = 0;
  for (const InputDrift& input : inputs) most = std::max(most, input.distance);
  return most;
}

Result<EvalDrift> measure_drift(const OpenRun& run, const std::string& training, const std::vector<std::string>& map) {
  SERIN_TRY(const auto data, datasets::open(training));
  const std::vector<steps::TensorFacts>& inputs = run.model->inputs();
  const auto mapped = map_columns(*data, inputs, map);
  if (!mapped) return mapped.error().in("--training " + training);
  EvalDrift drift{.training = training};
  SERIN_TRY(drift.sha256, digest_of(data->files()));
  drift.rows = std::min(kMostCompared, run.data->rows());
  drift.training_rows = std::min(kMostCompared, data->rows());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const steps::TensorFacts& facts = inputs[i];
    const auto sizes = facts.shape.dims();
    const bool fixed = std::ranges::none_of(sizes, [](int64_t size) { return size < 0; });
    if (facts.dtype == DType::kString || !fixed || facts.shape.elements() < 1 || facts.shape.elements() > kMostElements) continue;
    SERIN_TRY(Samples now, samples_of(*run.data, run.map, i, facts));
    SERIN_TRY(Samples then, samples_of(*data, *mapped, i, facts));
    if (now.front().empty() || then.front().empty()) continue;  // texts or pictures, which steps make numbers of
    drift.inputs.push_back(compare_samples(facts.name, std::move(now), std::move(then)));
  }
  if (drift.inputs.empty())
    return Error{Code::kUnsupported, "--training: no input is of numbers with a fixed size, so there is nothing to compare"};
  return drift;
}

}  // namespace serin::cli
