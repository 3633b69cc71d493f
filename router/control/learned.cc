// learned.cc: evidence is about versions, not about places: it holds while each version of the rollout is still asked at one place at least where it
// was asked before. A version that is found somewhere else altogether may be another model, and is judged anew.

#include "router/control/learned.h"

#include <algorithm>

#include "router/config/split.h"

namespace serin::router {

bool same(const rollout::State& a, const rollout::State& b) {
  return a.id == b.id && a.epoch == b.epoch && a.phase == b.phase && a.step == b.step && a.weight_ppm == b.weight_ppm &&
         a.shadow_ppm == b.shadow_ppm && a.cause == b.cause && a.reason == b.reason;
}

bool same_version(const ServiceConfig& before, const ServiceConfig& now, const std::string& version) {
  const uint32_t was = version_index(before, version), is = version_index(now, version);
  if (was == Split::kNoCanary || is == Split::kNoCanary) return false;
  const VersionConfig &a = before.versions[was], &b = now.versions[is];
  const auto name_of = [](const VersionConfig& config) { return config.source.name ? config.source.name->url : ""; };
  const auto slices_of = [](const VersionConfig& config) {
    return config.source.slices ? config.source.slices->selection : kubernetes::SliceSelection();
  };
  if (a.source.file != b.source.file || name_of(a) != name_of(b) || slices_of(a) != slices_of(b)) return false;
  const auto stays = [&](const Endpoint& endpoint) {
    return std::ranges::find(b.endpoints, endpoint.url, &Endpoint::url) != b.endpoints.end();
  };
  return a.source.changes() || std::ranges::any_of(a.endpoints, stays);
}

bool goes_on(const Learned& learned, const ServiceConfig& now, const rollout::State& state, int routers) {
  if (!learned.rollout || learned.routers != routers || learned.config.tracks != now.tracks || !same(learned.rollout->state(), state))
    return false;
  const std::string& baseline = learned.rollout->spec().baseline;
  return same_version(learned.config, now, state.stable) && same_version(learned.config, now, state.canary) &&
         (baseline.empty() || same_version(learned.config, now, baseline));
}

}  // namespace serin::router
