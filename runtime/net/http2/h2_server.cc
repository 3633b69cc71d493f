// h2_server.cc: the rules of connection.cc, for each stream. What is refused is answered as HTTP/1.1 would, or in gRPC's words where it is a call
// of gRPC, and only its stream ends: the framing says where the next message begins whatever is wrong with this one.

#include "runtime/net/http2/h2_server.h"

#include <algorithm>
#include <limits>
#include <random>

#include "runtime/net/grpc.h"
#include "runtime/net/message/message_writer.h"
#include "runtime/net/message/served.h"
#include "runtime/net/target.h"
#include "runtime/net/tls/tls_stream.h"

namespace serin::net {
namespace {

constexpr std::chrono::milliseconds kLingerTime{2'000};
// For what a client sends before it knows that this server ends.
constexpr std::chrono::milliseconds kDrainGrace{1'000};
constexpr size_t kIdleStreams = 16;  // idle, with their handlers: more are made anew

/// A tenth more or less, as gRPC has it.
std::chrono::milliseconds spread(std::chrono::milliseconds age) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const int64_t most = std::min<int64_t>(age.count() / 10, std::numeric_limits<int32_t>::max());
  return age + std::chrono::milliseconds(std::uniform_int_distribution<int64_t>(-most, most)(random));
}

}  // namespace

// ---- the connection ----

H2ServerConnection::H2ServerConnection(std::shared_ptr<Listener> listener, IoLoop& loop, std::string peer)
    : H2Session(loop, Side::kServer, listener->options.limits.streams, listener->options.limits.header_bytes),
      listener_(std::move(listener)),
      here_(*listener_->per_loop[loop.index()]),
      peer_(std::move(peer)),
      alarm_(this, [](void* self) { static_cast<H2ServerConnection*>(self)->on_alarm(); }),
      drain_alarm_(this, [](void* self) { static_cast<H2ServerConnection*>(self)->end_drain(); }),
      age_alarm_(this, [](void* self) { static_cast<H2ServerConnection*>(self)->on_age(); }) {}

H2ServerConnection::~H2ServerConnection() = default;

void H2ServerConnection::start(Socket socket, const Intake& intake, std::string_view ahead) {
  if (!loop().hand_over(socket.descriptor(), *this)) return close();
  begin(std::move(socket), intake);
  expire(alarm_, listener_->options.limits.idle_timeout);
  idle_ = true;
  if (const auto age = listener_->options.connection_age; age.count() > 0) expire(age_alarm_, spread(age));
  receive(ahead);
  if (listener_->draining.load(std::memory_order_relaxed)) drain();
}

std::shared_ptr<const PeerCertificate> H2ServerConnection::certificate() const {
  return socket().tls() ? socket().tls()->certificate() : nullptr;
}

H2Stream* H2ServerConnection::accept_stream(int32_t id) {
  if (free_.empty()) {
    all_.push_back(std::make_unique<H2ServerStream>(*this));
    free_.push_back(all_.back().get());
  }
  H2ServerStream* stream = free_.back();
  free_.pop_back();
  stream->begin(id);
  return stream;
}

void H2ServerConnection::release(H2ServerStream& stream) {
  if (free_.size() < kIdleStreams) return free_.push_back(&stream);
  const auto known = std::ranges::find(all_, &stream, [](const auto& each) { return each.get(); });
  loop().retire(std::shared_ptr<H2ServerStream>(std::move(*known)));  // it is still at work
  all_.erase(known);
}

void H2ServerConnection::on_rest() {
  const bool was_stuck = std::exchange(stuck_, !writable());
  const bool was_idle = std::exchange(idle_, all_.size() == free_.size());
  const Limits& limits = listener_->options.limits;
  if (lingering_) return;
  if (stuck_ && !was_stuck) return expire(alarm_, limits.write_timeout);
  if (stuck_) return;
  if (idle_ && (!was_idle || was_stuck)) return expire(alarm_, limits.idle_timeout);
  if (!idle_) alarm_.clear();  // the streams have deadlines of their own
}

void H2ServerConnection::on_alarm() {
  if (lingering_) return close();
  if (stuck_) {
    listener_->count_bad_request(here_, "write_timeout");
    return close();
  }
  end_with(NGHTTP2_NO_ERROR);
}

void H2ServerConnection::drain() {
  if (dropped() || std::exchange(draining_, true)) return;
  if (lingering_) return close();
  announce_end();
}

void H2ServerConnection::on_age() {
  if (lingering_) return;
  if (std::exchange(aged_, true)) return close();
  announce_end();
  if (const auto grace = listener_->options.connection_age_grace; grace.count() > 0) expire(age_alarm_, grace);
}

void H2ServerConnection::announce_end() {
  nghttp2_submit_shutdown_notice(raw());
  schedule();
  expire(drain_alarm_, kDrainGrace);
}

/// What came until now is answered; from here on nothing more is taken. Only where the server ends, its calls are told to.
void H2ServerConnection::end_drain() {
  if (dropped() || lingering_) return;
  nghttp2_submit_goaway(raw(), NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(raw()), NGHTTP2_NO_ERROR, nullptr, 0);
  for (size_t i = 0; draining_ && i < all_.size(); ++i) all_[i]->drain();
  schedule();
}

void H2ServerConnection::on_over(std::string_view what) {
  if (!what.empty() || lingering_) return close();
  for (const auto& stream : all_) stream->lose();  // those that a GOAWAY with an error has cut off
  lingering_ = true;
  shutdown_send();
  expire(alarm_, kLingerTime);
}

void H2ServerConnection::close() {
  if (dropped()) return;
  const auto alive = self();
  alarm_.clear();
  drain_alarm_.clear();
  age_alarm_.clear();
  drop_socket();
  for (size_t i = 0; i < all_.size(); ++i) all_[i]->lose();
  here_.connections.erase(std::static_pointer_cast<H2ServerConnection>(alive));
  listener_->connection_closed(here_);
}

void H2ServerConnection::expire(Deadline& alarm, std::chrono::milliseconds after) { alarm.set(loop().deadlines(), loop().now() + after); }

// ---- a request ----

H2ServerStream::H2ServerStream(H2ServerConnection& connection)
    : H2Stream(connection, HeadParser::Kind::kRequest, head_limits(connection.listener().options.limits)),
      connection_(connection),
      alarm_(this, [](void* self) { static_cast<H2ServerStream*>(self)->on_alarm(); }) {}

void H2ServerStream::begin(int32_t id) {
  begin_stream(id);
  state_.enter(State::kHead);
  if (!answer_.in(Answer::kNone)) answer_.enter(Answer::kNone);
  grpc_ = head_only_ = answer_bodyless_ = answers_itself_ = false;
  own_body_.clear();
  own_sent_ = 0;
}

void H2ServerStream::begin_fields() {
  if (head_done_) return fields_.begin_trailers();
  fields_.begin_head();
}

void H2ServerStream::fields_done(bool end) {
  if (!std::exchange(head_done_, true)) fields_.finish_head(end);
  if (end) input_ended_ = true;  // trailers of requests mean nothing here
  session_.touch(*this);
}

void H2ServerStream::advance() {
  if (state_.in(State::kFree)) return;
  if (closed_) {
    lose();
    return connection_.release(*this);
  }
  if (head_done_ && state_.in(State::kHead)) begin_request();
  if (state_.in(State::kHandled) && most_ < received_) refuse(body_too_large(most_, connection_.listener().options.body_bytes_from));
  if (state_.in(State::kHandled)) tell(*handler_, pass_early(*handler_));
  if (has_room_again() && state_.in(State::kHandled)) handler_->on_writable();
  if (answers_itself_ && !answer_.in(Answer::kDone)) write_own();
  // Who has had the answer need not go on asking; it would wait for room that nobody gives.
  if (output_sent_ && !input_ended_) {
    input_ended_ = true;
    reset(NGHTTP2_NO_ERROR);
  }
  arm();
}

void H2ServerStream::begin_request() {
  state_.enter(State::kChecked);
  Head& head = fields_.head();
  grpc_ = is_grpc(head);
  head_only_ = head.method == "HEAD";
  const ServerOptions& options = connection_.listener().options;
  // A call of gRPC may go on for ever, message by message: who serves it must know how much it can hold.
  most_ = grpc_ && !connection_.listener().whole_bodies ? ~uint64_t{0} : options.limits.body_bytes;
  if (const auto refusal = unacceptable()) return refuse(*refusal);
  if (head.target == "*") return answer_for_ourselves(answer_to_asterisk());
  if (!handler_) handler_ = connection_.listener().make_handler(*this);
  state_.enter(State::kHandled);
  if (head.expects_continue && !input_ended_ && received_ == 0) {
    const nghttp2_nv field = {reinterpret_cast<uint8_t*>(const_cast<char*>(":status")),
                              reinterpret_cast<uint8_t*>(const_cast<char*>("100")), 7, 3, NGHTTP2_NV_FLAG_NONE};
    nghttp2_submit_headers(session_.raw(), NGHTTP2_FLAG_NONE, id(), nullptr, &field, 1, nullptr);
  }
  handler_->on_request(head);
}

std::optional<Refusal> H2ServerStream::unacceptable() {
  Head& head = fields_.head();
  if (fields_.refusal()) return fields_.refusal();
  if (const auto refusal = unserved(head, connection_.listener())) return refusal;
  if (const auto refusal = decode_target(head.target, head.path, head.query)) return refusal;
  if (head.framing == Framing::kLength && head.content_length > most_)
    return body_too_large(most_, connection_.listener().options.body_bytes_from);
  return std::nullopt;
}

// ---- the answer ----

void H2ServerStream::begin_answer(const AnswerHead& head) {
  if (closed_ || !answer_.in(Answer::kNone)) return;
  answer_.enter(Answer::kBegun);
  status_ = head.status;
  answer_bodyless_ = head_only_ || !status_has_body(status_) || (head.length && *head.length == 0);
  FieldWriter& writer = session_.writer();
  writer.answer(head);
  const nghttp2_data_provider body = provider();
  nghttp2_submit_response(session_.raw(), id(), writer.fields().data(), writer.fields().size(), answer_bodyless_ ? nullptr : &body);
  session_.schedule();
}

size_t H2ServerStream::write(std::string_view bytes, bool last) {
  if (closed_ || !answer_.in(Answer::kBegun)) return bytes.size();
  if (answer_bodyless_) {
    if (last) {
      output_ended_ = true;
      session_.touch(*this);
      finish_answer();
    }
    return bytes.size();
  }
  const size_t taken = send(bytes, last);
  if (last && taken == bytes.size()) finish_answer();
  arm();
  return taken;
}

void H2ServerStream::finish_answer() {
  answer_.enter(Answer::kDone);
  end_handling();
  connection_.listener().count_answer(connection_.here(), status_);
}

void H2ServerStream::abort() {
  end_handling();
  reset(NGHTTP2_INTERNAL_ERROR);
}

void H2ServerStream::refuse(const Refusal& refusal) {
  connection_.listener().count_bad_request(connection_.here(), refusal.reason);
  lose_handler();
  if (!answer_.in(Answer::kNone)) return reset(NGHTTP2_INTERNAL_ERROR);
  answer_for_ourselves(grpc_ ? grpc_error(grpc_status_of(refusal.status), refusal.message)
                             : answer_to(refusal, connection_.listener().options));
}

void H2ServerStream::answer_for_ourselves(Response response) {
  answers_itself_ = true;
  own_body_ = std::move(response.body);
  begin_answer({.status = response.status, .headers = response.headers, .length = own_body_.size()});
  write_own();
}

void H2ServerStream::write_own() { own_sent_ += write(std::string_view(own_body_).substr(own_sent_), /*last=*/true); }

// ---- ends ----

/// Whether the handler had the request until now.
bool H2ServerStream::end_handling() {
  const bool handled = state_.in(State::kHandled);
  if (handled) state_.enter(State::kChecked);
  return handled;
}

void H2ServerStream::lose_handler() {
  if (end_handling()) handler_->on_gone();
}

void H2ServerStream::lose() {
  if (state_.in(State::kFree)) return;
  const bool handled = state_.in(State::kHandled);
  state_.enter(State::kFree);
  closed_ = true;
  alarm_.clear();
  if (handled) handler_->on_gone();
  end_stream();
}

void H2ServerStream::on_alarm() {
  if (state_.in(State::kFree) || closed_) return;
  const bool client_reads = !waits_for_room_;
  if (client_reads && (input_ended_ || waits_for_handler_)) return;
  if (client_reads && answer_.in(Answer::kNone)) {
    refuse({408, "body_timeout", "the body of the request took too long"});
  } else {
    connection_.listener().count_bad_request(connection_.here(), client_reads ? "body_timeout" : "write_timeout");
    lose_handler();
    reset(NGHTTP2_CANCEL);
  }
  arm();
}

/// Whoever it is that keeps us waiting, it is not for ever; but for the handler, which has a deadline of its own.
void H2ServerStream::arm() {
  if (state_.in(State::kFree) || closed_) return;
  const Limits& limits = connection_.listener().options.limits;
  if (waits_for_room_)
    alarm_.set(session_.loop().deadlines(), session_.loop().now() + limits.write_timeout);
  else if (!input_ended_ && !waits_for_handler_)
    alarm_.set(session_.loop().deadlines(), session_.loop().now() + (grpc_ ? limits.silence_timeout : limits.body_timeout));
  else
    alarm_.clear();
}

}  // namespace serin::net
