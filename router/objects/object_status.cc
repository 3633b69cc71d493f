#include "router/objects/object_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "router/kubernetes/api_client.h"
#include "router/rollout/spec_parts.h"
#include "runtime/base/utf8.h"

namespace serin::router {
namespace {

namespace json = boost::json;
using kubernetes::text_at;
using rollout::Phase;

constexpr size_t kLongestText = 1000;

struct ObjectCondition {
  std::string_view type;
  bool is;
  std::string reason, message;
};

const json::object* condition_of(const json::object& status, std::string_view type) {
  const json::value* all = status.if_contains("conditions");
  if (all == nullptr || !all->is_array()) return nullptr;
  for (const json::value& one : all->as_array())
    if (one.is_object() && text_at(one.as_object(), {"type"}) == type) return &one.as_object();
  return nullptr;
}

json::object written(const ObjectCondition& condition, int64_t generation, const json::object& before, const std::string& now) {
  const std::string_view is = condition.is ? "True" : "False";
  const json::object* old = condition_of(before, condition.type);
  const bool same = old != nullptr && text_at(*old, {"status"}) == is;
  return {{"type", condition.type},           {"status", is},
          {"observedGeneration", generation}, {"lastTransitionTime", same ? text_at(*old, {"lastTransitionTime"}) : now},
          {"reason", condition.reason},       {"message", utf8_prefix(condition.message, kLongestText)}};
}

/// Fewer digits: a status is for people, and each digit that changes is a write.
json::value rounded(double value) {
  const double tenths = std::round(value * 10);
  if (std::fmod(tenths, 10) == 0) return static_cast<int64_t>(tenths / 10);  // the API gives whole numbers back as integers
  return tenths / 10;
}

std::string_view verdict_of(Phase phase) {
  return phase == Phase::kSucceeded ? "promoted" : phase == Phase::kRolledBack ? "rolled_back" : "insufficient_data";
}

void add_rollout(const ServiceStatus& status, json::object& out) {
  const rollout::Report& report = *status.rollout;
  const rollout::State& state = report.state;
  out["id"] = state.id;
  out["phase"] = rollout::phase_name(state.phase);
  out["verdict"] = verdict_of(state.phase);
  out["stable"] = status.stable;
  out["canary"] = state.canary;
  out["weight"] = rollout::print_weight(state.weight_ppm) + "%";
  const size_t steps = status.rollout_steps;
  out["step"] = fmt::format("{}/{}", std::min(static_cast<size_t>(state.step) + 1, steps), steps);
  out["cause"] = state.cause;
  out["reason"] = utf8_prefix(state.reason, kLongestText);
  out["answers"] = json::object{{"stable", report.stable_answers}, {"canary", report.canary_answers}};
  json::array evidence;
  for (const rollout::Evidence& line : report.evidence)
    evidence.emplace_back(json::object{{"guard", line.guard}, {"bits", rounded(line.bits)}, {"bitsToTrip", rounded(line.bits_to_trip)}});
  out["evidence"] = std::move(evidence);
}

/// One word and a sentence for the conditions.
std::pair<std::string, std::string> reason_of(const ObjectOutcome& outcome) {
  if (!outcome.reason.empty()) return {outcome.reason, outcome.message};
  if (!outcome.status || !outcome.status->rollout) return {"Waiting", "the rollout has not started"};
  const rollout::State& state = outcome.status->rollout->state;
  return {std::string(rollout::phase_name(state.phase)), state.reason};
}

}  // namespace

json::object object_status(const ObjectOutcome& outcome, const json::object& before, const std::string& now) {
  json::object out{{"observedGeneration", outcome.generation}};
  const bool has_rollout = outcome.status && outcome.status->rollout;
  const Phase phase = has_rollout ? outcome.status->rollout->state.phase : Phase::kProgressing;
  if (has_rollout) {
    add_rollout(*outcome.status, out);
  } else if (!outcome.accepted) {
    for (const auto& [key, value] : before)  // what it has started goes on
      if (key != "observedGeneration" && key != "conditions") out[key] = value;
  } else {
    out["canary"] = outcome.canary;
  }
  if (outcome.accepted) {
    out["service"] = outcome.service;
    out["revision"] = outcome.revision;
  }
  const bool good = outcome.accepted && !outcome.blocked && (outcome.is_stable || (has_rollout && phase == Phase::kSucceeded));
  const bool bad = !outcome.accepted || outcome.blocked || (has_rollout && phase == Phase::kRolledBack);
  const auto [reason, message] = reason_of(outcome);
  json::array conditions;
  for (const ObjectCondition& condition :
       {ObjectCondition{"Accepted", outcome.accepted, outcome.accepted ? "Valid" : reason, outcome.accepted ? "" : message},
        ObjectCondition{"Ready", good, reason, message}, ObjectCondition{"Reconciling", !good && !bad, reason, message},
        ObjectCondition{"Stalled", bad, reason, message}})
    conditions.emplace_back(written(condition, outcome.generation, before, now));
  out["conditions"] = std::move(conditions);
  if (has_rollout) {
    const std::string started = text_at(before, {"id"}) == text_at(out, {"id"}) ? text_at(before, {"startedAt"}) : "";
    out["startedAt"] = started.empty() ? now : started;
  }
  return out;
}

std::string what_matters(const json::object& status) {
  json::object kept;
  for (const std::string_view key :
       {"observedGeneration", "id", "phase", "stable", "canary", "weight", "step", "cause", "service", "revision"})
    if (const json::value* value = status.if_contains(key)) kept[key] = *value;
  json::array conditions;
  if (const json::value* all = status.if_contains("conditions"); all != nullptr && all->is_array())
    for (const json::value& one : all->as_array())
      if (one.is_object())
        conditions.emplace_back(text_at(one.as_object(), {"type"}) + text_at(one.as_object(), {"status"}) +
                                text_at(one.as_object(), {"reason"}));
  kept["conditions"] = std::move(conditions);
  return json::serialize(kept);
}

}  // namespace serin::router
