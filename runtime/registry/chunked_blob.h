// chunked_blob.h: a blob on the disk by its chunks (chunk_plan.h), in any order while it is being downloaded. Others can read what is there of it.
//
// An unfinished blob is the file PATH.chunks: room for the bytes, followed by a letter for each chunk, kRead or kTaken, which is written after its
// bytes. So a killed process loses no chunk. One that lost its power may have letters without bytes: the digest decides.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/mutex.h"
#include "runtime/base/result.h"

namespace serin::registry {

/// Thread-safe.
class ChunkedBlob {
 public:
  /// Makes PATH.chunks, or goes on with what is there of it. Errors: kPermissionDenied, kIo, with the path.
  static Result<std::shared_ptr<ChunkedBlob>> open(const std::string& path, uint64_t bytes);
  /// A finished one, whose digest has been compared.
  static std::shared_ptr<ChunkedBlob> whole(const std::string& path, uint64_t bytes);
  ~ChunkedBlob();
  ChunkedBlob(const ChunkedBlob&) = delete;
  ChunkedBlob& operator=(const ChunkedBlob&) = delete;

  uint64_t bytes() const { return bytes_; }
  /// Of each chunk.
  std::string states() const;
  Status write(uint64_t at, std::string_view bytes) const;
  Status put(size_t chunk, char state);
  /// Errors: kIo; kNotFound: the file is no more, or shorter.
  Result<std::string> read(size_t chunk) const;

  /// Of all bytes. Errors: as read().
  Result<std::string> digest() const;
  Status finish();  ///< onto the disk, and under its name
  void remove() const;

 private:
  ChunkedBlob(std::string path, uint64_t bytes, std::string states, int fd);
  Error failed() const;
  std::string unfinished() const { return path_ + ".chunks"; }

  const std::string path_;
  const uint64_t bytes_;
  const int fd_;  // of the unfinished file; -1: finished from the start
  mutable Mutex mutex_;
  std::string states_ SERIN_GUARDED_BY(mutex_);
};

}  // namespace serin::registry
