#include "runtime/planner/admission.h"

#include <algorithm>

#include "runtime/planner/fit.h"
#include "runtime/planner/plan_model.h"

namespace serin::planner {
namespace {

Result<Answer> with_base(const Machine& machine, const FoundModel& model, const Question& question, size_t base) {
  Answer answer{.backend = machine.note, .base = base, .models = {}};
  SERIN_TRY(ModelAnswer planned, plan_model(model, question, machine));
  answer.models.push_back(std::move(planned));
  return answer;
}

/// Of what is ready before the first request: batches of one row.
size_t certain_bytes(const ModelAnswer& model, bool warm) {
  size_t bytes = model.weights.constants + model.weights.packed;
  if (warm)
    for (const Bucket& bucket : model.buckets) bytes += static_cast<size_t>(model.instances) * bucket.live;
  return bytes;
}

}  // namespace

Admission admit(const Machine& machine, const FoundModel& model, size_t limit, const Resident& now) {
  const auto plan = [&](const Question& question) { return with_base(machine, model, question, now.own + now.files); };
  const auto answer = plan({});
  if (!answer || answer->total() <= limit) return {};
  const auto fitted = fit(plan, {}, *answer, {.bytes = limit, .name = "the limit", .device = nullptr}, "fp32", {});
  if (!fitted) return {};
  Admission admission{.cannot_fit = false, .sentence = fitted->advice};
  const auto first =
      plan({.batches = {1}, .instances = {}, .threads = {}, .clients = {}, .precision = {}, .sizes = {}, .length = {}, .settings = {}});
  const bool decided = model.settings.precision != serving::Precision::kAuto;  // otherwise a smaller one may be chosen
  admission.cannot_fit = decided && first && now.own + certain_bytes(first->models.front(), model.settings.warmup) > limit;
  return admission;
}

}  // namespace serin::planner
