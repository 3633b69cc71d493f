// block_store.h: results of blocks on disk, so that a run can end at any moment and go on later, and processes can share one.
//
//   SERIN_TRY(const auto store, BlockStore::open("out.jsonl.work", "what this run is", shard));
//   if (!store->has(7)) SERIN_CHECK(store->append(7, payload));
//   SERIN_CHECK(store->look_again());                // what other processes have added
//   SERIN_TRY(const std::string payload, store->read(7));
//
// The folder has one file for each shard. A file is a line that says what the run is, and then frames: the block's number, its size, a
// CRC-32, its bytes. A frame that was cut off by a crash does not have that CRC: it is dropped, and its block is computed again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/mutex.h"
#include "runtime/base/result.h"
#include "runtime/cli/offline/shard.h"
#include "runtime/datasets/stored_file.h"

namespace serin::cli {

/// Thread-safe.
class BlockStore {
 public:
  /// Makes the folder if there is none, but not its parents. kFailedPrecondition: the folder belongs to another run, or another process has the same shard.
  static Result<std::unique_ptr<BlockStore>> open(const std::string& folder, const std::string& description, const Shard& shard);
  ~BlockStore();
  BlockStore(const BlockStore&) = delete;
  BlockStore& operator=(const BlockStore&) = delete;

  bool has(int64_t block) const;
  size_t count() const;
  Status append(int64_t block, std::string_view payload);
  Result<std::string> read(int64_t block) const;
  /// Finds blocks in the files of other shards.
  Status look_again();

  /// Runs `work` while no other process runs its own, and then deletes the folder. False: another process has done it meanwhile.
  template <class Work>
  Result<bool> complete(const Work& work) {
    SERIN_TRY(const int lock, lock_folder());
    if (lock < 0) return false;
    const Status done = work();
    if (done) remove_folder();
    unlock(lock);
    if (!done) return done.error();
    return true;
  }

 private:
  struct Frame {
    std::shared_ptr<const datasets::StoredFile> file;  ///< stays readable when another process deletes the folder
    uint64_t offset, bytes;
  };
  BlockStore(std::string folder, std::string description) : folder_(std::move(folder)), description_(std::move(description)) {}
  /// Returns the size of the part that is whole.
  Result<uint64_t> scan(const std::string& path, bool own) SERIN_REQUIRES(mutex_);
  Status open_own(const Shard& shard) SERIN_REQUIRES(mutex_);
  Result<int> lock_folder() const;
  void remove_folder() const;
  static void unlock(int lock);

  const std::string folder_, description_;
  std::string own_path_;
  mutable Mutex mutex_;
  int own_ SERIN_GUARDED_BY(mutex_) = -1;
  std::shared_ptr<const datasets::StoredFile> own_file_ SERIN_GUARDED_BY(mutex_);
  std::string frame_ SERIN_GUARDED_BY(mutex_);
  uint64_t own_size_ SERIN_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, Frame> frames_ SERIN_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> scanned_ SERIN_GUARDED_BY(mutex_);  ///< bytes of others' files that are known
};

}  // namespace serin::cli
