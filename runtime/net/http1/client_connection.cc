// client_connection.cc: the socket is watched also while idle: that is how a kept connection notices that the server closed it. A write that
// fails is no news of its own: either the answer is there to be read (413 in the middle of an upload) or the read fails, too.

#include "runtime/net/http1/client_connection.h"

#include "runtime/net/client/client_errors.h"
#include "runtime/net/http2/h2_client.h"
#include "runtime/net/message/message_writer.h"

namespace serin::net {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kChunks = size_t{1} << 20;
constexpr Limits kDefaults;

}  // namespace

ClientConnection::ClientConnection(Upstream& upstream)
    : upstream_(&upstream),
      loop_(io(upstream.loop_)),
      alarm_(this, [](void* self) { static_cast<ClientConnection*>(self)->on_deadline(); }),
      inlet_(loop_.buffers, HeadParser::Kind::kResponse, {kDefaults.request_line_bytes, kDefaults.header_bytes, kDefaults.header_count},
             {.bytes = upstream.options_.response_bytes, .chunks = kChunks}) {}

void ClientConnection::arm(Time when) { alarm_.set(loop_.deadlines(), when); }

// ---- connecting ----

void ClientConnection::start(AnswerHandler& handler, Time deadline) {
  handler_ = &handler;
  deadline_ = deadline;
  answer_begun_ = request_done_ = paused_ = false;
  interim_answers_ = 0;
  outlet_.clear();
  if (state_ == State::kNew) return connect();
  inlet_.end_message();  // not before: the head was for the last handler to read
  state_ = State::kHead;
  arm(deadline_);
}

void ClientConnection::connect() {
  state_ = State::kConnecting;
  arm(deadline_);
  connector_ = std::make_shared<Connector>(loop_, upstream_->options_);
  connector_->start(upstream_->origin_,
                    [self = shared_from_this()](Socket socket, const Error& why_not) { self->connected(std::move(socket), why_not); });
}

void ClientConnection::connected(Socket socket, const Error& why_not) {
  connector_.reset();
  if (!socket.open()) return fail(why_not.code, why_not.message);
  socket_ = std::move(socket);
  if (!loop_.hand_over(socket_.descriptor(), *this)) return fail(Code::kOverloaded, "the socket cannot be watched");
  state_ = State::kHead;
  outlet_.ready();
  flush();
}

// ---- the request ----

void ClientConnection::begin_request(const RequestHead& head) {
  head_only_ = head.method == "HEAD";
  outlet_.set_chunked(!head.length);
  write_request_head(upstream_->host_, head, outlet_.text());
}

size_t ClientConnection::write(std::string_view bytes, bool last) {
  if (!handler_ || request_done_) return bytes.size();
  const Outlet::Taken taken = outlet_.write(socket_, bytes, last);
  request_done_ = taken.all && last;
  return taken.bytes;
}

void ClientConnection::flush() {
  outlet_.flush(socket_);  // if it fails, reading tells more
  if (!outlet_.writable() || !outlet_.handler_waited() || !handler_) return;
  processing_ = true;
  handler_->on_writable();
  processing_ = false;
}

// ---- the answer ----

void ClientConnection::on_ready(uint32_t events) {
  if (state_ == State::kClosed) return;
  inlet_.ready(events);
  if (events & EPOLLOUT && !outlet_.writable()) {
    outlet_.ready();
    flush();
  }
  process();
}

void ClientConnection::process() {
  if (processing_) return;
  processing_ = true;
  for (bool moved = true; moved;) {
    switch (state_) {
      case State::kHead: moved = advance_head(); break;
      case State::kBody: moved = advance_body(); break;
      case State::kIdle:
        moved = false;
        if (inlet_.readable() && inlet_.read(socket_) != Inlet::Step::kNothing) {  // its end, or an answer to nothing
          upstream_->drop(*this);
        }
        break;
      default: moved = false;
    }
  }
  processing_ = false;
  inlet_.rest();
}

bool ClientConnection::advance_head() {
  switch (inlet_.head(socket_)) {
    case Inlet::Step::kSome: answer_begun_ = true; return true;
    case Inlet::Step::kNothing: return false;
    case Inlet::Step::kRefused: refuse(inlet_.refusal()); return false;
    case Inlet::Step::kDone: break;
    case Inlet::Step::kEnd: end_of_stream(0); return false;
    default: end_of_stream(inlet_.error()); return false;
  }
  begin_answer();
  return true;
}

void ClientConnection::begin_answer() {
  Head& head = inlet_.parsed();
  if (head.status < 200) {
    if (head.status == 101 || ++interim_answers_ > kInterimAnswers) return fail(Code::kCorrupt, kBadInterim);
    return inlet_.end_message();
  }
  keep_alive_ = head.keep_alive;
  if (head_only_) head.framing = Framing::kNone;
  state_ = State::kBody;
  const Inlet::Step body = inlet_.begin_body(head.framing, head.content_length);
  if (body == Inlet::Step::kRefused) return refuse(inlet_.refusal());
  handler_->on_answer(head);
  if (body == Inlet::Step::kDone && handler_) finish();
}

bool ClientConnection::advance_body() {
  if (paused_) return false;
  const Inlet::Step step = inlet_.body(socket_, *handler_);
  switch (step) {
    case Inlet::Step::kRefused: refuse(inlet_.refusal()); return false;
    case Inlet::Step::kEnd: end_of_stream(0); return false;
    case Inlet::Step::kFailed: end_of_stream(inlet_.error()); return false;
    case Inlet::Step::kDone: finish(); return true;
    default: break;
  }
  paused_ = step == Inlet::Step::kPaused;
  handler_->on_progress(/*end=*/false);
  if (step == Inlet::Step::kSome && state_ == State::kBody)
    loop_.post([self = shared_from_this()] { self->process(); });  // others have their turn first
  return step == Inlet::Step::kPaused && !paused_;
}

void ClientConnection::read_more() {
  if (!std::exchange(paused_, false) || processing_) return;
  loop_.post([self = shared_from_this()] { self->process(); });
}

void ClientConnection::set_deadline(Time deadline) {
  if (handler_) arm(deadline_ = deadline);
}

void ClientConnection::finish() {
  const bool ends_at_close = inlet_.ends_at_close();
  const bool over = !ends_at_close && inlet_.buffered() == 0 && inlet_.readable() && inlet_.read(socket_) != Inlet::Step::kNothing;
  // Bytes behind the answer, or an answer to half a request: nobody knows what would come next on this connection.
  const bool kept =
      keep_alive_ && request_done_ && outlet_.empty() && !outlet_.broken() && !over && inlet_.buffered() == 0 && !ends_at_close;
  AnswerHandler* handler = std::exchange(handler_, nullptr);
  const bool excess = inlet_.ahead().find_first_not_of("\r\n") != std::string_view::npos;  // some servers send an empty line more
  if (excess && !head_only_) handler->on_excess();
  if (kept) {
    state_ = State::kIdle;
    reused_ = true;
    arm(loop_.now() + upstream_->options_.idle_timeout);
    upstream_->keep(*this);
  } else {
    upstream_->drop(*this);
  }
  handler->on_progress(/*end=*/true);
}

// ---- ends ----

void ClientConnection::end_of_stream(int error) {
  if (state_ == State::kBody && error == 0 && inlet_.ends_at_close()) return finish();
  const bool stale = reused_ && !answer_begun_;
  fail(Code::kIo,
       (error == 0 ? std::string("the connection was closed") : socket_.describe(error)) +
           (answer_begun_ ? " in the middle of the answer" : " before an answer"),
       stale);
}

void ClientConnection::refuse(const Refusal& refusal) {
  if (refusal.status == 413) return fail(Code::kTooLarge, "the answer is too large: " + refusal.message);
  fail(Code::kCorrupt, "not a valid HTTP answer: " + refusal.message);
}

void ClientConnection::on_deadline() {
  if (state_ == State::kClosed) return;
  if (state_ == State::kIdle) return upstream_->drop(*this);
  fail(Code::kDeadlineExceeded, kTooLate);
}

void ClientConnection::fail(Code code, std::string_view what, bool stale) {
  AnswerHandler* handler = std::exchange(handler_, nullptr);
  upstream_->drop(*this);
  if (handler) handler->on_failure({.code = code, .what = what, .stale = stale});
}

void ClientConnection::cancel() {
  if (state_ != State::kClosed && handler_) upstream_->drop(*this);
}

void ClientConnection::close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  handler_ = nullptr;
  alarm_.clear();
  if (const auto connector = std::exchange(connector_, nullptr)) connector->cancel();
  socket_.close();
  loop_.retire(shared_from_this());
}

// ---- the pool ----

Upstream::Upstream(Loop& loop, Origin origin, const ClientOptions& options)
    : loop_(loop),
      origin_(std::move(origin)),
      options_(options),
      host_(authority(origin_)),
      http2_(options.http2 ? std::make_unique<H2Pool>(loop, origin_, options) : nullptr) {}

Upstream::~Upstream() {
  for (const auto& connection : std::exchange(all_, {})) connection->close();
}

ClientStream& Upstream::open(AnswerHandler& handler, std::chrono::steady_clock::time_point deadline, bool fresh) {
  if (http2_) return http2_->open(handler, deadline, fresh);
  ClientConnection* connection = nullptr;
  if (!fresh && !kept_.empty()) {
    connection = kept_.back();
    kept_.pop_back();
  } else {
    const auto made = std::make_shared<ClientConnection>(*this);
    all_.insert(made);
    connection = made.get();
  }
  connection->start(handler, deadline);
  return *connection;
}

size_t Upstream::connections() const { return http2_ ? http2_->connections() : all_.size(); }

void Upstream::keep(ClientConnection& connection) {
  if (kept_.size() < options_.kept_per_origin) return kept_.push_back(&connection);
  drop(connection);
}

void Upstream::drop(ClientConnection& connection) {
  const auto alive = connection.shared_from_this();
  std::erase(kept_, &connection);
  all_.erase(alive);
  connection.close();
}

}  // namespace serin::net
