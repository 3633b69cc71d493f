// evidence.tsx: each guard's evidence beside what it takes to roll back, and what the step still has to show.

import { bits, count, duration } from "./format";
import type { Evidence, Rollout } from "./types";
import { isOver } from "./types";
import { guardWords } from "./words";

const kAlwaysShown = 4;
const kWorthShowing = 0.05; // of the threshold

const share = (line: Evidence): number => Math.max(0, line.bits) / line.bits_to_trip;

function Bar({ value, tone, label }: { value: number; tone: string; label: string }) {
  return (
    <span class={`bar ${tone}`} role="img" aria-label={label}>
      <span style={{ width: `${100 * Math.min(1, Math.max(0, value))}%` }} />
    </span>
  );
}

function Guard({ line, cause }: { line: Evidence; cause: string }) {
  const said = `${bits(line.bits)} of ${bits(line.bits_to_trip)} bits`;
  const tripped = line.guard === cause;
  return (
    <tr class={tripped ? "tripped" : ""}>
      <th scope="row">
        <b>{line.guard}</b>
        {line.dry_run && <span class="kind">rehearsal</span>}
        {tripped && <span class="kind alarm">decided</span>}
        <span class="words">{guardWords(line.guard)}</span>
      </th>
      <td class="bar-cell">
        <Bar value={share(line)} tone={share(line) >= 0.5 || tripped ? "strong" : "weak"} label={said} />
        <span class="said">{said}</span>
      </td>
      <td class="number" data-name="canary">
        {count(line.canary_events)}
      </td>
      <td class="number" data-name="stable">
        {count(line.stable_events)}
      </td>
    </tr>
  );
}

function Guards({ lines, cause }: { lines: Evidence[]; cause: string }) {
  return (
    <table>
      <thead>
        <tr>
          <th>guard</th>
          <th>evidence</th>
          <th class="number">canary</th>
          <th class="number">stable</th>
        </tr>
      </thead>
      <tbody>
        {lines.map((line) => (
          <Guard key={line.guard} line={line} cause={cause} />
        ))}
      </tbody>
    </table>
  );
}

export function Certificates({ rollout }: { rollout: Rollout }) {
  if (isOver(rollout.phase) || rollout.certificates.length === 0) return null;
  return (
    <section class="panel">
      <h3>To be shown in this step</h3>
      <p class="hint">A step that waits for evidence ends once the canary is shown to be no worse than stable by more than these margins.</p>
      <ul class="certificates">
        {rollout.certificates.map((one) => {
          const said = `${(100 * Math.max(0, one.progress)).toFixed(0)} %`;
          return (
            <li key={one.margin}>
              <span>{one.margin}</span>
              <Bar value={one.progress} tone="good" label={said} />
              <span class="said">{said}</span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

export function EvidencePanel({ rollout }: { rollout: Rollout }) {
  const lines = [...rollout.evidence].sort((a, b) => share(b) - share(a));
  const strong = lines.filter((line, i) => i < kAlwaysShown || share(line) >= kWorthShowing);
  const weak = lines.slice(strong.length);
  const cause = rollout.phase === "RolledBack" ? rollout.cause : "";
  return (
    <section class="panel evidence">
      <h3>Guards</h3>
      <p class="hint">
        Evidence against the canary; one bit doubles the odds. At its threshold a guard rolls back, at once and by itself. Canary and stable: events so far.
      </p>
      {rollout.next_verdict && (
        <p class="note">
          At the pace of the last ten seconds <b>{rollout.next_verdict.guard}</b> rolls it back in about {duration(rollout.next_verdict.seconds)}.
        </p>
      )}
      <Guards lines={strong} cause={cause} />
      {weak.length > 0 && (
        <details>
          <summary>{weak.length} guards with next to no evidence</summary>
          <Guards lines={weak} cause={cause} />
        </details>
      )}
      {rollout.dry_run.map((verdict) => (
        <p key={verdict.guard} class="note">
          Rehearsal: would have rolled back after {(verdict.at_ms / 1000).toFixed(1)} s: {verdict.reason}
        </p>
      ))}
    </section>
  );
}
