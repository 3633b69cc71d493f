// client.cc: whole requests and answers over the streams of Upstream. One Upstream for each origin.

#include "runtime/net/client.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "runtime/net/client/client_errors.h"
#include "runtime/net/io/io_loop.h"
#include "runtime/net/message/message_writer.h"
#include "runtime/net/message/whole_body.h"
#include "runtime/net/upstream.h"

namespace serin::net {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

struct Client::State {
  Loop& loop;
  ClientOptions options;
  std::map<Origin, Upstream> upstreams;
  std::unordered_set<std::shared_ptr<Call::State>> calls;  // under way
};

/// One request from send() to its callback.
struct Call::State final : AnswerHandler, std::enable_shared_from_this<Call::State> {
  void start(bool fresh);
  void write();
  void end(Result<Response> result);

  void on_answer(Head& head) override {
    response.status = head.status;
    response.headers = std::move(head.headers);
    response.close = !head.keep_alive;
    answer.take();
  }
  std::span<char> body_room(std::optional<uint64_t> left) override { return answer.room(left); }
  void body_filled(size_t bytes) override { answer.filled(bytes); }
  void on_trailers(Headers& trailers) override { response.trailers = std::move(trailers); }
  void on_progress(bool end) override;
  void on_writable() override { write(); }
  void on_failure(const Failure& failure) override;

  std::weak_ptr<Client::State> client;
  Origin origin;
  Outgoing request;
  Client::Callback callback;  // empty once called or cancelled
  Clock::time_point deadline;
  ClientStream* stream = nullptr;
  size_t written = 0;  // of the request's body
  Response response;
  WholeBody answer;  // its body
  bool retried = false;
};

void Call::State::start(bool fresh) {
  const auto owner = client.lock();
  Upstream& upstream = owner->upstreams.try_emplace(origin, owner->loop, origin, owner->options).first->second;
  const std::string_view body = request.body ? std::string_view(*request.body) : std::string_view();
  written = 0;
  response = Response();
  stream = &upstream.open(*this, deadline, fresh);
  stream->begin_request({.method = request.method, .target = request.target, .headers = request.headers, .length = body.size()});
  write();
}

void Call::State::write() {
  const std::string_view body = request.body ? std::string_view(*request.body) : std::string_view();
  written += stream->write(body.substr(written), /*last=*/true);
}

void Call::State::on_progress(bool last) {
  if (!last) return;
  response.body = answer.take();
  end(std::move(response));
}

void Call::State::on_failure(const Failure& failure) {
  if (failure.stale && !std::exchange(retried, true)) return start(/*fresh=*/true);  // its pool mates are likely as stale
  end(Error{failure.code, authority(origin) + ": " + std::string(failure.what)});
}

void Call::State::end(Result<Response> result) {
  const auto self = shared_from_this();  // the callback may destroy the Client
  stream = nullptr;
  if (const auto owner = client.lock()) owner->calls.erase(self);
  if (const auto wanted = std::exchange(callback, nullptr)) wanted(std::move(result));
}

void Call::cancel() {
  if (!state_) return;
  const auto state = state_;
  state->callback = nullptr;
  if (ClientStream* stream = std::exchange(state->stream, nullptr)) {
    stream->cancel();
    if (const auto owner = state->client.lock()) owner->calls.erase(state);
  }
}

Client::Client(Loop& loop, ClientOptions options)
    : state_(std::make_shared<State>(State{.loop = loop, .options = std::move(options), .upstreams = {}, .calls = {}})) {}

Client::~Client() {
  for (const auto& call : std::exchange(state_->calls, {})) {
    call->callback = nullptr;
    call->stream = nullptr;
  }
}

Call Client::send(const Origin& origin, Outgoing request, std::chrono::nanoseconds timeout, Callback callback) {
  auto call = std::make_shared<Call::State>();
  call->client = state_;
  call->origin = origin;
  call->request = std::move(request);
  call->callback = std::move(callback);
  call->deadline = Clock::now() + std::min(timeout, kLongestCall);
  state_->calls.insert(call);
  if (valid_request_line(call->request.method, call->request.target)) {
    call->start(/*fresh=*/false);
  } else {
    state_->loop.post([call] { call->end(Error{Code::kInvalidArgument, std::string(kBadRequestLine)}); });
  }
  return Call(std::move(call));
}

size_t Client::open_connections() const {
  size_t count = 0;
  for (const auto& [origin, upstream] : state_->upstreams) count += upstream.connections();
  return count;
}

}  // namespace serin::net
