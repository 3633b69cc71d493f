// predictions.h: The classes that versions predicted, kept for a while, so that a label that comes later is compared with them.
//
//   predictions.add("4f1c", {.assigned = text, .prediction = read}, now);              // any io thread
//   SERIN_TRY(const Judged judged, predictions.judge("4f1c", {3.0}, now));             // {text, 1}: the class was 3
//
// In memory, bounded by a number, a size and an age: the oldest go first. A restart forgets them, and no other router has them.
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
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/mutex.h"
#include "router/config/config.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"

namespace serin::router {

/// The classes in an answer.
struct Prediction {
  enum class Kind : uint8_t {
    kNumbers,
    kTexts,
    kFailed,  ///< it was an error: no label is right
    kUnread   ///< it has no class that can be read
  } kind = Kind::kFailed;
  std::vector<uint64_t> rows = {};  ///< of kNumbers and kTexts: code_of() the class of each row
  std::string_view why = {};        ///< of kUnread: a literal
};

/// Equal for equal classes, in this process.
uint64_t code_of(double number);
uint64_t code_of(std::string_view text);

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

  struct Entry {
    std::string assigned;  ///< the text of the draw (assignment.h)
    uint64_t asked = 0;    ///< digest of the request's body
    Prediction prediction;
  };
  void add(std::string_view id, Entry entry, Time now);
  /// kNotFound: it is not kept here, or no longer. kInvalidArgument: not such a label. kFailedPrecondition: there is nothing to compare it with.
  Result<Judged> judge(std::string_view id, const Label& label, Time now) const;
  /// Frees what is older than it may get. add() does so as well.
  void forget_old(Time now);
  /// How many are kept, and the memory that they take.
  std::pair<size_t, size_t> size() const;

 private:
  struct Kept {
    std::string id;
    Entry entry;
    Time at;
    bool ambiguous = false;
    size_t bytes() const;
  };
  void drop_oldest() SERIN_REQUIRES(mutex_);
  void trim(Time now) SERIN_REQUIRES(mutex_);
  Result<uint64_t> code_in(const Prediction& prediction, const Label::value_type& label) const;

  const std::string service_, metric_;
  const LabelConfig config_;
  std::unordered_map<std::string_view, double> indices_;  // of config_.names

  mutable Mutex mutex_;
  std::deque<Kept> kept_ SERIN_GUARDED_BY(mutex_);                              // oldest first; a deque does not move them
  std::unordered_map<std::string_view, Kept*> known_ SERIN_GUARDED_BY(mutex_);  // by ID, which is a view of the entry's
  size_t bytes_ SERIN_GUARDED_BY(mutex_) = 0;
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
