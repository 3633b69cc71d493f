// tactics.h: which of several ways was the fastest for a shape on this device, remembered on disk so that a second start measures nothing.
//
//   const int chosen = tactics.choose("matmul f16 128x768x3072 gelu", candidates.size(), [&](int i) { return time_of(candidates[i]); });
//
// The file is text, one line a choice, under a first line that names device, libraries and format. A file of another device or another library is put
// aside and made anew; one that cannot be read or written costs the measuring, not the start.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace serin::kernels::cuda {

class Tactics {
 public:
  /// `scope`: what the choices hold for ("NVIDIA H200 sm_90 cuBLASLt 13.1.0"). An empty path: nothing is kept. `note` says what was read.
  Tactics(std::string path, std::string scope, std::string* note = nullptr);
  /// Writes what was measured since, through a temporary file; several processes may share the path, the last one's file stays.
  ~Tactics();
  Tactics(const Tactics&) = delete;
  Tactics& operator=(const Tactics&) = delete;

  /// The number of the fastest of `count` ways for `key`, measured the first time: `measure` answers milliseconds, nothing where that way does not work. -1
  /// where none does. Thread-safe; one way is measured at a time, so that measurements do not disturb each other.
  int choose(const std::string& key, int count, const std::function<std::optional<double>(int)>& measure);

  size_t measured() const;  ///< keys that were not remembered

 private:
  struct Choice {
    int way = -1;
    double milliseconds = 0;
  };
  const std::string path_, scope_;
  mutable std::mutex mutex_;
  std::map<std::string, Choice> choices_;  // guarded by mutex_
  size_t measured_ = 0;                    // guarded by mutex_
};

}  // namespace serin::kernels::cuda
