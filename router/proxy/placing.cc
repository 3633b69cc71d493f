#include "router/proxy/placing.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/proxy/spare_time.h"
#include "runtime/protocol/tensor/datatype.h"

namespace serin::router {
namespace {

bool is_healthy(const Service& service, size_t version) {
  return version < service.versions.size() && service.versions[version]->healthy() > 0;
}

/// A canary that hangs gets no more requests than it may have under way: max(4, twice what its share and stable's p99 make usual).
bool takes_more(const Service& service, const Split& split) {
  const Endpoints& canary = *service.versions[split.canary];
  if (canary.healthy() == 0) return false;
  const int64_t under_way = canary.in_flight();
  if (under_way < 4) return true;
  const auto p99 = service.controller->pace(service.index).p99;
  const double seconds = p99.count() > 0 ? std::chrono::duration<double>(p99).count() : 1;
  const double share = static_cast<double>(split.weight_ppm) / rollout::kAll;
  if (static_cast<double>(under_way) < 2 * service.arrivals.per_second() * share * seconds) return true;
  service.capped->add();
  return false;
}

rollout::Says says_of(const rollout::Spec& spec, const net::Headers& headers) {
  rollout::Says says;
  if (!spec.cohort.header.empty()) says.cohort = headers.get(spec.cohort.header);
  if (!spec.sticky.header.empty())
    says.key = headers.get(spec.sticky.header);
  else if (!spec.sticky.cookie.empty())
    says.key = rollout::cookie_value(headers.get("cookie"), spec.sticky.cookie);
  return says;
}

/// The canary's endpoint that would be given this request.
const EndpointState* canary_endpoint(const Service& service, Lane& lane, const Split& split, bool grpc, Time now) {
  const Endpoints& canary = *service.versions[split.canary];
  return canary.choose(lane.endpoints(canary), lane.random(), now, /*avoid=*/nullptr, grpc);
}

void place_by_draw(const Service& service, Lane& lane, const Target& target, const net::Headers& headers, Time now, Placed& placed) {
  const Split& split = placed.split;
  const rollout::Spec& spec = *placed.spec;
  const rollout::Draw& draw = placed.draw = rollout::draw_request(spec, split.weight_ppm, says_of(spec, headers), lane.random());

  const bool matched = rollout::baseline_weight(spec, split.weight_ppm) > 0;
  const size_t compared = matched ? version_index(*service.config, spec.baseline) : split.stable;
  const bool canary_takes = takes_more(service, split), compared_takes = is_healthy(service, compared);
  placed.judged = canary_takes && compared_takes;

  if (draw.place == rollout::Place::kCanary && canary_takes)
    placed.version = split.canary;
  else if (draw.place == rollout::Place::kBaseline && compared_takes)
    placed.version = compared;
  else if (draw.place != rollout::Place::kStable)
    placed.purpose = Purpose::kFallback;
  const bool sampled = split.shadow_ppm > 0 && lane.random() % rollout::kAll < split.shadow_ppm;
  // A canary that is held at 0 because it hung gets copies that nobody asked for, too.
  const bool may_be_asked = split.weight_ppm == 0 && std::ranges::any_of(spec.steps, &rollout::Step::is_shadow);
  placed.spare = !spec.guard.shadow_ppm && !may_be_asked;
  placed.mirror = sampled && canary_takes && placed.version == split.stable && !(placed.spare && service.shared);
  if (!placed.spare || placed.version == split.canary || !(placed.judged || placed.mirror)) return;
  const EndpointState* endpoint = canary_endpoint(service, lane, split, target.grpc, now);
  if (endpoint == nullptr) return;
  // Evidence is symmetric: a drawn request that would not count on the canary (attempt.cc) does not count on stable.
  if (may_wait_for_copy(*endpoint, now, service)) placed.judged = false;
  placed.mirror = placed.mirror && has_spare_time(*endpoint, now);
}

}  // namespace

Result<std::optional<std::chrono::nanoseconds>> time_given(const net::Headers& headers, bool grpc) {
  std::optional<std::chrono::nanoseconds> time;
  if (const auto text = headers.get(protocol::kTimeHeader); !text.empty()) {
    SERIN_TRY(time, protocol::parse_time_left(text));
  }
  if (!grpc || !headers.has(kGrpcTimeout)) return time;
  const auto given = net::parse_grpc_timeout(headers.get(kGrpcTimeout));
  if (!given) return Error{Code::kInvalidArgument, "header grpc-timeout must be a number of at most eight digits and one of H M S m u n"};
  return std::min(time.value_or(*given), *given);
}

Result<Placed> place_request(Service& service, Lane& lane, const Target& target, const net::Headers& headers, Time now) {
  Placed placed;
  const Split& split = placed.split = service.controller->split(service.index);
  placed.version = split.stable;
  const auto forced = headers.get("x-serin-force-version");
  if (!forced.empty() && service.config->force_header) {
    placed.purpose = Purpose::kForced;
    placed.version = version_index(*service.config, forced);
    if (placed.version != Split::kNoCanary) return placed;
    return Error{Code::kInvalidArgument,
                 fmt::format("header x-serin-force-version: service '{}' has no version '{}'", service.config->name, forced)};
  }
  if (!target.infer) return placed;  // metadata is stable's
  placed.purpose = Purpose::kDrawn;
  service.arrivals.count(now);
  if (split.canary == Split::kNoCanary) {
    placed.judged = true;  // stable's latencies are the next rollout's baseline
    return placed;
  }
  placed.spec = lane.spec(service, split);
  place_by_draw(service, lane, target, headers, now, placed);
  return placed;
}

}  // namespace serin::router
