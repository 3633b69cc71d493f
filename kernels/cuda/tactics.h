// tactics.h: Remembers on disk which of several algorithms was the fastest for a shape on this device, so that a second start measures
// nothing.
//
//   const int chosen = tactics.choose("matmul f16 128x768x3072 gelu", candidates.size(), [&](int i) { return time_of(candidates[i]); });
//
// Each scope (device, libraries, build) has its own text file in the folder. Its first line names format and scope; each further line is
// one choice. A line is appended in one write when its choice is made. So a killed process loses nothing, and several may share the file;
// of two lines for a key the later one applies. A file that cannot be read or written only costs the measurement again.
//
// A model may be loaded while others serve on the same device. A choice that was measured next to their runs is marked. It counts for this
// process, and the next one that finds the device idle measures it again.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "kernels/cuda/traffic.h"
#include "kernels/mutex.h"

namespace serin::kernels::cuda {

/// When to stop the search, which tries candidates from 0 on: by then one has worked, or all are tried. Candidates that do not work are not
/// counted.
struct SearchLimits {
  int measured = std::numeric_limits<int>::max();
  int in_vain = std::numeric_limits<int>::max();  ///< in a row, none faster than the best before
  std::chrono::milliseconds time = std::chrono::hours(24);
};

class Tactics {
 public:
  /// `scope`: the conditions of the choices ("NVIDIA H200 sm_90, cuBLASLt 13.1.0, build 7acb..."). An empty folder: nothing is kept. `note`
  /// gives the reason if nothing is. `traffic`: of the device; null: nothing else runs on it.
  Tactics(const std::string& folder, std::string scope, std::string* note = nullptr, const Traffic* traffic = nullptr);
  ~Tactics();
  Tactics(const Tactics&) = delete;
  Tactics& operator=(const Tactics&) = delete;

  /// The number of the fastest of `count` candidates for `key`, measured the first time: `measure` returns milliseconds, or nothing if that
  /// candidate does not work. -1 if none does. Thread-safe. One candidate is measured at a time, so that measurements do not disturb each
  /// other; remembered choices return at once. `measure` may take locks, which a caller must therefore not hold, and does not call
  /// choose().
  int choose(const std::string& key, int count, const std::function<std::optional<double>(int)>& measure, const SearchLimits& limits = {});
  /// The choice no longer works: it is measured again at its next use.
  void forget(const std::string& key);

  size_t measured() const;  ///< keys that were not remembered

 private:
  struct Choice {
    int way = -1;
    double milliseconds = 0;
    bool disturbed = false;  ///< by runs of models
    bool of_before = false;  ///< measured by another process
  };
  int known(const std::string& key, int count) const;
  bool busy() const { return traffic_ != nullptr && traffic_->busy(); }
  uint64_t runs() const { return traffic_ == nullptr ? 0 : traffic_->runs(); }
  Choice fastest(int count, const std::function<std::optional<double>(int)>& measure, const SearchLimits& limits) const
      SERIN_REQUIRES(measuring_);
  void load() SERIN_REQUIRES(mutex_);
  void keep(const std::string& key, const Choice& choice) SERIN_REQUIRES(mutex_);
  bool open_file() SERIN_REQUIRES(mutex_);

  const std::string scope_, path_;
  const Traffic* const traffic_;
  Mutex measuring_;  ///< taken before all others, and held while a candidate is measured
  mutable Mutex mutex_;
  std::map<std::string, Choice> choices_ SERIN_GUARDED_BY(mutex_);
  size_t measured_ SERIN_GUARDED_BY(mutex_) = 0;
  int file_ SERIN_GUARDED_BY(mutex_) = -1;         ///< to append to; opened for the first line
  bool usable_ SERIN_GUARDED_BY(mutex_) = false;   ///< the file at the path is of this scope
  bool torn_ SERIN_GUARDED_BY(mutex_) = false;     ///< its last line is incomplete
  bool keeping_ SERIN_GUARDED_BY(mutex_) = false;  ///< false after the first failure to write
};

}  // namespace serin::kernels::cuda
