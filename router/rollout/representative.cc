// representative.cc: computes the canary's share of units.
//
// Weighing batches against the share of *requests* is wrong as soon as the arms' batches differ in size: a canary with 5 % of the requests
// that rides alone, compared with a stable that rides in batches of eight, has 30 % of the batches. The guard needs its share of
// representatives. Counting them over the last 1,000 would do, but at 1 % of the traffic that is a count of ten, and the noise of that
// count is false evidence. So the same share is computed with less noise: an answer out of a batch of n is its representative with
// probability 1/n, hence
//
//   share = w a_c / (w a_c + (1 - w) a_s)         w: the weight at the draw, known exactly;   a: an arm's mean of 1/n over that window
//
// Where everything rides alone it is w itself, from the first answer and through every change of weights. The canary's mean has one pseudo-answer
// of a batch of one: while little is known the share errs upward, which costs power and never adds a false alarm. A stable that has not
// answered yet is taken to batch like the canary.
//
// It is never taken below w: answers that are refused before batching name a batch of one, so where the canary rides in the larger batches its
// share of *those* events is w, more than its share of the batches. A share that is too high is always safe. A 4xx is decided before batching
// on both arms alike: its share is w.
//
// Those means are of the past, and batches grow just when things go badly: a machine pauses, twenty requests come, stable's nineteen then
// ride in one batch and the canary's one alone, and all are slow. One unit each, where the past says that the canary has 5 % of the units:
// ten such moments would roll back any canary. So a batch of stable's that is larger than usual (n a_s > 1) is counted as the requests it
// took in, not as one unit: each of its bad answers counts a_s units, which is what that request would have been on average. With L_c > 1 >
// L_s the likelihood ratios (event_process.cc), any request that goes bad on either arm then multiplies the evidence on average by at most
//
//   w (1 + a_c (L_c - 1)) + (1 - w) L_s^a_s  <=  1        since L_s^a <= 1 - a (1 - L_s) for a <= 1, and w a_c (L_c - 1) = (1 - w) a_s (1 - L_s)
//
// whichever arm answers first, and however many requests go bad for the same reason: they were drawn one by one. A canary's batch still counts
// at most once, which is a_c or less for each of its requests unless its batches have just shrunk while stable's have not.
// A large batch that fails alone weighs n a_s > 1, against the evidence: safe, too. Where every batch of stable's has the same size nothing changes.
//
// An answer without a batch id is its own unit (a backend that names no batches, a request refused by a foreign server). A deadline or a
// refused connection is one of an episode: a dead endpoint fails a thousand requests and says one thing. The endpoint fails there, so the
// share is at least the canary's share of the endpoints.
//
// A broken answer is either. It waits until its endpoint shows a sign of life (broken_moment.h): then it is an error like a 500, at the
// drawn share. If a connection is refused first, or a second passes, it opens an episode. A live process that is taken for dead counts at a
// share that is too high, which is safe. A dead one is taken for alive where a request reaches it in the moment of its death: that request
// falls on the arms by the draw, and so at the drawn share. It is taken for alive, too, if it is back before the router has asked for a sign
// of life, and its answers do not name its run, as Serin's do. Such a return is not bounded; the router asks when it sees the break.
//
// All answers that break at one moment may have one cause: a network that resets the connections of both arms, processes alive. So they
// count as a stall does, above: each of stable's, and one of the canary's.

#include "router/rollout/representative.h"

#include <algorithm>
#include <utility>

#include "runtime/base/stable_hash.h"

namespace serin::rollout {
namespace {

uint32_t batch_size(const BatchId& batch) { return std::max<uint32_t>(batch.n, 1); }
uint64_t inverse(uint32_t n) { return (uint64_t{1} << 32) / n; }

}  // namespace

bool is_representative(const BatchId& batch) { return mix(batch.boot_seq) % batch_size(batch) == batch.i; }

void Unit::update_share() {
  if (ratio != 1) share = std::max(weight, weight * ratio / (weight * ratio + (1 - weight)));  // 1: no rounding either
}

Unit Unit::weighed(uint32_t weight_ppm) const {
  Unit unit = *this;
  unit.weight = unit.share = static_cast<double>(weight_ppm) / kAll;
  unit.update_share();
  return unit;
}

Unit Unit::scaled(double factor) const {
  Unit unit = *this;
  unit.ratio *= factor;
  unit.update_share();
  return unit;
}

Units::Units(Guard::Unit unit) : unit_(unit) {}

const std::vector<Settled>& Units::settle(const Observation& observation, std::chrono::nanoseconds at) {
  settled_.clear();
  if (unit_ == Guard::Unit::kRequest) return settled_;
  if (waiting_ > 0) settle_overdue(at);
  if (observation.outcome == Outcome::kDeadline) return settled_;  // neither a sign of life nor of death
  if (observation.ending == Ending::kAnswered && waiting_ == 0) return settled_;
  Endpoint& endpoint = endpoint_of(observation);
  const bool refused = observation.ending == Ending::kRefused;
  if (refused) endpoint.refused = at;
  if (endpoint.broken && (refused || is_restart(endpoint, observation)))
    settle_dead(endpoint);
  else if (endpoint.broken && endpoint.broken->outlived_by(observation, at))
    settle_alive(endpoint);
  if (observation.ending == Ending::kBroken && observation.drawn) hold(endpoint, observation, at);
  return settled_;
}

/// It names a run of the process that nobody has seen, though others have been.
bool Units::is_restart(const Endpoint& endpoint, const Observation& observation) {
  if (!observation.batch || observation.batch->boot == 0 || endpoint.boots[0] == 0) return false;
  return std::ranges::find(endpoint.boots, observation.batch->boot) == endpoint.boots.end();
}

void Units::remember_boot(Endpoint& endpoint, const Observation& observation) {
  const uint64_t boot = observation.batch ? observation.batch->boot : 0;
  if (boot == 0 || std::ranges::find(endpoint.boots, boot) != endpoint.boots.end()) return;
  endpoint.boots[endpoint.next_boot++ % endpoint.boots.size()] = boot;
}

void Units::settle_overdue(std::chrono::nanoseconds at) {
  for (Endpoint& endpoint : endpoints_)
    if (endpoint.broken && endpoint.broken->overdue(at)) settle_dead(endpoint);
}

void Units::settle_alive(Endpoint& endpoint) {
  for (const Observation& broken : endpoint.broken->answers()) settled_.push_back({broken, drawn_share(broken)});
  endpoint.failing = false;
  endpoint.broken.reset();
  --waiting_;
}

void Units::settle_dead(Endpoint& endpoint) {
  const Observation& first = endpoint.broken->answers().front();
  if (!std::exchange(endpoint.failing, true)) settled_.push_back({first, std::max(drawn_share(first), endpoint_share())});
  endpoint.broken.reset();
  --waiting_;
}

/// Its request may be older than a refused connection: the dying process still had it.
void Units::hold(Endpoint& endpoint, const Observation& observation, std::chrono::nanoseconds at) {
  if (endpoint.broken) return endpoint.broken->add(observation);
  if (endpoint.refused && !drawn_after(*endpoint.refused, observation, at)) return;
  endpoint.failing = false;  // it was connected to: what had failed before is over
  endpoint.broken.emplace(observation, at);
  ++waiting_;
}

std::optional<Unit> Units::weigh(const Observation& observation) {
  const double drawn = drawn_share(observation);
  if (unit_ == Guard::Unit::kRequest) return observation.outcome == Outcome::kNeutral ? std::nullopt : std::optional<Unit>(drawn);
  if (observation.ending == Ending::kBroken) return std::nullopt;  // settle() has it
  Endpoint& endpoint = endpoint_of(observation);
  const bool silent = is_silent_failure(observation);
  const bool in_episode = std::exchange(endpoint.failing, silent) && silent;
  remember_boot(endpoint, observation);
  if (observation.outcome == Outcome::kNeutral) return std::nullopt;

  if (in_episode) return std::nullopt;
  if (silent) return std::max(drawn, endpoint_share());
  if (!observation.batch) return drawn;
  const bool representative = is_representative(*observation.batch);
  const bool refused_alone = observation.outcome == Outcome::kRejected && observation.batch->n <= 1;
  const double batches = refused_alone ? 1 : ratio();
  const bool every_answer = observation.arm == Arm::kStable && larger_than_usual(*observation.batch);
  const double count = every_answer ? usual_part() : 1;
  remember(observation.arm, *observation.batch, representative);
  if (!representative && !every_answer) return std::nullopt;
  return Unit(drawn, count, representative).scaled(batches);
}

bool Units::larger_than_usual(const BatchId& batch) const {
  const ArmSums& stable = sums_[0];
  return stable.answers > 0 && static_cast<double>(batch_size(batch)) * usual_part() > 1;
}

/// Stable's mean of 1/n: the part of a unit that one of its requests usually is.
double Units::usual_part() const {
  const ArmSums& stable = sums_[0];
  return static_cast<double>(stable.batches) / static_cast<double>(inverse(1) * stable.answers);
}

/// Of the two arms' means of 1/n.
double Units::ratio() const {
  const ArmSums& stable = sums_[0];
  const ArmSums& canary = sums_[1];
  if (stable.answers == 0) return 1;  // taken to batch like the canary
  const double a_stable = static_cast<double>(stable.batches) / static_cast<double>(stable.answers);
  const double a_canary = static_cast<double>(canary.batches + inverse(1)) / static_cast<double>(canary.answers + 1);
  return a_canary / a_stable;
}

void Units::remember(Arm arm, const BatchId& batch, bool representative) {
  if (window_.empty()) window_.resize(kWindow);
  if (held_ == kWindow) forget_oldest();
  const uint32_t n = batch_size(batch);
  window_[next_] = {n, arm, representative};
  next_ = (next_ + 1) % kWindow;
  ++held_;
  representatives_ += representative;
  ArmSums& sums = sums_[static_cast<size_t>(arm)];
  sums.answers += 1;
  sums.batches += inverse(n);
  while (representatives_ > kRepresentatives) forget_oldest();
}

void Units::forget_oldest() {
  const Answer& oldest = window_[(next_ + kWindow - held_) % kWindow];
  --held_;
  representatives_ -= oldest.representative;
  ArmSums& sums = sums_[static_cast<size_t>(oldest.arm)];
  sums.answers -= 1;
  sums.batches -= inverse(oldest.n);
}

Units::Endpoint& Units::endpoint_of(const Observation& observation) {
  const size_t index = endpoint_slot(observation.endpoint);
  if (index >= endpoints_.size()) endpoints_.resize(index + 1);
  Endpoint& endpoint = endpoints_[index];
  if (!endpoint.seen) {
    endpoint = {.seen = true, .arm = observation.arm};
    ++endpoint_counts_[static_cast<size_t>(observation.arm)];
  }
  return endpoint;
}

double Units::endpoint_share() const {
  const double canary = endpoint_counts_[1], stable = endpoint_counts_[0];
  return canary / (canary + stable);
}

}  // namespace serin::rollout
