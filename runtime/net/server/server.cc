// server.cc: the listening socket and the life of a server as a whole; what happens on one connection is connection.cc.
//
// The socket is accepted on io thread 0 and handed, as a bare descriptor, to the thread with the fewest connections. When descriptors run out
// (EMFILE) accepting pauses instead of spinning: the kernel's backlog holds who comes meanwhile.

#include "runtime/net/server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/log.h"
#include "runtime/net/http1/connection.h"
#include "runtime/net/io/io_loop.h"
#include "runtime/net/io/socket.h"
#include "runtime/net/message/listener.h"
#include "runtime/net/message/message_writer.h"
#include "runtime/net/server/tls_accept.h"
#include "runtime/net/server/whole_request.h"

namespace serin::net {
namespace {

constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr int kAcceptsPerWake = 64;  // then the other connections of this thread have their turn

Error listen_error(const ServerOptions& options, int failure) {
  const std::string message =
      "listener '" + options.name + "': cannot listen on " + authority({options.address, options.port}) + ": " + std::strerror(failure);
  if (failure == EADDRINUSE) return {Code::kAlreadyExists, message};
  if (failure == EACCES) return {Code::kPermissionDenied, message};
  if (failure == EADDRNOTAVAIL) return {Code::kInvalidArgument, message};
  return {Code::kIo, message};
}

}  // namespace

/// Shared with what it posts. Runs on io thread 0.
struct Server::State {
  struct Acceptor;

  State(Loops& loops, ServerOptions options, HandlerFactory factory, bool whole_bodies)
      : listener(std::make_shared<Listener>(loops, std::move(options), std::move(factory), whole_bodies)),
        acceptor(std::make_shared<Acceptor>(listener, io(loops.loop(0)))) {}

  const std::shared_ptr<Listener> listener;
  const std::shared_ptr<Acceptor> acceptor;
};

struct Server::State::Acceptor final : Watcher, std::enable_shared_from_this<Acceptor> {
  Acceptor(std::shared_ptr<Listener> shared_listener, IoLoop& first) : listener(std::move(shared_listener)), loop(first) {}

  Status listen();
  Status adopt_listening();
  void watch();
  void on_ready(uint32_t events) override;
  /// False: descriptors have run out.
  bool accept_waiting(int most);
  void hand_over(int descriptor, const Address& peer);
  void close();

  const std::shared_ptr<Listener> listener;
  IoLoop& loop;
  Socket socket;
  Timer pause;
  uint16_t port = 0;
};

Status Server::State::Acceptor::listen() {
  const ServerOptions& options = listener->options;
  if (options.listening >= 0) return adopt_listening();
  auto address = Address::parse(options.address == "localhost" ? "127.0.0.1" : options.address, options.port);
  if (!address) return Error{Code::kInvalidArgument, "listener '" + options.name + "': '" + options.address + "' is not an IP address"};
  if (const int failure = Socket::listen(*address, socket)) return listen_error(options, failure);
  ::getsockname(socket.descriptor(), address->get(), &address->size);
  port = address->port();
  return {};
}

Status Server::State::Acceptor::adopt_listening() {
  socket = Socket(listener->options.listening);
  Address address;
  address.size = sizeof address.storage;
  int listens = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0 ||
      ::getsockname(socket.descriptor(), address.get(), &address.size) != 0 || ::fcntl(socket.descriptor(), F_SETFL, O_NONBLOCK) != 0) {
    return Error{Code::kInvalidArgument, "listener '" + listener->options.name + "': the socket that was handed over does not listen"};
  }
  port = address.port();
  return {};
}

void Server::State::Acceptor::watch() {
  if (!loop.watch(socket.descriptor(), *this)) log::error("{}: the listening socket cannot be watched", listener->options.name);
}

void Server::State::Acceptor::on_ready(uint32_t) {
  if (!socket.open()) return;
  if (accept_waiting(kAcceptsPerWake)) return;
  log::warning("{}: out of file descriptors, new connections wait", listener->options.name);
  pause = loop.after(kAcceptPause, [this] { on_ready(0); });
}

bool Server::State::Acceptor::accept_waiting(int most) {
  for (int i = 0; i < most; ++i) {
    Address peer;
    peer.size = sizeof peer.storage;
    const int descriptor = ::accept4(socket.descriptor(), peer.get(), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
      hand_over(descriptor, peer);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
    }
  }
  loop.post([self = shared_from_this()] { self->on_ready(0); });  // there may be more
  return true;
}

void Server::State::Acceptor::hand_over(int descriptor, const Address& peer) {
  if (listener->connections.load() >= listener->options.limits.connections) {
    constexpr std::string_view kFull =
        "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n";
    if (!listener->options.tls) (void)send_to(descriptor, kFull);
    ::close(descriptor);
    listener->count_bad_request(*listener->per_loop[0], "too_many_connections");
    return;
  }
  size_t index = 0;
  for (size_t i = 1; i < listener->per_loop.size(); ++i)
    if (listener->per_loop[i]->count.load() < listener->per_loop[index]->count.load()) index = i;
  Listener::PerLoop& there = *listener->per_loop[index];
  listener->connection_opened(there);

  IoLoop& owner = io(listener->loops.loop(index));
  const auto adopt = [shared = listener, &owner, &there, descriptor, name = authority({peer.host(), peer.port()})] {
    const auto begin = [&there](const auto& connection) {
      there.connections.insert(connection);
      connection->start();
    };
    if (shared->options.tls) return begin(std::make_shared<TlsAccept>(shared, owner, Socket(descriptor), name));
    begin(std::make_shared<Connection>(shared, owner, Socket(descriptor), name));
  };
  if (owner.is_here()) return adopt();
  owner.post(adopt);
}

void Server::State::Acceptor::close() {
  if (!socket.open()) return;
  accept_waiting(kListenBacklog);  // who is in the backlog has been promised an answer
  loop.unwatch(socket.descriptor());
  socket.close();
  pause.cancel();
  loop.retire(shared_from_this());
}

Result<std::unique_ptr<Server>> Server::start(Loops& loops, ServerOptions options, Handler handler) {
  const auto shared = std::make_shared<const WholeHandler>(
      WholeHandler{options, std::move(handler), std::vector<Recycler<Responder::State>>(loops.size())});
  const auto collect = [shared](ServerStream& stream) { return std::make_shared<WholeRequest>(shared, stream); };
  return start(std::make_unique<State>(loops, std::move(options), collect, /*whole_bodies=*/true));
}

Result<std::unique_ptr<Server>> Server::start_streaming(Loops& loops, ServerOptions options, HandlerFactory factory) {
  return start(std::make_unique<State>(loops, std::move(options), std::move(factory), /*whole_bodies=*/false));
}

Result<std::unique_ptr<Server>> Server::start(std::unique_ptr<State> state) {
  SERIN_CHECK(state->acceptor->listen());
  state->listener->loops.post(0, [acceptor = state->acceptor] { acceptor->watch(); });
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

uint16_t Server::port() const { return state_->acceptor->port; }
int Server::listening() const { return state_->acceptor->socket.descriptor(); }

bool Server::drain(std::chrono::milliseconds deadline) {
  Listener& listener = *state_->listener;
  listener.draining.store(true);
  run_on(listener.loops.loop(0), [this] { state_->acceptor->close(); });
  for (size_t i = 0; i < listener.per_loop.size(); ++i) {
    run_on(listener.loops.loop(i), [&there = *listener.per_loop[i]] {
      const std::vector<std::shared_ptr<ServedConnection>> all(there.connections.begin(),
                                                               there.connections.end());  // drain() changes the set
      for (const auto& connection : all) connection->drain();
    });
  }
  const MutexLock lock(listener.mutex);
  return listener.closed.wait_for(listener.mutex, deadline, [&listener] { return listener.connections.load() == 0; });
}

Server::~Server() {
  Listener& listener = *state_->listener;
  run_on(listener.loops.loop(0), [this] { state_->acceptor->close(); });
  for (size_t i = 0; i < listener.per_loop.size(); ++i) {
    run_on(listener.loops.loop(i), [&there = *listener.per_loop[i]] {
      const std::vector<std::shared_ptr<ServedConnection>> all(there.connections.begin(), there.connections.end());
      for (const auto& connection : all) connection->close();
    });
  }
}

}  // namespace serin::net
