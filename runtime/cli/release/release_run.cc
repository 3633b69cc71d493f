#include "runtime/cli/release/release_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/cli/ready_file.h"
#include "runtime/cli/release/child.h"
#include "runtime/cli/release/judging.h"
#include "runtime/cli/release/slot.h"
#include "runtime/cli/rollout/rollout_text.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using registry::Reference;
using registry::Version;
using std::chrono::steady_clock;

constexpr double kPoll = 0.25;
constexpr std::chrono::seconds kFailedFor{3};  // a runtime that says so may still be about to try again

constexpr std::string_view kNames[] = {"check", "plan", "eval", "register", "load", "rollout", "tag", "record"};

/// Its own words, or those of the stage.
std::string or_else(const std::string& text, std::string_view otherwise) { return text.empty() ? std::string(otherwise) : text; }

/// "    3.0 s  Progressing ..." -> "Progressing ...": the timeline has seconds of its own.
std::string without_seconds(const std::string& line) {
  const size_t unit = line.find(" s  ");
  return unit == std::string::npos ? line : line.substr(line.find_first_not_of(' ', unit + 2));
}

/// Milliseconds of Unix time.
int64_t wall_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool has_tag(const Version& version, const std::string& tag) { return std::ranges::find(version.tags, tag) != version.tags.end(); }

}  // namespace

Result<Survey> survey(const registry::Registry& registry, const std::string& model, const ReleasePolicy& policy, const RouterSide& router) {
  SERIN_TRY(const std::vector<Version> versions, registry.versions(model));
  const auto tagged = [&](const std::string& tag) {
    return std::ranges::find_if(versions, [&](const Version& each) { return has_tag(each, tag); });
  };
  const auto production = tagged(policy.production);
  const auto precondition = [](std::string message) { return Error{Code::kFailedPrecondition, std::move(message)}; };
  if (production == versions.end())
    return precondition(
        fmt::format("no version of '{}' is tagged '{}': add the one that is served now with serin registry add {} {} FILES --tag {} "
                    "--tag {} --tag {}",
                    model, policy.production, policy.registry, model, policy.production, policy.slots[0].name, policy.slots[1].name));
  const RouterSide::Slots slots = router.slots();
  for (const Slot& slot : policy.slots)
    if (!slots.of(slot.name)) return precondition(fmt::format("router.yaml has no version '{}', which is a slot of the policy", slot.name));
  if (slots.stable != policy.slots[0].name && slots.stable != policy.slots[1].name)
    return precondition(fmt::format("the router's stable version is '{}', which is no slot of the policy ({}, {})", slots.stable,
                                    policy.slots[0].name, policy.slots[1].name));
  Survey found{*production, slots.stable, policy.slots[slots.stable == policy.slots[0].name ? 1 : 0].name, {}};
  const auto stable_has = tagged(found.stable), idle_has = tagged(found.idle);
  if (stable_has != production)
    return precondition(
        fmt::format("the router's stable slot '{}' has {}, but '{}' is {}:{}: give one of the two tags to the version that is served "
                    "(serin registry tag)",
                    found.stable, stable_has == versions.end() ? "no version" : fmt::format("{}:{}", model, stable_has->number),
                    policy.production, model, production->number));
  if (idle_has != versions.end()) found.idle_has = *idle_has;
  return found;
}

Result<ReleaseRecord> ReleaseRun::run(const Candidate* candidate) {
  while (!journal_.stop && journal_.stage != Stage::kRecord) {
    const auto at = static_cast<size_t>(journal_.stage);
    SERIN_TRY(const Done done, do_stage(candidate));
    const std::string name = or_else(done.stage, kNames[at]);
    journal_.say(name, done.text);
    timeline_.say(name, done.text);
    if (done.good)
      journal_.stage = static_cast<Stage>(at + 1);
    else
      journal_.stop = Stop{name, done.text, or_else(done.outcome, "refused")};
    SERIN_CHECK(save());
  }
  if (journal_.stop) SERIN_CHECK(take_back());
  return record();
}

Result<ReleaseRecord> ReleaseRun::finish(const std::string& reason) {
  if (!journal_.stop && journal_.stage < Stage::kTag) {
    const std::string running = journal_.stage == Stage::kRollout ? running_rollout() : "";
    const auto verdict = running.empty() ? std::nullopt : router_.verdict(running);
    if (verdict && verdict->find(R"("phase":"Succeeded")") != std::string::npos) {
      journal_.rollout = running;
      journal_.stage = Stage::kTag;
    } else {
      journal_.stop = Stop{std::string(kNames[static_cast<size_t>(journal_.stage)]), reason, "superseded"};
    }
    SERIN_CHECK(save());
  }
  return run(nullptr);
}

Result<ReleaseRun::Done> ReleaseRun::do_stage(const Candidate* candidate) {
  switch (journal_.stage) {
    case Stage::kCheck: return check(*candidate);
    case Stage::kPlan: return plan(*candidate);
    case Stage::kEval: return evaluate(*candidate);
    case Stage::kRegister: return add(*candidate);
    case Stage::kLoad: return load();
    case Stage::kRollout: return roll_out();
    case Stage::kTag: return tag();
    case Stage::kRecord: break;
  }
  return Error{Code::kInternal, "there is no such stage"};
}

Result<ReleaseRun::Done> ReleaseRun::check(const Candidate& candidate) {
  SERIN_TRY(const Version production, registry_.find({journal_.model, std::to_string(journal_.production)}));
  SERIN_TRY(Judged judged, judge_check(policy_, candidate, production.details, work()));
  journal_.facts["check"] = std::move(judged.facts);
  return Done{judged.good, std::move(judged.text)};
}

Result<ReleaseRun::Done> ReleaseRun::plan(const Candidate& candidate) {
  SERIN_TRY(Judged judged, judge_plan(policy_, candidate, work()));
  journal_.facts["plan"] = std::move(judged.facts);
  return Done{judged.good, std::move(judged.text)};
}

/// A version as files, without another one's settings next to it.
Result<std::string> ReleaseRun::pulled(uint64_t version) {
  SERIN_TRY(const registry::Pulled there,
            registry_.pull({journal_.model, std::to_string(version)}, fmt::format("{}/version-{}", work(), version)));
  return there.folder;
}

Result<ReleaseRun::Done> ReleaseRun::evaluate(const Candidate& candidate) {
  if (!policy_.eval) return Done{true, "the policy has no evaluation"};
  SERIN_TRY(const std::string against, pulled(journal_.production));
  SERIN_TRY(Judged judged, judge_eval(*policy_.eval, candidate.given, policy_.data, against, work()));
  journal_.facts["evaluation"] = std::move(judged.facts);
  return Done{judged.good, std::move(judged.text)};
}

Result<ReleaseRun::Done> ReleaseRun::add(const Candidate& candidate) {
  registry::Addition addition = candidate.files;
  if (const json::value* details = journal_.facts.at("check").as_object().if_contains("details"))
    addition.details = json::serialize(*details);
  for (const auto& [key, value] : journal_.facts.at("origin").as_object()) addition.origin[key] = value.as_string();
  const auto added = registry_.add(journal_.model, addition, journal_.by);
  if (!added && added.error().code == Code::kFailedPrecondition) return Done{false, added.error().message};  // retired
  if (!added) return added.error();
  const Version& version = added->version;
  if (version.content != journal_.content) return Done{false, "its files changed while they were judged"};
  journal_.version = version.number;
  const Reference reference{journal_.model, version.digest};
  if (const json::value* evaluation = journal_.facts.if_contains("evaluation")) {
    const std::string path = work() + "/evaluation.json", page = work() + "/evaluation.html";
    SERIN_CHECK(write_file_atomically(path, std::string_view(evaluation->as_object().at("report").as_string())));
    SERIN_CHECK(registry_.attach(reference, path, journal_.by));
    std::error_code absent;
    if (fs::exists(page, absent)) SERIN_CHECK(registry_.attach(reference, page, journal_.by));
  }
  return Done{true, fmt::format("{}:{} {}", journal_.model, version.number, added->existed ? "was there already" : "added")};
}

Result<ReleaseRun::Done> ReleaseRun::load() {
  if (journal_.slot.empty()) {  // what is there is written down before anything is changed
    SERIN_TRY(const Survey now, survey(registry_, journal_.model, policy_, router_));
    if (now.production.number != journal_.production)
      return Done{false, fmt::format("'{}' became {}:{} meanwhile, and it was judged against {}:{}", policy_.production, journal_.model,
                                     now.production.number, journal_.model, journal_.production)};
    journal_.slot = now.idle;
    journal_.slot_before = now.idle_has && now.idle_has->number != journal_.version ? now.idle_has->number : 0;
    SERIN_CHECK(save());
  }
  const Slot& slot = *std::ranges::find(policy_.slots, journal_.slot, &Slot::name);
  SERIN_CHECK(registry_.tag({journal_.model, std::to_string(journal_.version)}, slot.name, journal_.by));
  const auto deadline = steady_clock::now() + policy_.load_timeout;
  auto well = steady_clock::now();  // when no runtime had failed yet
  while (true) {
    std::optional<NotServing> waiting;
    for (const std::string& runtime : slot.runtimes)
      if (!waiting) waiting = not_serving(runtime, journal_.model, journal_.version);
    if (!waiting) {
      RouterSide::Slots::Health health;
      RouterSide::patiently([&] { health = router_.slots().of(slot.name).value_or(RouterSide::Slots::Health{}); });
      if (health.endpoints > 0 && health.healthy == health.endpoints) break;
      waiting = NotServing{fmt::format("the router finds {} of {} endpoints of '{}' healthy", health.healthy, health.endpoints, slot.name)};
    }
    if (!waiting->failed) well = steady_clock::now();
    if (steady_clock::now() - well > kFailedFor) return Done{false, "it could not be loaded: " + waiting->text, "", "failed"};
    if (steady_clock::now() > deadline)
      return Done{false, fmt::format("not loaded within {}: {}", config::print_duration(policy_.load_timeout), waiting->text), "",
                  "failed"};
    if (wait_for_end_signal(kPoll)) throw ReleaseInterrupted{};
  }
  const auto smoked = smoke(slot, journal_.model, policy_.data, work());
  if (!smoked) return Done{false, smoked.error().message, "", "failed"};
  return Done{true, fmt::format("{}:{} is loaded in '{}' next to production; {}", journal_.model, journal_.version, slot.name, *smoked)};
}

std::string ReleaseRun::document() const { return rollout_document(journal_.service, journal_.slot, journal_.revision, policy_.rules); }

/// The ID of this release's rollout. A kill may have come between its start and the journal.
std::string ReleaseRun::running_rollout() const {
  if (!journal_.rollout.empty()) return journal_.rollout;
  std::string id;
  try {
    RouterSide::patiently([&] {
      const RouterSide::Applied known = router_.apply(document(), /*dry_run=*/true);
      id = known.action == "unchanged" && known.rollout && known.rollout->canary == journal_.slot ? known.rollout->id : "";
    });
  } catch (const Failure& failure) {
    if (failure.exit_code == kUnreachable) throw;  // else it was refused: it never began
  }
  return id;
}

/// Nothing: it has begun.
Result<std::optional<ReleaseRun::Done>> ReleaseRun::begin_rollout() {
  RouterSide::Applied applied;
  try {
    RouterSide::patiently([&] { applied = router_.apply(document(), /*dry_run=*/true); });
    if (applied.action == "replaced")
      return Error{Code::kFailedPrecondition, "another rollout of the service is under way, and would be ended: " + applied.message};
    if (applied.action == "started") RouterSide::patiently([&] { applied = router_.apply(document(), /*dry_run=*/false); });
  } catch (const Failure& failure) {
    if (failure.exit_code == kUnreachable) throw;
    return std::optional(Done{false, "the router refused the rollout: " + failure.message, "", "failed"});
  }
  if (applied.action == "blocked") return std::optional(Done{false, applied.message, "canary", "rolled_back"});
  if (!applied.rollout || applied.rollout->canary != journal_.slot)
    return Error{Code::kFailedPrecondition, fmt::format("the router did not begin the rollout: {}", applied.message)};
  journal_.rollout = applied.rollout->id;
  journal_.facts["rollout_began_ms"] = wall_ms();
  SERIN_CHECK(save());
  return std::optional<Done>();
}

Result<ReleaseRun::Done> ReleaseRun::roll_out() {
  if (journal_.rollout.empty()) {
    SERIN_TRY(const std::optional<Done> refused, begin_rollout());
    if (refused) return *refused;
  }
  return follow_rollout();
}

Result<ReleaseRun::Done> ReleaseRun::follow_rollout() {
  const int64_t limit_ms = std::chrono::duration_cast<std::chrono::milliseconds>(policy_.timeout).count();
  const json::value* began = journal_.facts.if_contains("rollout_began_ms");
  const int64_t end_ms = (began ? began->to_number<int64_t>() : wall_ms()) + limit_ms;
  std::string stage, gave_up;
  while (true) {
    json::value status;
    RouterSide::patiently([&] { status = router_.status(); });
    const auto now = RouterSide::rollout_of(status);
    if (!now || now->id != journal_.rollout)
      return Error{Code::kFailedPrecondition, fmt::format("rollout '{}' is not the router's last one any more: serin rollout explain {}",
                                                          journal_.rollout, journal_.rollout)};
    stage = stage_in_words(*now, policy_.parsed, stage);
    if (!now->over()) timeline_.progress(watch_key(status), stage, without_seconds(print_status_line(status)), print_status(status));
    if (now->phase == "Succeeded") return Done{true, "all requests go to it: " + now->reason, "100 %"};
    if (now->phase == "RolledBack") return Done{false, or_else(gave_up, now->reason), stage, "rolled_back"};
    if (now->phase == "Inconclusive")
      gave_up = "not shown to be as good as production in time: " + now->reason;
    else if (wall_ms() > end_ms)
      gave_up = fmt::format("the rollout took longer than 'timeout', {}", config::print_duration(policy_.timeout));
    if (!gave_up.empty()) RouterSide::patiently([&] { router_.abort("serin release: " + gave_up); });
    if (gave_up.empty() && wait_for_end_signal(kPoll)) throw ReleaseInterrupted{};
  }
}

Result<ReleaseRun::Done> ReleaseRun::tag() {
  SERIN_CHECK(registry_.tag({journal_.model, std::to_string(journal_.version)}, policy_.production, journal_.by));
  return Done{true, fmt::format("{}:{} is '{}'", journal_.model, journal_.version, policy_.production)};
}

/// Weight 0, and the slot's tag back, in this order.
Status ReleaseRun::take_back() {
  if (journal_.stage == Stage::kRollout) {
    const std::string rollout = running_rollout();
    bool over = rollout.empty();
    while (!over) {
      RouterSide::patiently([&] {
        const auto now = RouterSide::rollout_of(router_.status());
        over = !now || now->id != rollout || now->over();
        if (!over) router_.abort("serin release: " + journal_.stop->reason);
      });
      if (!over && wait_for_end_signal(kPoll)) throw ReleaseInterrupted{};
    }
    journal_.rollout = rollout;
  }
  if (journal_.slot.empty()) return save();
  SERIN_TRY(const std::vector<Version> versions, registry_.versions(journal_.model));
  const auto in_slot = std::ranges::find_if(versions, [&](const Version& each) { return has_tag(each, journal_.slot); });
  if (in_slot != versions.end() && in_slot->number == journal_.version) {
    const uint64_t back = journal_.slot_before > 0 ? journal_.slot_before : journal_.production;
    SERIN_CHECK(registry_.tag({journal_.model, std::to_string(back)}, journal_.slot, journal_.by));
    const std::string text = fmt::format("slot '{}' has {}:{} again; '{}' stays {}:{}", journal_.slot, journal_.model, back,
                                         policy_.production, journal_.model, journal_.production);
    journal_.say("undo", text);
    timeline_.say("undo", text);
  }
  return save();
}

}  // namespace serin::cli
