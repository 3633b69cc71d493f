// h2_server.h: one HTTP/2 client of a server: each of its streams has a handler, which serves one request after the other.
//
// For the .cc files of net only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/state_machine.h"
#include "runtime/net/deadline.h"
#include "runtime/net/http2/h2_session.h"
#include "runtime/net/message/listener.h"
#include "runtime/net/stream.h"

namespace serin::net {

/// The first bytes from every client (RFC 9113, 3.4); no HTTP/1.1 message begins with them.
inline constexpr std::string_view kH2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

class H2ServerStream;

/// Everything runs on the io thread that owns the connection.
class H2ServerConnection final : public H2Session, public ServedConnection {
 public:
  H2ServerConnection(std::shared_ptr<Listener> listener, IoLoop& loop, std::string peer);
  ~H2ServerConnection() override;

  /// Takes a connection whose first bytes, `ahead`, begin with the preface.
  void start(Socket socket, const Intake& intake, std::string_view ahead);
  void drain() override;
  void close() override;

  // For its streams.
  Listener& listener() { return *listener_; }
  Listener::PerLoop& here() { return here_; }
  const std::string& peer() const { return peer_; }
  std::shared_ptr<const PeerCertificate> certificate() const;
  void release(H2ServerStream& stream);

 private:
  H2Stream* accept_stream(int32_t id) override;
  void on_over(std::string_view what) override;
  void on_rest() override;
  void on_alarm();
  void on_age();
  void announce_end();
  void end_drain();
  void expire(Deadline& alarm, std::chrono::milliseconds after);

  const std::shared_ptr<Listener> listener_;
  Listener::PerLoop& here_;
  const std::string peer_;
  std::vector<std::unique_ptr<H2ServerStream>> all_;
  std::vector<H2ServerStream*> free_;
  Deadline alarm_, drain_alarm_, age_alarm_;
  bool idle_ = false, stuck_ = false, lingering_ = false, draining_ = false, aged_ = false;
};

class H2ServerStream final : public H2Stream, public ServerStream {
 public:
  explicit H2ServerStream(H2ServerConnection& connection);

  void begin(int32_t id);
  /// The connection is lost, and its client with it.
  void lose();
  void drain() {
    if (state_.in(State::kHandled)) handler_->on_drain();
  }

  void begin_fields() override;
  void fields_done(bool end) override;
  void advance() override;

  Loop& loop() override { return session_.loop(); }
  const std::string& peer() const override { return connection_.peer(); }
  std::shared_ptr<const PeerCertificate> certificate() const override { return connection_.certificate(); }
  void begin_answer(const AnswerHead& head) override;
  size_t write(std::string_view bytes, bool last) override;
  void set_trailers(const Headers& trailers) override { trailers_ = trailers; }
  void read_more() override { H2Stream::read_more(); }
  void abort() override;

 private:
  enum class State : uint8_t {
    kFree,     // no stream
    kHead,     // its head is not checked yet
    kChecked,  // no handler has the request: it was refused, or the handler is done with it
    kHandled   // the handler has the request
  };
  static constexpr StateSet next(State from) {
    switch (from) {
      case State::kFree: return StateSet(State::kHead);
      case State::kHead: return StateSet(State::kChecked, State::kFree);
      case State::kChecked: return StateSet(State::kHandled, State::kFree);
      case State::kHandled: break;
    }
    return StateSet(State::kChecked, State::kFree);
  }
  enum class Answer : uint8_t { kNone, kBegun, kDone };
  static constexpr StateSet next_answer(Answer from) {
    switch (from) {
      case Answer::kNone: return StateSet(Answer::kBegun);
      case Answer::kBegun: return StateSet(Answer::kDone, Answer::kNone);
      case Answer::kDone: break;
    }
    return StateSet(Answer::kNone);
  }

  BodyHandler* receiver() override { return state_.in(State::kHandled) ? handler_.get() : nullptr; }
  void begin_request();
  std::optional<Refusal> unacceptable();
  void refuse(const Refusal& refusal);
  void answer_for_ourselves(Response response);
  void write_own();
  void finish_answer();
  bool end_handling();
  void lose_handler();
  void on_alarm();
  void arm();

  H2ServerConnection& connection_;
  std::shared_ptr<RequestHandler> handler_;  // made with the first request
  Deadline alarm_;
  std::string own_body_;  // body of an answer that no handler gives
  size_t own_sent_ = 0;
  uint64_t most_ = 0;  // limit for the body
  int status_ = 0;
  StateMachine<State, next> state_{State::kFree};
  StateMachine<Answer, next_answer> answer_{Answer::kNone};
  bool grpc_ = false, head_only_ = false;                  // facts of the request
  bool answer_bodyless_ = false, answers_itself_ = false;  // facts of the answer
};

}  // namespace serin::net
