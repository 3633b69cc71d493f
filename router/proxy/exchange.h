// exchange.h: the requests of one client connection in the router, one after the other, on one io thread.
//
//   drawn -> attempt on an arm -> answer good ----------------------------> client
//                              -> failed or refused on the canary -> shield: attempt on stable -> client
//                              -> endpoint gone without an answer -> failover: another endpoint of the version, once -> client
//                              -> slow on the canary -> hedge: attempt on stable beside it, the first good answer -> client
//            (stable's answer, sampled) -> mirrored to the canary, compared; the client has long been answered
//
// Calls of gRPC go the same ways. Whose a call is may stand in its first message only: then it is placed once that much has come. Where messages
// stream, an answer is held until its first message only, for nobody knows when the next one comes.
//
// Bodies stream both ways. What may have to be sent a second time (up to 1 MiB of a request) or judged before the client sees it (an answer of the
// canary, up to 1 MiB) is held; everything else passes through a window of 256 KiB. Once a byte of an answer has gone to the client
// nothing is tried again.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "router/proxy/attempt.h"
#include "router/proxy/placing.h"
#include "router/proxy/rewrite.h"
#include "router/proxy/service.h"
#include "runtime/net/buffer.h"
#include "runtime/net/deadline.h"
#include "runtime/net/stream.h"

namespace serin::router {

class Exchange final : public net::RequestHandler, public Attempt::Owner {
 public:
  Exchange(Router& router, Lane& lane, net::ServerStream& client);
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
  // whose it is
  void route(Service* service);
  void begin_call(net::Head& head);
  bool name_model(bool complete);
  bool take_time(const net::Headers& headers, Time now);
  void refuse(int status, std::string_view message);

  // attempts
  bool can_start(bool end) const;
  void extend(Attempt& attempt);
  void attempt(size_t version, Purpose purpose, const EndpointState* avoid = nullptr);
  bool begin(size_t version, Purpose purpose, const EndpointState* avoid);
  void send_body(Attempt& attempt);
  bool second_try_allowed(double share);

  // answers
  void resolved(Attempt& attempt);
  bool try_again(Attempt& attempt);
  void drop(Attempt& attempt);
  void forget(const Attempt& attempt);
  void plan_hedge();
  void hedge();
  void deliver(Attempt& attempt);
  void pass_on(Attempt& attempt);
  void mirror(Attempt& attempt);
  void finish(Attempt& attempt);

  // answers of our own
  void fail(size_t version, Code code, std::string_view what);
  void end_call(size_t version, const net::Failure& failure);
  void send_local();
  void end_request();

  Router& router_;
  Lane& lane_;
  net::ServerStream& client_;
  net::Deadline hedge_alarm_;
  std::string scratch_;

  // Of the request in progress.
  net::Head* request_ = nullptr;
  Service* service_ = nullptr;  // null: answered locally
  Target target_;
  std::string model_;  // where the first message named it
  Placed placed_;
  Time deadline_;
  net::Buffer body_;        // of the request, from `discarded_` on
  uint64_t discarded_ = 0;  // bytes of it that are gone, because it is too large to be kept
  std::optional<uint64_t> length_;
  Attempt *first_ = nullptr, *second_ = nullptr;  // second: shield, failover or hedge
  Attempt* delivering_ = nullptr;                 // whose answer the client gets
  size_t passed_ = 0;                             // of its body, where that is kept
  std::optional<net::Response> local_;
  size_t local_sent_ = 0;
  bool naming_ = false;  // the first message is to say whose it is
  bool body_done_ = false, started_ = false, tried_twice_ = false;
};

}  // namespace serin::router
