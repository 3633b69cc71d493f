// observer.h: What the controller reports to the rooms above it. It knows none of them: router/app puts one observer in.
//
// The observer passes the reports on to replicas, webhooks, the audit stream and the Prometheus queries (router/app/steering.h).
#pragma once

#include <optional>

#include "router/control/service_status.h"

namespace serin::router {

class Observer {
 public:
  /// A service may have reached a verdict. Called before the change is saved, on the thread that saw it: the data path's, too.
  virtual void on_change() = 0;
  /// A command has taken effect, and may not be saved yet.
  virtual void on_command() = 0;
  /// The controller's thread has saved the unsaved changes. `wrote`: there was something to save.
  virtual void on_saved(bool wrote) = 0;
  /// For status answers; nothing if this router runs alone.
  virtual std::optional<ReplicasStatus> replicas() const = 0;

 protected:
  ~Observer() = default;
};

}  // namespace serin::router
