// grpc_server.cc: a handler of HTTP/2 streams that cuts the body into messages.

#include "runtime/net/grpc_server.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/net/buffer.h"
#include "runtime/net/grpc/grpc_call.h"

namespace serin::net {
namespace {

constexpr size_t kRoom = size_t{16} << 10;     // for what comes next, whatever it is
constexpr size_t kMostRoom = size_t{1} << 20;  // for what is promised

}  // namespace

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
  call_ = service_.calls[stream_.loop().index()].take();
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
      refuse(GrpcStatus::kUnimplemented, fmt::format("grpc-encoding '{}' is not supported: identity, gzip, deflate and zstd are", name));
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
  size_t want = kRoom, whole = 0;
  if (const size_t have = filled_ - taken_; have >= GrpcPrefix::kBytes) {
    whole = GrpcPrefix::kBytes + grpc_length(std::string_view(in).substr(taken_));
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
    grow(in, filled_ + want, taken_ + whole);
  }
  return {in.data() + filled_, want};
}

void CallHandler::on_progress(bool end) {
  end_ = end;
  take_messages();
}

void CallHandler::take_messages() {
  if (std::exchange(taking_, true)) return;  // out of on_message(): the loop below goes on
  const std::shared_ptr<ServedCall> call = call_;
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
    refuse(GrpcStatus::kInternal, "the prefix of a message is malformed");
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
  const auto large = std::make_shared<Result<std::string>>(Error{Code::kOverloaded, "not decompressed"});  // where that throws
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
  const std::shared_ptr<ServedCall> call = call_;
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

Result<std::unique_ptr<Server>> start_grpc_server(Loops& loops, ServerOptions options, GrpcMethods methods, GrpcGate gate) {
  options.http2 = true;
  const auto service =
      std::make_shared<const CallHandler::Service>(std::move(methods), std::move(gate), options.limits.body_bytes, options.body_bytes_from,
                                                   options.large_bodies, std::vector<Recycler<ServedCall>>(loops.size()));
  return Server::start_streaming(loops, std::move(options), [service](ServerStream& stream) -> std::shared_ptr<RequestHandler> {
    return std::make_shared<CallHandler>(*service, stream);
  });
}

}  // namespace serin::net
