// peers.h: how routers that share rollouts speak with each other, past the store: a verdict must reach all within milliseconds, whatever has become
// of the store, and what they see is far too much for it.
//
//   POST /v1/trip         store::Trip as JSON: acted on at once
//   POST /v1/sightings    sightings.h, to the leader every 10 ms
//
// Each asks for the secret that its receiver keeps in the shared store (Authorization: Bearer). Plain HTTP: keep the port on a private network.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "router/config/config.h"
#include "router/control/sightings.h"
#include "router/store/shared_store.h"
#include "runtime/base/metrics.h"
#include "runtime/base/result.h"

namespace serin::router {

/// Called on the thread of Peers; they must not wait.
struct PeerEvents {
  std::function<void(const store::Trip&)> trip;
  std::function<void(const Sightings&)> sightings;
  /// What is to be sent, one for each service that is asked for.
  std::function<std::vector<Sightings>(const std::function<bool(const std::string& service)>& wanted)> take_sightings;
};

/// Thread-safe.
class Peers {
 public:
  static Result<std::unique_ptr<Peers>> start(const Listen& listen, PeerEvents events, metrics::Registry& metrics);
  ~Peers();

  /// "10.0.0.5:8082" and what must be said there.
  const std::string& address() const;
  const std::string& secret() const;
  /// Who there is. `leader` empty: sightings wait for one.
  void set_members(std::string self, std::vector<store::Member> members, std::string leader);
  /// Every other member, at once, a few times where it does not answer; the store has it, too.
  void tell(std::vector<store::Trip> trips);

 private:
  struct State;
  explicit Peers(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace serin::router
