// kubernetes_leases.h: Leases of the Kubernetes API: one for each router that is alive, and one for the router that leads.
//
// Source: the leader election of client-go (https://pkg.go.dev/k8s.io/client-go/tools/leaderelection).
//
// Clocks of machines differ, so no router that leads, or may lead next, compares the times in a lease with its own clock. A router measures for how long it has seen a lease
// unchanged. Time during which the API server did not answer does not count: after an outage every holder has its full time to renew. The
// holder stops leading a second before another could take over.
//
// Not thread-safe: the store locks.
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace serin::store {

inline constexpr std::chrono::seconds kLeaseTime{5};

class KubernetesLeases {
 public:
  using Clock = std::chrono::steady_clock;

  /// All leases of the group at one moment, as the API lists them.
  void see(const boost::json::array& leases, Clock::time_point now);

  /// False: it does not exist, or has been seen unchanged for kLeaseTime.
  bool alive(const std::string& name) const;
  /// The same for counting routers. A lease that was seen only once, and is a minute old by this machine's clock, does not count.
  bool counts(const std::string& name) const { return alive(name) && !seen_.at(name).old; }
  /// For how long it has been seen unchanged; zero if it does not exist.
  std::chrono::nanoseconds age(const std::string& name) const;
  bool exists(const std::string& name) const { return seen_.contains(name); }

 private:
  struct Seen {
    std::string version;  // resourceVersion
    std::chrono::nanoseconds age{0};
    bool old = false;
  };
  std::map<std::string, Seen> seen_;
  Clock::time_point looked_{};
};

/// "2026-11-27T06:37:42.123456Z"
std::string micro_time(std::chrono::system_clock::time_point time);
/// A lease that begins now. `group`: the label by which the routers that share a store find each other.
boost::json::object make_lease(std::string_view name, std::string_view group, std::string_view holder);

}  // namespace serin::store
