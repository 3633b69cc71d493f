// verdict_json.h: A verdict as it is stored and shown: the specification, the decision, and the record that replays to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "router/rollout/report_schema.h"
#include "router/rollout/verdict_schema.h"
#include "router/store/store.h"
#include "runtime/base/schema.h"

namespace serin::store {

struct VerdictAnswers {
  uint64_t stable = 0, canary = 0, shadow = 0;
};
inline constexpr auto kVerdictAnswers = schema::object<VerdictAnswers>(
    "VerdictAnswers", "Answers in the rollout.", schema::field("stable", &VerdictAnswers::stable, "Of stable."),
    schema::field("canary", &VerdictAnswers::canary, "Of the canary."),
    schema::field("shadow", &VerdictAnswers::shadow, "To mirrored requests."));

/// Field names are a contract with stored verdicts and pipelines: fields are added, never changed.
struct Verdict {
  std::string id, service, stable, canary;
  rollout::Phase phase = rollout::Phase::kProgressing;
  std::string cause, reason;
  int64_t wall_ms = 0, started_wall_ms = 0;
  double seconds = 0;
  VerdictAnswers answers;
  std::string spec;
  std::vector<rollout::Evidence> evidence;
  std::vector<rollout::DryRunTrip> dry_run;
  std::optional<rollout::VerdictRecord> record;
};
inline constexpr auto kVerdict = schema::object<Verdict>(
    "Verdict", "Replayed by `serin rollout explain`.", schema::field("id", &Verdict::id, "Of the rollout: digits-7."),
    schema::field("service", &Verdict::service, "Its name in router.yaml."),
    schema::field("stable", &Verdict::stable, "The stable version."),
    schema::field("canary", &Verdict::canary, "The version that was rolled out."),
    schema::field("phase", &Verdict::phase, "Succeeded and RolledBack are final."),
    schema::field("cause", &Verdict::cause, "err, rej, dl, hang, shadow, threshold:errors, abort, promoted ...; empty before the verdict."),
    schema::field("reason", &Verdict::reason, "A sentence for users."),
    schema::field("wall_ms", &Verdict::wall_ms, "Unix time of the verdict in milliseconds; 0: not known."),
    schema::field("started_wall_ms", &Verdict::started_wall_ms, "Unix time of the start in milliseconds."),
    schema::field("seconds", &Verdict::seconds, "From the start to the verdict.", {.decimals = 3}),
    schema::field<kVerdictAnswers>("answers", &Verdict::answers, "How many there were."),
    schema::field("spec", &Verdict::spec, "The specification as YAML, every default spelled out."),
    schema::field<rollout::kExactEvidence>("evidence", &Verdict::evidence, "One for each guard."),
    schema::field<rollout::kDryRunVerdict>("dry_run", &Verdict::dry_run, "The first verdict of each guard under dryRun."),
    schema::field<rollout::kVerdictRecord>("record", &Verdict::record, "null: no guard decided."));

/// One line. `record` without a guard: no judge decided.
std::string verdict_json(const RolloutRecord& rollout, const rollout::VerdictRecord& record, int64_t wall_ms);

}  // namespace serin::store
