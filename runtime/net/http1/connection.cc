// connection.cc: a state machine that is driven from one place, process(), until it has to wait.
//
// One request is in progress at a time; what a client sends ahead waits in the buffer, and once that is full in the socket, so pipelined answers
// are in order by construction. While the handler works the socket is read on: that is how a client that hangs up is noticed. A client that ends
// only its own direction (half-close) counts as gone, as it does for nginx.
//
// Every wait has a deadline but that for the handler, which has its own. Refusals always close: after one nobody knows where the next
// request would begin. So does an answer that is begun before its request is complete.

#include "runtime/net/http1/connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "runtime/net/http2/h2_server.h"
#include "runtime/net/message/message_writer.h"
#include "runtime/net/message/served.h"
#include "runtime/net/target.h"
#include "runtime/net/tls/tls_stream.h"

namespace serin::net {
namespace {

constexpr size_t kAheadBytes = 16 * 1024;  // pipelined requests kept while one is in progress
constexpr std::chrono::milliseconds kLingerTime{2'000};
// For what an idle client sent before it could know that this server ends: longer than a round trip, shorter than an operator's patience.
constexpr std::chrono::milliseconds kDrainGrace{1'000};

BodyLimits body_limits(const ServerOptions& options) {
  return {.bytes = options.limits.body_bytes, .chunks = options.limits.chunks, .bytes_from = options.body_bytes_from};
}

}  // namespace

Connection::Connection(std::shared_ptr<Listener> listener, IoLoop& loop, Socket socket, std::string peer)
    : listener_(std::move(listener)),
      here_(*listener_->per_loop[loop.index()]),
      loop_(loop),
      socket_(std::move(socket)),
      peer_(std::move(peer)),
      deadline_(this, [](void* self) { static_cast<Connection*>(self)->on_deadline(); }),
      inlet_(loop.buffers, HeadParser::Kind::kRequest, head_limits(listener_->options.limits), body_limits(listener_->options)),
      may_be_http2_(listener_->options.http2) {}

void Connection::start() {
  socket_.set_no_delay();
  expire(listener_->options.limits.header_timeout);
  // With TLS somebody has watched it before.
  const bool watched = socket_.tls() ? loop_.hand_over(socket_.descriptor(), *this) : loop_.watch(socket_.descriptor(), *this);
  if (!watched) return close();  // the kernel has no memory for it
  process();
}

std::shared_ptr<const PeerCertificate> Connection::certificate() const { return socket_.tls() ? socket_.tls()->certificate() : nullptr; }

void Connection::on_ready(uint32_t events) {
  if (state_.in(State::kClosed)) return;
  inlet_.ready(events);
  if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP) && !outlet_.writable()) {
    outlet_.ready();
    if (flush() && handled_ && outlet_.handler_waited()) {
      processing_ = true;
      handler_->on_writable();
      processing_ = false;
    }
  }
  process();
}

void Connection::process() {
  if (processing_) return;  // whoever set it goes on where this was called
  processing_ = true;
  for (bool moved = true; moved;) {
    switch (state_.now()) {
      case State::kHead: moved = advance_head(); break;
      case State::kBody:
      case State::kPaused:
      case State::kWhole: moved = advance_request(); break;
      case State::kLingering:
        inlet_.drop();
        switch (inlet_.read(socket_)) {
          case Inlet::Step::kSome: break;
          case Inlet::Step::kNothing: moved = false; break;
          default: close();
        }
        break;
      case State::kClosed: moved = false; break;
    }
  }
  processing_ = false;
  inlet_.rest();
}

/// False: nothing more can be done until the next event.
bool Connection::advance_head() {
  const bool was_empty = inlet_.buffered() == 0;
  if (may_be_http2_) may_be_http2_ = kH2Preface.starts_with(inlet_.ahead().substr(0, kH2Preface.size()));
  if (may_be_http2_ && inlet_.buffered() >= kH2Preface.size()) {
    go_on_with_http2();
    return false;
  }
  switch (may_be_http2_ ? inlet_.read(socket_) : inlet_.head(socket_)) {
    case Inlet::Step::kDone: begin_request(); return true;
    case Inlet::Step::kRefused: refuse(inlet_.refusal()); return true;
    case Inlet::Step::kSome:
      if (was_empty) expire(listener_->options.limits.header_timeout);  // the first bytes of a head; later ones gain no time
      return true;
    case Inlet::Step::kNothing: return false;
    default: close(); return false;
  }
}

/// What has been read, and the place among the server's connections, are the other's from here on.
void Connection::go_on_with_http2() {
  const auto self = shared_from_this();
  const auto successor = std::make_shared<H2ServerConnection>(listener_, loop_, peer_);
  here_.connections.erase(self);
  here_.connections.insert(successor);
  state_.enter(State::kClosed);
  deadline_.clear();
  loop_.retire(self);
  successor->start(std::move(socket_), inlet_.intake(), inlet_.ahead());
}

void Connection::begin_request() {
  Head& head = inlet_.parsed();
  state_.enter(State::kBody);
  fresh_ = may_be_http2_ = false;
  keep_alive_ = head.keep_alive;
  http10_ = head.minor_version == 0;
  head_only_ = head.method == "HEAD";
  if (const auto refusal = unserved(head, *listener_)) return refuse(*refusal);
  if (const auto refusal = decode_target(head.target, head.path, head.query)) return refuse(*refusal);
  switch (inlet_.begin_body(head.framing, head.content_length)) {
    case Inlet::Step::kRefused: return refuse(inlet_.refusal());
    case Inlet::Step::kDone: state_.enter(State::kWhole); break;
    default: break;
  }
  if (state_.in(State::kWhole))
    deadline_.clear();
  else
    expire(listener_->options.limits.body_timeout);
  if (head.target == "*") return answer_for_ourselves(answer_to_asterisk());
  if (!handler_) handler_ = listener_->make_handler(*this);
  handled_ = true;
  handler_->on_request(head);
  if (!in_request() || !handled_) return;
  if (!state_.in(State::kWhole) && head.expects_continue && inlet_.buffered() == 0 && answer_.in(Answer::kNone)) say_continue();
  if (state_.in(State::kWhole) && handled_ && !answer_.in(Answer::kDone)) handler_->on_progress(true);
}

void Connection::say_continue() {
  outlet_.text().append("HTTP/1.1 100 Continue\r\n\r\n");
  if (!flush()) close();  // 25 bytes always fit, unless it is gone
}

bool Connection::advance_request() {
  if (answer_.in(Answer::kDone) && outlet_.empty()) {
    begin_next();
    return true;
  }
  if (!state_.in(State::kWhole) && handled_) return advance_body();
  if (inlet_.buffered() >= kAheadBytes) return false;
  switch (inlet_.read(socket_)) {
    case Inlet::Step::kSome: return true;
    case Inlet::Step::kNothing: return false;
    default:
      if (answer_.in(Answer::kDone)) return false;  // what is being written may still arrive; if not, writing tells
      close();
      return false;
  }
}

bool Connection::advance_body() {
  if (state_.in(State::kPaused)) return false;
  const Inlet::Step step = inlet_.body(socket_, *handler_);
  switch (step) {
    case Inlet::Step::kRefused: refuse(inlet_.refusal()); return true;
    case Inlet::Step::kEnd:
    case Inlet::Step::kFailed: close(); return false;
    default: break;
  }
  const bool whole = step == Inlet::Step::kDone;
  if (whole || step == Inlet::Step::kPaused) {
    state_.enter(whole ? State::kWhole : State::kPaused);
    deadline_.clear();  // it is not the client who lets us wait
  } else {
    expire(listener_->options.limits.body_timeout);
  }
  handler_->on_progress(whole);
  if (step != Inlet::Step::kSome) return whole || (step == Inlet::Step::kPaused && !state_.in(State::kPaused));
  loop_.post([self = shared_from_this()] { self->process(); });  // others have their turn first
  return false;
}

void Connection::read_more() {
  if (!state_.in(State::kPaused)) return;
  state_.enter(State::kBody);
  expire(listener_->options.limits.body_timeout);
  if (!processing_) loop_.post([self = shared_from_this()] { self->process(); });
}

// ---- the answer ----

void Connection::begin_answer(const AnswerHead& head) {
  if (!in_request() || !answer_.in(Answer::kNone)) return;
  answer_.enter(Answer::kBegun);
  status_ = head.status;
  const bool has_body = status_has_body(status_);
  if (head.close || !state_.in(State::kWhole) || listener_->draining.load(std::memory_order_relaxed)) keep_alive_ = false;
  const bool chunked = has_body && !head.length && !http10_;
  if (has_body && !head.length && http10_) keep_alive_ = false;  // its end is the connection's
  outlet_.clear();
  outlet_.set_chunked(chunked && !head_only_);  // HEAD's answer has the head of a chunked one and not even its last chunk
  const auto kept = http10_ ? Persistence::kKeepAlive : Persistence::kImplied;
  write_answer_head(head, keep_alive_ ? kept : Persistence::kClose, chunked, outlet_.text());
}

size_t Connection::write(std::string_view bytes, bool last) {
  if (!in_request() || !answer_.in(Answer::kBegun)) return bytes.size();
  const bool has_body = !head_only_ && status_has_body(status_);
  const bool had_room = outlet_.writable();
  const Outlet::Taken taken = outlet_.write(socket_, has_body ? bytes : std::string_view(), last);  // if it fails, epoll will say so, too
  if (had_room && !outlet_.writable()) expire(listener_->options.limits.write_timeout);
  if (!taken.all) return taken.bytes;
  if (last) answer_.enter(Answer::kDone);
  end_answer_if_sent();
  return bytes.size();
}

/// True: all that was said is sent.
bool Connection::flush() {
  const bool had_room = outlet_.writable();
  if (!outlet_.flush(socket_)) {
    close();
    return false;
  }
  if (had_room && !outlet_.writable()) expire(listener_->options.limits.write_timeout);
  return outlet_.empty();
}

/// An answer that ended outside process() lets it go on, but not from here: the handler is still at work further up.
void Connection::end_answer_if_sent() {
  if (processing_ || !answer_.in(Answer::kDone) || !outlet_.empty()) return;
  begin_next();
  const bool more = !state_.in(State::kHead) || inlet_.buffered() > 0 || inlet_.readable();
  if (more) loop_.post([self = shared_from_this()] { self->process(); });
}

void Connection::begin_next() {
  listener_->count_answer(here_, status_);
  handled_ = false;
  answer_.enter(Answer::kNone);
  outlet_.clear();
  inlet_.end_message();
  if (keep_alive_) {
    state_.enter(State::kHead);
    // The next head may already have begun; its time then counts from here, since till now nobody read it.
    expire(inlet_.buffered() == 0 ? listener_->options.limits.idle_timeout : listener_->options.limits.header_timeout);
    return;
  }
  state_.enter(State::kLingering);
  socket_.shutdown_send();
  expire(kLingerTime);
}

void Connection::abort() {
  handled_ = false;
  close();
}

// ---- answers that no handler gives ----

void Connection::refuse(const Refusal& refusal) {
  listener_->count_bad_request(here_, refusal.reason);
  const bool too_late = !answer_.in(Answer::kNone);
  lose_handler();
  if (too_late) return close();
  if (state_.in(State::kHead)) state_.enter(State::kBody);
  answer_for_ourselves(answer_to(refusal, listener_->options));
}

void Connection::answer_for_ourselves(const Response& response) {
  begin_answer({.status = response.status, .headers = response.headers, .length = response.body.size(), .close = response.close});
  if (!head_only_ && status_has_body(response.status)) outlet_.text().append(response.body);
  answer_.enter(Answer::kDone);
  (void)flush();
}

// ---- ends ----

void Connection::lose_handler() {
  if (std::exchange(handled_, false)) handler_->on_gone();
}

void Connection::on_deadline() {
  switch (state_.now()) {
    case State::kHead:
      if (inlet_.buffered() == 0) return close();  // idle: nothing to answer
      refuse({408, "head_timeout", "the head of the request took too long"});
      return process();
    case State::kBody:
    case State::kPaused:
    case State::kWhole:
      if (!outlet_.writable()) {
        listener_->count_bad_request(here_, "write_timeout");
        return close();
      }
      if (!state_.in(State::kBody)) return;
      refuse({408, "body_timeout", "the body of the request took too long"});
      return process();
    case State::kLingering: return close();
    case State::kClosed: return;
  }
}

void Connection::drain() {
  if (state_.in(State::kLingering)) return close();
  const bool idle = state_.in(State::kHead) && (fresh_ || inlet_.buffered() == 0);
  if (idle) expire(std::min(listener_->options.limits.header_timeout, kDrainGrace));
}

void Connection::close() {
  if (state_.in(State::kClosed)) return;
  if (state_.in(State::kHead)) socket_.say_end();
  state_.enter(State::kClosed);
  deadline_.clear();
  socket_.close();
  lose_handler();
  const auto self = shared_from_this();
  here_.connections.erase(self);
  loop_.retire(self);
  listener_->connection_closed(here_);
}

void Connection::expire(std::chrono::milliseconds after) { deadline_.set(loop_.deadlines(), loop_.now() + after); }

}  // namespace serin::net
