// kept_call.cc: an answer is bounded as that of an attempt is; one that is larger cannot be the same.

#include "router/proxy/kept_call.h"

#include <algorithm>

#include "router/proxy/attempt.h"
#include "router/proxy/grpc_call.h"

namespace serin::router {

KeptCall::~KeptCall() {
  if (stream_ != nullptr) stream_->cancel();
}

void KeptCall::start(const Service& service, EndpointState& endpoint, const net::Head& request, const Target& target, net::Buffer&& body) {
  half_.call = target.grpc;
  half_.body = lane_.buffers().take();
  request_ = std::move(body);
  if (target.naming != Naming::kNone) name_messages(target, endpoint.config);
  write_target(request, target, endpoint.config, target_);
  stream_ = &lane_.upstream(endpoint, target.grpc).open(*this, std::chrono::steady_clock::now() + service.config->request_timeout);
  stream_->begin_request({.method = request.method,
                          .target = target_,
                          .headers = request.headers,
                          .length = target.grpc ? std::nullopt : std::optional<uint64_t>(request_.size()),
                          .extra_name = "x-serin-shadow",
                          .extra_value = "1"});
  write();
}

/// Messages that name the service's model name the endpoint's instead.
void KeptCall::name_messages(const Target& target, const Endpoint& endpoint) {
  MessageNamer namer;
  namer.begin(naming_fields(target.naming, target.service, endpoint.path));
  net::Buffer named = lane_.buffers().take();
  namer.feed(request_.data(), named);
  std::swap(request_, named);
  lane_.buffers().give(std::move(named));
}

void KeptCall::write() { request_.consume(stream_->write(request_.data(), /*last=*/true)); }

std::span<char> KeptCall::body_room(std::optional<uint64_t>) {
  constexpr size_t kStep = size_t{64} << 10;
  net::Buffer& body = half_.body;
  if (body.size() >= Attempt::kKeptBytes) {
    body.clear();
    too_large_ = true;
  }
  return body.room(std::min(kStep, Attempt::kKeptBytes - body.size()));
}

void KeptCall::on_progress(bool end) {
  if (!end) return;
  stream_ = nullptr;
  if (too_large_) half_.body.clear();
  owner_.on_end(*this, /*ours=*/false);
}

void KeptCall::on_failure(const net::Failure& failure) {
  stream_ = nullptr;
  half_.fail(failure);
  owner_.on_end(*this, failure.code == Code::kOverloaded);
}

void KeptCall::clear() {
  too_large_ = false;
  half_.clear();
  lane_.buffers().give(std::move(half_.body));
  lane_.buffers().give(std::move(request_));
}

}  // namespace serin::router
