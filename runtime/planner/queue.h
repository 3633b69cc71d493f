// queue.h: how many requests a server answers in time, as a bound and not as a guess.
//
//   const BatchServer server{.rows = 8, .seconds = 0.012};
//   const double rate = most_requests(server, {.share = 0.99, .seconds = 0.05});   // each second
//   const double p99 = latency(server, rate, 0.99);
//
// Requests of one row arrive at random (Poisson). A server takes up to `rows` of them whenever it has ended a batch. Every batch, however small, counts
// as long as a full one. The backlog after a batch is then a random walk, reflected at zero. Its tail is at most exp(-theta x): theta > 0 is the
// solution of E[exp(theta (arrivals - rows))] = 1 (Kingman, "Inequalities in the theory of queues", 1970).
// The bound also counts a batch that begins just before each request. For batches of one row the exact distribution of M/D/1 is used where it is better.
#pragma once

#include "runtime/planner/slo.h"

namespace serin::planner {

struct BatchServer {
  double rows = 1;     ///< most of one batch
  double seconds = 0;  ///< of a full batch
};

/// No less than the share of requests that take longer than `seconds`, at `rate` requests a second. 1 where the server cannot keep up.
double late_share(const BatchServer& server, double rate, double seconds);

/// The most requests each second of which that share is in time; 0: not even one that comes alone is.
double most_requests(const BatchServer& server, const Slo& slo);

/// Seconds in which that share of the requests is answered; infinite where the server cannot keep up.
double latency(const BatchServer& server, double rate, double share);

/// The busiest a server may be planned: rates between requests vary more than Poisson says.
inline constexpr double kMostBusy = 0.9;

}  // namespace serin::planner
