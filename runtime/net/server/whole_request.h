// whole_request.h: for servers whose handler wants requests whole: collects one, calls the handler, sends what its Responder is given, whole or
// piece by piece.
// For the .cc files of net only.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/memory_budget.h"
#include "runtime/base/recycler.h"
#include "runtime/net/content_coding.h"
#include "runtime/net/io/loop_impl.h"
#include "runtime/net/message/refusal.h"
#include "runtime/net/message/whole_body.h"
#include "runtime/net/server.h"

namespace serin::net {

class WholeRequest;

/// One request and its answer. Shared by a connection and the Responder of its request; the connection may end first, and so may the Responder. Once both let go
/// of it, it is used again, with its memory: a connection that waits for its next request holds none.
struct Responder::State {
  void clear();

  Loops::Loop* loop = nullptr;
  std::weak_ptr<WholeRequest> request;  // locked on its io thread only, so that it also ends there
  std::atomic<bool> cancelled{false};
  bool sent = false;                 // belongs to the Responder
  UniqueFunction<void()> on_cancel;  // io thread only, as all below
  Request asked;
  Response answer;  // memory for it
};

struct WholeHandler {
  ServerOptions options;
  Handler handle;
  std::vector<Recycler<Responder::State>> exchanges;  // of each io thread
};

class WholeRequest final : public RequestHandler, public std::enable_shared_from_this<WholeRequest> {
 public:
  WholeRequest(std::shared_ptr<const WholeHandler> handler, ServerStream& stream, Loops::Loop& loop)
      : handler_(std::move(handler)), stream_(stream), loop_(loop) {}

  /// The answer to the request whose Responder this was; too late, it is dropped.
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
  /// What no handler has seen; once, though the client may send on.
  void refuse(const Refusal& refusal, bool close);
  void refuse_dropped();
  /// A large body that the handler has left where it was.
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
  Loops::Loop& loop_;
  std::shared_ptr<Responder::State> exchange_;  // from the request's head to the end of its answer
  WholeBody body_;
  MemoryBudget::Share share_;                    // of body_
  bool dropped_ = false;                         // there is no memory for the body: what comes of it is not kept
  bool refused_ = false;                         // and the client was told
  std::optional<Coding> packed_, wanted_;        // how it came, how its answer may go
  std::shared_ptr<Responder::State> responder_;  // the same, until the answer is there
  Response response_;                            // with a source: its body is the piece that is being written
  size_t written_ = 0;                           // of response_.body
  bool said_all_ = false;                        // the source has come to its end
  bool wants_body_ = false;                      // not HEAD
};

}  // namespace serin::net
