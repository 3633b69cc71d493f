#include "router/store/verdict_json.h"

#include "runtime/base/schema_json.h"

namespace serin::store {

std::string verdict_json(const RolloutRecord& rollout, const rollout::VerdictRecord& record, int64_t wall_ms) {
  const rollout::Report& report = rollout.report;
  const rollout::State& state = report.state;
  Verdict verdict{.id = state.id,
                  .service = state.service,
                  .stable = state.stable,
                  .canary = state.canary,
                  .phase = state.phase,
                  .cause = state.cause,
                  .reason = state.reason,
                  .wall_ms = wall_ms,
                  .started_wall_ms = rollout.started_wall_ms,
                  .seconds = rollout.seconds,
                  .answers = {.stable = report.stable_answers, .canary = report.canary_answers, .shadow = report.shadow_answers},
                  .spec = rollout.spec,
                  .evidence = report.evidence,
                  .dry_run = report.dry_run};
  if (!record.guard.empty()) verdict.record = record;
  return schema::to_json(kVerdict, verdict);
}

}  // namespace serin::store
