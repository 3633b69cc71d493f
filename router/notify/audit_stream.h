// audit_stream.h: The audit log as JSON lines on a file descriptor (standard output), for log collectors.
//
//   {"audit":"change","id":7,"time":"2026-02-03T04:05:06.789Z","service":"digits","rollout":"digits-3","event":"rolled_back", ...}
//   {"audit":"refused","time":"...","actor":"grafana","peer":"192.0.2.7:4711","method":"POST","path":"/v1/...","status":403, ...}
//
// A change is written after it is in the store, at least once across restarts: the store keeps the position. A reader that stops reading
// delays nothing, because unread entries stay in the store.
#pragma once

#include <string>

#include "router/store/store.h"
#include "runtime/base/result.h"

namespace serin::router {

/// A request that was refused.
struct Refusal {
  std::string actor, peer, method, path;
  int status = 0;
  std::string error;
};

/// follow() belongs to one thread; refused() may be called from any.
class AuditStream {
 public:
  explicit AuditStream(int descriptor) : descriptor_(descriptor) {}

  /// Writes the stored entries that are not yet written. True: all of them; false: the reader accepts no more at the moment.
  Result<bool> follow(store::Store& store);
  /// The line is lost if the reader has stopped reading: a refused request changed nothing.
  void refused(const Refusal& refusal) const;

 private:
  bool write(std::string line) const;

  const int descriptor_;
  int64_t seen_ = -1;  // id of the last entry written; -1: read it from the store
};

}  // namespace serin::router
