// kept_call.h: A request to one endpoint that no client waits for, and its answer, kept to be compared with another one.
#pragma once

#include <string>

#include "router/proxy/answer_outcome.h"
#include "router/proxy/service.h"
#include "runtime/net/buffer.h"
#include "runtime/net/stream.h"

namespace serin::router {

class KeptCall final : public net::AnswerHandler {
 public:
  class Owner {
   public:
    /// The call has ended, and half() says how. `ours`: it failed for a want of the router's own, which says nothing about the endpoint.
    virtual void on_end(KeptCall& call, bool ours) = 0;

   protected:
    ~Owner() = default;
  };

  KeptCall(Lane& lane, Owner& owner) : lane_(lane), owner_(owner) {}
  ~KeptCall();

  /// The request is marked with x-serin-shadow. Its `headers` are sent as they are.
  void start(const Service& service, EndpointState& endpoint, const net::Head& request, const Target& target, net::Buffer&& body);
  Half& half() { return half_; }
  /// Ready for the next one; the memory goes back to the lane.
  void clear();

  // net::AnswerHandler
  void on_answer(net::Head& head) override { half_.take_head(head.status, head.headers); }
  void on_trailers(net::Headers& trailers) override { half_.take_trailers(trailers); }
  void on_excess() override { half_.malformed = true; }
  std::span<char> body_room(std::optional<uint64_t> left) override;
  void body_filled(size_t bytes) override { half_.body.filled(bytes); }
  void on_progress(bool end) override;
  void on_writable() override { write(); }
  void on_failure(const net::Failure& failure) override;

 private:
  void name_messages(const Target& target, const Endpoint& endpoint);
  void write();

  Lane& lane_;
  Owner& owner_;
  Half half_;
  std::string target_;
  net::Buffer request_;
  net::ClientStream* stream_ = nullptr;
  bool too_large_ = false;  // the answer: it is bounded, and only a part of it is kept
};

}  // namespace serin::router
