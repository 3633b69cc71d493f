// whole_request.h: collects whole requests, calls the handler and sends its answer, whole or in pieces. For the .cc files of net only.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/memory_budget.h"
#include "runtime/base/recycler.h"
#include "runtime/net/content_coding.h"
#include "runtime/net/loop.h"
#include "runtime/net/message/refusal.h"
#include "runtime/net/message/whole_body.h"
#include "runtime/net/responder.h"
#include "runtime/net/server_options.h"
#include "runtime/net/stream.h"

namespace serin::net {

class WholeRequest;

/// One request and its answer, shared by a connection and the Responder of its request; either may end first. Once both have released it,
/// it is reused with its memory: a connection that waits for its next request has none.
struct Responder::State {
  void clear();

  Loop* loop = nullptr;
  std::weak_ptr<WholeRequest> request;  // locked on its io thread only, so that it is also destroyed there
  std::atomic<bool> cancelled{false};
  bool sent = false;                 // belongs to the Responder
  UniqueFunction<void()> on_cancel;  // io thread only, like all below
  Request asked;
  Response answer;  // reused memory for it
};

struct WholeHandler {
  ServerOptions options;
  Handler handle;
  std::vector<Recycler<Responder::State>> exchanges;  // one for each io thread
};

class WholeRequest final : public RequestHandler, public std::enable_shared_from_this<WholeRequest> {
 public:
  WholeRequest(std::shared_ptr<const WholeHandler> handler, ServerStream& stream)
      : handler_(std::move(handler)), stream_(stream), loop_(stream.loop()) {}

  /// Sends the answer to the request of this Responder. A late answer is dropped.
  void answer(const Responder::State& responder, Response response);

  void on_request(Head& head) override;
  std::span<char> body_room(std::optional<uint64_t> left) override;
  void body_filled(size_t bytes) override {
    if (!dropped_) body_.filled(bytes);
  }
  void on_progress(bool end) override;
  void on_writable() override { write(); }
  void on_gone() override;

 private:
  static Status unpack_body(const WholeHandler& handler, Coding coding, Request& request, size_t most);
  static Refusal no_memory();
  void unpack_aside();
  void handle_unpacked(const Status& unpacked);
  void handle();
  /// Answers a request that no handler has seen; only once, even if the client continues to send.
  void refuse(const Refusal& refusal, bool close);
  void refuse_dropped();
  /// Releases a large body that the handler did not move from.
  static void let_go_of_body(Request& request);
  void begin_answer(Response response);
  void send_answer(Response response);
  bool may_pack(Response& response) const;
  static void pack_answer(Coding coding, Response& response);
  void begin_source();
  void write();
  void write_pieces();
  void end_exchange();

  const std::shared_ptr<const WholeHandler> handler_;
  ServerStream& stream_;
  Loop& loop_;
  std::shared_ptr<Responder::State> exchange_;  // from the request's head to the end of its answer
  WholeBody body_;
  MemoryBudget::Share share_;                    // share of the budget for body_
  bool dropped_ = false;                         // there is no memory for the body: its bytes are dropped
  bool refused_ = false;                         // the client has received the refusal
  std::optional<Coding> packed_, wanted_;        // coding of the request, coding for its answer
  std::shared_ptr<Responder::State> responder_;  // the same, until the answer exists
  Response response_;                            // with a source: its body is the piece being written
  size_t written_ = 0;                           // bytes written of response_.body
  bool said_all_ = false;                        // the source has ended
  bool wants_body_ = false;                      // false for HEAD
};

}  // namespace serin::net
