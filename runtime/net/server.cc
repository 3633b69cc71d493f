// server.cc: the listening socket and the life of a server as a whole; what happens on one connection is connection.cc.
//
// The socket is accepted on io thread 0 and handed, as a bare descriptor, to the thread with the fewest connections. When descriptors run out
// (EMFILE) accepting pauses instead of spinning: the kernel's backlog holds who comes meanwhile.

#include "runtime/net/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "runtime/base/log.h"
#include "runtime/net/connection.h"
#include "runtime/net/listener.h"
#include "runtime/net/loop_impl.h"
#include "runtime/net/message_writer.h"

namespace serin::net {
namespace {

using boost::system::error_code;
namespace asio = boost::asio;
using Tcp = asio::ip::tcp;

constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr int kAcceptsPerWake = 64;  // then the other connections of this thread have their turn
constexpr int kBacklog = 4096;

std::string print(const Tcp::endpoint& endpoint) { return authority({endpoint.address().to_string(), endpoint.port()}); }

Error listen_error(const ServerOptions& options, const error_code& failure) {
  const std::string message =
      "listener '" + options.name + "': cannot listen on " + authority({options.address, options.port}) + ": " + failure.message();
  if (failure == asio::error::address_in_use) return {Code::kAlreadyExists, message};
  if (failure == asio::error::access_denied) return {Code::kPermissionDenied, message};
  if (failure == boost::system::errc::address_not_available) return {Code::kInvalidArgument, message};
  return {Code::kIo, message};
}

}  // namespace

struct Server::State {
  State(Loops& loops, ServerOptions options, Handler handler)
      : listener(std::make_shared<Listener>(loops, std::move(options), std::move(handler))),
        acceptor(std::make_shared<Acceptor>(listener, loops.loop(0))) {}

  /// Shared with its pending operations. Runs on io thread 0.
  struct Acceptor : std::enable_shared_from_this<Acceptor> {
    Acceptor(std::shared_ptr<Listener> shared_listener, Loops::Loop& first)
        : listener(std::move(shared_listener)), socket(first.io), pause(first.io) {}

    Status listen();
    void wait();
    /// False: descriptors have run out.
    bool accept_waiting();
    void hand_over(int descriptor, const Tcp::endpoint& peer);
    void close();

    const std::shared_ptr<Listener> listener;
    Tcp::acceptor socket;
    asio::steady_timer pause;
    uint16_t port = 0;
    bool open = true;
  };

  const std::shared_ptr<Listener> listener;
  const std::shared_ptr<Acceptor> acceptor;
};

Status Server::State::Acceptor::listen() {
  const ServerOptions& options = listener->options;
  error_code failure;
  const auto address = asio::ip::make_address(options.address == "localhost" ? "127.0.0.1" : options.address, failure);
  if (failure) return Error{Code::kInvalidArgument, "listener '" + options.name + "': '" + options.address + "' is not an IP address"};
  const Tcp::endpoint endpoint(address, options.port);
  socket.open(endpoint.protocol(), failure);
  if (!failure) socket.set_option(Tcp::acceptor::reuse_address(true), failure);
  if (!failure) socket.bind(endpoint, failure);
  if (!failure) socket.listen(kBacklog, failure);
  if (!failure) socket.native_non_blocking(true, failure);
  if (failure) return listen_error(options, failure);
  port = socket.local_endpoint().port();
  return {};
}

void Server::State::Acceptor::wait() {
  socket.async_wait(Tcp::acceptor::wait_read, [self = shared_from_this()](const error_code& failure) {
    if (failure || !self->open) return;
    if (self->accept_waiting()) return self->wait();
    log::warning("{}: out of file descriptors, new connections wait", self->listener->options.name);
    self->pause.expires_after(kAcceptPause);
    self->pause.async_wait([self](const error_code& cancelled) {
      if (!cancelled && self->open) self->wait();
    });
  });
}

bool Server::State::Acceptor::accept_waiting() {
  for (int i = 0; i < kAcceptsPerWake; ++i) {
    Tcp::endpoint peer;
    socklen_t length = static_cast<socklen_t>(peer.capacity());
    const int descriptor = ::accept4(socket.native_handle(), peer.data(), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
    }
    peer.resize(length);
    hand_over(descriptor, peer);
  }
  return true;
}

void Server::State::Acceptor::hand_over(int descriptor, const Tcp::endpoint& peer) {
  if (listener->connections.load() >= listener->options.limits.connections) {
    constexpr std::string_view kFull =
        "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n";
    [[maybe_unused]] const ssize_t sent = ::send(descriptor, kFull.data(), kFull.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::close(descriptor);
    listener->count_bad_request(*listener->per_loop[0], "too_many_connections");
    return;
  }
  size_t index = 0;
  for (size_t i = 1; i < listener->per_loop.size(); ++i)
    if (listener->per_loop[i]->count.load() < listener->per_loop[index]->count.load()) index = i;
  Listener::PerLoop& there = *listener->per_loop[index];
  listener->connection_opened(there);

  Loops::Loop& loop = listener->loops.loop(index);
  const auto adopt = [shared = listener, &loop, &there, descriptor, peer] {
    Tcp::socket accepted(loop.io);
    error_code failure;
    accepted.assign(peer.protocol(), descriptor, failure);
    if (failure) {  // the kernel has no memory to watch it
      ::close(descriptor);
      return shared->connection_closed(there);
    }
    auto connection = std::make_shared<Connection>(shared, loop, std::move(accepted), print(peer));
    there.connections.insert(connection);
    connection->start();
  };
  if (&loop == current_loop()) return adopt();
  asio::post(loop.io, adopt);
}

void Server::State::Acceptor::close() {
  if (!open) return;
  open = false;
  accept_waiting();  // who is in the backlog has been promised an answer
  error_code ignored;
  socket.close(ignored);
  pause.cancel();
}

Result<std::unique_ptr<Server>> Server::start(Loops& loops, ServerOptions options, Handler handler) {
  auto state = std::make_unique<State>(loops, std::move(options), std::move(handler));
  SERIN_CHECK(state->acceptor->listen());
  asio::post(loops.loop(0).io, [acceptor = state->acceptor] { acceptor->wait(); });
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

uint16_t Server::port() const { return state_->acceptor->port; }

bool Server::drain(std::chrono::milliseconds deadline) {
  Listener& listener = *state_->listener;
  listener.draining.store(true);
  run_on(listener.loops.loop(0), [this] { state_->acceptor->close(); });
  for (size_t i = 0; i < listener.per_loop.size(); ++i) {
    run_on(listener.loops.loop(i), [&there = *listener.per_loop[i]] {
      const std::vector<std::shared_ptr<Connection>> all(there.connections.begin(), there.connections.end());  // drain() changes the set
      for (const auto& connection : all) connection->drain();
    });
  }
  std::unique_lock lock(listener.mutex);
  return listener.closed.wait_for(lock, deadline, [&listener] { return listener.connections.load() == 0; });
}

Server::~Server() {
  Listener& listener = *state_->listener;
  run_on(listener.loops.loop(0), [this] { state_->acceptor->close(); });
  for (size_t i = 0; i < listener.per_loop.size(); ++i) {
    run_on(listener.loops.loop(i), [&there = *listener.per_loop[i]] {
      const std::vector<std::shared_ptr<Connection>> all(there.connections.begin(), there.connections.end());
      for (const auto& connection : all) connection->close();
    });
  }
}

}  // namespace serin::net
