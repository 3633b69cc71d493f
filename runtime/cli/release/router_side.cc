#include "runtime/cli/release/router_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "runtime/cli/ready_file.h"
#include "runtime/cli/release/child.h"
#include "runtime/net/http.h"
#include "runtime/net/target.h"

namespace serin::cli {
namespace {

namespace json = boost::json;

constexpr std::chrono::minutes kLongestAbsence{5};
constexpr double kBetweenCalls = 0.5;
constexpr int kEntries = 10'000;

std::string text_of(const json::value& value) { return value.is_string() ? std::string(value.get_string()) : std::string(); }

uint64_t count_of(const json::value& value) { return value.is_number() ? value.to_number<uint64_t>() : 0; }

}  // namespace

std::optional<RouterSide::Slots::Health> RouterSide::Slots::of(const std::string& version) const {
  const auto found = std::ranges::find(versions, version, &std::pair<std::string, Health>::first);
  return found == versions.end() ? std::nullopt : std::optional(found->second);
}

std::string RouterSide::path(std::string_view before, std::string_view after) const {
  return fmt::format("{}{}{}", before, net::escaped(service_), after);
}

RouterSide::Slots RouterSide::slots() const {
  const json::value all = json::parse(admin_.get("/v1/services"));
  const json::array& services = all.at("services").as_array();
  const auto found = std::ranges::find_if(services, [&](const json::value& each) { return text_of(each.at("name")) == service_; });
  if (found == services.end()) throw Failure{fmt::format("router.yaml has no service '{}'", service_), kNo};
  Slots slots;
  for (const json::value& version : found->at("versions").as_array())
    slots.versions.emplace_back(text_of(version.at("name")),
                                Slots::Health{count_of(version.at("endpoints")), count_of(version.at("healthy"))});
  slots.stable = text_of(status().at("stable"));
  return slots;
}

json::value RouterSide::status() const { return json::parse(admin_.get(path("/v1/rollouts/"))); }

std::optional<RolloutNow> RouterSide::rollout_of(const json::value& status) {
  const json::value& rollout = status.at("rollout");
  if (!rollout.is_object()) return std::nullopt;
  RolloutNow now{.id = text_of(rollout.at("id")),
                 .canary = text_of(rollout.at("canary")),
                 .phase = text_of(rollout.at("phase")),
                 .cause = text_of(rollout.at("cause")),
                 .reason = text_of(rollout.at("reason")),
                 .stage = {},
                 .step = static_cast<size_t>(count_of(rollout.at("step"))),
                 .weight = rollout.at("weight").to_number<double>()};
  now.stage = now.phase == "Baking"                                  ? "bake"
              : now.phase == "Promoting" || now.phase == "Succeeded" ? "100 %"
              : now.weight > 0                                       ? "canary"
                                                                     : "shadow";
  return now;
}

RouterSide::Applied RouterSide::apply(const std::string& document, bool dry_run) const {
  const json::value answer = json::parse(admin_.put(path("/v1/rollouts/", dry_run ? "?dry_run=true" : ""), document));
  return {text_of(answer.at("action")), text_of(answer.at("message")), rollout_of(answer.at("status"))};
}

void RouterSide::abort(const std::string& reason) const {
  constexpr size_t kLongest = 1000;
  admin_.post(path("/v1/rollouts/", ":abort"), json::serialize(json::object{{"reason", reason.substr(0, kLongest)}}));
}

json::array RouterSide::history(const std::string& rollout) const {
  const json::value all = json::parse(admin_.get(path("/v1/rollouts/", fmt::format("/history?limit={}", kEntries))));
  json::array entries;
  for (const json::value& entry : all.at("history").as_array())
    if (text_of(entry.at("rollout")) == rollout) entries.push_back(entry);
  return entries;
}

std::optional<std::string> RouterSide::verdict(const std::string& rollout) const {
  try {
    return admin_.get("/v1/verdicts/" + net::escaped(rollout));
  } catch (const Failure& failure) {
    if (failure.exit_code == kNo) return std::nullopt;
    throw;
  }
}

void RouterSide::patiently(const std::function<void()>& call) {
  const auto begun = std::chrono::steady_clock::now();
  while (true) {
    try {
      return call();
    } catch (const Failure& failure) {
      if (failure.exit_code != kUnreachable || std::chrono::steady_clock::now() - begun > kLongestAbsence) throw;
    }
    if (wait_for_end_signal(kBetweenCalls)) throw ReleaseInterrupted{};
  }
}

std::string rollout_document(const std::string& service, const std::string& slot, const std::string& revision, const std::string& rules) {
  return fmt::format("kind: Rollout\nservice: {}\ncanary: {{version: {}}}\nrevision: {}\n{}\n", net::json_quote(service),
                     net::json_quote(slot), net::json_quote(revision), rules);
}

std::string stage_in_words(const RolloutNow& now, const rollout::Spec& spec, const std::string& before) {
  if (now.phase != "RolledBack") return now.stage;
  if (before == "bake" || before == "100 %") return before;
  return now.step < spec.steps.size() && spec.steps[now.step].is_shadow() ? "shadow" : "canary";
}

}  // namespace serin::cli
