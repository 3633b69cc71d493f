// grpc_call.h: one gRPC call, and the handler of an HTTP/2 stream that serves one call after the other. For the .cc files of net only.
//
// grpc_call.cc sends the answers of a call; grpc_server.cc reads the client's messages.
//
// A call is shared with the code that answers it and may outlive its place in the handler. So a late answer meets a call that has ended,
// and never the next one. It leaves the handler with the last byte that the stream takes. It is reused, with its buffers, once no other
// pointer to it exists: a stream that waits for its next call has none.
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
#include "runtime/net/grpc_method.h"
#include "runtime/net/loop.h"
#include "runtime/net/stream.h"

namespace serin::net {

class CallHandler;

/// It is not a std::enable_shared_from_this: a reused object would keep alive the Recycler that contains it.
class ServedCall final : public GrpcCall {
 public:
  ServedCall() : alarm_(this, [](void* self) { static_cast<ServedCall*>(self)->expire(); }) {}
  void begin(CallHandler& handler, ServerStream& stream, Headers& headers);
  void clear();

  const Headers& headers() const override { return headers_; }
  Loop& loop() override { return *loop_; }
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
  /// The stream no longer belongs to this call.
  void detach();
  void lose();

  // For the handler:
  std::string in, inflated;   // `in`: received bytes, possibly with room after them; `inflated`: the decompressed message
  MemoryBudget::Share share;  // share of the budget for both

 private:
  static constexpr size_t kCrowded = size_t{8} << 20;  // limit for queued answers; above it no further message is read
  size_t unsent() const { return out_.size() - sent_; }
  bool crowded() const { return many_answers_ && unsent() > kCrowded; }
  void begin_answer(bool only_head);
  void expire();
  void end();

  CallHandler* handler_ = nullptr;  // null once detached
  ServerStream* stream_ = nullptr;  // null when handler_ is
  Loop* loop_ = nullptr;
  Headers headers_, answer_headers_, trailers_;
  bool many_answers_ = false;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  Deadline alarm_;
  std::shared_ptr<Turn> reading_;               // a message that is read on a helper thread
  std::vector<std::shared_ptr<Turn>> writing_;  // answers that are written on helper threads
  std::string out_;                             // framed bytes; the stream has taken those before sent_
  size_t sent_ = 0;
  std::chrono::steady_clock::time_point moved_{};  // when the stream last took some of it
  bool begun_ = false, paused_ = false, last_ = false;
};

class CallHandler final : public RequestHandler {
 public:
  struct Service {
    GrpcMethods methods;
    GrpcGate gate;
    size_t message_bytes;                     ///< limit for one message
    std::string message_bytes_from;           ///< as ServerOptions::body_bytes_from
    std::shared_ptr<MemoryBudget> large;      ///< budget for messages beyond the size that each may have; null: none
    std::vector<Recycler<ServedCall>> calls;  ///< one for each io thread
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
  /// A message was read on a helper thread.
  void on_read();
  void ask_more() { stream_.read_more(); }
  /// The stream has taken everything that the call sends.
  void release() { call_->detach(), call_ = nullptr; }
  const std::shared_ptr<ServedCall>& call() const { return call_; }

 private:
  static constexpr size_t kMostKept = size_t{8} << 20;  // memory kept for the next message, after one was read
  void refuse(GrpcStatus status, std::string_view message);
  /// Returns the next complete message; nothing if there is none, or if the call was refused because of it.
  std::optional<std::string_view> next_message();
  std::optional<std::string_view> unpack_message(std::string_view packed);
  /// Likewise.
  std::optional<std::string_view> unpacked_message();
  size_t most_unpacked() const;
  void refuse_too_large(std::string_view what, size_t most);
  void refuse_no_memory() { refuse(GrpcStatus::kResourceExhausted, "too many large messages are under way; try again"); }
  /// Whether the call continues without the message that begins like this.
  bool pass_over(std::string_view beginning);
  void skip_the_rest();
  /// Releases the memory of a message that was read; its reader keeps the results.
  void let_go_of_message();
  void let_go_of_large() {
    if (!call_->share.small() || call_->in.size() > kMostKept) let_go_of_message();
  }

  const Service& service_;
  ServerStream& stream_;
  GrpcMethod* method_ = nullptr;
  std::shared_ptr<ServedCall> call_;
  size_t filled_ = 0, taken_ = 0;  // positions in the call's `in`
  uint64_t messages_ = 0;
  bool end_ = false, taking_ = false;
  bool dropped_ = false;      // there is no memory for the incoming bytes
  bool passed_over_ = false;  // the last message was skipped for lack of memory; the call continues
  uint64_t skips_ = 0;        // bytes still to come of a skipped message
  std::optional<Coding> coding_;
  std::optional<Result<std::string>> unpacked_;  // the next message
};

}  // namespace serin::net
