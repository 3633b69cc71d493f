// planner.cc: adds up what the parts take.

#include "runtime/planner/planner.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <functional>

#include "runtime/base/aligned_buffer.h"
#include "runtime/planner/places.h"
#include "runtime/planner/plan_model.h"
#include "runtime/planner/process.h"

namespace serin::planner {
namespace {

bool has(const ModelAnswer& model, std::string_view dimension) {
  return std::ranges::find(model.symbols, dimension) != model.symbols.end();
}

size_t messages(const ModelAnswer& model, double bytes_of_a_byte) {
  size_t largest = 0;
  for (const Bucket& bucket : model.buckets) largest = std::max(largest, bucket.inputs + bucket.results);
  largest = static_cast<size_t>(static_cast<double>(largest) * bytes_of_a_byte);
  return static_cast<size_t>(model.clients) * kCopiesOfARequest * largest + kept_free(largest);
}

}  // namespace

size_t ModelAnswer::each_instance() const {
  std::vector<size_t> each;
  each.reserve(buckets.size());
  for (const Bucket& bucket : buckets) each.push_back(AlignedBuffer::rounded_up(bucket.arena + 1) + bucket.staging + bucket.executor);
  std::ranges::sort(each, std::greater());  // the least recently used goes: which one it is, traffic decides
  if (each.size() > held_buckets) each.resize(held_buckets);
  size_t bytes = 0;
  for (const size_t bucket : each) bytes += bucket;
  return bytes;
}

size_t ModelAnswer::in_flight() const { return messages(*this, 1); }
size_t ModelAnswer::as_json() const { return messages(*this, kBytesOfText); }

size_t ModelAnswer::steady() const {
  const auto count = static_cast<size_t>(instances);
  const auto planning = static_cast<size_t>(static_cast<double>(instances) * kPlanningOfAnInstance * static_cast<double>(structures));
  return weights.constants + weights.packed + plan_constants + structures + planning + code + count * each_instance() + in_flight() +
         kRunBytes + count * static_cast<size_t>(threads) * kStackBytes;
}

size_t ModelAnswer::peak() const {
  const size_t kept = weights.constants + weights.packed;
  const size_t loading = weights_at_load + structures + code + kRunBytes;
  // Weights of another size are packed while the executors of those before it are there.
  const size_t later = weights.while_packing > weights_at_load && weights.while_packing > kept ? weights.while_packing - kept : 0;
  return std::max(loading, steady() + later);
}

bool Answer::bounded() const {
  return std::ranges::all_of(models, [](const ModelAnswer& model) { return model.not_planned.empty(); });
}

size_t Answer::total() const {
  size_t steady = base, most = base;
  for (const ModelAnswer& model : models) {  // loaded one after the other
    most = std::max(most, steady + model.peak());
    steady += model.steady();
  }
  return std::max(most, steady);
}

Result<Answer> Planner::plan(const std::vector<std::string>& places, const Question& question) const {
  const auto started = std::chrono::steady_clock::now();
  Answer answer{.backend = machine_.note};
  const Resident now = resident();
  answer.base = now.own + now.files + kServerBytes;
  SERIN_TRY(std::vector<FoundModel> found, find_models(places, question.settings ? &*question.settings : nullptr));
  for (FoundModel& each : found) {
    if (question.instances) each.settings.instances = question.instances;
    if (question.threads) each.settings.threads = *question.threads;
    if (question.precision) each.settings.precision = *question.precision;
    auto planned = plan_model(each, question, machine_);
    if (!planned) return planned.error().in(fmt::format("model '{}' version {}", each.name, each.version));
    answer.models.push_back(*std::move(planned));
  }
  for (const auto& [dimension, sizes] : question.sizes)
    if (std::ranges::none_of(answer.models, [&, name = std::string_view(dimension)](const ModelAnswer& model) { return has(model, name); }))
      return invalid(fmt::format("no model has a dimension '{}'", dimension));
  answer.planning_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started).count();
  return answer;
}

}  // namespace serin::planner
