// listener.cc: counts the connections and requests of a server. A counter is looked up once per io thread and status; after that it is one
// relaxed add.

#include "runtime/net/message/listener.h"

namespace serin::net {

Listener::Listener(Loops& io_threads, ServerOptions server_options, HandlerFactory handler_factory, bool handler_wants_whole_bodies)
    : loops(io_threads),
      options(std::move(server_options)),
      make_handler(std::move(handler_factory)),
      whole_bodies(handler_wants_whole_bodies) {
  for (size_t i = 0; i < loops.size(); ++i) per_loop.push_back(std::make_unique<PerLoop>());
  if (options.metrics) {
    connections_gauge = options.metrics->gauge("serin_http_connections", "Open client connections.", {{"listener", options.name}});
  }
}

void Listener::count_answer(PerLoop& here, int status) {
  if (!options.metrics) return;
  if (here.answers.empty()) here.answers.resize(500);
  auto& counter = here.answers[static_cast<size_t>(status - 100)];
  if (!counter) {
    counter = options.metrics->counter("serin_http_requests_total", "Requests answered.",
                                       {{"listener", options.name}, {"code", std::to_string(status)}});
  }
  counter->add();
}

void Listener::count_bad_request(PerLoop& here, std::string_view reason) {
  if (!options.metrics) return;
  auto& counter = here.bad_requests[reason];
  if (!counter) {
    counter = options.metrics->counter("serin_http_bad_requests_total", "Requests refused before any handler saw them.",
                                       {{"listener", options.name}, {"reason", std::string(reason)}});
  }
  counter->add();
}

void Listener::connection_opened(PerLoop& here) {
  here.count.fetch_add(1);
  connections.fetch_add(1);
  if (connections_gauge) connections_gauge->add(1);
}

void Listener::connection_closed(PerLoop& here) {
  here.count.fetch_sub(1);
  if (connections_gauge) connections_gauge->add(-1);
  if (connections.fetch_sub(1) != 1) return;
  const MutexLock lock(mutex);
  closed.notify_all();
}

}  // namespace serin::net
