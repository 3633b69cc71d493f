// resources.tsx: what an endpoint of each version uses, by its own metrics, and how that of the canary grows.

import { duration } from "./format";
import type { Resource, Rollout } from "./types";
import { guardWords } from "./words";

const kMiB = 1 << 20;

export function amount(guard: string, value: number | null): string {
  if (value === null) return "–";
  if (guard === "res_cpu") return `${+(1000 * value).toPrecision(3)} ms`;
  return guard === "res_descriptors" ? `${+value.toPrecision(4)}` : `${+(value / kMiB).toPrecision(4)} MiB`;
}

function growth({ guard, growth: middle, growth_least: least }: Resource): string {
  if (middle === null) return "–";
  if (guard === "res_cpu") return `${middle.toFixed(2)} times stable's (at least ${(least ?? 0).toFixed(2)})`;
  return `${amount(guard, middle)} a minute (at least ${amount(guard, least)})`;
}

function Line({ line }: { line: Resource }) {
  return (
    <tr>
      <th scope="row">
        <b>{line.guard}</b>
        <span class="words">{line.note || guardWords(line.guard)}</span>
      </th>
      <td class="number">{amount(line.guard, line.canary)}</td>
      <td class="number">{amount(line.guard, line.stable)}</td>
      <td>{growth(line)}</td>
      <td class="number">{line.seconds_left === null ? "–" : duration(line.seconds_left)}</td>
    </tr>
  );
}

export function Resources({ rollout }: { rollout: Rollout }) {
  if (rollout.resources.length === 0) return null;
  return (
    <section class="panel resources">
      <h3>Resources</h3>
      <p class="hint">Of one endpoint, on average, by its own metrics. The last column: until the canary meets its limit, or has doubled, if it grows on.</p>
      <table>
        <thead>
          <tr>
            <th>resource</th>
            <th class="number">canary</th>
            <th class="number">stable</th>
            <th>canary's growth</th>
            <th class="number">left</th>
          </tr>
        </thead>
        <tbody>
          {rollout.resources.map((line) => (
            <Line key={line.guard} line={line} />
          ))}
        </tbody>
      </table>
    </section>
  );
}
