// timeline.cc: guards come and go (a label's guard is reported while it is the nearest to its trip): one that is absent has no evidence to show.

#include "router/control/timeline.h"

#include <algorithm>

namespace serin::router {
namespace {

template <class List>
void keep_every_other(List& list) {
  size_t kept = 0;
  for (size_t i = 0; i < list.size(); i += 2) list[kept++] = list[i];
  list.resize(kept);
}

}  // namespace

void Timeline::clear(rollout::Time now) {
  *this = Timeline();
  begun_ = next_ = now;
}

void Timeline::add(Point point, const std::vector<rollout::Evidence>& evidence, rollout::Time now) {
  const bool turned = !points_.empty() && (points_.back().weight_ppm != point.weight_ppm || points_.back().shadow_ppm != point.shadow_ppm);
  if (now < next_ && !turned) return;
  if (points_.size() == kMostPoints) thin_out();
  next_ = now + interval_;
  point.at = std::chrono::duration_cast<std::chrono::milliseconds>(now - begun_);
  points_.push_back(point);
  for (const rollout::Evidence& line : evidence) {
    if (guards_.size() == kMostGuards && !guards_.contains(line.guard)) continue;
    Guard& guard = guards_[line.guard];
    guard.bits_to_trip = line.bits_to_trip;
    guard.bits.resize(points_.size());
    guard.bits.back() = static_cast<float>(std::max(0.0, line.bits));
  }
  for (auto& [name, guard] : guards_) guard.bits.resize(points_.size());
}

void Timeline::thin_out() {
  interval_ *= 2;
  keep_every_other(points_);
  for (auto& [name, guard] : guards_) keep_every_other(guard.bits);
}

}  // namespace serin::router
