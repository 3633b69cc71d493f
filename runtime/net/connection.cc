// connection.cc: a state machine that is driven from one place, process(), until it has to wait.
//
// One request is in progress at a time; what a client sends ahead waits in the buffer, and once that is full in the socket, so pipelined answers
// are in order by construction. While the handler works a read stays pending: that is how a client that hangs up is noticed. A client that ends
// only its own direction (half-close) counts as gone, as it does for nginx.
//
// Every wait has a deadline but that for the handler, which has its own. Refusals always close: after one nobody knows where the next
// request would begin.

#include "runtime/net/connection.h"

#include <sys/socket.h>

#include <boost/asio/buffer.hpp>

#include "runtime/base/log.h"
#include "runtime/net/message_writer.h"
#include "runtime/net/target.h"

namespace serin::net {
namespace {

using boost::system::error_code;
namespace asio = boost::asio;

constexpr size_t kReadBytes = 4 * 1024;    // room for one read: most requests are smaller
constexpr size_t kAheadBytes = 16 * 1024;  // pipelined requests kept while one is in progress
constexpr std::chrono::milliseconds kLingerTime{2'000};
// For what an idle client sent before it could know that this server ends: longer than a round trip, shorter than an operator's patience.
constexpr std::chrono::milliseconds kDrainGrace{1'000};
constexpr std::string_view kAllowed = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

bool is_allowed(std::string_view method) {
  for (const std::string_view known : {"GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"})
    if (method == known) return true;
  return false;
}

HeadLimits head_limits(const Limits& limits) { return {limits.request_line_bytes, limits.header_bytes, limits.header_count}; }
BodyLimits body_limits(const Limits& limits) { return {.bytes = limits.body_bytes, .chunks = limits.chunks}; }

/// What is well-formed and still not served, whatever the handler.
std::optional<Refusal> unserved(const Head& head, const ServerOptions& options) {
  if (!is_allowed(head.method)) return Refusal{405, "method", "method '" + head.method + "' is not served here"};
  if (head.upgrade) return Refusal{501, "upgrade", "this server speaks HTTP/1.1 only: no upgrade to another protocol"};
  const std::string_view encoding = head.headers.get("content-encoding");
  if (!options.encoded_bodies && !encoding.empty() && !equal_ignoring_case(encoding, "identity")) {
    return Refusal{415, "content_encoding", "content-encoding '" + std::string(encoding) + "' is not understood; send the body as it is"};
  }
  return std::nullopt;
}

}  // namespace

Connection::Connection(std::shared_ptr<Listener> listener, Loops::Loop& loop, asio::ip::tcp::socket socket, std::string peer)
    : listener_(std::move(listener)),
      here_(*listener_->per_loop[loop.index]),
      loop_(loop),
      socket_(std::move(socket)),
      peer_(std::move(peer)),
      deadline_(loop.io),
      parser_(HeadParser::Kind::kRequest, head_limits(listener_->options.limits)),
      reader_(body_limits(listener_->options.limits)) {}

void Connection::start() {
  error_code ignored;  // a connection that is gone already shows it at the first read
  socket_.non_blocking(true, ignored);
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  expire(listener_->options.limits.header_timeout);
  process();
}

void Connection::process() {
  for (;;) {
    switch (state_) {
      case State::kHead:
        if (!process_head()) return read();
        break;
      case State::kBody:
        if (!process_body()) return read();
        break;
      case State::kAnswered: begin_write(); break;
      case State::kHandling:
        if (buffer_.size() < kAheadBytes) read();
        return;
      case State::kLingering: buffer_.consume(buffer_.size()); return read();
      case State::kWriting:
      case State::kClosed: return;
    }
  }
}

/// False: more bytes are needed.
bool Connection::process_head() {
  if (buffer_.size() == 0) return false;
  switch (parser_.feed(buffer_.data())) {
    case HeadParser::Step::kMore: return false;
    case HeadParser::Step::kRefused: refuse(parser_.refusal()); return true;
    case HeadParser::Step::kDone: break;
  }
  buffer_.consume(parser_.size());
  begin_request();
  parser_.reset();
  return true;
}

void Connection::begin_request() {
  Head& head = parser_.head();
  fresh_ = false;
  keep_alive_ = head.keep_alive;
  http10_ = head.minor_version == 0;
  head_only_ = head.method == "HEAD";
  request_ = Request();
  if (const auto refusal = unserved(head, listener_->options)) return refuse(*refusal);
  if (const auto refusal = decode_target(head.target, request_.path, request_.query)) return refuse(*refusal);
  request_.method = std::move(head.method);
  request_.target = std::move(head.target);
  request_.headers = std::move(head.headers);
  request_.peer = peer_;

  switch (reader_.begin(head.framing, head.content_length)) {
    case BodyReader::Step::kRefused: return refuse(reader_.refusal());
    case BodyReader::Step::kDone: return dispatch();
    case BodyReader::Step::kMore: break;
  }
  state_ = State::kBody;
  expire(listener_->options.limits.body_timeout);
  if (head.expects_continue && buffer_.size() == 0) {
    constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    error_code failure;
    if (socket_.write_some(asio::buffer(kContinue), failure) != kContinue.size()) close();  // 25 bytes always fit, unless it is gone
  }
}

/// False: more bytes are needed.
bool Connection::process_body() {
  if (buffer_.size() == 0) return false;
  size_t consumed = 0;
  const BodyReader::Step step = reader_.feed(buffer_.data(), consumed, request_.body);
  buffer_.consume(consumed);
  if (step == BodyReader::Step::kMore) return false;
  if (step == BodyReader::Step::kRefused) {
    refuse(reader_.refusal());
  } else {
    dispatch();
  }
  return true;
}

void Connection::dispatch() {
  state_ = State::kHandling;
  deadline_.clear();
  responder_ = std::make_shared<Responder::State>();
  responder_->loop = &loop_;
  responder_->connection = weak_from_this();
  Responder responder(responder_);
  if (request_.target == "*") {
    Response response;
    response.status = 204;
    response.headers.add("allow", kAllowed);
    in_handler_ = true;
    responder.send(std::move(response));
    in_handler_ = false;
    return;
  }
  in_handler_ = true;
  try {
    listener_->handler(std::move(request_), std::move(responder));
  } catch (const std::exception& e) {
    log::error("{}: the handler of a request threw: {}", listener_->options.name, e.what());
    answer(*responder_, json_error(500, "internal error"));
  }
  in_handler_ = false;
}

void Connection::answer(const Responder::State& responder, Response response) {
  if (state_ != State::kHandling || &responder != responder_.get()) return;
  response_ = std::move(response);
  responder_->on_cancel = nullptr;  // it may hold what holds the Responder
  state_ = State::kAnswered;
  if (!in_handler_) process();  // otherwise the one who called the handler goes on
}

void Connection::refuse(const Refusal& refusal) {
  listener_->count_bad_request(here_, refusal.reason);
  response_ = json_error(refusal.status, refusal.message);
  if (listener_->options.on_refusal) listener_->options.on_refusal(response_);
  if (refusal.status == 405) response_.headers.add("allow", kAllowed);
  response_.close = true;
  state_ = State::kAnswered;
}

void Connection::begin_write() {
  if (response_.status < 200 || response_.status > 599) {
    log::error("{}: an answer has status {}", listener_->options.name, response_.status);
    response_ = json_error(500, "internal error");
  }
  if (response_.close || listener_->draining.load(std::memory_order_relaxed)) keep_alive_ = false;
  out_.clear();
  written_ = 0;
  const auto kept = http10_ ? Persistence::kKeepAlive : Persistence::kImplied;
  write_response_head(response_, keep_alive_ ? kept : Persistence::kClose, out_);
  if (head_only_ || !status_has_body(response_.status)) response_.body.clear();
  if (continue_write()) return end_write();
  if (state_ != State::kClosed) state_ = State::kWriting;
}

/// False: the peer is slow and the rest goes out later, or the peer is gone.
bool Connection::continue_write() {
  const size_t head = out_.size(), total = head + response_.body.size();
  while (written_ < total) {
    const size_t body_from = written_ > head ? written_ - head : 0;
    const std::array<asio::const_buffer, 2> rest{asio::buffer(out_) + written_, asio::buffer(response_.body) + body_from};
    error_code failure;
    const size_t bytes = socket_.write_some(rest, failure);
    written_ += bytes;
    if (failure == asio::error::would_block) {
      expire(listener_->options.limits.write_timeout);
      socket_.async_wait(asio::socket_base::wait_write, [self = shared_from_this()](const error_code& wait_failure) {
        if (self->state_ != State::kWriting) return;
        if (wait_failure) return self->close();
        if (!self->continue_write()) return;
        self->end_write();
        self->process();
      });
      return false;
    }
    if (failure) {
      close();
      return false;
    }
  }
  return true;
}

void Connection::end_write() {
  listener_->count_answer(here_, response_.status);
  responder_.reset();
  if (keep_alive_) {
    state_ = State::kHead;
    if (!reading_) buffer_.shrink(kAheadBytes);
    // The next head may already have begun; its time then counts from here, since till now nobody read it.
    expire(buffer_.size() == 0 ? listener_->options.limits.idle_timeout : listener_->options.limits.header_timeout);
    return;
  }
  state_ = State::kLingering;
  error_code ignored;
  socket_.shutdown(asio::socket_base::shutdown_send, ignored);
  expire(kLingerTime);
}

void Connection::read() {
  if (reading_ || state_ == State::kClosed) return;
  reading_ = true;
  std::span<char> room = state_ == State::kBody ? reader_.window(request_.body) : std::span<char>();
  reading_window_ = !room.empty();
  if (!reading_window_) room = buffer_.room(kReadBytes);
  socket_.async_read_some(asio::buffer(room.data(), room.size()),
                          [self = shared_from_this()](const error_code& failure, size_t bytes) { self->on_read(failure, bytes); });
}

void Connection::on_read(const error_code& failure, size_t bytes) {
  reading_ = false;
  if (state_ == State::kClosed) return;
  if (failure) return state_ == State::kWriting ? void() : close();  // what is being written may still arrive; if not, writing tells
  const Limits& limits = listener_->options.limits;
  if (reading_window_) {
    if (state_ != State::kBody) return process();  // refused meanwhile: the bytes do not matter
    expire(limits.body_timeout);
    if (reader_.filled(bytes) == BodyReader::Step::kDone) dispatch();
    return process();
  }
  if (state_ == State::kHead && buffer_.size() == 0) expire(limits.header_timeout);  // the first bytes of a head; later ones gain no time
  if (state_ == State::kBody) expire(limits.body_timeout);
  buffer_.filled(bytes);
  process();
}

void Connection::on_deadline() {
  switch (state_) {
    case State::kHead:
      if (buffer_.size() == 0) return close();  // idle: nothing to answer
      refuse({408, "head_timeout", "the head of the request took too long"});
      return process();
    case State::kBody: refuse({408, "body_timeout", "the body of the request took too long"}); return process();
    case State::kWriting: listener_->count_bad_request(here_, "write_timeout"); return close();
    case State::kLingering: return close();
    default: return;
  }
}

void Connection::drain() {
  if (state_ == State::kLingering) return close();
  const bool idle = state_ == State::kHead && buffer_.size() == 0;
  if (idle || (fresh_ && state_ == State::kHead)) expire(std::min(listener_->options.limits.header_timeout, kDrainGrace));
}

void Connection::close() {
  if (state_ == State::kClosed) return;
  const auto self = shared_from_this();  // the set below may hold the last reference
  const bool was_handling = state_ == State::kHandling;
  state_ = State::kClosed;
  deadline_.stop();
  error_code ignored;
  socket_.close(ignored);
  if (was_handling) cancel_request();
  responder_.reset();
  here_.connections.erase(self);
  listener_->connection_closed(here_);
}

void Connection::cancel_request() {
  responder_->cancelled.store(true);
  if (const auto work = std::exchange(responder_->on_cancel, nullptr)) work();
}

void Connection::expire(std::chrono::milliseconds after) { deadline_.set(Deadline::Clock::now() + after, shared_from_this()); }

}  // namespace serin::net
