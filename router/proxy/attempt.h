// attempt.h: One request on its way to one endpoint, and its answer.
//
// It is made for an Exchange, which it may outlive. If stable has already served the client, an attempt on the canary continues until it
// can be judged.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "router/proxy/grpc_call.h"
#include "router/proxy/pool.h"
#include "router/proxy/rewrite.h"
#include "router/proxy/service.h"
#include "router/rollout/draw.h"
#include "runtime/base/state_machine.h"
#include "runtime/net/buffer.h"
#include "runtime/net/deadline.h"
#include "runtime/net/stream.h"

namespace serin::router {

enum class Purpose : uint8_t { kDrawn, kFallback, kForced, kShield, kFailover, kHedge };

/// The placement of a request; the same for all of its attempts.
struct Placement {
  Service* track = nullptr;  ///< of the rollout: the service or one of its further tracks
  Split split;
  std::shared_ptr<const rollout::Spec> spec;  ///< of the running rollout; null: none
  rollout::Draw draw;
  rollout::Classes classes;
  bool judged = false;  ///< both arms were eligible at the draw: the first attempt is evidence
  /// Of a request that stable gets while several rollouts of the service run: what it is to the others.
  std::vector<Placement> others;
};

class Attempt final : public net::AnswerHandler {
 public:
  /// The object the attempt is made for. Calls come from the io loop, never from inside a call to the attempt.
  class Owner {
   public:
    /// More of an answer, its end, a failure, or the guard's deadline has passed (overdue()).
    virtual void on_answer_progress(Attempt& attempt) = 0;
    virtual void on_request_writable(Attempt& attempt) = 0;
    /// Whether send_request() can be called again, from the beginning of the body.
    virtual bool can_send_again() const = 0;
    virtual void send_request(Attempt& attempt) = 0;

   protected:
    ~Owner() = default;
  };

  Attempt(Lane& lane, Pool<Attempt>& pool);

  /// False: the version has no available endpoint.
  bool start(Owner& owner, Service& service, const Target& target, size_t version, Purpose purpose, const Placement& placement,
             Time deadline, const EndpointState* avoid);
  void send_head(const net::Head& request, const Target& target, std::optional<uint64_t> length);
  /// Null after it has ended.
  net::ClientStream* stream() { return stream_; }
  /// Sends a part of the request's body, as net::ClientStream::write().
  size_t write(std::string_view bytes, bool last);

  /// The available part of the request has been sent and its client owes the rest: that time counts for the client and for no version.
  void wait_for_client(bool waits);

  /// The owner no longer needs it. It is invalid after this.
  void release();
  /// The same, but if it is still evidence it continues by itself. `rest`: the part of the request's body that is not sent yet.
  void release_to_judge(std::string_view rest);

  // The answer so far.
  bool ended() const { return state_.in(State::kAnswered, State::kFailed, State::kCutOff); }
  bool overdue() const { return !ended() && outcome_ == rollout::Outcome::kDeadline; }
  bool answered() const { return state_.in(State::kAnswering, State::kAnswered, State::kCutOff); }  ///< the head has arrived
  const net::Failure* failure() const { return state_.in(State::kFailed, State::kCutOff) ? &failure_ : nullptr; }
  int status() const { return status_; }
  net::Head& answer() { return answer_; }
  net::Buffer& body() { return body_; }
  const net::Headers& trailers() const { return trailers_; }
  net::GrpcStatus grpc_status() const { return grpc_status_; }  ///< of a gRPC call that has ended
  rollout::Outcome outcome() const { return outcome_; }

  size_t version() const { return version_; }
  Purpose purpose() const { return purpose_; }
  const std::shared_ptr<EndpointState>& endpoint() const { return endpoint_; }
  bool on_canary() const { return placement_.split.canary == version_ && version_ != placement_.split.stable; }

  uint64_t sent = 0;  ///< of the request's body: counted by the owner
  /// Keeps the whole body of the answer (up to kKeptBytes). Otherwise the owner consumes it as it arrives.
  bool keep_body = false;
  static constexpr size_t kKeptBytes = size_t{1} << 20;
  static constexpr size_t kWindowBytes = size_t{256} << 10;

  // net::AnswerHandler
  void on_answer(net::Head& head) override;
  void on_trailers(net::Headers& trailers) override { std::swap(trailers_, trailers); }
  void on_excess() override { malformed_ = true; }
  std::span<char> body_room(std::optional<uint64_t> left) override;
  void body_filled(size_t bytes) override { body_.filled(bytes); }
  void on_progress(bool end) override;
  void on_writable() override;
  void on_failure(const net::Failure& failure) override;

 private:
  enum class State : uint8_t {
    kFree,       // not started, or recycled
    kAsked,      // the request is on its way
    kAnswering,  // the head of the answer has arrived
    kAnswered,   // all of it has arrived
    kFailed,     // there will be no answer
    kCutOff      // it failed in the middle of the answer
  };
  static constexpr StateSet next(State from) {
    switch (from) {
      case State::kFree: return StateSet(State::kAsked);
      case State::kAsked: return StateSet(State::kAnswering, State::kFailed, State::kFree);
      case State::kAnswering: return StateSet(State::kAnswered, State::kCutOff, State::kFree);
      default: return StateSet(State::kFree);
    }
  }

  void set_alarm();
  void on_alarm();
  void end();
  void read_grpc_status();
  void look_at_answer();
  bool observe(rollout::Outcome outcome, std::chrono::nanoseconds latency, rollout::Ending ending);
  bool judged_for_any() const;
  void observe_for(const Placement& placement, rollout::Observation& seen);
  void observe_for_other(const Placement& other, rollout::Observation seen);
  void ask_for_life();
  void recycle();

  Lane& lane_;
  Pool<Attempt>& pool_;
  net::Deadline alarm_;  // the guard's: if it is still in flight then, that is a bad event
  Owner* owner_ = nullptr;
  Service* service_ = nullptr;
  size_t version_ = 0;
  Purpose purpose_ = Purpose::kDrawn;
  Placement placement_;
  std::shared_ptr<EndpointState> endpoint_;
  net::ClientStream* stream_ = nullptr;  // null: none in progress
  Time started_, deadline_;
  Time waits_since_;                                       // for the client; Time(): it does not wait
  std::chrono::nanoseconds client_time_{0};                // total until then
  std::optional<std::chrono::nanoseconds> first_latency_;  // to the first message, if they stream
  std::string target_, failure_text_;
  net::Head answer_;  // taken from the stream, which will be reused for another one
  net::Headers trailers_;
  net::GrpcStatus grpc_status_ = net::GrpcStatus::kOk;
  MessageNamer namer_;
  net::Buffer named_;  // the request with its new name, not sent yet
  net::Buffer body_;
  net::Buffer rest_;  // of the request, if there is no longer an owner to send it
  net::Failure failure_;
  rollout::Outcome outcome_ = rollout::Outcome::kOk;
  rollout::Outcome outcome_unread_ = rollout::Outcome::kOk;  // before the body was inspected
  std::optional<rollout::Output> output_;                    // if the body was inspected
  int status_ = 0;
  bool grpc_ = false, streams_ = false;            // facts of the request
  bool malformed_ = false;                         // more came than was announced
  bool observed_ = false, retried_stale_ = false;  // each happens at most once
  StateMachine<State, next> state_{State::kFree};
};

}  // namespace serin::router
