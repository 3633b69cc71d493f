// outcomes.h: The outcomes of all services: takes reports, and keeps what they add up to in the store.
//
//   Outcomes outcomes(config.services, controller.store(), registry, predictions);
//   SERIN_TRY(const OutcomeReceipt receipt, outcomes.add("digits", reports));      // counted now, on disk within seconds
//   SERIN_TRY(const OutcomesSummary summary, outcomes.summary("digits"));
//   outcomes.stop();                                                               // before the store is released
//
// A report is a few additions. A metric does not grow with its reports, so a thread writes it every two seconds. A crash loses the reports of
// these two seconds. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/mutex.h"
#include "router/config/config.h"
#include "router/outcomes/metric_outcomes.h"
#include "router/outcomes/predictions.h"
#include "router/outcomes/summary.h"
#include "router/store/store.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"
#include "runtime/base/schema.h"
#include "runtime/base/sleeper.h"

namespace serin::router {

/// A report as it comes: what the header of the answer said and the value, or the ID of the request and its label.
struct OutcomeReport {
  std::string metric = {}, assigned = {};
  double value = 0;
  std::string request_id = {};  ///< empty: `assigned` and `value` are given
  Label label = {};             ///< then `metric` may be empty, if one has `labels`

  bool by_request() const { return !request_id.empty(); }
};

struct RefusedOutcome {
  uint64_t index = 0;
  std::string error;
  std::string_view code;  ///< of an Error
};
inline constexpr auto kRefusedOutcome = schema::object<RefusedOutcome>(
    "RefusedOutcome", "A report that was not counted.", schema::field("index", &RefusedOutcome::index, "Its place in the list, from 0."),
    schema::field("error", &RefusedOutcome::error, "A sentence for users."),
    schema::field("code", &RefusedOutcome::code, "The kind of error. `not_found`: this router does not know the request."));

struct OutcomeReceipt {
  uint64_t accepted = 0, duplicates = 0;
  std::vector<RefusedOutcome> refused;
};
inline constexpr auto kOutcomeReceipt = schema::object<OutcomeReceipt>(
    "OutcomeReceipt", "What became of each report.", schema::field("accepted", &OutcomeReceipt::accepted, "Counted."),
    schema::field("duplicates", &OutcomeReceipt::duplicates, "Of draws that had a report before."),
    schema::field<kRefusedOutcome>("refused", &OutcomeReceipt::refused, "The others. To send them again is of no use."));

/// A guard of a running rollout that judges reported outcomes (router/rollout/outcome_guard.h).
struct OutcomeQuestion {
  std::string service, metric;  ///< the service that has `outcomes`, also for further rollouts of it
  MetricOutcomes::FollowedRollout rollout;
  size_t control = 0, guard = 0;  ///< indices: of the rollout's service, and in its specification
};

/// The other side of these guards: called on the threads of reports and of the writer.
struct OutcomeWatch {
  std::function<std::vector<OutcomeQuestion>()> questions;
  std::function<void(const OutcomeQuestion&, const rollout::OutcomeEvidence& so_far)> answer;
};

class Outcomes {
 public:
  /// Goes on with what the store has. `store` must outlive stop(), and so must what `watch` refers to. `predictions`: those of metrics with
  /// `labels` are taken from there; it need not outlive this.
  Outcomes(const std::vector<ServiceConfig>& services, store::Store& store, metrics::Registry& registry, AllPredictions& predictions,
           OutcomeWatch watch = {});
  ~Outcomes() { stop(); }
  Outcomes(const Outcomes&) = delete;
  Outcomes& operator=(const Outcomes&) = delete;

  /// Each report by itself; an error stands for one that could not be read. kNotFound: no such service, or it has no `outcomes`.
  Result<OutcomeReceipt> add(const std::string& service, std::span<const Result<OutcomeReport>> reports);
  Result<OutcomesSummary> summary(const std::string& service) const;
  /// Forgets all outcomes of the service; on disk when it returns.
  Status reset(const std::string& service);
  /// Writes what is not written yet, and nothing more from then on. Reports must have ended.
  void stop();

 private:
  struct Metric {
    MetricOutcomes outcomes;
    std::string note;             // its name in the store
    uint64_t chunks_written = 0;  // of the IDs
    bool changed = false;
    std::map<std::string, std::shared_ptr<metrics::Counter>> counted = {};      // by version, made on first use
    std::shared_ptr<Predictions> predictions = {};                              // null: it has no `labels`
    std::map<std::string_view, std::shared_ptr<metrics::Counter>> labels = {};  // by what became of them
  };
  using Metrics = std::vector<Metric>;
  using Notes = std::vector<std::pair<std::string, std::string>>;

  std::vector<OutcomeQuestion> questions() const { return watch_.questions ? watch_.questions() : std::vector<OutcomeQuestion>(); }
  void look();
  void follow(std::span<const OutcomeQuestion> questions) SERIN_REQUIRES(mutex_);
  void answer(std::span<const OutcomeQuestion> questions);
  Metric* find(const std::string& service, const std::string& metric) SERIN_REQUIRES(mutex_);
  Result<OutcomeReceipt> count(const std::string& service, std::span<const Result<OutcomeReport>> reports,
                               std::span<const OutcomeQuestion> questions);
  void load(const std::string& service, Metric& metric) SERIN_REQUIRES(mutex_);
  void await_labels(const std::string& service, Metric& metric, std::shared_ptr<Predictions> predictions);
  Result<Metrics*> find(const std::string& service) SERIN_REQUIRES(mutex_);
  Result<bool> add(const std::string& service, Metrics& metrics, const OutcomeReport& report) SERIN_REQUIRES(mutex_);
  Result<bool> add_label(const std::string& service, Metrics& metrics, const OutcomeReport& report) SERIN_REQUIRES(mutex_);
  Result<bool> add_value(const std::string& service, Metric& metric, const std::string& assigned, double value) SERIN_REQUIRES(mutex_);
  static Result<Metric*> find_labelled(const std::string& service, Metrics& metrics, const std::string& name);
  Status save();
  Status write_changed() SERIN_REQUIRES(saving_);
  Status write_predictions() SERIN_REQUIRES(saving_);
  void run();

  store::Store& store_;
  metrics::Registry& registry_;
  const OutcomeWatch watch_;
  mutable Mutex mutex_;
  std::map<std::string, Metrics, std::less<>> services_ SERIN_GUARDED_BY(mutex_);  // those that have `outcomes`
  Mutex saving_;                                                                   // one save after the other; taken before mutex_
  Sleeper sleeper_;
  std::thread writer_;
};

}  // namespace serin::router
