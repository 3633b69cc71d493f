// badge.tsx: the phase of a rollout, by a mark, a word and a colour.

import type { Status } from "./types";
import { kPhases } from "./words";

export function Badge({ status }: { status: Status | undefined }) {
  const rollout = status?.rollout;
  if (!rollout) return <span class="badge none">No rollout</span>;
  const phase = kPhases[rollout.phase];
  return (
    <span class={`badge ${phase.tone}`}>
      <span aria-hidden="true">{phase.mark}</span> {phase.words}
    </span>
  );
}
