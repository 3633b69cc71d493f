// tracks.h: Several rollouts of one service at once (A/B/n). Each runs on a track of its own: a ServiceControl with its own weights, evidence,
// share of alpha, history and verdict. This class is the part that they have in common.
//
//   tracks.keep_together(now);                           // after each tick of the controller, and before it saves
//   SERIN_TRY(ServiceControl* track, tracks.take(spec)); // the track for a new rollout
//
// The rules:
//   stable      is the first track's. A promotion on another track moves it there, and the others follow. On disk the first track changes
//               first, so that after a crash its stable version applies to all (restore.h).
//   weights     are wanted by each track alone. The data path lowers them where they do not fit (rollout::fit_together). This needs no agreement:
//               every router and every restart computes the same.
//   promotion   waits while another rollout runs: which canary is best is for a person or a pipeline to say. A promotion by hand ends the
//               other rollouts ("superseded").
//   alpha       is divided by the maximum number of rollouts (service_state.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/mutex.h"
#include "router/control/service_control.h"
#include "router/rollout/spec.h"
#include "runtime/base/result.h"

namespace serin::router {

/// Thread-safe.
class Tracks {
 public:
  using Time = rollout::Time;

  /// The first has the service's name. All must outlive this.
  explicit Tracks(std::vector<ServiceControl*> tracks);

  const std::vector<ServiceControl*>& all() const { return all_; }
  /// True: something changed and waits to be saved.
  bool keep_together(Time now);

  using Request = ServiceControl::Request;
  using Done = ServiceControl::Done;
  /// Starts a rollout on the track that `spec` names or, if it names the service, on the first track that is free. `chosen` is that track.
  Result<Done> start(rollout::Spec spec, Request request, Time now, ServiceControl*& chosen);
  /// Undoes the promotion of this track's last rollout.
  /// `of_first`: the change of the first track that moves the requests; 0: none.
  Result<Done> undo(ServiceControl& track, const Request& request, Time now, uint64_t& of_first);

 private:
  ServiceControl& first() const { return *all_.front(); }
  bool join(Time now) SERIN_REQUIRES(mutex_);
  bool end_for_promotion(Time now) SERIN_REQUIRES(mutex_);
  Result<ServiceControl*> track_for(const rollout::Spec& spec) const;
  Status check_beside_others(const rollout::Spec& spec, const ServiceControl& chosen) const;

  const std::vector<ServiceControl*> all_;
  Mutex mutex_;  // one change of the whole at a time; taken before that of a track
};

}  // namespace serin::router
