// listener.h: the state that the connections of one server share. For the .cc files of net only.
//
// Each io thread has its own part; the threads share only counts and one flag.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <unordered_set>
#include <vector>

#include "kernels/mutex.h"
#include "runtime/net/loop.h"
#include "runtime/net/message/refusal.h"
#include "runtime/net/server_options.h"
#include "runtime/net/stream.h"

namespace serin::net {

/// A connection as its server sees it. Used on its io thread only.
class ServedConnection {
 public:
  /// Ends once the requests in progress are answered.
  virtual void drain() = 0;
  virtual void close() = 0;

 protected:
  ~ServedConnection() = default;
};

struct Listener {
  /// Only its io thread uses it, except `count`.
  struct PerLoop {
    std::unordered_set<std::shared_ptr<ServedConnection>> connections;
    std::vector<std::shared_ptr<metrics::Counter>> answers;  // by status - 100
    std::map<std::string_view, std::shared_ptr<metrics::Counter>> bad_requests;
    std::chrono::steady_clock::time_point complained;  // when a failed handshake was last logged
    std::atomic<size_t> count{0};                      // also those on their way from the accepting thread
  };

  Listener(Loops& io_threads, ServerOptions server_options, HandlerFactory handler_factory, bool handler_wants_whole_bodies);

  void count_answer(PerLoop& here, int status);
  void count_bad_request(PerLoop& here, std::string_view reason);
  void connection_opened(PerLoop& here);
  void connection_closed(PerLoop& here);

  // Constant after construction.
  Loops& loops;
  const ServerOptions options;
  const HandlerFactory make_handler;
  const bool whole_bodies;  ///< then every body has a limit, also in gRPC calls
  std::vector<std::unique_ptr<PerLoop>> per_loop;
  std::shared_ptr<metrics::Gauge> connections_gauge;

  std::atomic<bool> draining{false};
  std::atomic<size_t> connections{0};
  Mutex mutex;
  Condition closed SERIN_GUARDED_BY(mutex);  // there are no connections left
};

}  // namespace serin::net
