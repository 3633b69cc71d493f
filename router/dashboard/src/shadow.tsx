// shadow.tsx: what the canary said to copies of stable's requests, and where it said something else.

import { count, percent } from "./format";
import type { Disagreement, Rollout } from "./types";

const number = (value: number | undefined): string => (value === undefined ? "–" : String(+value.toPrecision(4)));

function Example({ example }: { example: Disagreement }) {
  const at = `${(example.at_ms / 1000).toFixed(1)} s`;
  if (example.form)
    return (
      <tr>
        <td class="number">{at}</td>
        <td colSpan={3}>outputs of another form</td>
      </tr>
    );
  return (
    <tr>
      <td class="number">{at}</td>
      <td>
        label {example.stable_label} <span class="words">score {number(example.stable_score)}</span>
      </td>
      <td>
        label {example.canary_label} <span class="words">score {number(example.canary_score)}</span>
      </td>
      <td class="number">{number(example.absolute)}</td>
    </tr>
  );
}

export function Shadow({ rollout }: { rollout: Rollout }) {
  const shadow = rollout.shadow;
  if (shadow.compared === 0) return null;
  return (
    <section class="panel shadow">
      <h3>Copied requests</h3>
      <p>
        <b>{count(shadow.mismatches)}</b> of {count(shadow.compared)} answers differ from stable's ({percent(shadow.mismatches / shadow.compared)}).
        Largest difference {number(shadow.largest_absolute)}; mean difference of the highest score {number(shadow.mean_score)}.
      </p>
      {shadow.examples.length > 0 && (
        <table>
          <caption>The latest {shadow.examples.length} that differ</caption>
          <thead>
            <tr>
              <th class="number">after</th>
              <th>stable said</th>
              <th>canary said</th>
              <th class="number">largest Δ</th>
            </tr>
          </thead>
          <tbody>
            {[...shadow.examples].reverse().map((example, i) => (
              <Example key={`${example.at_ms}-${i}`} example={example} />
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
