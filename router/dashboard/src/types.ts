// types.ts: what the admin API says (router/admin/status_json.cc, router/view/verdict_json.cc), as far as the page shows it.

export interface Caller {
  name: string;
  role: string;
  may: string[];
}

export interface Version {
  name: string;
  weight: number;
  weight_ppm: number;
  endpoints: number;
  healthy: number | null;
}

export interface Service {
  name: string;
  stable: string;
  epoch: number;
  versions: Version[];
}

export interface Answers {
  seconds: number; // that they came in
  answers: number;
  failures: number;
  p50_ms: number;
  p90_ms: number;
  p99_ms: number;
}

export interface Evidence {
  guard: string;
  bits: number;
  bits_to_trip: number;
  stable_events: number;
  canary_events: number;
  dry_run: boolean;
}

export interface DecidingEvent {
  at_ms: number;
  arm: "stable" | "canary";
  share: number;
  units: number;
  bits: number;
}

export interface Disagreement {
  at_ms: number;
  form?: boolean; // outputs of another shape: nothing to set beside each other
  stable_label?: number;
  canary_label?: number;
  stable_score?: number;
  canary_score?: number;
  absolute?: number;
}

export type Phase = "Progressing" | "Paused" | "Inconclusive" | "Promoting" | "Baking" | "Succeeded" | "RolledBack";

export interface Rollout {
  id: string;
  stable: string;
  canary: string;
  phase: Phase;
  step: number;
  steps: number;
  weight: number;
  weight_ppm: number;
  shadow_ppm: number;
  cause: string;
  reason: string;
  note: string;
  seconds: number;
  step_seconds: number;
  step_eta_seconds: number | null;
  next_verdict: { guard: string; seconds: number } | null; // at the pace of the last seconds
  answers: { stable: number; canary: number; shadow: number; step_canary: number };
  evidence: Evidence[];
  certificates: { margin: string; progress: number }[];
  leading_guard: string;
  events: DecidingEvent[];
  dry_run: { at_ms: number; guard: string; reason: string }[];
  shadow: {
    compared: number;
    mismatches: number;
    labels: number;
    largest_absolute: number;
    largest_relative: number;
    mean_score: number;
    examples: Disagreement[];
  };
}

export interface Status {
  service: string;
  stable: string;
  epoch: number;
  recent: { stable: Answers; canary: Answers };
  rollout: Rollout | null;
}

export interface ArmColumns {
  answers: number[];
  failures: number[];
  p50_ms: number[];
  p90_ms: number[];
  p99_ms: number[];
}

/** Columns of equal length, one place for each moment. */
export interface Timeline {
  service: string;
  at_ms: number[];
  weight_ppm: number[];
  shadow_ppm: number[];
  stable: ArmColumns;
  canary: ArmColumns;
  evidence: { guard: string; bits_to_trip: number; bits: number[] }[];
}

export interface HistoryEntry {
  id: number;
  time: string;
  rollout: string;
  event: string;
  actor: string;
  detail: string;
  weight: number;
}

export interface Verdict {
  id: string;
  phase: Phase;
  cause: string;
  reason: string;
  record: {
    guard: string;
    question: string;
    trip_value: number;
    p0: number;
    mirrored?: boolean;
    events: { at_ms: number; arm: "stable" | "canary"; share: number; units: number; bits: number }[];
  } | null;
}

export const isOver = (phase: Phase): boolean => phase === "Succeeded" || phase === "RolledBack";
