// audit_stream.h: the audit log as JSON lines on a file descriptor (standard output), for log collectors: who, what, why.
//
//   {"audit":"change","id":7,"time":"2026-02-03T04:05:06.789Z","service":"digits","rollout":"digits-3","event":"rolled_back","actor":"router", ...}
//   {"audit":"refused","time":"...","actor":"grafana","peer":"192.0.2.7:4711","method":"POST","path":"/v1/rollouts/digits:abort","status":403, ...}
//
// A change is written after it is in the store, at least once across restarts: how far it got is kept there. A reader that stands still holds
// nobody up: what it did not take waits in the store.
#pragma once

#include <string>

#include "router/store/store.h"
#include "runtime/base/result.h"

namespace serin::router {

/// What was asked for and not done.
struct Refusal {
  std::string actor, peer, method, path;
  int status = 0;
  std::string error;
};

/// follow() belongs to one thread; refused() may be called from any.
class AuditStream {
 public:
  explicit AuditStream(int descriptor) : descriptor_(descriptor) {}

  /// Writes what the store has and was not written yet. True: all of it; false: the reader takes no more just now.
  Result<bool> follow(store::Store& store);
  /// Lost where the reader stands still: a request that was refused changed nothing.
  void refused(const Refusal& refusal) const;

 private:
  bool write(std::string line) const;

  const int descriptor_;
  int64_t seen_ = -1;  // id of the last entry written; -1: the store knows
};

}  // namespace serin::router
