// shadow.cc: its answer is bounded as stable's was; one that is larger cannot be the same.

#include "router/proxy/shadow.h"

#include <algorithm>

#include "router/proxy/verdict.h"

namespace serin::router {

Shadow::Shadow(Lane& lane, Service& service, const Placement& placement, Attempt& stable, EndpointState& endpoint)
    : lane_(lane), service_(service), placement_(placement), endpoint_(endpoint.shared_from_this()), stable_endpoint_(stable.endpoint()) {
  stable_.status = stable.status();
  stable_.headers = stable.answer().headers;
  stable_.body = stable.body().data();
  service_.mirrored.fetch_add(1, std::memory_order_relaxed);
}

Shadow::~Shadow() { service_.mirrored.fetch_sub(1, std::memory_order_relaxed); }

void Shadow::start(const net::Head& request, const Target& target, net::Buffer&& body) {
  request_ = std::move(body);
  std::string path;
  write_target(request, target, endpoint_->config, path);
  stream_ = &lane_.upstream(*endpoint_).open(*this, std::chrono::steady_clock::now() + service_.config->request_timeout);
  stream_->begin_request({.method = request.method,
                          .target = path,
                          .headers = request.headers,
                          .length = request_.size(),
                          .extra_name = "x-serin-shadow",
                          .extra_value = "1"});
  write();
}

void Shadow::write() { request_.consume(stream_->write(request_.data(), /*last=*/true)); }

void Shadow::on_answer(net::Head& head) {
  canary_.status = head.status;
  canary_.headers = head.headers;
}

std::span<char> Shadow::body_room(std::optional<uint64_t>) {
  constexpr size_t kStep = size_t{64} << 10;
  if (body_.size() >= Attempt::kKeptBytes) body_.clear();
  return body_.room(std::min(kStep, Attempt::kKeptBytes - body_.size()));
}

void Shadow::on_progress(bool end) {
  if (!end) return;
  canary_.body = body_.data();
  compare_with(std::move(canary_));
}

void Shadow::on_failure(const net::Failure& failure) {
  if (failure.code == Code::kOverloaded) {  // a want of ours
    service_.mirrors_dropped->add();
    return lane_.end(*this);
  }
  compare_with(Error{failure.code, std::string(failure.what)});
}

void Shadow::compare_with(const Result<net::Response>& canary) {
  rollout::ShadowPair pair = compare(std::move(stable_), canary, placement_.spec->guard, lane_.random());
  pair.epoch = placement_.split.epoch;
  pair.stable_endpoint = stable_endpoint_->index;
  pair.canary_endpoint = endpoint_->index;
  service_.controller->observe(service_.index, pair);
  lane_.end(*this);  // the last that happens to it
}

}  // namespace serin::router
