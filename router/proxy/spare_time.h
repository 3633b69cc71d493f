// spare_time.h: When an endpoint of the canary may get a copy of one of stable's requests that the user has not asked for
// (`shadow: auto`).
//
// Copies must neither take capacity from the canary's clients nor make it look slower than stable. So an endpoint gets a copy only while it
// has nothing else to do, and copies take at most a tenth of its time. A request that comes meanwhile may have to wait for the copy: it is
// served as usual, but it is no evidence.
#pragma once

#include "router/proxy/service.h"

namespace serin::router {

/// Whether the endpoint would take a copy now. Only then is it worth keeping the request and its answer.
bool has_spare_time(const EndpointState& endpoint, Time now);
/// Begins a copy if the endpoint has spare time; then end_copy() must follow.
bool begin_copy(EndpointState& endpoint, Time now);
/// The same, but not before the pace of stable is known.
bool begin_copy(EndpointState& endpoint, Time now, const Service& service);
void end_copy(EndpointState& endpoint, Time began, Time now);

/// Whether a request that begins now may have to wait for a copy, or for a request that had to. `patience`: a copy that has taken longer
/// is no excuse, or a canary that hangs would have one.
bool may_wait_for_copy(const EndpointState& endpoint, Time now, std::chrono::nanoseconds patience);
/// With a patience of twice stable's p99.
bool may_wait_for_copy(const EndpointState& endpoint, Time now, const Service& service);

}  // namespace serin::router
