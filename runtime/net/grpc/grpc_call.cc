// grpc_call.cc: sends the answers of a call, and ends it.

#include "runtime/net/grpc/grpc_call.h"

#include <fmt/format.h>

namespace serin::net {
namespace {

constexpr size_t kUnsentLimit = size_t{64} << 20;
constexpr std::chrono::seconds kLongestStall{10};  // of a client over that limit that takes nothing
constexpr size_t kMostMessageBytes = INT32_MAX;    // what clients of protobuf can read

}  // namespace

void ServedCall::begin(CallHandler& handler, ServerStream& stream, Headers& headers) {
  handler_ = &handler;
  stream_ = &stream;
  loop_ = &stream.loop();
  std::swap(headers_, headers);
}

void ServedCall::clear() {
  alarm_.leave();
  state = nullptr;
  on_gone = nullptr;
  on_drain = nullptr;
  ended_ = many_answers_ = begun_ = paused_ = last_ = false;
  deadline_ = std::chrono::steady_clock::time_point::max();
  headers_.clear();
  answer_headers_.clear();
  trailers_.clear();
  writing_.clear();
  share.release();
  clear_for_reuse(in);
  clear_for_reuse(inflated);
  clear_for_reuse(out_);
  sent_ = 0;
}

void ServedCall::begin_answer(bool only_head) {
  begun_ = true;
  answer_headers_.set("content-type", "application/grpc");
  answer_headers_.set("grpc-accept-encoding", "identity, gzip, deflate, zstd");
  stream_->begin_answer({.status = 200, .headers = answer_headers_, .length = only_head ? std::optional<uint64_t>(0) : std::nullopt});
}

std::string ServedCall::begin_message(size_t expected_bytes) {
  if (unsent() > 0) return begin_grpc_message(expected_bytes);
  sent_ = 0;
  return begin_grpc_message(expected_bytes, std::exchange(out_, {}));
}

void ServedCall::send(std::string framed) {
  if (ended_ || !stream_) return;
  if (!begun_) begin_answer(false);
  if (framed.size() > kMostMessageBytes)
    return finish(GrpcStatus::kResourceExhausted,
                  fmt::format("the answer takes {} bytes; a gRPC message has at most {}", framed.size(), kMostMessageBytes));
  if (unsent() == 0) {
    out_ = std::move(framed);
    sent_ = 0;
    moved_ = loop_->now();
  } else if (unsent() + framed.size() > kUnsentLimit && loop_->now() - moved_ > kLongestStall) {
    return finish(GrpcStatus::kResourceExhausted, "the client does not read its answers");
  } else {
    out_.erase(0, std::exchange(sent_, 0));
    out_ += framed;
  }
  if (many_answers_) write();  // the only one goes with the status that follows it at once
}

void ServedCall::write() {
  if (!stream_ || !begun_ || (unsent() == 0 && !last_)) return;
  const bool was_crowded = crowded();
  const size_t taken = stream_->write(std::string_view(out_).substr(sent_), last_);
  if (taken > 0) moved_ = loop_->now();
  sent_ += taken;
  if (last_ && unsent() == 0) return handler_->release();
  if (was_crowded && !crowded() && !last_) handler_->take_messages();  // the last: it may end this call
}

void ServedCall::end() {
  ended_ = true;
  alarm_.leave();
  if (reading_) reading_->take();
  for (const auto& turn : writing_) turn->take();
}

void ServedCall::finish(GrpcStatus status, std::string_view message) {
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

void ServedCall::resume() {
  if (!std::exchange(paused_, false) || !handler_) return;
  handler_->take_messages();
}

void ServedCall::read_aside(UniqueFunction<void()> read, UniqueFunction<void()> then) {
  const auto turn = reading_ = std::make_shared<Turn>();
  loop_->aside(
      [turn, read = std::move(read)]() mutable {
        if (turn->take()) read();
      },
      [self = handler_->call(), then = std::move(then)]() mutable {
        self->reading_ = nullptr;
        then();
        if (self->handler_ && !self->reading_) self->handler_->on_read();
      });
}

void ServedCall::write_aside(UniqueFunction<void()> write, UniqueFunction<void()> then) {
  if (ended_) return then();
  const auto turn = writing_.emplace_back(std::make_shared<Turn>());
  loop_->aside(
      [turn, write = std::move(write)]() mutable {
        if (turn->take()) write();
      },
      [self = handler_->call(), turn, then = std::move(then)]() mutable {
        std::erase(self->writing_, turn);
        then();
      });
}

void ServedCall::set_deadline(std::chrono::nanoseconds left) {
  deadline_ = std::chrono::steady_clock::now() + left;
  alarm_.set(loop_->deadlines(), deadline_);
}

void ServedCall::expire() {
  if (!handler_) return;
  const std::shared_ptr<ServedCall> self = handler_->call();  // a call that has not ended is its handler's
  auto gone = std::exchange(on_gone, nullptr);
  finish(GrpcStatus::kDeadlineExceeded, "the deadline passed before the answer was ready");
  if (gone) gone();
}

void ServedCall::detach() {
  handler_ = nullptr;
  stream_ = nullptr;
}

void ServedCall::lose() {
  detach();
  auto gone = std::exchange(on_gone, nullptr);
  const auto kept = std::exchange(state, nullptr);
  end();
  if (gone) gone();
}

}  // namespace serin::net
