#include "tests/router/simulation/world.h"

#include <fmt/format.h>

#include <algorithm>

namespace serin::router {
namespace {

using rollout::Arm;
using rollout::Outcome;
using rollout::Phase;

RouterConfig three_versions() {
  RouterConfig config;
  ServiceConfig digits{.name = "digits", .initial_stable = "1"};
  for (const char* name : {"1", "2", "3"})
    digits.versions.push_back({.name = name, .endpoints = {{.url = "http://127.0.0.1:8000", .origin = {"127.0.0.1", 8000}}}});
  config.services.push_back(std::move(digits));
  return config;
}

}  // namespace

Status MemoryStore::save(const store::Change& change) {
  if (dies == Dies::kBeforeWriting) throw Crash();
  if (failing) return Error{Code::kIo, "the disk is full"};
  const auto known = std::ranges::find(records, change.record.service, &store::ServiceRecord::service);
  (known == records.end() ? records.emplace_back() : *known) = change.record;
  if (dies == Dies::kAfterWriting) throw Crash();
  return {};
}

World::World(std::string spec, const std::string& page_path, uint64_t seed)
    : random(seed), spec_(std::move(spec)), page_path_(page_path), config_(three_versions()) {
  std::filesystem::remove(page_path_);
  open();
  seen_ = split();
}

void World::open() {
  store.dies = MemoryStore::Dies::kNo;
  auto opened = open_services(config_, store, page_path_, metrics_, now_);
  if (!opened) {  // the store fails while starting: the router does not start until it can be written
    store.failing = false;
    opened = open_services(config_, store, page_path_, metrics_, now_);
  }
  services_ = *std::move(opened);
}

void World::crash() {
  services_.reset();
  restarted_ = true;
  open();
}

void World::lose_page() {
  services_.reset();
  std::filesystem::remove(page_path_);
  // A verdict that was not in the database yet is lost with the page: the rollout then waits at weight 0 for a person.
  if (const auto* durable = durable_rollout(); durable && !is_over(durable->report.state.phase)) over_.erase(durable->report.state.id);
  restarted_ = true;
  open();
}

bool World::start() {
  const std::string stable = status().stable;
  const std::string canary = std::to_string(std::stoi(stable) % 3 + 1);
  const auto document = config::Node::parse(fmt::format("service: digits\ncanary: {{version: {}}}\n{}", canary, spec_), "spec");
  return control().start(rollout::parse_spec(*document).value(), {}, now_).has_value();
}

bool World::command(std::string_view verb, uint32_t weight_ppm) {
  if (verb == "pause") return control().pause({}, now_).has_value();
  if (verb == "resume") return control().resume({}, now_).has_value();
  if (verb == "promote") return control().promote({}, now_).has_value();
  if (verb == "abort") return control().abort({}, now_).has_value();
  if (verb == "undo") return control().undo({}, now_).has_value();
  return control().set_weight(weight_ppm, {}, now_).has_value();
}

void World::deliver(const Split& split, const rollout::Draw& draw, bool bad, bool silent) {
  const Arm arm = draw.arm();
  rollout::Observation observation{.arm = arm,
                                   .epoch = split.epoch,
                                   .weight_ppm = draw.weight_ppm,
                                   .outcome = bad || silent ? Outcome::kError : Outcome::kOk,
                                   .latency = std::chrono::milliseconds(2),
                                   .endpoint = arm == Arm::kCanary ? 1U : 0U,
                                   .ending = silent ? rollout::Ending::kRefused : rollout::Ending::kAnswered};
  if (!silent) observation.batch = rollout::BatchId{++batches_, 0, 1};
  canary_answers += arm == Arm::kCanary && !silent;
  control().observe(observation, now_);
}

void World::traffic(int requests, double stable_bad, double canary_bad, bool canary_silent) {
  for (int i = 0; i < requests; ++i) {
    const Split now = split();
    const auto spec = control().spec();
    if (now.canary != Split::kNoCanary && random.below(rollout::kAll) < now.shadow_ppm) {
      control().observe(rollout::ShadowPair{.epoch = now.epoch,
                                            .stable = random.chance(stable_bad) ? Outcome::kError : Outcome::kOk,
                                            .canary = random.chance(canary_bad) ? Outcome::kError : Outcome::kOk,
                                            .comparable = true,
                                            .mismatch = false},
                        now_);
    }
    const rollout::Draw draw = draw_request(*spec, now.weight_ppm, {}, random.next());
    const bool canary = draw.arm() == Arm::kCanary;
    deliver(now, draw, random.chance(canary ? canary_bad : stable_bad), canary && canary_silent);
  }
}

void World::begin_requests(int requests, bool bad) {
  const auto spec = control().spec();
  for (int i = 0; i < requests; ++i) pending_.push_back({split(), draw_request(*spec, split().weight_ppm, {}, random.next()), bad});
}

void World::resolve() {
  for (; !pending_.empty(); pending_.pop_front()) deliver(pending_.front().split, pending_.front().draw, pending_.front().bad, false);
}

void World::tick(rollout::Time::duration time) {
  now_ += time;
  control().tick(now_);
}

void World::save() {
  try {
    (void)control().save(store, now_);
  } catch (const Crash&) {
    crash();
  }
}

const store::RolloutRecord* World::durable_rollout() const {
  return store.records.empty() || !store.records[0].rollout ? nullptr : &*store.records[0].rollout;
}

void World::blame(const std::string& what) {
  if (!broken.empty()) return;
  const Split now = split();
  const auto current = status();
  broken = fmt::format("{} (was {} ppm of {}, is {} ppm of {}; stable {}; {})", what, seen_.weight_ppm, seen_.canary, now.weight_ppm,
                       now.canary, current.stable, current.rollout ? std::string(phase_name(current.rollout->state.phase)) : "no rollout");
}

/// The rules. A weight that has risen was on disk before; nothing rises after a trip, at a restart, or while nothing can be written.
void World::check() {
  const Split now = split();
  const ServiceStatus current = status();
  const auto page = store::WeightsPage::read(page_path_, "digits");
  if (!page || page->word != now.pack()) blame("the page of weights is not what is in force");

  const bool same_canary = now.canary == seen_.canary && now.stable == seen_.stable;
  const uint32_t before = same_canary ? seen_.weight_ppm : 0, shadow_before = same_canary ? seen_.shadow_ppm : 0;
  const bool rose = now.canary != Split::kNoCanary && (now.weight_ppm > before || now.shadow_ppm > shadow_before);
  const store::RolloutRecord* durable = durable_rollout();
  if (rose && restarted_) blame("a weight rose at a restart");
  if (rose && !durable) blame("a weight rose that was never written");
  if (rose && durable && (is_over(durable->report.state.phase) || durable->report.state.weight_ppm < now.weight_ppm))
    blame("a weight rose over what is written");
  if (rose && durable && over_.contains(durable->report.state.id)) blame("a weight rose after the verdict");
  if (now.stable != seen_.stable && (store.records.empty() || version_index(config_.services[0], store.records[0].stable) != now.stable))
    blame("stable changed before it was written");

  if (current.rollout) {
    const rollout::State& state = current.rollout->state;
    if (state.phase == Phase::kRolledBack && (state.weight_ppm > 0 || state.shadow_ppm > 0)) blame("rolled back with a weight");
    // One that was never written was never in force, and its name is free again after a crash.
    const bool written = durable && durable->report.state.id == state.id;
    if (state.phase == Phase::kRolledBack && written) over_.insert(state.id);
    if (!is_over(state.phase) && over_.contains(state.id)) blame("a rollout that was rolled back goes on");
    // Right after a promotion that is not written yet another rollout may begin, and end, while the promoted version is still in force as the canary
    // that it was: that one is not meant.
    const bool same = version_index(config_.services[0], state.canary) == now.canary;
    if (same && state.phase == Phase::kRolledBack) blame("rolled back, and its canary is in force");
    if (same && !is_over(state.phase) && now.weight_ppm > state.weight_ppm) blame("more in force than wanted");
  }
  if (current.epoch < seen_epoch_ && !restarted_) blame("the epoch went back");
  if (!store.records.empty() && current.epoch < store.records[0].epoch) blame("the epoch is behind the store's");
  seen_ = now;
  seen_epoch_ = current.epoch;
  restarted_ = false;
}

std::string World::fingerprint() const {
  const auto durable = durable_rollout();
  const auto current = status();
  std::string text = fmt::format("{:x} {} {} {} {}", split().pack(), store.failing, current.stable, current.epoch, pending_.size());
  const auto add = [&](const rollout::State& state) {
    text +=
        fmt::format(" | {} {} {} {} {} {}", state.id, phase_name(state.phase), state.step, state.weight_ppm, state.shadow_ppm, state.epoch);
  };
  if (current.rollout) {
    add(current.rollout->state);
    for (const auto& evidence : current.rollout->evidence) text += fmt::format(" {:.6g}", evidence.bits);
    for (const auto& certificate : current.rollout->certificates) text += fmt::format(" {:.6g}", certificate.progress);
    text += fmt::format(" {}", current.rollout->step_canary_answers > 0);
  }
  if (durable) add(durable->report.state);
  if (!pending_.empty()) text += fmt::format(" {:x}", pending_.front().split.pack());
  return text;
}

}  // namespace serin::router
