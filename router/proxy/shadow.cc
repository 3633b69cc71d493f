// shadow.cc: its answer is bounded as stable's was; one that is larger cannot be the same.

#include "router/proxy/shadow.h"

#include <algorithm>

#include "router/proxy/classify.h"
#include "router/proxy/spare_time.h"

namespace serin::router {

void Shadow::start(Service& service, const Placed& placed, Attempt& stable, EndpointState& endpoint, const net::Head& request,
                   const Target& target, net::Buffer&& body) {
  service_ = &service;
  placed_ = placed;
  began_ = std::chrono::steady_clock::now();
  endpoint_ = endpoint.shared_from_this();
  stable_endpoint_ = stable.endpoint();
  stable_.call = canary_.call = target.grpc;
  stable_.take_head(stable.answer().status, stable.answer().headers);
  stable_.take_trailers(stable.trailers());
  stable_.body = std::move(stable.body());
  canary_.body = lane_.buffers().take();
  request_ = std::move(body);
  if (target.grpc) name_messages(target);
  service_->mirrored.fetch_add(1, std::memory_order_relaxed);

  write_target(request, target, endpoint_->config, target_);
  stream_ = &lane_.upstream(*endpoint_, target.grpc).open(*this, std::chrono::steady_clock::now() + service_->config->request_timeout);
  stream_->begin_request({.method = request.method,
                          .target = target_,
                          .headers = request.headers,
                          .length = target.grpc ? std::nullopt : std::optional<uint64_t>(request_.size()),
                          .extra_name = "x-serin-shadow",
                          .extra_value = "1"});
  write();
}

/// The same model of the canary's endpoint.
void Shadow::name_messages(const Target& target) {
  MessageNamer namer;
  namer.begin(naming_fields(target.service, endpoint_->config.path));
  net::Buffer named = lane_.buffers().take();
  namer.feed(request_.data(), named);
  std::swap(request_, named);
  lane_.buffers().give(std::move(named));
}

void Shadow::write() { request_.consume(stream_->write(request_.data(), /*last=*/true)); }

std::span<char> Shadow::body_room(std::optional<uint64_t>) {
  constexpr size_t kStep = size_t{64} << 10;
  net::Buffer& body = canary_.body;
  if (body.size() >= Attempt::kKeptBytes) {
    body.clear();
    too_large_ = true;
  }
  return body.room(std::min(kStep, Attempt::kKeptBytes - body.size()));
}

void Shadow::on_progress(bool end) {
  if (!end) return;
  if (too_large_) canary_.body.clear();
  compare_both();
}

void Shadow::on_failure(const net::Failure& failure) {
  if (failure.code == Code::kOverloaded) {  // a want of ours
    service_->mirrors_dropped->add();
    return end();
  }
  canary_.fail(failure);
  compare_both();
}

void Shadow::compare_both() {
  service_->usual_spread.begin(placed_.split.epoch);
  rollout::ShadowPair pair =
      compare(stable_, canary_, placed_.spec->guard, lane_.random(), {.numbers_only = placed_.spare, .usual = &service_->usual_spread});
  pair.epoch = placed_.split.epoch;
  pair.spare = placed_.spare;
  pair.classes = with_label(placed_.classes, placed_.spec->guard.slices, pair.difference);
  pair.stable_endpoint = stable_endpoint_->index;
  pair.canary_endpoint = endpoint_->index;
  service_->controller->observe(service_->index, pair);
  end();
}

/// The last that happens to it.
void Shadow::end() {
  service_->mirrored.fetch_sub(1, std::memory_order_relaxed);
  if (placed_.spare) end_copy(*endpoint_, began_, std::chrono::steady_clock::now());
  placed_ = Placed();
  endpoint_.reset();
  stable_endpoint_.reset();
  stream_ = nullptr;
  too_large_ = false;
  for (Half* half : {&stable_, &canary_}) {
    half->clear();
    lane_.buffers().give(std::move(half->body));
  }
  lane_.buffers().give(std::move(request_));
  pool_.give_back(*this);
}

}  // namespace serin::router
