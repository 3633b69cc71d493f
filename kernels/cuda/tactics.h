// tactics.h: which of several ways was the fastest for a shape on this device, remembered on disk so that a second start measures nothing.
//
//   const int chosen = tactics.choose("matmul f16 128x768x3072 gelu", candidates.size(), [&](int i) { return time_of(candidates[i]); });
//
// In the folder each scope (device, libraries, build) has a file of its own: text, one line a choice, under a first line that names format and scope. A line
// is appended when its choice is made, in one write: a process that is killed loses nothing, several may share the file, and of two lines for a key the later
// one holds. A file that cannot be read or written costs the measuring, not the start.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace serin::kernels::cuda {

/// When to stop looking further, ways being tried from 0 on: by then one has worked, or all are tried. Those that do not work are not counted.
struct SearchLimits {
  int measured = std::numeric_limits<int>::max();
  int in_vain = std::numeric_limits<int>::max();  ///< one after the other, none faster than the best before
  std::chrono::milliseconds time = std::chrono::hours(24);
};

class Tactics {
 public:
  /// `scope`: what the choices hold for ("NVIDIA H200 sm_90, cuBLASLt 13.1.0, build 7acb..."). An empty folder: nothing is kept. `note` says why nothing is.
  Tactics(const std::string& folder, std::string scope, std::string* note = nullptr);
  ~Tactics();
  Tactics(const Tactics&) = delete;
  Tactics& operator=(const Tactics&) = delete;

  /// The number of the fastest of `count` ways for `key`, measured the first time: `measure` answers milliseconds, nothing where that way does not work. -1
  /// where none does. Thread-safe; one way is measured at a time, so that measurements do not disturb each other, while what is remembered is answered at
  /// once. `measure` may take locks that a caller must therefore not hold, and does not call choose().
  int choose(const std::string& key, int count, const std::function<std::optional<double>(int)>& measure, const SearchLimits& limits = {});
  /// What was chosen does not work any more: it is measured again when it is next asked for.
  void forget(const std::string& key);

  size_t measured() const;  ///< keys that were not remembered

 private:
  struct Choice {
    int way = -1;
    double milliseconds = 0;
  };
  int known(const std::string& key, int count) const;
  void load();
  void keep(const std::string& key, const Choice& choice);
  bool open_file();

  const std::string scope_, path_;
  std::mutex measuring_;  ///< taken before all others, and held while a way is tried
  mutable std::mutex mutex_;
  std::map<std::string, Choice> choices_;  // this and what follows: guarded by mutex_
  size_t measured_ = 0;
  int file_ = -1;         ///< to append to; opened for the first line
  bool usable_ = false;   ///< what lies at the path is of this scope
  bool torn_ = false;     ///< its last line is no whole one
  bool keeping_ = false;  ///< no more after the first failure to write
};

}  // namespace serin::kernels::cuda
