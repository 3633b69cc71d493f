// types.ts: the types of the admin API's answers (answers.ts) under the names that the page uses.

import type { Rollout } from "./answers";

export type {
  Answers,
  Caller,
  Disagreement,
  Event as DecidingEvent,
  Evidence,
  HistoryEntry,
  Resource,
  Rollout,
  Service,
  Status,
  Timeline,
  TimelineArm as ArmColumns,
  Verdict,
  Version,
} from "./answers";

export type Phase = Rollout["phase"];

export const isOver = (phase: Phase): boolean => phase === "Succeeded" || phase === "RolledBack";
