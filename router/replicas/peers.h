// peers.h: Direct messages between routers that share rollouts, without the store.
//
// A verdict must reach all routers within milliseconds, whatever the state of the store. The volume of their observations is far too large
// for the store.
//
//   POST /v1/trip         store::Trip as JSON: acted on at once
//   POST /v1/sightings    sightings.h, to the leader every 10 ms
//   POST /v1/loads        shared_load.h, to every other router four times a second
//
// Each request carries the secret that its receiver keeps in the shared store (Authorization: Bearer). The protocol is plain HTTP: keep the
// port on a private network.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "router/config/config.h"
#include "router/control/sightings.h"
#include "router/scaling/shared_load.h"
#include "router/store/shared_store.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"

namespace serin::router {

/// Called on the thread of Peers; they must not wait.
struct PeerEvents {
  std::function<void(LoadMessage)> loads;
  std::function<void(const store::Trip&)> trip;
  std::function<void(const Sightings&)> sightings;
  /// The sightings to send, one for each requested service.
  std::function<std::vector<Sightings>(const std::function<bool(const std::string& service)>& wanted)> take_sightings;
};

/// Thread-safe.
class Peers {
 public:
  static Result<std::unique_ptr<Peers>> start(const Listen& listen, PeerEvents events, metrics::Registry& metrics);
  ~Peers();

  /// "10.0.0.5:8082", and the secret required there.
  const std::string& address() const;
  const std::string& secret() const;
  /// Sets the members. Empty `leader`: sightings wait until there is one.
  void set_members(std::string self, std::vector<store::Member> members, std::string leader);
  /// Sends to every other member at once, with a few retries; the store has the trips, too.
  void tell(std::vector<store::Trip> trips);
  /// From now on the load that `source` reports goes to every other member.
  void share_load(LoadSource source);

 private:
  struct State;
  explicit Peers(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace serin::router
