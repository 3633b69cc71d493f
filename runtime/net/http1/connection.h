// connection.h: one HTTP/1.1 client of a server: reads a request, lets the handler answer it, repeats. For the .cc files of net only.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/state_machine.h"
#include "runtime/net/io/inlet.h"
#include "runtime/net/io/io_loop.h"
#include "runtime/net/io/outlet.h"
#include "runtime/net/io/socket.h"
#include "runtime/net/message/listener.h"
#include "runtime/net/stream.h"

namespace serin::net {

/// Everything runs on the io thread that owns the connection.
class Connection final : public Watcher, public ServedConnection, public ServerStream, public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Listener> listener, IoLoop& loop, Socket socket, std::string peer);
  virtual ~Connection() = default;

  void start();
  void close() override;
  /// The next answer is the last; if no request comes within a moment, the connection ends without one.
  void drain() override;

  void on_ready(uint32_t events) override;

  Loop& loop() override { return loop_; }
  const std::string& peer() const override { return peer_; }
  std::shared_ptr<const PeerCertificate> certificate() const override;
  void begin_answer(const AnswerHead& head) override;
  size_t write(std::string_view bytes, bool last) override;
  void set_trailers(const Headers&) override {}  // few HTTP/1.1 clients read trailers
  void read_more() override;
  void abort() override;

 private:
  enum class State : uint8_t {
    kHead,       // waiting for a request or for the rest of its head
    kBody,       // its body arrives; or it was refused, and its end is unknown
    kPaused,     // the handler has no room for more of the body
    kWhole,      // all of it has come; until the end of the answer
    kLingering,  // everything is sent; waits for the peer to close, so that a reset does not destroy the answer
    kClosed
  };
  static constexpr StateSet next(State from) {
    switch (from) {
      case State::kHead: return StateSet(State::kBody, State::kClosed);
      case State::kBody: return StateSet(State::kPaused, State::kWhole, State::kLingering, State::kClosed);
      case State::kPaused: return StateSet(State::kBody, State::kLingering, State::kClosed);
      case State::kWhole: return StateSet(State::kHead, State::kLingering, State::kClosed);
      case State::kLingering: return StateSet(State::kClosed);
      case State::kClosed: break;
    }
    return StateSet();
  }
  enum class Answer : uint8_t {
    kNone,
    kBegun,
    kDone  // its last byte is in outlet_ or sent
  };
  static constexpr StateSet next_answer(Answer from) {
    return StateSet(from == Answer::kNone ? Answer::kBegun : from == Answer::kBegun ? Answer::kDone : Answer::kNone);
  }

  bool in_request() const { return state_.in(State::kBody, State::kPaused, State::kWhole); }

  void process();
  bool advance_head();
  bool advance_request();
  bool advance_body();
  void go_on_with_http2();
  void begin_request();
  void say_continue();
  void refuse(const Refusal& refusal);
  void answer_for_ourselves(const Response& response);
  bool flush();
  void end_answer_if_sent();
  void begin_next();
  void lose_handler();
  void on_deadline();
  void expire(std::chrono::milliseconds after);

  const std::shared_ptr<Listener> listener_;
  Listener::PerLoop& here_;
  IoLoop& loop_;
  Socket socket_;
  const std::string peer_;
  Deadline deadline_;
  Inlet inlet_;
  std::shared_ptr<RequestHandler> handler_;  // made with the first request
  Outlet outlet_{/*writable=*/true};

  StateMachine<State, next> state_{State::kHead};
  StateMachine<Answer, next_answer> answer_{Answer::kNone};
  int status_ = 0;  // status of the answer
  bool processing_ = false;
  bool handled_ = false;  // the handler has the request
  bool fresh_ = true;     // no request has come yet
  bool may_be_http2_;     // the bytes so far may be the HTTP/2 preface
  bool keep_alive_ = true, http10_ = false, head_only_ = false;
};

}  // namespace serin::net
