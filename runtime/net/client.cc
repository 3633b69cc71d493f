// client.cc: which connection a request takes. Kept ones are taken newest first, so that a pool that has become too large drains by idle_timeout.

#include "runtime/net/client.h"

#include <boost/asio/post.hpp>
#include <future>
#include <map>
#include <unordered_set>

#include "runtime/net/client_connection.h"
#include "runtime/net/loop_impl.h"
#include "runtime/net/message_writer.h"

namespace serin::net {
namespace {

constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365);  // so that sums of times do not overflow

}  // namespace

using Kept = std::vector<std::shared_ptr<ClientConnection>>;

struct Client::State final : ClientConnection::Owner, std::enable_shared_from_this<Client::State> {
  explicit State(ClientOptions client_options) : options(client_options) {}

  void start(std::shared_ptr<Call::State> call, bool fresh);
  void answered(const std::shared_ptr<ClientConnection>& connection, std::shared_ptr<Call::State> call, Result<Response> response,
                bool kept_open) override;
  void stale(const std::shared_ptr<ClientConnection>& connection, std::shared_ptr<Call::State> call) override;
  void lost(const std::shared_ptr<ClientConnection>& connection) override;

  const ClientOptions options;
  std::unordered_set<std::shared_ptr<ClientConnection>> all;  // also those with a call
  std::map<Origin, Kept> kept;
};

void Client::State::start(std::shared_ptr<Call::State> call, bool fresh) {
  if (const auto pool = kept.find(call->origin); !fresh && pool != kept.end() && !pool->second.empty()) {
    call->connection = std::move(pool->second.back());
    pool->second.pop_back();
    return call->connection->send(call);
  }
  call->connection = std::make_shared<ClientConnection>(current_loop()->io, *this, options, call->origin);
  all.insert(call->connection);
  call->connection->connect(call);
}

void Client::State::answered(const std::shared_ptr<ClientConnection>& connection, std::shared_ptr<Call::State> call,
                             Result<Response> response, bool kept_open) {
  const auto alive = shared_from_this();  // the callback may destroy the Client
  call->connection.reset();
  if (kept_open) {
    Kept& pool = kept[connection->origin()];
    if (pool.size() < options.kept_per_origin) {
      pool.push_back(connection);
    } else {
      connection->close();
      kept_open = false;
    }
  }
  if (!kept_open) all.erase(connection);
  if (const auto callback = std::exchange(call->callback, nullptr)) callback(std::move(response));
}

void Client::State::stale(const std::shared_ptr<ClientConnection>& connection, std::shared_ptr<Call::State> call) {
  all.erase(connection);
  call->retried = true;
  start(std::move(call), /*fresh=*/true);  // its pool mates are likely as stale
}

void Client::State::lost(const std::shared_ptr<ClientConnection>& connection) {
  all.erase(connection);
  const auto pool = kept.find(connection->origin());
  if (pool == kept.end()) return;
  std::erase(pool->second, connection);
}

void Call::cancel() {
  if (!state_) return;
  state_->callback = nullptr;
  if (const auto connection = std::exchange(state_->connection, nullptr)) connection->abandon();
}

Client::Client(ClientOptions options) : state_(std::make_shared<State>(options)) {}

Client::~Client() {
  for (const auto& connection : std::exchange(state_->all, {})) connection->close();
  state_->kept.clear();
}

Call Client::send(const Origin& origin, Outgoing request, std::chrono::nanoseconds timeout, Callback callback) {
  auto call = std::make_shared<Call::State>();
  call->origin = origin;
  call->request = std::move(request);
  call->callback = std::move(callback);
  call->deadline = Deadline::Clock::now() + std::min(timeout, kLongest);
  if (valid_request_line(call->request)) {
    state_->start(call, /*fresh=*/false);
  } else {
    boost::asio::post(current_loop()->io, [call] {
      const Error error{Code::kInvalidArgument, "the method or target of a request is not what HTTP allows"};
      if (const auto wanted = std::exchange(call->callback, nullptr)) wanted(error);
    });
  }
  return Call(std::move(call));
}

size_t Client::open_connections() const { return state_->all.size(); }

Result<Response> fetch(const Origin& origin, Outgoing request, std::chrono::nanoseconds timeout) {
  Loops loops(1);
  std::promise<Result<Response>> promise;
  std::unique_ptr<Client> client;
  loops.post(0, [&] {
    client = std::make_unique<Client>(ClientOptions{.connect_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(timeout)});
    client->send(origin, std::move(request), timeout, [&promise](Result<Response> response) { promise.set_value(std::move(response)); });
  });
  auto response = promise.get_future().get();
  run_on(loops.loop(0), [&client] { client.reset(); });
  return response;
}

}  // namespace serin::net
