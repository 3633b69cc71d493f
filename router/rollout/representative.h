// representative.h: Selects the answers that are evidence, and the share they are weighed against.
//
// Failures come in batches: eight answers of one bad batch are one piece of evidence, not eight. So the unit of evidence is the batch, and
// one answer represents it: the one at place hash(batch) mod n. This is stateless, the same in every router, and exact both for failures of
// a whole batch and for failures of single requests. Only if stable has gathered more in a batch than it usually does, every answer of that
// batch counts for a part: representative.cc gives the reason. If requests stick to an arm by a key, key_gate.h is applied on top.
//
//   Units units(Guard::Unit::kBatch);
//   for (const Settled& earlier : units.settle(observation, at)) process.observe(earlier.observation.arm, ...);
//   if (const auto unit = units.weigh(observation)) process.observe(observation.arm, unit->share, unit->count);
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "router/rollout/broken_moment.h"
#include "router/rollout/observation.h"
#include "router/rollout/spec.h"

namespace serin::rollout {

/// Where a table by endpoint has it: those of a service with very many share the last place.
inline constexpr uint32_t kMostEndpoints = 4096;
inline size_t endpoint_slot(uint32_t endpoint) { return endpoint < kMostEndpoints ? endpoint : kMostEndpoints - 1; }

/// The canary's share of the requests, at the draw.
inline double drawn_share(const Observation& observation) { return static_cast<double>(observation.weight_ppm) / kAll; }

/// Whether this answer represents its batch.
bool is_representative(const BatchId& batch);

/// The weight of one answer if it is bad. A share alone is one whole unit.
struct Unit {
  Unit(double canary_share = 0, double units = 1, bool stands_for_batch = true)
      : weight(canary_share), share(canary_share), count(units), representative(stands_for_batch) {}
  bool operator==(const Unit&) const = default;
  /// The same among answers where the canary has another weight: those whose bodies are inspected.
  Unit weighed(uint32_t weight_ppm) const;
  /// The same if `factor` times as many of the canary's answers as of stable's can still be units.
  Unit scaled(double factor) const;
  /// Without the floor that keeps `share` on the safe side.
  double unbiased_share() const { return weight * ratio / (weight * ratio + (1 - weight)); }

  double weight;        ///< the canary's share of the requests, at the draw
  double share;         ///< the canary's share of such units, as known before this answer
  double count;         ///< the number of units: a fraction or one
  bool representative;  ///< of its batch: the one answer included in counts of answers, good or bad
  double ratio = 1;     ///< units in an answer of the canary over units in one of stable

 private:
  void update_share();
};

/// A broken answer that had waited for a sign of life, and counts now.
struct Settled {
  Observation observation;
  Unit unit;
};

class Units {
 public:
  explicit Units(Guard::Unit unit);

  /// The broken answers about which this answer, or the time, leaves no doubt. Call it before weigh(), for each answer. Valid until the next
  /// call.
  const std::vector<Settled>& settle(const Observation& observation, std::chrono::nanoseconds at);
  /// Nothing if the answer is no evidence of its own, or waits. Call once for each answer.
  std::optional<Unit> weigh(const Observation& observation);

 private:
  struct Endpoint {
    bool seen = false;
    Arm arm = Arm::kStable;
    bool failing = false;             // an episode is open: a failure without an answer was counted, and no sign of life has come since
    std::array<uint64_t, 4> boots{};  // the latest runs of its process, or of the processes behind it; 0: none
    size_t next_boot = 0;
    std::optional<BrokenMoment> broken;               // waits
    std::optional<std::chrono::nanoseconds> refused;  // a connection, the last time
  };

  Endpoint& endpoint_of(const Observation& observation);
  static bool is_restart(const Endpoint& endpoint, const Observation& observation);
  static void remember_boot(Endpoint& endpoint, const Observation& observation);
  void settle_overdue(std::chrono::nanoseconds at);
  void settle_alive(Endpoint& endpoint);
  void settle_dead(Endpoint& endpoint);
  void hold(Endpoint& endpoint, const Observation& observation, std::chrono::nanoseconds at);
  double ratio() const;
  bool larger_than_usual(const BatchId& batch) const;
  double usual_part() const;
  void remember(Arm arm, const BatchId& batch, bool representative);
  void forget_oldest();
  double endpoint_share() const;

  // The trailing window: the answers of the last 1,000 representatives.
  struct Answer {
    uint32_t n;
    Arm arm;
    bool representative;
  };
  struct ArmSums {
    uint64_t answers = 0;
    uint64_t batches = 0;  // sum of 1/n in units of 2^-32: exact after any number of additions
  };
  static constexpr size_t kWindow = 8192;
  static constexpr uint32_t kRepresentatives = 1000;

  Guard::Unit unit_;
  std::vector<Answer> window_;  // ring buffer
  size_t next_ = 0, held_ = 0;
  uint32_t representatives_ = 0;
  std::array<ArmSums, 2> sums_;
  std::vector<Endpoint> endpoints_;
  std::array<uint32_t, 2> endpoint_counts_{};
  size_t waiting_ = 0;  // endpoints with a broken moment
  std::vector<Settled> settled_;
};

}  // namespace serin::rollout
