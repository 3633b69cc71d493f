// exchange.h: The requests of one HTTP/1.1 connection, or of one HTTP/2 stream, in the router, one after the other, on one io thread.
//
//   drawn -> attempt on an arm -> answer good ----------------------------> client
//                              -> failed or refused on the canary -> shield: attempt on stable -> client
//                              -> endpoint fails without an answer -> failover: another endpoint of the version, once -> client
//                              -> slow on the canary -> hedge: second attempt on stable, the first good answer -> client
//                              -> endpoint fails its health check meanwhile -> rescue: the same on another endpoint of the version
//            (stable's answer, sampled) -> mirrored to the canary, compared; the client has its answer already
//
// gRPC calls take the same paths. A call's model may be named only in its first message. The call is then placed after that message has
// arrived. In streams of messages an answer is held until its first message only, because the time of the next one is unknown.
//
// Bodies stream both ways. Up to 1 MiB of a request is held, so that it can be sent a second time. Up to 1 MiB of a canary's answer is
// held, so that it can be judged before the client sees it. Everything else passes through a window of 256 KiB. After the first byte of an
// answer has gone to the client there are no retries.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "router/proxy/attempt.h"
#include "router/proxy/classify.h"
#include "router/proxy/placing.h"
#include "router/proxy/pool.h"
#include "router/proxy/rewrite.h"
#include "router/proxy/service.h"
#include "router/proxy/shadow.h"
#include "runtime/base/state_machine.h"
#include "runtime/net/buffer.h"
#include "runtime/net/deadline.h"
#include "runtime/net/stream.h"

namespace serin::router {

/// One io thread, with the objects that its exchanges use again.
struct Workplace {
  Workplace(net::Loop& loop, uint64_t seed) : lane(loop, seed) {}
  Lane lane;
  Pool<Attempt> attempts{lane};
  Pool<Shadow> shadows{lane};
  protocol::JsonPointerReader json;
};

class Exchange final : public net::RequestHandler, public Attempt::Owner {
 public:
  Exchange(Router& router, Workplace& place, net::ServerStream& client);
  ~Exchange() override;

  // net::RequestHandler
  void on_request(net::Head& head) override;
  std::span<char> body_room(std::optional<uint64_t> left) override;
  void body_filled(size_t bytes) override { body_.filled(bytes); }
  void on_progress(bool end) override;
  void on_writable() override;
  void on_gone() override;

  // Attempt::Owner
  void on_answer_progress(Attempt& attempt) override;
  void on_request_writable(Attempt& attempt) override { send_body(attempt); }
  bool can_send_again() const override { return discarded_ == 0; }
  void send_request(Attempt& attempt) override;

 private:
  enum class State : uint8_t {
    kIdle,        // no request, or its client is gone: what still comes of it is dropped
    kNaming,      // a call whose first message will name the model
    kPlaced,      // its version is drawn; enough of the body for an attempt is still to come
    kTrying,      // one attempt or two are under way, and the client has nothing yet
    kDelivering,  // the client gets the answer of one
    kOwn          // the client gets an answer of the router
  };
  static constexpr StateSet next(State from) {
    switch (from) {
      case State::kIdle: return StateSet(State::kNaming, State::kPlaced, State::kOwn, State::kIdle);
      case State::kNaming: return StateSet(State::kPlaced, State::kOwn, State::kIdle);
      case State::kPlaced: return StateSet(State::kTrying, State::kOwn, State::kIdle);
      case State::kTrying: return StateSet(State::kDelivering, State::kOwn, State::kIdle);
      case State::kDelivering:
      case State::kOwn: break;
    }
    return StateSet(State::kIdle);
  }

  // routing
  void route(Service* service);
  void begin_call(net::Head& head);
  bool name_model(bool complete);
  bool take_time(const net::Headers& headers, Time now);
  void refuse(int status, std::string_view message);
  void answer_ourselves(net::Response response);

  // attempts
  bool can_start(bool end) const;
  void classify_for(Placement& placement, bool end);
  bool body_decides_class() const;
  void extend(Attempt& attempt);
  void attempt(size_t version, Purpose purpose, const EndpointState* avoid = nullptr);
  bool begin(size_t version, Purpose purpose, const EndpointState* avoid);
  void send_body(Attempt& attempt);
  bool is_for_another(Attempt& attempt);
  bool second_try_allowed(double share);

  // answers
  void resolved(Attempt& attempt);
  bool try_again(Attempt& attempt);
  void drop(Attempt& attempt);
  void forget(const Attempt& attempt);
  void plan_hedge();
  void plan_rescue();
  void hedge_or_rescue();
  void hedge();
  void rescue();
  void take_back_second_try();
  void deliver(Attempt& attempt);
  void pass_on(Attempt& attempt);
  void record(const Attempt& attempt);
  bool awaits_label() const { return !placed_.assigned.empty() && !service_->predictions.empty() && !target_.streams; }
  std::optional<std::string_view> whole_body() const;
  void name_request(net::Headers& answer);
  void remember(Attempt* answered);
  void mirror(Attempt& attempt);
  void finish(Attempt& attempt);

  // the router's own answers
  void fail(size_t version, Code code, std::string_view what);
  void end_call(size_t version, const net::Failure& failure);
  void send_own();
  void end_request();

  Router& router_;
  Workplace& place_;
  Lane& lane_;
  net::ServerStream& client_;
  net::Deadline hedge_alarm_;
  std::string scratch_;

  // State of the request in progress.
  net::Head* request_ = nullptr;
  Service* service_ = nullptr;  // null: answered locally
  Target target_;
  std::string model_;  // if the first message named it
  Placed placed_;
  Time deadline_;
  net::Buffer body_;        // of the request, from `discarded_` on
  uint64_t discarded_ = 0;  // bytes of it already discarded, because it is too large to keep
  std::optional<uint64_t> length_;
  Attempt *first_ = nullptr, *second_ = nullptr;  // second: shield, failover or hedge
  Attempt* delivering_ = nullptr;                 // the client gets its answer
  size_t passed_ = 0;                             // bytes of its body sent, if the body is kept
  std::string request_id_;                        // by which a label may come for it
  net::Response own_;                             // the router's answer
  size_t own_sent_ = 0;
  StateMachine<State, next> state_{State::kIdle};
  bool body_done_ = false;    // the client has sent all of it
  bool tried_twice_ = false;  // there is no third attempt
};

}  // namespace serin::router
