// failing_vfs.h: a file system under SQLite that fails at one chosen call: a full disk at the n-th write, a disk that cannot confirm the n-th sync.
//
//   FailingVfs disk;                               // every database opened while it lives lies on it
//   disk.fail_after(FailingVfs::Call::kWrite, 3, SQLITE_FULL);
#pragma once

#include <sqlite3.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace serin::store {

class FailingVfs {
 public:
  enum class Call : uint8_t { kWrite, kSync, kTruncate, kOpen };

  FailingVfs();
  ~FailingVfs();
  FailingVfs(const FailingVfs&) = delete;
  FailingVfs& operator=(const FailingVfs&) = delete;

  /// The call after `good` more of its kind fails with that code, and so do all later ones until heal().
  void fail_after(Call call, int good, int code);
  void heal();
  /// Calls of this kind since the last fail_after() or heal().
  int calls(Call call) const { return counts_[static_cast<size_t>(call)]; }

  /// What SQLite's method should answer; SQLITE_OK: do it.
  int outcome(Call call);
  sqlite3_vfs* below() const { return below_; }

 private:
  sqlite3_vfs* below_;
  sqlite3_vfs vfs_{};
  std::array<std::atomic<int>, 4> counts_{};
  Call failing_ = Call::kWrite;
  int good_ = 0;
  int code_ = SQLITE_OK;
};

}  // namespace serin::store
