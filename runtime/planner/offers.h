// offers.h: for one model and a load, the places that it could be served in, and how: precision, batch, instances, replicas, cost.
//
//   SERIN_TRY(const Offers offers, make_offers(planner, {"models/digits"}, question, answer, wanted, catalogue));
//   if (const Offer* best = offers.chosen()) ... best->replicas, best->device ...
//
// Where the catalogue gives a range, the slow end decides; a place that was measured (calibration.h) has no range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/planner/planner.h"
#include "runtime/planner/prices.h"
#include "runtime/planner/queue.h"
#include "runtime/planner/task.h"

namespace serin::planner {

struct OfferQuestion {
  Policy policy;
  Demand demand;
  std::optional<Prices> prices;
  bool this_machine = false;                       ///< only its CPU
  std::optional<std::vector<std::string>> places;  ///< cards and slices of a fleet, by the names that offers have; and CPUs
  std::string device;          ///< only this one of the catalogue; empty: this machine's CPU and every card that this build runs on
  std::optional<size_t> room;  ///< bytes that a process, or a card, may take; default: those of the card
  /// Bytes that a process may have, on a card's host, too, with the words for them: "memory (base.yaml:4:9)".
  std::optional<std::pair<size_t, std::string>> host_memory;
  bool whole_cards = false;    ///< neither this machine's CPU nor slices
  bool largest_batch = false;  ///< no smaller one than the largest of the question
};

struct Offer {
  std::optional<Device> device;  ///< for a slice, with the figures of the slice; none: this machine's CPU
  std::string name;              ///< "NVIDIA A100-SXM4-80GB 1g.10gb"
  std::string slice;             ///< "1g.10gb"; empty: the whole card
  double share = 1;              ///< of the card's memory, by which a slice is priced
  std::string precision = "fp32";
  int64_t batch = 1;
  int instances = 1, threads = 1;
  size_t needs = 0, has = 0;  ///< bytes where memory is short: of the card, or of the process; has 0: no limit was named
  size_t process = 0;         ///< bytes of the process, an upper bound
  bool calibrated = false;    ///< by measurements of this machine
  double rate = 0,
         best_rate = 0;  ///< requests each second that a replica answers in time: by the slow end of the range, and by the fast one
  int replicas = 1, fewest_replicas = 1;      ///< for the demand, by the same ends
  double seconds = 0;                         ///< of a batch, by the slow end
  double late_at = 0;                         ///< the seconds within which the share of the strictest SLO is answered (p99 without one)
  double in_flight = 1;                       ///< requests under way in a replica at its planned rate
  std::optional<double> hourly, per_million;  ///< cost of all replicas, and of a million answers
  size_t rank = 0;
  bool preferred = false;
  std::string why_not;  ///< empty: it holds

  bool on_card() const { return device && device->kind != Device::Kind::kCpu; }
  int cores() const { return instances * threads; }
};

struct Offers {
  std::vector<Offer> all;  ///< those that hold first, the best of them foremost
  Demand demand;
  double memory_threshold = 1;
  std::string currency;

  const Offer* chosen() const { return !all.empty() && all.front().why_not.empty() ? &all.front() : nullptr; }
  /// Why nothing holds, and what would.
  std::string advice() const;
};

/// `answer` is that of `places` and `question`, of one model, with what a calibration knows. kInvalidArgument: it is not one model.
Result<Offers> make_offers(const Planner& planner, const std::vector<std::string>& places, const Question& question, const Answer& answer,
                           const OfferQuestion& wanted, const Catalogue& catalogue);

}  // namespace serin::planner
