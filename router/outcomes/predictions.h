// predictions.h: The classes that versions predicted, kept for a while, so that a label that comes later is compared with them.
//
//   predictions.add("4f1c", {.assigned = text, .prediction = read}, now);              // any io thread
//   SERIN_TRY(const Judged judged, predictions.judge("4f1c", {3.0}, now));             // {text, 1}: the class was 3
//   predictions.restore(store, "outcomes/digits/accuracy/awaited", now);               // at the start
//   SERIN_CHECK(predictions.save(store, "outcomes/digits/accuracy/awaited"));          // every two seconds
//
// In memory and in the store, bounded by a number, a size and an age: the oldest go first. No other router has them.
//
// An ID that comes twice with the same body is a retry. The first answer counts: whether there is a second one may depend on the first. With
// another body the ID is no name, and labels for it are refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/mutex.h"
#include "router/config/config.h"
#include "router/outcomes/prediction_log.h"
#include "router/outcomes/prediction_text.h"
#include "router/store/store.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"

namespace serin::router {

/// One entry for each row of the answer.
using Label = std::vector<std::variant<double, std::string>>;

struct Judged {
  std::string assigned;
  double value = 0;  ///< the share of the rows whose class is the label
};

/// Of one metric. Thread-safe.
class Predictions {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Predictions(std::string service, std::string metric, const LabelConfig& config);
  /// Its metrics are part of this registry from now on.
  void show(metrics::Registry& registry);

  const LabelConfig& config() const { return config_; }

  using Entry = PredictionEntry;
  void add(std::string_view id, Entry entry, Time now);
  /// kNotFound: it is not kept here, or no longer. kInvalidArgument: not such a label. kFailedPrecondition: there is nothing to compare it with.
  Result<Judged> judge(std::string_view id, const Label& label, Time now) const;
  /// Frees what is older than it may get. add() does so as well.
  void forget_old(Time now);
  /// Goes on with what the store has under names that begin with `note`, unless classes were read otherwise then. From now on save() has
  /// something to write. A second call does nothing. Lines that cannot be read are counted in the log, and forgotten.
  void restore(store::Store& store, const std::string& note, Time now);
  /// Writes what has changed since then. One call at a time.
  Status save(store::Store& store, const std::string& note);
  /// How many are kept, and the memory that they take.
  std::pair<size_t, size_t> size() const;

 private:
  struct Kept {
    std::string id;
    Entry entry;
    Time at;
    bool ambiguous = false;
    uint32_t segment = 0;  // of log_
    size_t bytes() const;
  };
  void drop_oldest() SERIN_REQUIRES(mutex_);
  void trim(Time now) SERIN_REQUIRES(mutex_);
  Kept& put(std::string id, Entry entry, Time at) SERIN_REQUIRES(mutex_);
  void keep_reason(std::string_view& why) SERIN_REQUIRES(mutex_);
  std::chrono::milliseconds since_1970(Time at) const;
  bool put_line(const PredictionLog::Line& line, Time now) SERIN_REQUIRES(mutex_);
  std::string fingerprint() const;
  Result<uint64_t> code_in(const Prediction& prediction, const Label::value_type& label) const;

  const std::string service_, metric_;
  const LabelConfig config_;
  const std::chrono::nanoseconds wall_clock_ = std::chrono::system_clock::now().time_since_epoch() - Time::clock::now().time_since_epoch();
  std::unordered_map<std::string_view, double> indices_;  // of config_.names

  mutable Mutex mutex_;
  std::deque<Kept> kept_ SERIN_GUARDED_BY(mutex_);                              // oldest first; a deque does not move them
  std::unordered_map<std::string_view, Kept*> known_ SERIN_GUARDED_BY(mutex_);  // by ID, which is a view of the entry's
  size_t bytes_ SERIN_GUARDED_BY(mutex_) = 0;
  std::optional<PredictionLog> log_ SERIN_GUARDED_BY(mutex_);            // absent before restore()
  std::string line_ SERIN_GUARDED_BY(mutex_);                            // its memory is used again
  std::set<std::string, std::less<>> reasons_ SERIN_GUARDED_BY(mutex_);  // that were restored
  size_t places_written_ = 0;                                            // of save() alone
  bool forgets_ = false;                                                 // the store has lines of other classes
  std::shared_ptr<metrics::Gauge> count_ SERIN_GUARDED_BY(mutex_), size_ SERIN_GUARDED_BY(mutex_);
  std::shared_ptr<metrics::Counter> dropped_ SERIN_GUARDED_BY(mutex_);
};

/// Those of all services. They outlive a generation: a reload of router.yaml forgets nothing.
class AllPredictions {
 public:
  /// With other `labels` than before they begin anew.
  std::shared_ptr<Predictions> get(const std::string& service, const std::string& metric, const LabelConfig& config,
                                   metrics::Registry& registry);
  /// Forgets those of all other metrics.
  void keep_only(std::span<const std::shared_ptr<Predictions>> used);

 private:
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Predictions>> all_;
};

}  // namespace serin::router
