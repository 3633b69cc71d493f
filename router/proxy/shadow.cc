#include "router/proxy/shadow.h"

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
  stable_.call = target.grpc;
  stable_.take_head(stable.answer().status, stable.answer().headers);
  stable_.take_trailers(stable.trailers());
  stable_.body = std::move(stable.body());
  service_->mirrored.fetch_add(1, std::memory_order_relaxed);
  canary_.start(service, endpoint, request, target, std::move(body));
}

void Shadow::compare_both() {
  service_->usual_spread.begin(placed_.split.epoch);
  rollout::ShadowPair pair = compare(stable_, canary_.half(), placed_.spec->guard, lane_.random(),
                                     {.numbers_only = placed_.copy.spare, .usual = &service_->usual_spread});
  pair.epoch = placed_.split.epoch;
  pair.spare = placed_.copy.spare;
  pair.classes = with_label(placed_.classes, placed_.spec->guard.slices, pair.difference);
  pair.stable_endpoint = stable_endpoint_->index;
  pair.canary_endpoint = endpoint_->index;
  service_->controller->observe(service_->index, pair);
}

/// The last that happens to it.
void Shadow::on_end(KeptCall&, bool ours) {
  if (ours)
    service_->mirrors_dropped->add();
  else
    compare_both();
  service_->mirrored.fetch_sub(1, std::memory_order_relaxed);
  if (placed_.copy.spare) end_copy(*endpoint_, began_, std::chrono::steady_clock::now());
  placed_ = Placed();
  endpoint_.reset();
  stable_endpoint_.reset();
  stable_.clear();
  lane_.buffers().give(std::move(stable_.body));
  canary_.clear();
  pool_.give_back(*this);
}

}  // namespace serin::router
