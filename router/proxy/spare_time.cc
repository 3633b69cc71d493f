#include "router/proxy/spare_time.h"

#include <algorithm>

namespace serin::router {
namespace {

constexpr int kRest = 9;                                // times what a copy took: copies take a tenth of the time
constexpr std::chrono::milliseconds kShortest{10};      // from copy to copy: sending and comparing it is work of the router
constexpr std::chrono::milliseconds kLeastPatience{5};  // for the clock of a busy machine

}  // namespace

bool has_spare_time(const EndpointState& endpoint, Time now) {
  return endpoint.in_flight.load() == 0 && endpoint.next_copy.load(std::memory_order_relaxed) <= now && !endpoint.copying.load();
}

bool begin_copy(EndpointState& endpoint, Time now) {
  bool none = false;
  if (!has_spare_time(endpoint, now) || !endpoint.copying.compare_exchange_strong(none, true)) return false;
  endpoint.copied_since = now;
  return true;
}

bool begin_copy(EndpointState& endpoint, Time now, const Service& service) {
  return service.controller->pace(service.index).p99.count() > 0 && begin_copy(endpoint, now);
}

void end_copy(EndpointState& endpoint, Time began, Time now) {
  endpoint.next_copy = now + std::max<std::chrono::nanoseconds>(kRest * (now - began), kShortest);
  Time since = endpoint.copied_since.load();
  endpoint.copying = false;
  if (endpoint.in_flight.load() == 0) endpoint.copied_since.compare_exchange_strong(since, Time());
}

bool may_wait_for_copy(const EndpointState& endpoint, Time now, std::chrono::nanoseconds patience) {
  const Time since = endpoint.copied_since.load(std::memory_order_relaxed);
  return since != Time() && now - since < patience;
}

bool may_wait_for_copy(const EndpointState& endpoint, Time now, const Service& service) {
  if (endpoint.copied_since.load(std::memory_order_relaxed) == Time()) return false;  // nearly always
  const std::chrono::nanoseconds p99 = service.controller->pace(service.index).p99;
  return may_wait_for_copy(endpoint, now, kLeastPatience + 2 * p99);
}

}  // namespace serin::router
