// shared_load.h: the load of a version at all routers that share its rollouts. Each tells the others its own a few times a second.
//
//   others.note(*decode_loads(body), now);                                // what another router tells
//   std::vector<VersionLoad> whole = others.with(own, {"b", "c"}, now);   // with what b and c have told lately
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/mutex.h"
#include "router/scaling/version_load.h"
#include "runtime/base/result.h"

namespace serin::router {

/// One message between routers, as JSON. Versions without load are left out.
struct LoadMessage {
  std::string member;  ///< id of the sender
  std::vector<VersionLoad> loads;
};
std::string encode_loads(const LoadMessage& message);
/// kCorrupt: not such a message.
Result<LoadMessage> decode_loads(std::string_view text);

/// Thread-safe.
class SharedLoad {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void note(LoadMessage message, Time now);
  /// `own` together with what these other routers have. One that has told nothing for two seconds counts as much as this router: a Service
  /// divides clients about evenly.
  std::vector<VersionLoad> with(const std::vector<VersionLoad>& own, const std::vector<std::string>& others, Time now) const;

 private:
  struct Told {
    Time at;
    std::vector<VersionLoad> loads;
  };
  mutable Mutex mutex_;
  std::map<std::string, Told> told_ SERIN_GUARDED_BY(mutex_);  // by member; those that left go when another tells
};

}  // namespace serin::router
