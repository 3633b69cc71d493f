// shared_store.h: The interface through which several routers agree: etcd or the Kubernetes API.
//
//   shared.watch([] { wake(); });
//   SERIN_CHECK(shared.join(self));                      // and stay() every second
//   SERIN_TRY(const Snapshot now, shared.look());        // the state that all of them know
//   SERIN_TRY(const bool leads, shared.lead());          // one of them
//   SERIN_TRY(const int64_t revision, shared.save(change));   // only the leader, only over the revision it has seen
//   SERIN_CHECK(shared.trip({"digits", "digits-7", ...}));    // any router, once for each rollout
//
// The rules (the router's guide, "Several routers"): a trip is a latch that only closes. It names its rollout, so that a late one cannot
// affect the next. Everything else is written by the leader, by compare-and-swap, and fails if it no longer leads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "router/store/store.h"
#include "runtime/base/result.h"

namespace serin::store {

/// One router's verdict, for all.
struct Trip {
  std::string service, rollout;  ///< the rollout's id: it names the one epoch that this ends
  std::string cause, reason;
  std::string member;   ///< the router that reached it
  std::string verdict;  ///< the reason, as JSON that replays; may be empty
};

/// A router that is alive.
struct Member {
  std::string id;
  std::string peer;                        ///< "10.0.0.5:8082": the address for the others
  std::string secret;                      ///< required from them: a router that may read the store may speak to its members
  std::string admin;                       ///< URL of its admin API
  std::map<std::string, int64_t> applied;  ///< by service: the revision of the state that its traffic follows
  bool operator==(const Member&) const = default;
};

struct SharedService {
  ServiceRecord record;
  int64_t revision = 0;
};

/// Everything at one moment.
struct Snapshot {
  std::vector<SharedService> services;
  std::vector<Trip> trips;
  std::vector<Member> members;
  std::string leader;  ///< id of a member; empty: no leader
  bool leads = false;  ///< this member is the leader
};

/// Thread-safe. Every call may take as long as the store's timeouts. kUnavailable: it could not be reached, or has no majority.
class SharedStore {
 public:
  virtual ~SharedStore() = default;

  /// `agreed`: the state that a majority knows. Otherwise the state of one of the store's servers, which may be old, but needs no majority.
  virtual Result<Snapshot> look(bool agreed) = 0;
  /// Calls back, on one of the store's threads, when something may have changed; nothing: no longer.
  virtual void watch(std::function<void()> look_again) = 0;

  /// Makes this router a member as long as it calls stay(); call again when its data changed. kAlreadyExists: another one has its id.
  virtual Status join(const Member& self) = 0;
  /// kNotFound: it came too late, and is no longer a member or leader.
  virtual Status stay() = 0;
  virtual void leave() = 0;
  /// True if this member leads.
  virtual Result<bool> lead() = 0;

  /// The first trip of a rollout is final; later ones succeed and change nothing.
  virtual Status trip(const Trip& trip) = 0;
  /// The revision that was written. kConflict: this member does not lead, or has not seen the latest.
  virtual Result<int64_t> save(const Change& change) = 0;
  virtual Result<std::vector<HistoryEntry>> history(const std::string& service, size_t limit) = 0;
  virtual Result<std::optional<VerdictEntry>> verdict(const std::string& id) = 0;
};

}  // namespace serin::store
