// apply.h: Declarative rollouts: the decision what to do with a specification that is applied, perhaps again and again.
//
//   serin rollout apply FILE, PUT /v1/rollouts/{service}, an object of the kind Rollout     -> Controller::apply()
//
// A canary is named by its version and by the key `revision` of the specification. A rollout of that name is not started again while it runs,
// nor after its promotion. One that was rolled back is never started again, whatever was rolled out since.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "router/control/service_status.h"
#include "router/rollout/rollout.h"
#include "router/rollout/spec.h"

namespace serin::router {

/// The current or the last rollout of one track (tracks.h).
struct TrackRollout {
  std::string track;            ///< "digits", "digits~2"
  rollout::State state;         ///< an empty id: there was none
  std::string revision, spec;   ///< spec: as print_spec() has it
  int64_t started_wall_ms = 0;  ///< Unix time
};

enum class ApplyAction : uint8_t {
  kStart,
  kReplace,    ///< ends the rollout of `of`, which runs, and starts this one
  kUnchanged,  ///< it runs, or was promoted
  kBlocked     ///< it was rolled back
};
std::string_view action_name(ApplyAction action);  ///< "started", "replaced", "unchanged", "blocked"

struct ApplyDecision {
  ApplyAction action = ApplyAction::kStart;
  const TrackRollout* of = nullptr;  ///< the rollout that decides; null: there is none
  std::string message;               ///< a sentence for users; empty for kStart
};

/// `tracks`: of the service, in order. `stable`: its stable version. Pure.
ApplyDecision decide_apply(const rollout::Spec& wanted, std::span<const TrackRollout> tracks, std::string_view stable);

/// The key `revision` of a specification as print_spec() has it.
std::string revision_of(const std::string& spec);
/// A rollout that ended earlier, from its verdict (store/verdict_json.h); an empty id: the text is none.
TrackRollout read_verdict(const std::string& verdict);
/// `earlier` was judged and rolled back, and has the name of `wanted`.
bool was_rolled_back(const rollout::Spec& wanted, const TrackRollout& earlier);
/// Nothing is started because of `earlier`.
ApplyDecision blocked_by(const rollout::Spec& wanted, const TrackRollout& earlier);

/// The specification as it would stand in the store if it were the one of `of`: to compare the two. `of` may be null.
std::string as_stored(rollout::Spec wanted, const TrackRollout* of);

/// The result of Controller::apply().
struct Applied {
  ApplyAction action = ApplyAction::kStart;
  std::string message;
  bool differs = false;         ///< nothing was started, and the text is another one than that of the rollout with this name
  std::string current, wanted;  ///< specifications as YAML; current empty: there is none
  rollout::State decided_by;    ///< the rollout with this name, if nothing was started; an empty id: there is none
  ServiceStatus status;         ///< afterwards, of the track
};

}  // namespace serin::router
