// h2_client.cc: a request goes to the connection with the fewest under way. A server that goes says which requests it has not looked at (GOAWAY,
// REFUSED_STREAM): those may be asked again whatever they are. A connection on which a request timed out while nothing at all came is asked nothing
// more: a host that vanished would otherwise swallow every request for minutes.

#include "runtime/net/http2/h2_client.h"

#include <algorithm>
#include <limits>

#include "runtime/net/client/client_errors.h"
#include "runtime/net/message/message_writer.h"

namespace serin::net {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kStreamsPerConnection = 100;  // then another one is opened, whatever more the server allows
constexpr size_t kKeptStreams = 100;
constexpr Limits kDefaults;

std::string_view reason(uint32_t error) { return nghttp2_http2_strerror(error); }

}  // namespace

// ---- the pool ----

H2Pool::H2Pool(Loop& loop, const Origin& origin, const ClientOptions& options)
    : loop_(loop), origin_(origin), options_(options), host_(authority(origin)) {}

H2Pool::~H2Pool() {
  for (const auto& connection : std::exchange(all_, {})) connection->close();
}

ClientStream& H2Pool::open(AnswerHandler& handler, Clock::time_point deadline, bool fresh) {
  H2ClientConnection* best = nullptr;
  for (const auto& connection : all_) {
    if (fresh && connection->open_streams() == 0) continue;  // kept ones: they are what is doubted
    if (!connection->takes_more() || (best && best->open_streams() <= connection->open_streams())) continue;
    best = connection.get();
  }
  if (!best) {
    all_.push_back(std::make_shared<H2ClientConnection>(*this));
    best = all_.back().get();
    best->connect();
  }
  return best->open(handler, deadline);
}

void H2Pool::drop(H2ClientConnection& connection) {
  std::erase_if(all_, [&connection](const auto& each) { return each.get() == &connection; });
}

// ---- one connection ----

H2ClientConnection::H2ClientConnection(H2Pool& pool)
    : H2Session(io(pool.loop_), Side::kClient, kStreamsPerConnection, kDefaults.header_bytes),
      pool_(&pool),
      alarm_(this, [](void* self) { static_cast<H2ClientConnection*>(self)->on_over("it was idle"); }) {}

H2ClientConnection::~H2ClientConnection() = default;

void H2ClientConnection::connect() {
  connector_ = std::make_shared<Connector>(loop(), pool_->options_);
  const auto alive = std::static_pointer_cast<H2ClientConnection>(self());
  connector_->start(pool_->origin_, [this, alive](Socket socket, const Error& why_not) {
    connector_.reset();
    if (!socket.open()) return end(why_not.code, why_not.message);
    if (!loop().hand_over(socket.descriptor(), *this)) return end(Code::kOverloaded, "the socket cannot be watched");
    stood_ = true;
    begin(std::move(socket), Intake());
  });
}

bool H2ClientConnection::takes_more() const {
  if (retiring_ || dropped()) return false;
  auto* session = const_cast<H2ClientConnection*>(this)->raw();
  const uint32_t theirs = nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
  return open_streams() < std::min(theirs, kStreamsPerConnection) && nghttp2_session_check_request_allowed(session);
}

H2ClientStream& H2ClientConnection::open(AnswerHandler& handler, Clock::time_point deadline) {
  if (free_.empty()) {
    all_.push_back(std::make_unique<H2ClientStream>(*this));
    free_.push_back(all_.back().get());
  }
  H2ClientStream* stream = free_.back();
  free_.pop_back();
  stream->begin(handler, deadline);
  schedule();
  return *stream;
}

void H2ClientConnection::release(H2ClientStream& stream) {
  if (free_.size() < kKeptStreams) return free_.push_back(&stream);
  const auto known = std::ranges::find(all_, &stream, [](const auto& each) { return each.get(); });
  loop().retire(std::shared_ptr<H2ClientStream>(std::move(*known)));  // it is still at work
  all_.erase(known);
}

void H2ClientConnection::doubt(Clock::time_point since) {
  if (!heard_since(since)) retiring_ = true;
}

void H2ClientConnection::on_rest() {
  const bool was_idle = std::exchange(idle_, open_streams() == 0);
  if (!idle_) return alarm_.clear();
  if (retiring_) return on_over("it is to be closed");
  if (!was_idle) alarm_.set(loop().deadlines(), loop().now() + options().idle_timeout);
}

void H2ClientConnection::on_over(std::string_view what) { end(Code::kIo, what.empty() ? "the connection was ended" : std::string(what)); }

void H2ClientConnection::end(Code code, const std::string& what) {
  if (dropped()) return;
  const auto alive = self();
  close();
  for (size_t i = 0; i < all_.size(); ++i) all_[i]->lose(code, what);
}

void H2ClientConnection::close() {
  if (dropped()) return;
  const auto alive = self();
  alarm_.clear();
  if (const auto connector = std::exchange(connector_, nullptr)) connector->cancel();
  drop_socket();
  pool_->drop(*this);
}

// ---- one request ----

H2ClientStream::H2ClientStream(H2ClientConnection& connection)
    : H2Stream(connection, HeadParser::Kind::kResponse, {kDefaults.request_line_bytes, kDefaults.header_bytes, kDefaults.header_count}),
      connection_(connection),
      alarm_(this, [](void* self) {
        auto& stream = *static_cast<H2ClientStream*>(self);
        stream.connection_.doubt(stream.began_);
        stream.fail(Code::kDeadlineExceeded, kTooLate);
      }) {}

void H2ClientStream::begin(AnswerHandler& handler, Clock::time_point deadline) {
  begin_stream(0);
  handler_ = &handler;
  began_ = Clock::now();
  interim_answers_ = 0;
  answered_ = bodyless_ = false;
  alarm_.set(session_.loop().deadlines(), deadline);
}

void H2ClientStream::begin_request(const RequestHead& head) {
  bodyless_ = head.length && *head.length == 0;
  FieldWriter& writer = session_.writer();
  writer.request(connection_.host(), head);
  const nghttp2_data_provider body = provider();
  const auto& fields = writer.fields();
  const int32_t id = nghttp2_submit_request(session_.raw(), nullptr, fields.data(), fields.size(), bodyless_ ? nullptr : &body,
                                            static_cast<H2Stream*>(this));
  if (id < 0) return closed(NGHTTP2_REFUSED_STREAM);  // the numbers of this connection have run out
  set_id(id);
  session_.schedule();
}

size_t H2ClientStream::write(std::string_view bytes, bool last) { return handler_ && !bodyless_ ? send(bytes, last) : bytes.size(); }

void H2ClientStream::begin_fields() {
  if (head_done_) return fields_.begin_trailers();
  fields_.begin_head();
}

void H2ClientStream::fields_done(bool end) {
  if (end) input_ended_ = true;
  session_.touch(*this);
  if (head_done_) return;
  fields_.finish_head(end);
  const int status = fields_.head().status;
  if (status < 200 && ++interim_answers_ <= kInterimAnswers && status != 101) return;
  head_done_ = true;
}

void H2ClientStream::advance() {
  if (has_room_again() && handler_) handler_->on_writable();
  if (!handler_) return;
  if (head_done_ && !answered_) tell_head();
  if (handler_ && answered_ && received_ > connection_.options().response_bytes)
    return fail(Code::kTooLarge, "the answer is larger than " + std::to_string(connection_.options().response_bytes) + " bytes");
  if (handler_ && answered_) go_on();
  if (!handler_ || !closed_) return;
  if (input_ended_) return;  // all is here, and waits for the handler
  const bool refused = error_ == NGHTTP2_REFUSED_STREAM;
  const bool malformed = error_ == NGHTTP2_PROTOCOL_ERROR;
  fail(malformed ? Code::kCorrupt
       : refused ? Code::kUnavailable
                 : Code::kIo,
       std::string(refused ? "the server takes no more requests on this connection" : "the server ended the request") + " (" +
           std::string(reason(error_)) + ")",
       refused && !answered_, /*alone=*/nghttp2_session_check_request_allowed(session_.raw()) != 0);
}

void H2ClientStream::tell_head() {
  if (fields_.refusal()) return fail(Code::kCorrupt, "not a valid HTTP answer: " + fields_.refusal()->message);
  if (fields_.head().status < 200) return fail(Code::kCorrupt, kBadInterim);
  answered_ = true;
  connection_.has_answered();
  handler_->on_answer(fields_.head());
}

void H2ClientStream::go_on() {
  AnswerHandler& handler = *handler_;
  if (!pass_early(handler)) return tell(handler, /*end=*/false);
  if (fields_.refusal()) return fail(Code::kCorrupt, "not a valid HTTP answer: " + fields_.refusal()->message);
  if (!fields_.trailers().empty()) handler.on_trailers(fields_.trailers());
  handler_ = nullptr;
  alarm_.clear();
  reset(NGHTTP2_CANCEL);  // where the answer came before all of the request was sent
  end_stream();
  connection_.release(*this);
  handler.on_progress(/*end=*/true);
}

void H2ClientStream::set_deadline(Clock::time_point deadline) {
  if (handler_) alarm_.set(session_.loop().deadlines(), deadline);
}

void H2ClientStream::lose(Code code, std::string_view what) {
  if (!handler_) return;
  closed_ = true;
  const std::string_view when = !connection_.stood() ? "" : head_done_ ? " in the middle of the answer" : " before an answer";
  fail(code, std::string(what).append(when), !answered_ && connection_.may_have_closed_before(began_));
}

void H2ClientStream::fail(Code code, std::string_view what, bool stale, bool alone) {
  AnswerHandler* handler = handler_;
  cancel();
  if (handler) handler->on_failure({.code = code, .what = what, .stale = stale, .alone = alone});
}

void H2ClientStream::cancel() {
  if (!std::exchange(handler_, nullptr)) return;
  alarm_.clear();
  reset(NGHTTP2_CANCEL);
  end_stream();
  connection_.release(*this);
}

}  // namespace serin::net
