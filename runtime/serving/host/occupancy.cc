#include "runtime/serving/host/occupancy.h"

#include <algorithm>
#include <cmath>

namespace serin::serving {
namespace {

constexpr Occupancy::Seconds kMemory{10};
constexpr double kNewest = 0.2;  // the weight of the latest run in the time of a request

}  // namespace

void Occupancy::set_instances(size_t count) {
  const MutexLock lock(mutex_);
  instances_ = static_cast<double>(std::max<size_t>(count, 1));
}

void Occupancy::begin(Time now) {
  const MutexLock lock(mutex_);
  change(now, 1);
}

void Occupancy::end(Time now, size_t requests, Seconds took) {
  const MutexLock lock(mutex_);
  change(now, -1);
  const Seconds each = took / static_cast<double>(std::max<size_t>(requests, 1));
  each_ = each_ == Seconds(0) ? each : each_ + kNewest * (each - each_);
}

double Occupancy::busy_share(Time now) const {
  const MutexLock lock(mutex_);
  return share_at(now);
}

Occupancy::Seconds Occupancy::wait_of(double requests) const {
  const MutexLock lock(mutex_);
  return std::max(requests, 0.) * each_ / instances_;
}

double Occupancy::share_at(Time now) const {
  const double latest = std::min(running_ / instances_, 1.);
  const Seconds age = std::max(Seconds(now - changed_), Seconds(0));  // threads may come with times that are a little older
  return latest + (share_ - latest) * std::exp(-(age / kMemory));
}

void Occupancy::change(Time now, double more) {
  share_ = share_at(now);
  changed_ = std::max(changed_, now);
  running_ += more;
}

}  // namespace serin::serving
