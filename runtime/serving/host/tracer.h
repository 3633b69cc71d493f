// tracer.h: when single requests got where: Triton's extension "trace". The file is the one that its trace_summary.py reads.
//
//   Tracer tracer;
//   tracer.start({.file = "trace.json", .on = true, .rate = 100});      // every hundredth request
//   if (const uint64_t id = tracer.begin("digits")) ... tracer.add({.id = id, ...});
//
// Thread-safe; files are written by a thread of its own. While nothing is traced, begin() looks at one flag.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/protocol/json/flat_json.h"
#include "runtime/serving/scheduling/job.h"

namespace serin::serving {

struct TraceOptions {
  std::string file;           ///< empty: this server cannot trace
  bool on = false;            ///< from the start, else once a client with the right to asks for it
  int64_t rate = 1000;        ///< one of so many requests, the last of them
  int64_t count = -1;         ///< so many and no more; -1: no end
  int64_t log_frequency = 0;  ///< so many to a file, which are called <file>.0, <file>.1 ...; 0: all of them in one
};

/// What is told of one request. Its id is 0 where it is not traced.
struct Trace {
  enum class Door : uint8_t { kNone, kHttp, kGrpc };
  uint64_t id = 0;
  uint64_t parent = 0;  ///< the ensemble's, of a step
  Door door = Door::kNone;
  bool computed = false;            ///< for this request
  Clock::time_point received = {};  ///< the first of it
  Clock::time_point arrived = {};   ///< all of it
  Clock::time_point queued = {};    ///< read and checked
  Clock::time_point ended = {};
  Clock::time_point sent = {};
  Timing timing = {};

  /// There is an answer now.
  void end(const Answer& answer);
};

class Tracer {
 public:
  Tracer() = default;
  ~Tracer();  ///< writes what is left

  /// Once, before anything else. The error names the file that cannot be written. What an earlier server left there stays until the first trace comes.
  Status start(TraceOptions options);

  /// As the extension tells them; `model` is empty: those of all models, which a model has where nothing was said of it.
  protocol::FlatValues settings(std::string_view model) const;
  /// All of them or none; null is what held before anybody changed it, of a model what holds for all. kInvalidArgument, kPermissionDenied (trace_file), kUnsupported (levels and modes that
  /// are not built), kFailedPrecondition (there is no file).
  Status change(std::string_view model, const protocol::FlatValues& changes);
  /// From now on those of all models are the model's.
  void forget(std::string_view model);

  /// The id of this request's trace; 0: it is not to be traced.
  uint64_t begin(std::string_view model) { return on_.load(std::memory_order_relaxed) ? sample(model) : 0; }
  /// For what goes on within a request that is traced.
  uint64_t begin_part() { return next_id_.fetch_add(1, std::memory_order_relaxed); }
  void add(const Trace& trace, std::string_view model, std::string_view version, std::string_view request);

 private:
  struct Settings {
    bool on = false;
    int64_t rate = 1000, count = -1;
  };
  /// What a model has of its own; for the rest those of all hold.
  struct Own {
    std::optional<bool> on;
    std::optional<int64_t> rate, count;
    int64_t seen = 0;
  };

  uint64_t sample(std::string_view model);
  Settings of(std::string_view model) const;
  void look_whether_on();
  void write_now(bool last);
  void run(const std::stop_token& stopped);

  std::atomic<bool> on_{false};
  std::atomic<uint64_t> next_id_{1};
  TraceOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable_any more_;
  Settings all_;  // guarded by mutex_, as all below
  int64_t seen_ = 0;
  std::map<std::string, Own, std::less<>> models_;
  int64_t log_frequency_ = 0;
  std::string text_;               // traces on their way, in JSON
  int64_t in_text_ = 0;            // so many
  std::vector<std::string> full_;  // of log_frequency_ each
  size_t waiting_ = 0;             // bytes of both
  uint64_t dropped_ = 0;

  int64_t files_ = 0;     // of the thread that writes, as the next: <file>.0 is the first
  uint64_t written_ = 0;  // bytes of the file that holds all, up to behind its last trace
  std::jthread writer_;
};

}  // namespace serin::serving
