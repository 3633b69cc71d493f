// grpc_call.h: one call of gRPC and the handler of a stream of HTTP/2 that serves one after the other: what a call says goes out here (grpc_call.cc), what its client
// says comes in there (grpc_server.cc). For the .cc files of net only.
//
// A call is shared with who answers it and may outlive its place in the handler, so that a late answer meets a call that knows it is over, and never the next one. It
// leaves the handler with the last byte that the stream takes, and is used again, with its buffers, once nobody else holds it: a stream that waits for its next call
// holds none.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/memory_budget.h"
#include "runtime/base/recycler.h"
#include "runtime/net/content_coding.h"
#include "runtime/net/deadline.h"
#include "runtime/net/grpc_server.h"
#include "runtime/net/loop.h"
#include "runtime/net/stream.h"

namespace serin::net {

class CallHandler;

/// No std::enable_shared_from_this: what is used again would hold the Recycler that holds it.
class ServedCall final : public GrpcCall {
 public:
  ServedCall() : alarm_(this, [](void* self) { static_cast<ServedCall*>(self)->expire(); }) {}
  void begin(CallHandler& handler, ServerStream& stream, Headers& headers);
  void clear();

  const Headers& headers() const override { return headers_; }
  std::chrono::steady_clock::time_point deadline() const override { return deadline_; }
  void set_header(std::string_view name, std::string_view value) override { answer_headers_.set(name, value); }
  std::string begin_message(size_t expected_bytes) override;
  void send(std::string framed) override;
  void finish(GrpcStatus status, std::string_view message) override;
  void pause() override { paused_ = true; }
  void resume() override;
  void read_aside(UniqueFunction<void()> read, UniqueFunction<void()> then) override;
  void write_aside(UniqueFunction<void()> write, UniqueFunction<void()> then) override;

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
  static constexpr size_t kCrowded = size_t{8} << 20;  // answers that wait for one another; over it no further message is taken
  size_t unsent() const { return out_.size() - sent_; }
  bool crowded() const { return many_answers_ && unsent() > kCrowded; }
  void begin_answer(bool only_head);
  void expire();
  void end();

  CallHandler* handler_ = nullptr;  // null once detached
  ServerStream* stream_ = nullptr;  // with it
  Headers headers_, answer_headers_, trailers_;
  bool many_answers_ = false;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  Deadline alarm_;
  std::shared_ptr<Turn> reading_;               // a message, beside the io threads
  std::vector<std::shared_ptr<Turn>> writing_;  // answers, likewise
  std::string out_;                             // framed, not taken by the stream yet from sent_ on
  size_t sent_ = 0;
  std::chrono::steady_clock::time_point moved_{};  // when the stream last took some of it
  bool begun_ = false, paused_ = false, last_ = false;
};

class CallHandler final : public RequestHandler {
 public:
  struct Service {
    GrpcMethods methods;
    GrpcGate gate;
    size_t message_bytes;                     ///< at most
    std::string message_bytes_from;           ///< as ServerOptions::body_bytes_from
    std::shared_ptr<MemoryBudget> large;      ///< what messages share beyond what each may have; null: nothing
    std::vector<Recycler<ServedCall>> calls;  ///< of each io thread
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
  const std::shared_ptr<ServedCall>& call() const { return call_; }

 private:
  static constexpr size_t kMostKept = size_t{8} << 20;  // for the next message, by a call that has read one
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
  std::shared_ptr<ServedCall> call_;
  size_t filled_ = 0, taken_ = 0;  // of what is in the call
  uint64_t messages_ = 0;
  bool end_ = false, taking_ = false;
  bool dropped_ = false;      // there is no memory for what comes
  bool passed_over_ = false;  // what was read last is no message, for want of memory; the call goes on
  uint64_t skips_ = 0;        // bytes to come of a message that was passed over
  std::optional<Coding> coding_;
  std::optional<Result<std::string>> unpacked_;  // the message that comes next
};

}  // namespace serin::net
