// answers.ts: the answers of the admin API. Made of their descriptions in C++ (README.md); changes here are lost.

/** Every service that has, or had, a rollout. */
export interface StatusList {
  rollouts: Status[]; // One entry for each.
}

/** A service, and its rollout where it ever had one. */
export interface Status {
  service: string; // Its name in router.yaml.
  stable: string; // The version that is stable now.
  epoch: number; // Rises with every change; for If-Match.
  warm: Warm | null; // After a promotion: the version that undo brings back, and for how long it is still kept warm.
  recent: Recent; // How both versions answer now.
  rollout: Rollout | null; // null: it never had one.
  replicas?: Replicas; // Only where several routers share the rollouts.
}

/** The version that undo brings back. */
export interface Warm {
  version: string; // Its name.
  seconds: number; // For how long it is still kept warm.
}

/** The answers of the last 10 to 20 seconds. */
export interface Recent {
  stable: Answers; // Of the stable version.
  canary: Answers; // Of the canary.
}

/** The latest answers of one version. */
export interface Answers {
  seconds: number; // The time in which they came.
  answers: number; // How many.
  failures: number; // Errors, refusals and missed deadlines among them.
  p50_ms: number; // Latency of good answers; 0: there is none.
  p90_ms: number; // The same.
  p99_ms: number; // The same.
}

/** The current or the last rollout of a service. */
export interface Rollout {
  id: string; // The service and a number: digits-7.
  stable: string; // The version that was stable when it began.
  canary: string; // The version that is rolled out.
  phase: "Progressing" | "Paused" | "Inconclusive" | "Promoting" | "Baking" | "Succeeded" | "RolledBack"; // Succeeded and RolledBack are final.
  step: number; // Index of the current step.
  steps: number; // How many there are.
  weight: number; // Of the canary, in percent.
  weight_ppm: number; // The same in parts per million.
  shadow_ppm: number; // Of stable's requests that are mirrored to the canary.
  cause: string; // While it waits at a gate, that gate (confirm-promotion). Of the verdict: err, rej, dl, hang, shadow, threshold:errors, abort, promoted ...; empty before it.
  reason: string; // A sentence for users.
  note: string; // Another reason that the steps wait.
  seconds: number; // Since it began, until now or its verdict.
  step_seconds: number; // Since the step began.
  step_eta_seconds: number | null; // Until the step is over, at its pace so far; null: not known.
  next_verdict: NextVerdict | null; // null: no evidence grows.
  answers: AnswerCounts; // How many there were.
  evidence: Evidence[]; // One for each guard.
  certificates: Certificate[]; // Of the current step.
  leading_guard: string; // The guard that decided or, before a verdict, is nearest to it.
  events: Event[]; // The latest events of that guard, oldest first, at most 128.
  dry_run: DryRunVerdict[]; // The first verdict of each guard under dryRun.
  shadow: Shadow; // The answers to mirrored requests.
  resources: Resource[]; // What both versions use, by their own metrics. Empty: guard.resources is off.
}

/** The guard that would roll back first, if evidence grows as in the last ten seconds. */
export interface NextVerdict {
  guard: string; // Its name.
  seconds: number; // From now.
}

/** Answers in this rollout. */
export interface AnswerCounts {
  stable: number; // Of stable.
  canary: number; // Of the canary.
  shadow: number; // To mirrored requests.
  step_canary: number; // Of the canary, in the current step.
}

/** Evidence of one guard against the canary. It is rolled back once bits reach bits_to_trip. */
export interface Evidence {
  guard: string; // err, rej, dl, lat_rank, shadow, threshold:errors, ...
  bits: number; // log2 of the e-value.
  bits_to_trip: number; // log2 of the threshold.
  stable_events: number; // Its events on stable.
  canary_events: number; // Its events on the canary.
  dry_run: boolean; // It only reports the verdict that it would have given.
}

/** Proof that the current step waits for. */
export interface Certificate {
  margin: string; // The quantity that is no worse, and its margin: errors +1.0 %.
  progress: number; // 0 to 1; 1: certified.
}

/** An event that moved the leading guard. */
export interface Event {
  at_ms: number; // Since the rollout began.
  arm: "stable" | "canary"; // The version that answered.
  share: number; // The canary's share of such answers that chance alone explains. Of a sample: its value.
  units: number; // Pieces of evidence that it counts for.
  bits: number; // log2 of the guard's e-value after it.
}

/** A guard under dryRun that would have rolled back. */
export interface DryRunVerdict {
  at_ms: number; // Since the rollout began.
  guard: string; // Its name.
  reason: string; // A sentence for users.
}

/** The answers to mirrored requests, compared with stable's. */
export interface Shadow {
  compared: number; // Pairs of answers.
  mismatches: number; // Pairs that differ.
  labels: number; // Pairs with different labels.
  largest_absolute: number; // The largest difference of all elements.
  largest_relative: number; // The same as a fraction of stable's value.
  mean_score: number; // Mean of the canary's highest score minus stable's.
  examples: Disagreement[]; // The latest, oldest first, at most 10.
}

/** A mirrored request whose two answers differ. */
export interface Disagreement {
  at_ms: number; // Since the rollout began.
  form?: boolean; // true: no output has the same shape in both, so nothing else is known.
  stable_label?: number; // Index of stable's highest score.
  canary_label?: number; // Index of the canary's highest score.
  stable_score?: number; // Stable's highest score.
  canary_score?: number; // The canary's highest score.
  absolute?: number; // The largest difference.
  relative?: number; // The largest difference as a fraction of stable's value.
}

/** What one endpoint uses of a resource, on average, and how that grows. */
export interface Resource {
  guard: string; // res_memory, res_descriptors, res_gpu or res_cpu.
  stable: number | null; // Bytes or descriptors; of res_cpu seconds of CPU for an answer. null: not known.
  canary: number | null; // The same of the canary.
  growth: number | null; // Of the canary, a minute; of res_cpu how many times stable's cost. null: not known yet.
  growth_least: number | null; // Its lower bound at 99.9 %.
  seconds_left: number | null; // Until the canary meets its limit, or has doubled, if it grows on like this. null: it does not grow.
  note: string; // Why it is not judged; else empty.
}

/** Only where several routers share the rollouts. */
export interface Replicas {
  self: string; // The router that answers.
  leader: string; // Empty: no leader is known.
  store_reachable: boolean; // The shared store answered the last query.
  behind_seconds: number; // Since the last state that a majority agreed on was seen.
  untold_verdicts: number; // Verdicts of this router that are not in the shared store yet.
  alive: Replica[]; // All routers, with this one.
}

/** A router that is alive. */
export interface Replica {
  name: string; // Its name.
  admin: string; // URL of its admin API.
  leads: boolean; // It is the leader.
}

/** What came of a specification that was applied. */
export interface Applied {
  action: string; // started, replaced (the one that ran was ended), unchanged (it runs, or was promoted), or blocked (it was rolled back). With dry_run: what it would be.
  message: string; // A sentence for users.
  specification_differs: boolean; // Nothing was started, and the rollout of this version and revision has other rules than those given.
  current: string; // The specification of the rollout that decides, as YAML; empty: there is none.
  wanted: string; // The specification that was given, in the same form.
  status: Status; // As GET gives it.
}

/** All services. */
export interface ServiceList {
  services: Service[]; // In the order of router.yaml.
}

/** A service of router.yaml. */
export interface Service {
  name: string; // Its name.
  stable: string; // The version that is stable now.
  epoch: number; // Rises with every change; for If-Match.
  versions: Version[]; // In the order of router.yaml.
}

/** One version of a service. */
export interface Version {
  name: string; // Its name in router.yaml.
  weight: number; // Its share of the requests, in percent.
  weight_ppm: number; // The same in parts per million.
  endpoints: number; // How many there are.
  healthy: number | null; // Endpoints that are healthy; null: not asked yet.
}

/** Columns of equal length, with one place for each moment. */
export interface Timeline {
  service: string; // Its name.
  at_ms: number[]; // The moments, since the rollout began.
  weight_ppm: number[]; // Of the canary, in parts per million.
  shadow_ppm: number[]; // Of stable's requests that are mirrored to the canary.
  stable: TimelineArm; // The answers of stable.
  canary: TimelineArm; // The answers of the canary.
  evidence: EvidenceCurve[]; // One curve for each guard.
}

/** The latest answers of one version at each moment. */
export interface TimelineArm {
  answers: number[]; // How many.
  failures: number[]; // Errors, refusals and missed deadlines among them.
  p50_ms: number[]; // Latency of good answers; 0: there was none.
  p90_ms: number[]; // The same.
  p99_ms: number[]; // The same.
}

/** The evidence of one guard. */
export interface EvidenceCurve {
  guard: string; // Its name.
  bits_to_trip: number; // log2 of its threshold, at last.
  bits: number[]; // log2 of its e-value at each moment, at least 0.
}

/** The audit log of one service. */
export interface History {
  service: string; // Its name.
  history: HistoryEntry[]; // The latest entries, oldest first.
}

/** A change of a service. */
export interface HistoryEntry {
  id: number; // Rises over all services.
  time: string; // In UTC.
  wall_ms: number; // The same as Unix time in milliseconds.
  service: string; // Its name.
  rollout: string; // Its id.
  event: string; // started, weight, rolled_back, promoted, paused, ...
  actor: string; // The person, pipeline or router that made the change.
  detail: string; // A sentence for users.
  weight: number; // Of the canary after the change, in percent.
  weight_ppm: number; // The same in parts per million.
  previous: string; // SHA-256 of the entry before, as hexadecimal digits; empty for the first.
  digest: string; // SHA-256 of this entry and of `previous`.
}

/** Replayed by `serin rollout explain`. */
export interface Verdict {
  id: string; // Of the rollout: digits-7.
  service: string; // Its name in router.yaml.
  stable: string; // The stable version.
  canary: string; // The version that was rolled out.
  phase: "Progressing" | "Paused" | "Inconclusive" | "Promoting" | "Baking" | "Succeeded" | "RolledBack"; // Succeeded and RolledBack are final.
  cause: string; // err, rej, dl, hang, shadow, threshold:errors, abort, promoted ...; empty before the verdict.
  reason: string; // A sentence for users.
  wall_ms: number; // Unix time of the verdict in milliseconds; 0: not known.
  started_wall_ms: number; // Unix time of the start in milliseconds.
  seconds: number; // From the start to the verdict.
  answers: VerdictAnswers; // How many there were.
  spec: string; // The specification as YAML, every default spelled out.
  evidence: Evidence[]; // One for each guard.
  dry_run: DryRunVerdict[]; // The first verdict of each guard under dryRun.
  record: VerdictRecord | null; // null: no guard decided.
}

/** Answers in the rollout. */
export interface VerdictAnswers {
  stable: number; // Of stable.
  canary: number; // Of the canary.
  shadow: number; // To mirrored requests.
}

/** The reason for the decision of a guard, in numbers that replay to it. */
export interface VerdictRecord {
  guard: string; // Its name.
  question: "worse" | "above" | "above and worse" | "silence" | "slower" | "samples" | "above and same" | "usage" | "outcomes"; // The test that it makes.
  trip_value: number; // The e-value, or the number of events, that rolls back.
  tolerated_ratio: number; // The multiple of stable's bad rate that the canary may have.
  mirrored: boolean; // It asks the reverse: whether events are too rare on the canary.
  p0: number; // The limit of the rate.
  cap: number; // The largest e-value of the process against the limit.
  worse: MixtureState; // The process against stable.
  above: MixtureState; // The process against the limit.
  same_p0?: number; // The share of equal answers that two models may have.
  same?: MixtureState; // The process that shows both versions to be the same model.
  events: RecordedEvent[]; // Oldest first.
}

/** A test process before the first of the events. */
export interface MixtureState {
  mixture: number[]; // The likelihood ratio of each alternative.
  unused_mass: number; // Of the change-point prior.
  count: number; // Events or answers so far.
}

/** An event that the guard judged. */
export interface RecordedEvent {
  at_ms: number; // Since the rollout began.
  arm: "stable" | "canary"; // The version that answered.
  bad: boolean; // false: an answer within a limit set by the user.
  share: number; // The canary's share of such answers that chance alone explains. Of a sample: its value; of outcomes the difference of their means.
  units: number; // Pieces of evidence that it counts for.
  good_before: number; // Canary answers within that limit since the previous event. Of outcomes: reports before the last one.
  alone: boolean; // Stable got no traffic: the limit decides alone.
  rank: number; // Of a latency: how many of stable's p25, p50, p75, p90, p97, p99, 2 and 4 times p99 it exceeds. 9: stable failed.
  one_sided: boolean; // The share is not exact, so that a fast answer is no evidence.
  same?: boolean; // Of a mirrored pair: whether both answers are numerically the same.
  bits: number; // log2 of the guard's e-value after it.
}

/** A rollout in one word. */
export interface Word {
  verdict: "healthy" | "insufficient_data" | "rolled_back" | "promoted"; // The word.
  service: string; // Its name.
  rollout: string; // Its id; empty: there never was one.
  reason: string; // A sentence for users.
  stable: string; // The version that is stable now.
  canary: string; // The version that is, or was, rolled out; empty: there never was one.
  weight: number; // Of the canary, in percent.
  certified: boolean; // The present step has all the evidence that it asks for.
}

/** The caller, and the commands that it may use. */
export interface Caller {
  name: string; // Of its token, or its address.
  role: "viewer" | "operator" | "admin"; // Each role includes the permissions of the one before it.
  may: string[]; // Commands, and start.
}

/** Outcomes of one service. */
export interface Outcomes {
  service: string; // Its name.
  metrics: MetricOutcomes[]; // In the order of router.yaml.
}

/** How the versions stand by one metric. */
export interface MetricOutcomes {
  name: string; // Of router.yaml.
  better: "higher" | "lower"; // Which mean is better.
  least: number; // The least value of its range.
  most: number; // The largest value of its range.
  confidence: number; // Of all intervals together.
  margin: number | null; // Smaller differences do not matter; null: all matter.
  reports: number; // Outcomes that were counted.
  versions: VersionOutcomes[]; // In the order in which they came.
  comparisons: OutcomeComparison[]; // One for each two versions, one of which has an outcome.
  verdict: "no_reports" | "undecided" | "winner" | "no_difference" | "unbalanced"; // What the outcomes show.
  winner: string | null; // The only version that no other one is shown to be better than; null: undecided.
  leading: string | null; // The best version at present, shown or not; null: nothing to compare.
  text: string; // A sentence for users.
}

/** The outcomes of one version. */
export interface VersionOutcomes {
  version: string; // Its name.
  reports: number; // Outcomes that were counted.
  mean: number | null; // Their mean; null: none. Where shares have changed, the comparison is fair and this is not.
}

/** Two versions that requests were drawn between. */
export interface OutcomeComparison {
  version: string; // The one.
  than: string; // The other.
  reports: number; // Outcomes of both that were drawn while both had traffic.
  difference: number; // The mean of `version` minus that of `than`.
  low: number; // The lower end of its interval, which is valid at all times.
  high: number; // The upper end.
  balanced: boolean; // False: reports are shown to be missing more often for one of the two, and the difference means nothing.
}

/** What became of each report. */
export interface OutcomeReceipt {
  accepted: number; // Counted.
  duplicates: number; // Of draws that had a report before.
  refused: RefusedOutcome[]; // The others. To send them again is of no use.
}

/** A report that was not counted. */
export interface RefusedOutcome {
  index: number; // Its place in the list, from 0.
  error: string; // A sentence for users.
  code: string; // The kind of error. `not_found`: this router does not know the request.
}
