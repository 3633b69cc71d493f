#include "router/proxy/placing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "router/proxy/assigning.h"
#include "router/proxy/spare_time.h"
#include "runtime/base/stable_hash.h"
#include "runtime/protocol/tensor/datatype.h"

namespace serin::router {
namespace {

bool is_healthy(const Service& service, size_t version) {
  return version < service.versions.size() && service.versions[version]->healthy() > 0;
}

/// A canary that hangs gets no more requests than it may have under way: max(4, twice what its share and stable's p99 make usual).
bool takes_more(const Service& service, const Service& track, const Split& split) {
  const Endpoints& canary = *service.versions[split.canary];
  if (canary.healthy() == 0) return false;
  const int64_t under_way = canary.in_flight();
  if (under_way < 4) return true;
  const auto p99 = service.controller->pace(track.index).p99;
  const double seconds = p99.count() > 0 ? std::chrono::duration<double>(p99).count() : 1;
  const double share = static_cast<double>(split.weight_ppm) / rollout::kAll;
  if (static_cast<double>(under_way) < 2 * service.arrivals.per_second() * share * seconds) return true;
  service.capped->add();
  return false;
}

std::string_view key_of(const rollout::Sticky& sticky, const net::Headers& headers) {
  if (!sticky.header.empty()) return headers.get(sticky.header);
  return sticky.cookie.empty() ? std::string_view() : rollout::cookie_value(headers.get("cookie"), sticky.cookie);
}

rollout::Says says_of(const rollout::Spec& spec, const net::Headers& headers) {
  return {.cohort = spec.cohort.header.empty() ? std::string_view() : headers.get(spec.cohort.header), .key = key_of(spec.sticky, headers)};
}

/// What stands for the user of a service with several rollouts, whichever of them run: who reports is counted once.
std::optional<uint64_t> user_of(const Service& service, const rollout::Sticky& sticky, const net::Headers& headers) {
  const std::string_view key = key_of(sticky, headers);
  if (key.empty()) return std::nullopt;
  return hash_key(key, service.config->name);
}

/// The canary's endpoint that would be given this request.
const EndpointState* canary_endpoint(const Service& service, Lane& lane, const Split& split, bool grpc, Time now) {
  const Endpoints& canary = *service.versions[split.canary];
  return canary.choose(lane.endpoints(canary), lane.random(), now, /*avoid=*/nullptr, grpc);
}

/// A drawn request on `version`: whether the canary gets a copy, and whether the request stays evidence.
void consider_copy(const Service& service, Lane& lane, const Target& target, bool canary_takes, Time now, size_t version,
                   Placement& placement, Copy& copy) {
  const Split& split = placement.split;
  const rollout::Spec& spec = *placement.spec;
  const bool sampled = split.shadow_ppm > 0 && lane.random() % rollout::kAll < split.shadow_ppm;
  // A canary that is held at 0 because it hung gets copies that nobody asked for, too.
  const bool may_be_asked = split.weight_ppm == 0 && std::ranges::any_of(spec.steps, &rollout::Step::is_shadow);
  copy.spare = !spec.guard.shadow_ppm && !may_be_asked;
  copy.wanted = sampled && canary_takes && version == split.stable && !(copy.spare && service.shared);
  if (!copy.spare || version == split.canary || !(placement.judged || copy.wanted)) return;
  const EndpointState* endpoint = canary_endpoint(service, lane, split, target.grpc, now);
  if (endpoint == nullptr) return;
  // Evidence is symmetric: a drawn request that would not count on the canary (attempt.cc) does not count on stable.
  if (may_wait_for_copy(*endpoint, now, *placement.track)) placement.judged = false;
  copy.wanted = copy.wanted && has_spare_time(*endpoint, now);
}

void place_by_draw(const Service& service, Lane& lane, const Target& target, const net::Headers& headers, Time now, Placed& placed) {
  const Split& split = placed.split;
  const rollout::Spec& spec = *placed.spec;
  const rollout::Draw& draw = placed.draw = rollout::draw_request(spec, split.weight_ppm, says_of(spec, headers), lane.random());

  const bool matched = rollout::baseline_weight(spec, split.weight_ppm) > 0;
  const size_t compared = matched ? version_index(*service.config, spec.baseline) : split.stable;
  const bool canary_takes = takes_more(service, *placed.track, split), compared_takes = is_healthy(service, compared);
  placed.judged = canary_takes && compared_takes;

  if (draw.place == rollout::Place::kCanary && canary_takes)
    placed.version = split.canary;
  else if (draw.place == rollout::Place::kBaseline && compared_takes)
    placed.version = compared;
  else if (draw.place != rollout::Place::kStable)
    placed.purpose = Purpose::kFallback;
  if (assigns(service) && placed.judged && draw.drawn) {
    const uint32_t matched_ppm = rollout::baseline_weight(spec, split.weight_ppm),
                   stable_ppm = rollout::kAll - split.weight_ppm - matched_ppm;
    const std::array<VersionShare, 3> among = {{{split.stable, stable_ppm}, {compared, matched_ppm}, {split.canary, split.weight_ppm}}};
    const auto user = service.tracks.empty() ? draw.key : user_of(service, spec.sticky, headers);
    placed.assigned = assign(service, lane, placed.version, among, user);
  }
  consider_copy(service, lane, target, canary_takes, now, placed.version, placed, placed.copy);
}

/// The rollouts of the service that are under way. Stable is the service's own.
std::vector<Placement> under_way(Service& service, Lane& lane, size_t stable) {
  std::vector<Placement> found;
  const auto look = [&](Service& track) {
    Split split = service.controller->split(track.index);
    if (split.canary == Split::kNoCanary || split.canary == stable) return;
    Placement& placement = found.emplace_back(Placement{.track = &track});
    placement.spec = lane.spec(track, split);
    split.stable = static_cast<uint32_t>(stable);
    placement.split = split;
  };
  look(service);
  for (const auto& track : service.tracks) look(*track);
  std::vector<uint32_t> weights;
  weights.reserve(found.size());
  for (const Placement& placement : found) weights.push_back(placement.split.weight_ppm);
  rollout::fit_together(weights);
  for (size_t i = 0; i < found.size(); ++i) found[i].split.weight_ppm = weights[i];
  return found;
}

bool same_source(const rollout::Sticky& a, const rollout::Sticky& b) { return a.header == b.header && a.cookie == b.cookie; }

/// The draw among stable and those canaries that can take the request: the others' draws would be stable's, whatever the version. Nothing where
/// the rollouts know users by different keys: no ID stands for a draw of each of them.
std::string assign_among(const Service& service, Lane& lane, const net::Headers& headers, const Placed& placed,
                         std::span<const Placement> rollouts, const std::vector<bool>& takes) {
  std::vector<VersionShare> among(1);
  std::optional<uint64_t> user;
  const rollout::Sticky* sticky = nullptr;
  uint32_t stable_ppm = rollout::kAll;
  for (size_t i = 0; i < rollouts.size(); ++i) {
    const Placement& each = rollouts[i];
    stable_ppm -= each.split.weight_ppm;
    if (takes[i]) among.emplace_back(each.split.canary, each.split.weight_ppm);
    if (!each.spec->sticky.on()) continue;
    if (sticky != nullptr && !same_source(*sticky, each.spec->sticky)) return "";
    sticky = &each.spec->sticky;
    user = user_of(service, *sticky, headers);
  }
  among[0] = {placed.split.stable, stable_ppm};
  return assign(service, lane, placed.version, among, user);
}

/// Several rollouts at once. A request of a canary is evidence for its rollout, one of stable for all of them.
void place_among(const Service& service, Lane& lane, const Target& target, const net::Headers& headers, Time now,
                 std::vector<Placement> rollouts, Placed& placed) {
  std::vector<rollout::Candidate> candidates;
  candidates.reserve(rollouts.size());
  for (const Placement& each : rollouts)
    candidates.push_back({.spec = each.spec.get(), .weight_ppm = each.split.weight_ppm, .says = says_of(*each.spec, headers), .draw = {}});
  const auto taker = rollout::draw_among(candidates, lane.random());
  const bool stable_takes = is_healthy(service, placed.split.stable);
  std::vector<bool> takes(rollouts.size());
  for (size_t i = 0; i < rollouts.size(); ++i) {
    rollouts[i].draw = candidates[i].draw;
    takes[i] = takes_more(service, *rollouts[i].track, rollouts[i].split);
    rollouts[i].judged = takes[i] && stable_takes;
  }
  if (taker) {
    const Placement& taken = rollouts[*taker];
    if (takes[*taker])
      placed.version = taken.split.canary;
    else
      placed.purpose = Purpose::kFallback;
    if (assigns(service) && taken.judged && taken.draw.drawn)
      placed.assigned = assign_among(service, lane, headers, placed, rollouts, takes);
    static_cast<Placement&>(placed) = std::move(rollouts[*taker]);
    return;
  }
  if (assigns(service) && stable_takes) placed.assigned = assign_among(service, lane, headers, placed, rollouts, takes);
  // One of them at most gets a copy, each as often as the others: it becomes the first.
  const size_t offset = lane.random() % rollouts.size();
  std::ranges::rotate(rollouts, rollouts.begin() + static_cast<std::ptrdiff_t>(offset));
  std::rotate(takes.begin(), takes.begin() + static_cast<std::ptrdiff_t>(offset), takes.end());
  size_t copied = rollouts.size();
  for (size_t i = 0; i < rollouts.size(); ++i) {
    Copy copy;
    consider_copy(service, lane, target, takes[i], now, placed.version, rollouts[i], copy);
    if (!copy.wanted || copied < rollouts.size()) continue;
    copied = i;
    placed.copy = copy;
  }
  if (copied < rollouts.size()) std::swap(rollouts[0], rollouts[copied]);
  static_cast<Placement&>(placed) = std::move(rollouts[0]);
  placed.others.assign(std::make_move_iterator(rollouts.begin() + 1), std::make_move_iterator(rollouts.end()));
}

void place_on_tracks(Service& service, Lane& lane, const Target& target, const net::Headers& headers, Time now, Placed& placed) {
  const Split idle = placed.split;
  std::vector<Placement> rollouts = under_way(service, lane, placed.split.stable);
  if (rollouts.empty()) {
    placed.judged = true;
    return;
  }
  const bool first_is_idle = idle.canary == Split::kNoCanary;
  if (rollouts.size() == 1) {
    static_cast<Placement&>(placed) = std::move(rollouts[0]);
    place_by_draw(service, lane, target, headers, now, placed);
  } else {
    place_among(service, lane, target, headers, now, std::move(rollouts), placed);
  }
  // Where no rollout runs on the first track, stable's latencies are the baseline of its next one.
  if (first_is_idle && placed.version == placed.split.stable && placed.purpose == Purpose::kDrawn) {
    Placement& of_service = placed.others.emplace_back(Placement{.track = &service});
    of_service.split = idle;
    of_service.judged = true;
  }
}

/// A fixed division: nothing is judged. A version that is down leaves its share to the stable one.
void place_by_split(const Service& service, Lane& lane, const net::Headers& headers, Placed& placed) {
  const PlainSplit& split = *service.config->split;
  const std::string_view key = key_of(split.sticky, headers);
  const uint64_t random = key.empty() ? lane.random() : mix(hash_key(key, split.sticky.salt));
  uint32_t point = static_cast<uint32_t>(random % rollout::kAll);
  size_t version = 0;
  for (; point >= split.ppm[version]; ++version) point -= split.ppm[version];
  if (!is_healthy(service, version)) {
    service.versions[version]->count_unserved();
    placed.purpose = Purpose::kFallback;
    return;
  }
  placed.version = version;
  if (!assigns(service)) return;
  std::vector<VersionShare> among;
  for (size_t i = 0; i < split.ppm.size(); ++i)
    if (split.ppm[i] > 0 && (i == version || is_healthy(service, i))) among.emplace_back(i, split.ppm[i]);
  placed.assigned = assign(service, lane, version, among, key.empty() ? std::nullopt : std::optional(random));
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
  placed.track = &service;
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
  if (service.config->split) {
    placed.split = {.stable = split.stable, .epoch = split.epoch};
    place_by_split(service, lane, headers, placed);
    return placed;
  }
  if (!service.tracks.empty()) {
    place_on_tracks(service, lane, target, headers, now, placed);
    return placed;
  }
  if (split.canary == Split::kNoCanary) {
    placed.judged = true;  // stable's latencies are the next rollout's baseline
    return placed;
  }
  placed.spec = lane.spec(service, split);
  place_by_draw(service, lane, target, headers, now, placed);
  return placed;
}

}  // namespace serin::router
