// ledger.h: The changes of one service that are not on disk yet.
//
//   const uint64_t number = ledger.add();                    // the state has changed: its number
//   const Ledger::Batch batch = ledger.batch(record, true);  // everything unsaved, to be written without the service's lock
//   ledger.written(batch);                                   // or failed(batch, error)
//
// Not thread-safe: ServiceControl locks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "router/store/store.h"
#include "runtime/base/result.h"

namespace serin::router {

class Ledger {
 public:
  struct Batch {
    uint64_t change = 0;  ///< the number of the latest change in it
    store::Change what;
  };

  /// The state has changed. Returns the number of the change.
  uint64_t add() { return ++change_; }
  // Lines of the audit log and verdicts; bounded while the store cannot be written.
  void note(store::HistoryEntry entry);
  void note(store::VerdictEntry verdict);

  uint64_t latest() const { return change_; }
  uint64_t saved() const { return saved_; }
  bool all_saved() const { return saved_ == change_; }
  /// The change is on disk, or an attempt to write it has failed.
  bool tried(uint64_t change) const { return saved_ >= change || failed_ >= change; }
  /// kUnavailable if the change is not on disk.
  Status outcome(uint64_t change) const;
  /// kUnavailable if the last attempt failed: nothing that may bring traffic to a canary begins while it could not be written down.
  Status check() const;

  /// `shared`: to be agreed on with the other routers.
  Batch batch(store::ServiceRecord record, bool shared) const;
  void written(const Batch& batch);
  void failed(const Batch& batch, const Error& error);

 private:
  uint64_t change_ = 0, saved_ = 0, failed_ = 0;
  std::optional<Error> error_;  // of the last attempt
  std::vector<store::HistoryEntry> history_;
  std::vector<store::VerdictEntry> verdicts_;
};

}  // namespace serin::router
