// grpc_server.cc: a handler of HTTP/2 streams that cuts the body into messages.
//
// The handler serves one call after the other; a call is shared with who answers it and may outlive its place in the handler, so that a late
// answer meets a call that knows it is over, and never the next one. It leaves the handler with the last byte that the stream takes, and is used again, with its
// buffers, once nobody else holds it: a stream that waits for its next call holds none.

#include "runtime/net/grpc_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/base/recycler.h"
#include "runtime/net/content_coding.h"
#include "runtime/net/deadline.h"
#include "runtime/net/loop.h"

namespace serin::net {
namespace {

using std::chrono::steady_clock;

constexpr size_t kRoom = size_t{16} << 10;     // for what comes next, whatever it is
constexpr size_t kMostKept = size_t{8} << 20;  // for the next message, by a call that has read one
constexpr size_t kMostRoom = size_t{1} << 20;  // for what is promised
constexpr size_t kCrowded = size_t{8} << 20;   // answers that wait for one another; over it no further message is taken
constexpr size_t kUnsentLimit = size_t{64} << 20;
constexpr std::chrono::seconds kLongestStall{10};  // of a client over that limit that takes nothing
constexpr size_t kMostMessageBytes = INT32_MAX;    // what clients of protobuf can read

class CallHandler;

/// No std::enable_shared_from_this: what is used again would hold the Recycler that holds it.
class Call final : public GrpcCall {
 public:
  Call() : alarm_(this, [](void* self) { static_cast<Call*>(self)->expire(); }) {}
  void begin(CallHandler& handler, ServerStream& stream, Headers& headers);
  void clear();

  const Headers& headers() const override { return headers_; }
  steady_clock::time_point deadline() const override { return deadline_; }
  void set_header(std::string_view name, std::string_view value) override { answer_headers_.set(name, value); }
  std::string begin_message(size_t expected_bytes) override;
  void send(std::string framed) override;
  void finish(GrpcStatus status, std::string_view message) override;
  void pause() override { paused_ = true; }
  void resume() override;
  void read_aside(UniqueFunction<void()> read, UniqueFunction<void()> then) override;

  void set_many_answers() { many_answers_ = true; }
  void set_deadline(std::chrono::nanoseconds left);
  bool paused() const { return paused_ || crowded() || reading(); }
  bool reading() const { return reading_ != nullptr; }
  void write();
  /// The stream is not this call's any more.
  void detach();
  void lose();

  // Of the handler:
  std::string in, inflated;   // what has come, and may be longer than that; the message
  MemoryBudget::Share share;  // of both

 private:
  size_t unsent() const { return out_.size() - sent_; }
  bool crowded() const { return many_answers_ && unsent() > kCrowded; }
  void begin_answer(bool only_head);
  void expire();
  void end();

  CallHandler* handler_ = nullptr;  // null once detached
  ServerStream* stream_ = nullptr;  // with it
  Headers headers_, answer_headers_, trailers_;
  bool many_answers_ = false;
  steady_clock::time_point deadline_ = steady_clock::time_point::max();
  Deadline alarm_;
  std::shared_ptr<Turn> reading_;  // a message, beside the io threads
  std::string out_;                // framed, not taken by the stream yet from sent_ on
  size_t sent_ = 0;
  steady_clock::time_point moved_{};  // when the stream last took some of it
  bool begun_ = false, paused_ = false, last_ = false;
};

class CallHandler final : public RequestHandler {
 public:
  struct Service {
    GrpcMethods methods;
    GrpcGate gate;
    size_t message_bytes;                 ///< at most
    std::string message_bytes_from;       ///< as ServerOptions::body_bytes_from
    std::shared_ptr<MemoryBudget> large;  ///< what messages share beyond what each may have; null: nothing
    std::vector<Recycler<Call>> calls;    ///< of each io thread
  };
  CallHandler(const Service& service, ServerStream& stream) : service_(service), stream_(stream) {}
  ~CallHandler() override {
    if (call_) call_->lose();
  }

  void on_request(Head& head) override;
  std::span<char> body_room(std::optional<uint64_t> left) override;
  void body_filled(size_t bytes) override {
    if (skips_ == 0)
      filled_ += bytes;
    else
      skips_ -= bytes;
  }
  void on_progress(bool end) override;
  void on_writable() override {
    if (const auto call = call_) call->write();
  }
  void on_drain() override {
    const auto call = call_;
    if (!call || call->ended() || !method_) return;
    if (auto told = std::exchange(call->on_drain, nullptr)) return told();
    if (method_->many_messages()) call->finish(GrpcStatus::kUnavailable, "the server ends");
  }
  void on_gone() override {
    if (const auto call = std::exchange(call_, nullptr)) call->lose();
  }

  void take_messages();
  /// A message was, beside the io threads.
  void on_read();
  void ask_more() { stream_.read_more(); }
  /// The stream has taken all that the call had to say.
  void release() { call_->detach(), call_ = nullptr; }
  const std::shared_ptr<Call>& call() const { return call_; }

 private:
  void refuse(GrpcStatus status, std::string_view message);
  /// The next message that is whole; nothing where there is none, or where the call was refused for it.
  std::optional<std::string_view> next_message();
  std::optional<std::string_view> unpack_message(std::string_view packed);
  /// Likewise.
  std::optional<std::string_view> unpacked_message();
  size_t most_unpacked() const;
  void refuse_too_large(std::string_view what, size_t most);
  void refuse_no_memory() { refuse(GrpcStatus::kResourceExhausted, "too many large messages are under way; try again"); }
  /// Whether the call goes on without the message that so begins.
  bool pass_over(std::string_view beginning);
  void skip_the_rest();
  /// Of a message that was read: whoever read it keeps what came of it.
  void let_go_of_message();
  void let_go_of_large() {
    if (!call_->share.small() || call_->in.size() > kMostKept) let_go_of_message();
  }

  const Service& service_;
  ServerStream& stream_;
  GrpcMethod* method_ = nullptr;
  std::shared_ptr<Call> call_;
  size_t filled_ = 0, taken_ = 0;  // of what is in the call
  uint64_t messages_ = 0;
  bool end_ = false, taking_ = false;
  bool dropped_ = false;      // there is no memory for what comes
  bool passed_over_ = false;  // what was read last is no message, for want of memory; the call goes on
  uint64_t skips_ = 0;        // bytes to come of a message that was passed over
  std::optional<Coding> coding_;
  std::optional<Result<std::string>> unpacked_;  // the message that comes next
};

// ---- what goes out ----

void Call::begin(CallHandler& handler, ServerStream& stream, Headers& headers) {
  handler_ = &handler;
  stream_ = &stream;
  std::swap(headers_, headers);
}

void Call::clear() {
  alarm_.leave();
  state = nullptr;
  on_gone = nullptr;
  on_drain = nullptr;
  ended_ = many_answers_ = begun_ = paused_ = last_ = false;
  deadline_ = steady_clock::time_point::max();
  headers_.clear();
  answer_headers_.clear();
  trailers_.clear();
  share.release();
  clear_for_reuse(in);
  clear_for_reuse(inflated);
  clear_for_reuse(out_);
  sent_ = 0;
}

void Call::begin_answer(bool only_head) {
  begun_ = true;
  answer_headers_.set("content-type", "application/grpc");
  answer_headers_.set("grpc-accept-encoding", "identity, gzip, deflate, zstd");
  stream_->begin_answer({.status = 200, .headers = answer_headers_, .length = only_head ? std::optional<uint64_t>(0) : std::nullopt});
}

std::string Call::begin_message(size_t expected_bytes) {
  if (unsent() > 0) return begin_grpc_message(expected_bytes);
  sent_ = 0;
  return begin_grpc_message(expected_bytes, std::exchange(out_, {}));
}

void Call::send(std::string framed) {
  if (ended_ || !stream_) return;
  if (!begun_) begin_answer(false);
  if (framed.size() > kMostMessageBytes)
    return finish(GrpcStatus::kResourceExhausted,
                  fmt::format("the answer takes {} bytes; a message of gRPC has {} at most", framed.size(), kMostMessageBytes));
  if (unsent() == 0) {
    out_ = std::move(framed);
    sent_ = 0;
    moved_ = loop_time();
  } else if (unsent() + framed.size() > kUnsentLimit && loop_time() - moved_ > kLongestStall) {
    return finish(GrpcStatus::kResourceExhausted, "the client does not read its answers");
  } else {
    out_.erase(0, std::exchange(sent_, 0));
    out_ += framed;
  }
  if (many_answers_) write();  // the only one goes with the status that follows it at once
}

void Call::write() {
  if (!stream_ || !begun_ || (unsent() == 0 && !last_)) return;
  const bool was_crowded = crowded();
  const size_t taken = stream_->write(std::string_view(out_).substr(sent_), last_);
  if (taken > 0) moved_ = loop_time();
  sent_ += taken;
  if (last_ && unsent() == 0) return handler_->release();
  if (was_crowded && !crowded() && !last_) handler_->take_messages();  // the last: it may end this call
}

void Call::end() {
  ended_ = true;
  alarm_.leave();
  if (reading_) reading_->take();
}

void Call::finish(GrpcStatus status, std::string_view message) {
  if (ended_) return;
  end();
  on_gone = nullptr;
  state = nullptr;
  if (!stream_) return;
  last_ = true;
  if (!begun_) {
    set_grpc_status(answer_headers_, status, message);
    begin_answer(true);
  } else {
    set_grpc_status(trailers_, status, message);
    stream_->set_trailers(trailers_);
  }
  write();
}

void Call::resume() {
  if (!std::exchange(paused_, false) || !handler_) return;
  handler_->take_messages();
}

void Call::read_aside(UniqueFunction<void()> read, UniqueFunction<void()> then) {
  const auto turn = reading_ = std::make_shared<Turn>();
  aside(
      [turn, read = std::move(read)]() mutable {
        if (turn->take()) read();
      },
      [self = handler_->call(), then = std::move(then)]() mutable {
        self->reading_ = nullptr;
        then();
        if (self->handler_ && !self->reading_) self->handler_->on_read();
      });
}

void Call::set_deadline(std::chrono::nanoseconds left) {
  deadline_ = steady_clock::now() + left;
  alarm_.set(this_wheel(), deadline_);
}

void Call::expire() {
  if (!handler_) return;
  const std::shared_ptr<Call> self = handler_->call();  // a call that has not ended is its handler's
  auto gone = std::exchange(on_gone, nullptr);
  finish(GrpcStatus::kDeadlineExceeded, "the deadline passed before the answer was ready");
  if (gone) gone();
}

void Call::detach() {
  handler_ = nullptr;
  stream_ = nullptr;
}

void Call::lose() {
  detach();
  auto gone = std::exchange(on_gone, nullptr);
  const auto kept = std::exchange(state, nullptr);
  end();
  if (gone) gone();
}

// ---- what comes in ----

void CallHandler::on_request(Head& head) {
  if (const auto former = std::exchange(call_, nullptr)) former->lose();
  filled_ = taken_ = messages_ = 0;
  end_ = dropped_ = passed_over_ = false;
  skips_ = 0;
  coding_.reset();
  unpacked_.reset();
  if (!is_grpc(head)) {
    stream_.begin_answer({.status = 415, .headers = Headers(), .length = 0});
    stream_.write({}, true);
    return;
  }
  method_ = service_.methods(head.path);
  call_ = service_.calls[this_loop()].take();
  call_->begin(*this, stream_, head.headers);
  if (method_ && method_->many_answers()) call_->set_many_answers();
  if (service_.gate) {
    if (const auto why_not = service_.gate(head.path, method_ != nullptr, call_->headers(), stream_.certificate().get()))
      return refuse(why_not->status, why_not->message);
  }
  if (!method_) return refuse(GrpcStatus::kUnimplemented, fmt::format("there is no method '{}' here", head.path));
  const Headers& headers = call_->headers();
  if (headers.has("grpc-timeout")) {
    const auto left = parse_grpc_timeout(headers.get("grpc-timeout"));
    if (!left) return refuse(GrpcStatus::kInternal, "grpc-timeout is malformed");
    call_->set_deadline(*left);
  }
  if (const auto name = headers.get("grpc-encoding"); !name.empty() && name != "identity") {
    coding_ = parse_coding(name);
    if (!coding_)
      refuse(GrpcStatus::kUnimplemented, fmt::format("grpc-encoding '{}' is not understood: identity, gzip, deflate and zstd are", name));
  }
}

std::span<char> CallHandler::body_room(std::optional<uint64_t>) {
  if (!call_ || call_->ended() || call_->paused() || dropped_) return {};
  std::string& in = call_->in;
  if (taken_ == filled_) taken_ = filled_ = 0;
  if (skips_ > 0) {
    if (in.size() < kRoom) in.resize(kRoom);
    return {in.data(), static_cast<size_t>(std::min<uint64_t>(skips_, in.size()))};
  }
  size_t want = kRoom;
  if (const size_t have = filled_ - taken_; have >= GrpcPrefix::kBytes) {
    const size_t whole = GrpcPrefix::kBytes + grpc_length(std::string_view(in).substr(taken_));
    if (whole > have)
      want = std::min(whole - have, std::clamp(have, kRoom, kMostRoom));  // a promised length is believed only as far as bytes follow it
  }
  if (taken_ > 0 && filled_ + want > in.size()) {
    in.erase(0, taken_);
    filled_ -= std::exchange(taken_, 0);
  }
  if (filled_ + want > in.size()) {
    const auto& budget = service_.large;
    const size_t counted = filled_ - std::min(filled_, GrpcPrefix::kBytes);  // the largest message has its prefix before it
    dropped_ = budget && !call_->share.resize(budget, budget->with_room(counted, filled_ - counted + want));
    if (dropped_) return {};
    in.resize(filled_ + want);  // what it reserves beyond that is not touched, and no memory yet
  }
  return {in.data() + filled_, want};
}

void CallHandler::on_progress(bool end) {
  end_ = end;
  take_messages();
}

void CallHandler::take_messages() {
  if (std::exchange(taking_, true)) return;  // out of on_message(): the loop below goes on
  const std::shared_ptr<Call> call = call_;
  while (call && !call->ended() && !call->paused()) {
    const auto message = next_message();
    if (message)
      method_->on_message(call, *message);
    else if (!std::exchange(passed_over_, false))
      break;
    if (call == call_ && !call->reading()) let_go_of_large();
  }
  taking_ = false;
  if (!call || call->ended() || call != call_ || call->reading()) return;
  if (dropped_) skip_the_rest();
  if (call->ended() || call != call_ || call->paused()) return;
  if (!end_) return ask_more();
  if (taken_ < filled_ || skips_ > 0) return refuse(GrpcStatus::kInternal, "the body ends within a message");
  if (method_->many_messages()) return method_->on_half_close(call);
  if (messages_ == 0) refuse(GrpcStatus::kInternal, "the call has no message");
}

void CallHandler::on_read() {
  if (!unpacked_) let_go_of_large();
  take_messages();
}

std::optional<std::string_view> CallHandler::next_message() {
  if (unpacked_) return unpacked_message();
  const std::string_view bytes = std::string_view(call_->in).substr(taken_, filled_ - taken_);
  if (bytes.size() < GrpcPrefix::kBytes) return std::nullopt;
  const auto prefix = read_grpc_prefix(bytes);
  if (!prefix) {
    refuse(GrpcStatus::kInternal, "what is before a message is no prefix");
    return std::nullopt;
  }
  if (prefix->length > service_.message_bytes) {
    refuse_too_large(fmt::format("a message of {} bytes", prefix->length), service_.message_bytes);
    return std::nullopt;
  }
  const size_t whole = GrpcPrefix::kBytes + prefix->length;
  if (bytes.size() < whole) return std::nullopt;
  if (!method_->many_messages()) {
    if (bytes.size() > whole) {
      refuse(GrpcStatus::kInternal, "this method takes one message");
      return std::nullopt;
    }
    if (!end_) return std::nullopt;  // it may not be the only one
  }
  taken_ += whole;
  ++messages_;
  const std::string_view message = bytes.substr(GrpcPrefix::kBytes, prefix->length);
  if (!prefix->compressed) return message;
  if (!coding_) {
    refuse(GrpcStatus::kInternal, "a message is marked as compressed, but there is no grpc-encoding");
    return std::nullopt;
  }
  return unpack_message(message);
}

size_t CallHandler::most_unpacked() const {
  const auto& budget = service_.large;
  return budget ? std::min(service_.message_bytes, budget->most() - std::min(call_->in.size(), budget->most())) : service_.message_bytes;
}

std::optional<std::string_view> CallHandler::unpack_message(std::string_view packed) {
  const auto work = [call = call_, packed, coding = *coding_, budget = service_.large](size_t most) {
    return unpack(coding, packed, most, {.share = call->share, .budget = budget, .beside = call->in.size()});
  };
  const size_t most = most_unpacked();
  if (packed.size() <= kMostOnIo) {
    unpacked_ = work(std::min(most, kMostOnIo));
    if (*unpacked_ || unpacked_->error().code != Code::kTooLarge || most <= kMostOnIo) return unpacked_message();
    unpacked_.reset();
  }
  const auto large = std::make_shared<Result<std::string>>(Error{Code::kOverloaded, "not unpacked"});  // where that throws
  call_->read_aside([=] { *large = work(most); },
                    [large, call = call_, this] {
                      if (!call->ended()) unpacked_ = std::move(*large);  // it is this handler's
                    });
  return std::nullopt;
}

std::optional<std::string_view> CallHandler::unpacked_message() {
  Result<std::string> unpacked = std::move(*std::exchange(unpacked_, std::nullopt));
  if (unpacked) {
    call_->inflated = std::move(*unpacked);
    return call_->inflated;
  }
  switch (unpacked.error().code) {
    case Code::kOverloaded: passed_over_ = pass_over({}); break;
    case Code::kTooLarge: refuse_too_large("a message, once unpacked,", most_unpacked()); break;
    default: refuse(GrpcStatus::kInternal, unpacked.error().message);
  }
  return std::nullopt;
}

bool CallHandler::pass_over(std::string_view beginning) {
  if (method_->many_messages() && method_->on_no_memory(call_, beginning)) return true;
  refuse_no_memory();
  return false;
}

/// Of a message that has begun. The others of its call, which may wait for their answers, have not asked for it.
void CallHandler::skip_the_rest() {
  const std::shared_ptr<Call> call = call_;
  const std::string_view begun = std::string_view(call->in).substr(taken_, filled_ - taken_);
  if (begun.size() < GrpcPrefix::kBytes) return refuse_no_memory();
  if (!pass_over(begun.substr(GrpcPrefix::kBytes)) || call != call_) return;
  skips_ = GrpcPrefix::kBytes + uint64_t{grpc_length(begun)} - begun.size();
  taken_ = filled_;
  let_go_of_message();
}

void CallHandler::let_go_of_message() {
  std::string rest(call_->in, taken_, filled_ - taken_);  // of the next one
  call_->in.swap(rest);
  filled_ -= std::exchange(taken_, 0);
  clear_for_reuse(call_->inflated);
  call_->share.resize(service_.large, filled_);
  dropped_ = false;
}

void CallHandler::refuse_too_large(std::string_view what, size_t most) {
  std::string message = fmt::format("{} is over the limit of {} bytes", what, most);
  if (!service_.message_bytes_from.empty()) message += ": " + service_.message_bytes_from;
  refuse(GrpcStatus::kResourceExhausted, message);
}

void CallHandler::refuse(GrpcStatus status, std::string_view message) {
  const auto call = call_;
  if (!call) return;
  auto gone = std::exchange(call->on_gone, nullptr);
  call->finish(status, message);
  if (gone) gone();
}

}  // namespace

Result<std::unique_ptr<Server>> start_grpc_server(Loops& loops, ServerOptions options, GrpcMethods methods, GrpcGate gate) {
  options.http2 = true;
  const auto service =
      std::make_shared<const CallHandler::Service>(std::move(methods), std::move(gate), options.limits.body_bytes, options.body_bytes_from,
                                                   options.large_bodies, std::vector<Recycler<Call>>(loops.size()));
  return Server::start_streaming(loops, std::move(options), [service](ServerStream& stream) -> std::shared_ptr<RequestHandler> {
    return std::make_shared<CallHandler>(*service, stream);
  });
}

std::string begin_grpc_message(size_t expected_bytes, std::string memory) {
  memory.clear();
  memory.reserve(GrpcPrefix::kBytes + expected_bytes);
  memory.append(GrpcPrefix::kBytes, '\0');
  return memory;
}

void seal_grpc_message(std::string& framed) {
  std::string prefix;
  append_grpc_prefix({.length = static_cast<uint32_t>(framed.size() - GrpcPrefix::kBytes)}, prefix);
  framed.replace(0, GrpcPrefix::kBytes, prefix);
}

std::string grpc_framed(std::string_view message) {
  std::string framed = begin_grpc_message(message.size());
  framed += message;
  seal_grpc_message(framed);
  return framed;
}

}  // namespace serin::net
