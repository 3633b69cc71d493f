// tls_watch.h: reloads certificate files when they change, and exports their expiry.
//
//   net::TlsWatch watch({data_tls, admin_tls}, registry);     // checks once a second, on its own thread
//   watch.refresh();                                          // now: SIGHUP
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "kernels/mutex.h"
#include "runtime/base/metrics.h"
#include "runtime/net/tls.h"

namespace serin::net {

class TlsWatch {
 public:
  /// Ignores null contexts. Metrics: serin_tls_certificate_expiry_seconds, serin_tls_certificate_stale {file}
  TlsWatch(std::vector<std::shared_ptr<TlsContext>> contexts, metrics::Registry& metrics);
  ~TlsWatch();
  void refresh();

 private:
  struct Watched {
    std::shared_ptr<TlsContext> context;
    std::shared_ptr<metrics::Gauge> expiry, stale;  // expiry: null if it shows no certificate
  };
  void run();
  void look(bool at_once);

  std::vector<Watched> watched_;
  Mutex mutex_;
  Condition wake_;
  bool ending_ SERIN_GUARDED_BY(mutex_) = false;
  bool at_once_ SERIN_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace serin::net
