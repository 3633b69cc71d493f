// shared_store.h: what several routers agree through: etcd today, the Kubernetes API one day.
//
//   shared.watch([] { wake(); });
//   SERIN_CHECK(shared.join(self));                      // and stay() every second
//   SERIN_TRY(const Snapshot now, shared.look());        // what all of them know
//   SERIN_TRY(const bool leads, shared.lead());          // one of them
//   SERIN_TRY(const int64_t revision, shared.save(change));   // only who leads, only over what it has seen
//   SERIN_CHECK(shared.trip({"digits", "digits-7", ...}));    // anybody, once for each rollout
//
// The rules (README of router, "Several routers"): a trip is a latch that only ever closes and names its rollout, so that a late one cannot touch the next;
// everything else is written by the leader, by compare-and-swap, and fails where it does not lead any more.
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
  std::string member;   ///< who came to it
  std::string verdict;  ///< why, as JSON that replays; may be empty
};

/// A router that is alive.
struct Member {
  std::string id;
  std::string peer;                        ///< "10.0.0.5:8082": where the others reach it
  std::string secret;                      ///< what they must say there: who may read the store may speak to its members
  std::string admin;                       ///< url of its admin API
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
  std::string leader;  ///< id of a member; empty: nobody leads
  bool leads = false;  ///< it is the one that asks
};

/// Thread-safe. Every call may take as long as the store's timeouts; kUnavailable: it could not be reached, or has no majority.
class SharedStore {
 public:
  virtual ~SharedStore() = default;

  /// `agreed`: what a majority knows. Otherwise what one of the store's servers knows, which may be old, but needs no majority.
  virtual Result<Snapshot> look(bool agreed) = 0;
  /// Calls back, on a thread of the store's, when something may have changed; nothing: no longer.
  virtual void watch(std::function<void()> look_again) = 0;

  /// Makes this router a member until it does not stay() any more; again with what has changed about it. kAlreadyExists: another one has its id.
  virtual Status join(const Member& self) = 0;
  /// kNotFound: it came too late, and is neither member nor leader any more.
  virtual Status stay() = 0;
  virtual void leave() = 0;
  /// True where this member leads.
  virtual Result<bool> lead() = 0;

  /// The first trip of a rollout stands; later ones succeed and change nothing.
  virtual Status trip(const Trip& trip) = 0;
  /// The revision that was written. kConflict: this member does not lead, or has not seen the latest.
  virtual Result<int64_t> save(const Change& change) = 0;
  virtual Result<std::vector<HistoryEntry>> history(const std::string& service, size_t limit) = 0;
  virtual Result<std::optional<VerdictEntry>> verdict(const std::string& id) = 0;
};

}  // namespace serin::store
