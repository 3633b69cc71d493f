// replay.cc: replaying is feeding the same classes again: there is no second implementation of the mathematics to disagree with.

#include "router/rollout/replay.h"

#include <algorithm>
#include <cmath>

#include "router/rollout/even_chance.h"
#include "router/rollout/rank_guard.h"
#include "router/rollout/threshold_guard.h"

namespace serin::rollout {
namespace {

using Question = VerdictRecord::Question;

constexpr double kNoCap = 1e308;

/// The evidence after the next event, and whether that is enough.
void add_step(Replay& again, double bits, bool decided) {
  again.bits.push_back(bits);
  if (!decided || again.rolled_back) return;
  again.rolled_back = true;
  again.decided_by = again.bits.size() - 1;
}

/// Silences and samples are counted; there is no evidence to add up.
Replay count(const VerdictRecord& record) {
  Replay again;
  double reached = 0;
  for (const DecidingEvent& event : record.events) {
    const bool counts = record.question == Question::kSilence || event.share > record.p0;
    reached = counts ? reached + 1 : 0;
    add_step(again, reached, reached >= record.trip_value);
  }
  return again;
}

Replay replay_ranks(const VerdictRecord& record) {
  RankProcess slower(record.tolerated_ratio);
  slower.restore(record.worse);
  Replay again;
  for (const DecidingEvent& event : record.events) {
    observe(slower, event);
    add_step(again, std::log2(slower.e()), slower.e() >= record.trip_value);
  }
  return again;
}

/// few_guard.cc
Replay replay_few(const VerdictRecord& record) {
  const auto within = [](double p0) { return p0 > 0 && p0 < 1 ? p0 : 0.5; };
  BernoulliMixture above(within(record.p0)), same(within(record.same_p0.value_or(0)));
  above.restore(record.above);
  same.restore(record.same.value_or(MixtureState()));
  Replay again;
  for (const DecidingEvent& event : record.events) {
    for (uint64_t good = 0; good < event.good_before; ++good) above.observe(false);
    above.observe(event.bad);
    if (event.same) same.observe(*event.same);
    const double both = std::min(above.e(), same.e());
    add_step(again, std::log2(both), both >= record.trip_value);
  }
  return again;
}

/// The process itself is elsewhere (outcome_guard.h): its last state decides.
Replay replay_outcomes(const VerdictRecord& record) {
  Replay again;
  for (size_t event = 0; event < record.events.size(); ++event)
    add_step(again, std::log2(record.worse.e()), record.worse.e() >= record.trip_value);
  return again;
}

/// even_chance.h
Replay replay_usage(const VerdictRecord& record) {
  EvenChanceProcess more(record.cap > 0 ? record.cap : kNoCap);
  more.restore(record.above);
  Replay again;
  for (const DecidingEvent& event : record.events) {
    more.observe(event.bad);
    add_step(again, std::log2(more.e()), more.e() >= record.trip_value);
  }
  return again;
}

}  // namespace

Replay replay(const VerdictRecord& record) {
  if (record.question == Question::kSilence || record.question == Question::kSamples) return count(record);
  if (record.question == Question::kSlower) return replay_ranks(record);
  if (record.question == Question::kAboveAndSame) return replay_few(record);
  if (record.question == Question::kUsage) return replay_usage(record);
  if (record.question == Question::kOutcomes) return replay_outcomes(record);
  EventProcess worse(record.tolerated_ratio);
  worse.restore(record.worse);
  const bool limited = record.question != Question::kWorse && record.p0 > 0 && record.p0 < 1;
  BernoulliMixture above = limit_process(limited ? record.p0 : 0.5, record.cap > 0 ? record.cap : kNoCap, limited && record.mirrored);
  above.restore(record.above);
  Replay again;
  for (const DecidingEvent& event : record.events) {
    if (event.bad) observe(worse, event, record.mirrored);
    for (uint64_t good = 0; good < event.good_before; ++good) above.observe(false);
    if (event.arm == Arm::kCanary) above.observe(event.bad);
    const bool is_above = above.e() >= record.trip_value, is_worse = worse.e() >= record.trip_value;
    const bool decided = record.question == Question::kWorse   ? is_worse
                         : record.question == Question::kAbove ? is_above
                                                               : is_above && (is_worse || event.alone);
    add_step(again, std::log2(record.question == Question::kWorse ? worse.e() : above.e()), decided);
  }
  return again;
}

}  // namespace serin::rollout
