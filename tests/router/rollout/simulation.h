// simulation.h: a service with two versions whose faults are known, answering through the real Rollout facade.
//
//   Fault fault{.stable = 0.001, .canary = 0.05};
//   Simulation simulation(spec, fault, seed);
//   simulation.run(100'000);                       // requests, or until the rollout is over
//   simulation.rollout().state().phase
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "router/rollout/rollout.h"

namespace serin::rollout {

/// xoshiro256++ (Blackman, Vigna 2019): the routing draw of the simulation, a nanosecond a number.
class Random {
 public:
  explicit Random(uint64_t seed);
  uint64_t next();
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  bool chance(double p) { return uniform() < p; }
  uint64_t below(uint64_t n) { return static_cast<uint64_t>(uniform() * static_cast<double>(n)); }

 private:
  std::array<uint64_t, 4> state_;
};

/// What goes wrong. Rates are per unit: per request, or per batch where failures are correlated.
struct Fault {
  double stable = 0.001, canary = 0.001;
  Outcome outcome = Outcome::kError;
  bool whole_batch = false;                       ///< a bad batch fails all of its answers
  std::array<uint32_t, 2> largest_batch{1, 1};    ///< of each arm: sizes are uniform from 1
  bool fixed_batch = false;                       ///< always the largest instead
  bool before_batching = false;                   ///< a failure names a batch of one, as an answer refused before batching does
  double outage = 0;                              ///< the rate of both arms while an outage lasts
  uint64_t outage_every = 0, outage_length = 0;   ///< in requests
  bool judged_on_latency = false;                 ///< latencies are drawn; otherwise all answers take the same time
  bool known_before = true;                       ///< stable's latencies, from before the rollout
  double canary_slower = 1;                       ///< factor on the canary's latency
  uint64_t cold_answers = 0;                      ///< so many first answers of the canary take ten times as long
  double wave = 0;                                ///< latencies of both arms rise and fall by e to this power, every 2,000 requests
  double canary_extra_tail = 0, tail_factor = 6;  ///< this share of the canary's answers takes so many times longer
  uint64_t stall_every = 0, stall_longest = 0;    ///< in requests: both arms stand still, then answer what has come in batches of up to 32
  bool canary_resumes_first = false;              ///< the order in which the arms answer after a stall
  double stalled = 0;                             ///< the rate of both arms in a stall, on top of their own
  bool asks_for_life = true;                      ///< as the router does after a broken answer
  bool cut_off = false;                           ///< a bad answer breaks off, and its endpoint lives on
  std::chrono::milliseconds killed_every{0};      ///< on average, each arm's endpoint; 0: never. Its requests in progress break
  std::chrono::milliseconds dead_for{2000};       ///< then it refuses connections
  std::chrono::milliseconds reset_every{0};       ///< on average, all connections of both arms at once, processes alive
  double service_time = 1;                        ///< factor on the latencies if answers take their time (the four above)
  double disagreement = 0.02;                     ///< of shadow pairs: another label, far off
  double same = 0;                                ///< of the other pairs: numerically the same; 1: the same model
  double telling = 1;                             ///< of the pairs: those that show whether they are
  uint64_t change_weight_every = 0;               ///< requests between weights set by hand, 0: never
  uint64_t users = 0, session = 1;          ///< of a sticky rollout: all requests of a user fail or none, for so many requests of all users
  bool forget_keys = false;                 ///< as if nobody knew which requests belong together
  double baseline_slower = 1;               ///< factor on the latency of the matched baseline arm
  std::array<double, 2> first_label{0, 0};  ///< of each arm: the share of label 0 among ten; 0: bodies are not looked at
  std::array<double, 2> score_shift{0, 0};  ///< of each arm, on scores between 0 and 1
};

/// Lognormal, median 20 ms, sigma 0.5, with 1 % of answers four times slower: 2^16 draws to pick from.
const std::vector<std::chrono::nanoseconds>& latencies();
/// Of 20,000 answers of stable.
const Baseline& simulated_baseline();

class Simulation {
 public:
  Simulation(Spec spec, const Fault& fault, uint64_t seed);
  /// 200 requests a second until the rollout is over; at most `requests`.
  void run(uint64_t requests);
  /// From now on this is wrong instead.
  void change(const Fault& fault) { fault_ = fault; }

  const Rollout& rollout() const { return rollout_; }
  bool rolled_back() const { return rollout_.state().phase == Phase::kRolledBack; }
  uint64_t canary_requests() const { return canary_requests_; }
  uint64_t requests() const { return requests_; }

 private:
  void request();
  void begin(Observation observation);
  void let_end(Time until);
  void break_all(Arm arm, Time when);
  void finish(Arm arm, const Observation& observation, Time when);
  void tell(Arm arm, Time when);
  void stall();
  void resume(Arm arm, const std::vector<uint64_t>& arrivals, uint64_t end, uint32_t weight_ppm);
  void shadow();
  Observation answer(Arm arm, uint32_t weight_ppm);
  void form_batch(Arm arm);
  double rate(Arm arm) const;
  std::chrono::nanoseconds latency(Arm arm);
  bool user_fails(uint64_t user, Arm arm) const;
  Output output(Arm arm, uint32_t weight_ppm);

  struct Batch {
    uint64_t id = 0;
    uint32_t n = 1, next = 1;
    bool bad = false;
  };

  /// A request in progress.
  struct InProgress {
    Time began, ends;
    Observation observation;
    bool operator>(const InProgress& other) const { return ends > other.ends; }
  };
  /// The endpoint of an arm.
  struct Endpoint {
    Time dies, back;           // if it is killed at all
    Time tells = Time::max();  // whether it lives
    std::priority_queue<InProgress, std::vector<InProgress>, std::greater<>> requests;
  };
  bool takes_time() const { return fault_.cut_off || fault_.killed_every.count() > 0 || fault_.reset_every.count() > 0; }
  Time after(std::chrono::milliseconds mean);

  Fault fault_;
  uint64_t seed_;
  Random random_;
  Time now_{};
  Rollout rollout_;
  std::array<Batch, 2> forming_;
  std::array<Endpoint, 2> endpoints_;
  Time next_reset_{};
  uint64_t batches_ = 0, requests_ = 0, canary_requests_ = 0, mirrored_ = 0;
};

/// parse_spec for tests: canary 2 of service "s" against 1, with these lines besides.
Spec spec_of(const std::string& lines);
/// A step at one weight that no certificate ends.
Spec hold_at(double percent, const std::string& guard = "");

}  // namespace serin::rollout
