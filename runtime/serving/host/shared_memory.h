// shared_memory.h: regions of this machine's shared memory (shm_open) that clients register by name for tensors.
//
// Nothing is mapped: data is copied with pread and pwrite. So a client that shrinks its memory gets an error, and no SIGBUS reaches the
// server. An unregistered region lives until the requests that use it have ended. Only memory named by a client is opened, by a name
// without a path; messages never contain any other name. Thread-safe.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "kernels/mutex.h"
#include "runtime/protocol/tensor/shared_range.h"

namespace serin::serving {

inline constexpr std::string_view kNoRegions = "this server takes no shared memory: start it with --shared-memory";
inline constexpr std::string_view kNoCudaRegions =
    "shared memory of CUDA devices is not taken: use system shared memory, or send the tensor";

class SharedMemory final : public protocol::SharedRegions {
 public:
  struct Region {
    std::string name, key;
    uint64_t offset = 0, byte_size = 0;
  };

  /// kAlreadyExists (that name), kInvalidArgument (key, range), kNotFound (no such memory), kOverloaded (too many regions).
  Status add(const Region& region);
  /// Returns all regions if `name` is empty; kNotFound for an unknown name.
  Result<std::vector<Region>> list(std::string_view name) const;
  /// Removes one region, or all if `name` is empty. An unknown name is no error.
  void remove(std::string_view name);

  Result<protocol::SharedRangePtr> open(std::string_view region, uint64_t offset, uint64_t bytes) const override;
  /// Bytes of the largest region; 0 if there is none.
  uint64_t largest() const { return largest_.load(std::memory_order_relaxed); }

 private:
  class File;
  class Range;
  struct Held {
    Region region;
    std::shared_ptr<const File> file;
  };

  void measure() SERIN_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Held, std::less<>> regions_ SERIN_GUARDED_BY(mutex_);
  std::atomic<uint64_t> largest_{0};
};

}  // namespace serin::serving
