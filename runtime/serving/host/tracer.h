// tracer.h: records the times at which single requests passed each stage: Triton's extension "trace".
//
// Triton's trace_summary.py reads its file.
//
//   Tracer tracer;
//   tracer.start({.file = "trace.json", .on = true, .rate = 100});      // every hundredth request
//   if (const uint64_t id = tracer.begin("digits")) ... tracer.add({.id = id, ...});
//
// Thread-safe; a separate thread writes the files. While nothing is traced, begin() reads one flag.
#pragma once

#include <condition_variable>
#include <map>
#include <optional>
#include <thread>

#include "kernels/mutex.h"
#include "runtime/protocol/json/flat_json.h"
#include "runtime/serving/host/ending.h"

namespace serin::serving {

struct TraceOptions {
  std::string file;           ///< empty: this server cannot trace
  bool on = false;            ///< from the start; otherwise once an authorised client requests it
  int64_t rate = 1000;        ///< traces one of that many requests, the last of them
  int64_t count = -1;         ///< number of traces; -1: no limit
  int64_t log_frequency = 0;  ///< traces in one file, called <file>.0, <file>.1 ...; 0: all in one file
};

/// The trace of one request. Its id is 0 if it is not traced.
struct Trace {
  enum class Door : uint8_t { kNone, kHttp, kGrpc };
  uint64_t id = 0;
  uint64_t parent = 0;  ///< for a step: the ensemble's trace
  Door door = Door::kNone;
  bool computed = false;            ///< computed for this request
  Clock::time_point received = {};  ///< when its first bytes came
  Clock::time_point arrived = {};   ///< when all of it had come
  Clock::time_point queued = {};    ///< when it was read and checked
  Clock::time_point ended = {};
  Clock::time_point sent = {};
  Timing timing = {};

  /// Records the end.
  void end(const Ending& ending);
};

class Tracer {
 public:
  Tracer() = default;
  ~Tracer();  ///< writes the remaining traces

  /// Call it once, before anything else. The error names the file that cannot be written. The file of an earlier server stays until the
  /// first trace.
  Status start(TraceOptions options);

  /// Returns the settings in the extension's form. `model` empty: those of all models, which a model without its own settings also uses.
  protocol::FlatValues settings(std::string_view model) const;
  /// Applies all changes or none; null restores the initial value, or for a model the value of all models. kInvalidArgument,
  /// kPermissionDenied (trace_file), kUnsupported (levels and modes that do not exist here), kFailedPrecondition (there is no file).
  Status change(std::string_view model, const protocol::FlatValues& changes);
  /// The model uses the settings of all models from now on.
  void forget(std::string_view model);

  /// The id of this request's trace; 0: it is not traced.
  uint64_t begin(std::string_view model) { return on_.load(std::memory_order_relaxed) ? sample(model) : 0; }
  /// For a part of a traced request.
  uint64_t begin_part() { return next_id_.fetch_add(1, std::memory_order_relaxed); }
  void add(const Trace& trace, std::string_view model, std::string_view version, std::string_view request);

 private:
  struct Settings {
    bool on = false;
    int64_t rate = 1000, count = -1;
  };
  /// A model's own settings; those of all models apply to the rest.
  struct Own {
    std::optional<bool> on;
    std::optional<int64_t> rate, count;
    int64_t seen = 0;
  };

  uint64_t sample(std::string_view model);
  Settings of(std::string_view model) const SERIN_REQUIRES(mutex_);
  void look_whether_on() SERIN_REQUIRES(mutex_);
  void write_now(bool last);
  void run(const std::stop_token& stopped);

  std::atomic<bool> on_{false};
  std::atomic<uint64_t> next_id_{1};
  TraceOptions options_;

  mutable Mutex mutex_;
  std::condition_variable_any more_;
  Settings all_ SERIN_GUARDED_BY(mutex_);
  int64_t seen_ SERIN_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Own, std::less<>> models_ SERIN_GUARDED_BY(mutex_);
  int64_t log_frequency_ SERIN_GUARDED_BY(mutex_) = 0;
  std::string text_ SERIN_GUARDED_BY(mutex_);               // traces to be written, in JSON
  int64_t in_text_ SERIN_GUARDED_BY(mutex_) = 0;            // their number
  std::vector<std::string> full_ SERIN_GUARDED_BY(mutex_);  // texts of log_frequency_ traces each
  size_t waiting_ SERIN_GUARDED_BY(mutex_) = 0;             // bytes of both
  uint64_t dropped_ SERIN_GUARDED_BY(mutex_) = 0;

  int64_t files_ = 0;     // used by the writing thread, like the next: <file>.0 is the first
  uint64_t written_ = 0;  // bytes of the single file, up to the end of its last trace
  std::jthread writer_;
};

}  // namespace serin::serving
