// Several rollouts of one service at once under everything that can happen to them, drawn from a seed: people start, promote, undo and abort, canaries
// are bad, the store fails, the router dies at any save. The controller's own code decides (router/control/tracks.h); the draws are the data path's.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <set>

#include "runtime/base/log.h"
#include "tests/router/simulation/world.h"

namespace serin::router {
namespace {

using rollout::Arm;
using rollout::Outcome;
using rollout::Phase;

constexpr int kTracks = 3, kVersions = 5, kSteps = 80;

RouterConfig several() {
  ServiceConfig digits{.name = "digits", .initial_stable = "1", .tracks = kTracks};
  for (int i = 1; i <= kVersions; ++i)
    digits.versions.push_back({.name = std::to_string(i), .endpoints = {{.url = "http://127.0.0.1:8000", .origin = {"127.0.0.1", 8000}}}});
  RouterConfig config;
  config.services.push_back(digits);
  for (int track = 2; track <= kTracks; ++track) {
    config.services.push_back(digits);
    config.services.back().name = fmt::format("digits~{}", track);
    config.services.back().track_of = "digits";
  }
  return config;
}

class SeveralWorld {
 public:
  SeveralWorld(const std::string& page_path, uint64_t seed) : random(seed), page_path_(page_path), config_(several()) {
    std::filesystem::remove(page_path_);
    open();
    stable_ = status(0).stable;
  }

  void start() {
    const auto document =
        config::Node::parse(fmt::format("service: digits\ncanary: {{version: {}}}\nsteps: [{}, {}]\ncertify: {{margin: 5%}}\n",
                                        1 + random.below(kVersions), 1 + random.below(20), 30 + random.below(50)),
                            "spec");
    ServiceControl* chosen = nullptr;
    (void)services_->tracks[0]->start(rollout::parse_spec(*document).value(), {}, now_, chosen);
  }
  void command(size_t track, std::string_view verb) {
    ServiceControl& control = *services_->all[track];
    if (verb == "promote") (void)control.promote({}, now_);
    if (verb == "abort") (void)control.abort({}, now_);
    if (verb == "pause") (void)control.pause({}, now_);
    if (verb == "resume") (void)control.resume({}, now_);
    if (verb == "set-weight") (void)control.set_weight(static_cast<uint32_t>(random.below(rollout::kAll)), {}, now_);
    uint64_t of_first = 0;
    if (verb == "undo" && services_->tracks[0]->undo(control, {}, now_, of_first)) may_be_stable_.insert(status(track).stable);
  }

  /// Versions in `bad` fail for half of their requests.
  void traffic(int requests, const std::set<uint32_t>& bad) {
    for (int i = 0; i < requests; ++i) {
      std::vector<rollout::Candidate> candidates;
      std::vector<size_t> of;
      std::vector<uint32_t> weights;
      std::vector<std::shared_ptr<const rollout::Spec>> specs;
      const uint32_t stable = word(0).stable;
      for (size_t track = 0; track < kTracks; ++track) {
        if (word(track).canary == Split::kNoCanary || word(track).canary == stable) continue;
        of.push_back(track);
        specs.push_back(services_->all[track]->spec());
        weights.push_back(word(track).weight_ppm);
      }
      rollout::fit_together(weights);
      for (size_t each = 0; each < of.size(); ++each)
        candidates.push_back({.spec = specs[each].get(), .weight_ppm = weights[each], .says = {}, .draw = {}});
      const auto taker = rollout::draw_among(candidates, random.next());
      const uint32_t version = taker ? word(of[*taker]).canary : stable;
      const bool fails = bad.contains(version) && random.chance(0.5);
      std::vector<Split> words;
      for (const size_t track : of) words.push_back(word(track));
      for (size_t each = 0; each < of.size(); ++each) {
        if (taker && *taker != each) continue;
        rollout::Observation seen{.arm = taker ? Arm::kCanary : Arm::kStable,
                                  .epoch = words[each].epoch,
                                  .weight_ppm = candidates[each].draw.weight_ppm,
                                  .outcome = fails ? Outcome::kError : Outcome::kOk,
                                  .latency = std::chrono::milliseconds(2),
                                  .batch = rollout::BatchId{++batches_, 0, 1},
                                  .endpoint = version};
        services_->all[of[each]]->observe(seen, now_);
        if (fails && taker) failed.insert(status(of[each]).rollout->state.id);
      }
      if (fails && !taker) stable_failed = true;
    }
  }

  /// One round of the controller's thread.
  void round(std::chrono::milliseconds time) {
    now_ += time;
    for (const auto& control : services_->all) control->tick(now_);
    (void)services_->tracks[0]->keep_together(now_);
    note_promotions();
    try {
      save_all();
    } catch (const Crash&) {
      crash();
    }
  }

  void crash() {
    std::array<Split, kTracks> before{};
    std::array<std::string, kTracks> ids;
    for (size_t track = 0; track < kTracks; ++track) {
      before[track] = word(track);
      if (const auto at = status(track); at.rollout) ids[track] = at.rollout->state.id;
    }
    const std::string durable = durable_stable();
    services_.reset();
    store.failing = false;
    open();
    stable_ = status(0).stable;  // a promotion that was not written is lost
    if (stable_ != durable) blame(fmt::format("a crash made version {} stable instead of {}", stable_, durable));
    for (size_t track = 0; track < kTracks; ++track) {
      const auto at = status(track);
      if (!at.rollout || at.rollout->state.id != ids[track]) continue;
      if (word(track).canary == before[track].canary && word(track).weight_ppm > before[track].weight_ppm)
        blame(fmt::format("a crash raised {} from {} to {} ppm", ids[track], before[track].weight_ppm, word(track).weight_ppm));
    }
  }

  void check() {
    std::set<uint32_t> canaries;
    for (size_t track = 0; track < kTracks; ++track) {
      const auto at = status(track);
      if (!at.rollout) continue;
      const rollout::State& state = at.rollout->state;
      const bool over = is_over(state.phase);
      if (over_.contains(state.id) && !over) blame(fmt::format("{} runs again", state.id));
      if (state.phase == Phase::kRolledBack && state.cause != "undo") over_.insert(state.id);
      if (over && word(track).weight_ppm > 0 && state.phase == Phase::kRolledBack)
        blame(fmt::format("{} is over and has a weight", state.id));
      if (!over && !canaries.insert(version_index(config_.services[0], state.canary)).second) blame("two rollouts of one version");
      if (state.phase == Phase::kRolledBack && state.cause == "err" && !failed.contains(state.id) && counted_.insert(state.id).second)
        ++false_rollbacks;
      if (state.phase == Phase::kRolledBack) causes[state.cause] += causes_seen_.insert(state.id).second;
      if (state.phase == Phase::kSucceeded) promotions += causes_seen_.insert(state.id).second;
    }
    const std::string now_stable = status(0).stable;
    if (now_stable != stable_ && !may_be_stable_.contains(now_stable))
      blame(fmt::format("version {} became stable without a promotion", now_stable));
    stable_ = now_stable;
  }

  /// With a store that works and nobody who does anything, all agree within a moment.
  void settle() {
    store.failing = false;
    store.dies = MemoryStore::Dies::kNo;
    for (int i = 0; i < 5; ++i) round(std::chrono::milliseconds(100));
    check();
    for (size_t track = 1; track < kTracks; ++track)
      if (status(track).stable != status(0).stable) blame(fmt::format("track {} has another stable version", track + 1));
    uint32_t sum = 0;
    for (uint32_t version = 0; version < kVersions; ++version) sum += services_->all[0]->share_of(version);
    if (sum != rollout::kAll) blame(fmt::format("the shares are {} ppm together", sum));
  }

  Split word(size_t track) const { return services_->all[track]->split(); }
  ServiceStatus status(size_t track) const { return services_->all[track]->status(now_); }

  std::string broken;
  MemoryStore store;
  rollout::Random random;
  std::set<std::string> failed;  // rollouts whose canary failed at least once
  bool stable_failed = false;
  uint64_t false_rollbacks = 0, promotions = 0;
  std::map<std::string, uint64_t> causes;

 private:
  void open() {
    store.dies = MemoryStore::Dies::kNo;
    services_ = open_services(config_, store, page_path_, metrics_, now_).value();
  }
  std::string durable_stable() const {
    const auto found = std::ranges::find(store.records, "digits", &store::ServiceRecord::service);
    return found == store.records.end() ? "1" : found->stable;
  }
  /// As the controller does. A version that has all requests keeps them while its promotion is written.
  void save_all() {
    std::optional<uint32_t> all;
    for (uint32_t version = 0; version < kVersions; ++version)
      if (services_->all[0]->share_of(version) == rollout::kAll) all = version;
    const bool same = all && config_.services[0].versions[*all].name == status(0).stable;
    bool first_failed = false;
    for (const auto& control : services_->all) {
      if (control != services_->all[0] && first_failed) continue;
      first_failed = !control->save(store, now_) || first_failed;
      if (same && services_->all[0]->share_of(*all) + canaries_of(*all) < rollout::kAll)
        blame(fmt::format("version {} lost requests while its promotion was written", *all + 1));
    }
  }
  /// What canaries get that began in this round.
  uint32_t canaries_of(uint32_t except) const {
    uint32_t sum = 0;
    for (uint32_t version = 0; version < kVersions; ++version)
      if (version != except && version != word(0).stable) sum += services_->all[0]->share_of(version);
    return sum;
  }
  /// A version may become stable once all requests were given to it.
  void note_promotions() {
    for (size_t track = 0; track < kTracks; ++track)
      if (const auto at = status(track);
          at.rollout && (at.rollout->state.phase == Phase::kPromoting || at.rollout->state.phase == Phase::kSucceeded))
        may_be_stable_.insert(at.rollout->state.canary);
  }
  void blame(const std::string& what) {
    if (broken.empty()) broken = what;
  }

  const std::string page_path_;
  RouterConfig config_;
  metrics::Registry metrics_;
  rollout::Time now_{};
  std::unique_ptr<Services> services_;
  uint64_t batches_ = 0;
  std::string stable_;
  std::set<std::string> may_be_stable_, over_, counted_, causes_seen_;
};

TEST(SeveralRollouts, NothingBreaksARule) {
  log::configure({.level = log::Level::kOff});
  const bool is_long = std::getenv("SERIN_LONG") != nullptr;
  const uint64_t seeds = is_long ? 20'000 : 600;
  const Folder folder;
  std::map<std::string, uint64_t> causes;
  uint64_t promotions = 0, false_rollbacks = 0;
  constexpr std::array<const char*, 6> kVerbs = {"promote", "abort", "pause", "resume", "set-weight", "undo"};
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SeveralWorld world(folder.page, seed);
    std::set<uint32_t> bad;
    for (int step = 0; step < kSteps && world.broken.empty(); ++step) {
      const uint64_t what = world.random.below(100);
      if (what < 20) {
        world.start();
      } else if (what < 35) {
        world.command(world.random.below(kTracks), kVerbs[world.random.below(kVerbs.size())]);
      } else if (what < 60) {
        world.traffic(200, bad);
      } else if (what < 66) {
        bad = {static_cast<uint32_t>(1 + world.random.below(kVersions - 1))};
      } else if (what < 70) {
        bad.clear();
      } else if (what < 74) {
        world.store.failing = !world.store.failing;
      } else if (what < 80) {
        world.store.dies = world.random.chance(0.5) ? MemoryStore::Dies::kBeforeWriting : MemoryStore::Dies::kAfterWriting;
      } else if (what < 83) {
        world.crash();
      } else {
        world.round(std::chrono::milliseconds(world.random.chance(0.1) ? 600'000 : 100));
      }
      world.check();
    }
    world.settle();
    ASSERT_EQ(world.broken, "") << "seed " << seed;
    for (const auto& [cause, count] : world.causes) causes[cause] += count;
    promotions += world.promotions;
    false_rollbacks += world.false_rollbacks;
  }
  std::string seen;
  for (const auto& [cause, count] : causes) seen += fmt::format(" {} {}", cause, count);
  std::printf("  %lu seeds: promoted %lu; rolled back:%s\n", seeds, promotions, seen.c_str());
  EXPECT_GT(promotions, seeds / 4);
  EXPECT_GT(causes["superseded"], seeds / 20);
  EXPECT_GT(causes["err"], seeds / 20);
  EXPECT_EQ(false_rollbacks, 0U) << "a canary went out for answers that were not its own";
}

// ---- several routers: the one that led died between writing the first track and another one ----

/// A follower with these records, which leads from now on.
struct NewLeader {
  explicit NewLeader(const std::vector<store::ServiceRecord>& records) {
    config.replicas = ReplicasConfig{.max = 3};
    services = open_services(config, store, folder.page, metrics, now).value();
    for (const store::ServiceRecord& record : records)
      EXPECT_TRUE(services->find(record.service)->adopt(record, /*agreed=*/true, now)) << record.service;
    (void)services->tracks[0]->keep_together(now);
    for (const auto& control : services->all) control->lead(true, now);
    (void)services->tracks[0]->keep_together(now);
  }
  ServiceStatus status(std::string_view name) const { return services->find(name)->status(now); }

  Folder folder;
  RouterConfig config = several();
  MemoryStore store;
  metrics::Registry metrics;
  rollout::Time now{};
  std::unique_ptr<Services> services;
};

store::ServiceRecord track_at(const std::string& name, const std::string& stable, const std::string& canary, Phase phase) {
  const auto document = config::Node::parse(fmt::format("service: {}\ncanary: {{version: {}}}\n", name, canary), "spec");
  store::RolloutRecord rollout{.spec = rollout::print_spec(rollout::parse_spec(*document).value())};
  rollout.report.state = {.id = name + "-7", .service = name, .stable = "1", .canary = canary, .epoch = 7, .phase = phase};
  rollout.report.state.weight_ppm = phase == Phase::kRolledBack ? 0 : rollout::kAll;
  return {.service = name, .stable = stable, .epoch = 8, .rollout = rollout};
}

TEST(SeveralRollouts, ANewLeaderKeepsTheStableOfTheFirstTrack) {
  log::configure({.level = log::Level::kOff});
  // Version 3 was promoted on the second track, and after it version 2 on the first, which the second was not told.
  const NewLeader leader({track_at("digits", "2", "2", Phase::kSucceeded), track_at("digits~2", "3", "3", Phase::kSucceeded)});
  EXPECT_EQ(leader.status("digits").stable, "2") << "an old promotion does not return";
  EXPECT_EQ(leader.status("digits~2").stable, "2");
}

TEST(SeveralRollouts, ANewLeaderCompletesAPromotion) {
  log::configure({.level = log::Level::kOff});
  const NewLeader leader({track_at("digits", "3", "2", Phase::kRolledBack), track_at("digits~2", "1", "3", Phase::kBaking)});
  EXPECT_EQ(leader.status("digits").stable, "3");
  EXPECT_EQ(leader.status("digits~2").stable, "3");
  EXPECT_EQ(leader.status("digits~2").rollout->state.phase, Phase::kSucceeded);
}

TEST(SeveralRollouts, ANewLeaderEndsARolloutAgainstAnEarlierStable) {
  log::configure({.level = log::Level::kOff});
  const NewLeader leader({track_at("digits", "2", "2", Phase::kSucceeded), track_at("digits~2", "1", "3", Phase::kProgressing)});
  EXPECT_EQ(leader.status("digits~2").rollout->state.cause, "superseded");
  EXPECT_EQ(leader.status("digits~2").stable, "2");
}

}  // namespace
}  // namespace serin::router
