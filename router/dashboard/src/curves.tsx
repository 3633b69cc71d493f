// curves.tsx: the rollout's way: weight, evidence, latency, errors.

import type { Series } from "./chart";
import { Chart } from "./chart";
import { bits, milliseconds, percent } from "./format";
import type { ArmColumns, Timeline } from "./types";
import { guardWords } from "./words";

const kMostGuards = 4;
const kWorthShowing = 0.05; // of its threshold

/** The guards that came nearest to their thresholds, as shares of them: thresholds differ, so bits alone cannot share an axis. */
function evidence(timeline: Timeline): Series[] {
  return timeline.evidence
    .map((guard) => ({ ...guard, peak: Math.max(0, ...guard.bits) / guard.bits_to_trip }))
    .filter((guard) => guard.peak >= kWorthShowing)
    .sort((a, b) => b.peak - a.peak)
    .slice(0, kMostGuards)
    .map((guard, i) => ({
      name: guard.guard,
      tone: `guard-${i}`,
      dashed: i % 2 === 1,
      values: guard.bits.map((value) => value / guard.bits_to_trip),
      say: (_: number, index: number) => `${bits(guard.bits[index] ?? 0)} of ${bits(guard.bits_to_trip)} bits`,
    }));
}

const rate = (arm: ArmColumns): (number | null)[] => arm.failures.map((f, i) => ((arm.answers[i] ?? 0) > 0 ? f / arm.answers[i]! : null));
const known = (quantiles: number[]): (number | null)[] => quantiles.map((q) => (q > 0 ? q : null)); // 0: no good answer

export function Curves({ timeline }: { timeline: Timeline | null }) {
  const t = timeline ?? { at_ms: [], weight_ppm: [], shadow_ppm: [] };
  const arms = timeline ?? null;
  const guards = timeline ? evidence(timeline) : [];
  const weight: Series[] = [{ name: "canary", tone: "canary", stepped: true, values: t.weight_ppm.map((w) => w / 1e6) }];
  if (t.shadow_ppm.some((w) => w > 0))
    weight.push({ name: "copied to the canary", tone: "quiet", stepped: true, dashed: true, values: t.shadow_ppm.map((w) => w / 1e6) });
  return (
    <div class="curves">
      <Chart title="Weight" hint="Share of requests" at={t.at_ms} series={weight} say={percent} least={0.05} empty="Nothing recorded yet." />
      <Chart
        title="Evidence against the canary"
        hint={guards.length > 0 ? guards.map((g) => `${g.name}: ${guardWords(g.name)}`).join("; ") : "No guard has gathered any."}
        at={t.at_ms}
        series={guards}
        say={percent}
        limit={{ at: 1, words: "rolls back" }}
        empty="Nothing recorded yet."
      />
      <Chart
        title="Latency"
        hint="Good answers of the last 10 to 20 seconds"
        at={t.at_ms}
        series={
          arms
            ? [
                { name: "stable p50", tone: "stable", dashed: true, values: known(arms.stable.p50_ms) },
                { name: "stable p99", tone: "stable", values: known(arms.stable.p99_ms) },
                { name: "canary p50", tone: "canary", dashed: true, values: known(arms.canary.p50_ms) },
                { name: "canary p99", tone: "canary", values: known(arms.canary.p99_ms) },
              ]
            : []
        }
        say={(ms) => (ms === 0 ? "0 ms" : milliseconds(ms))}
        empty="Nothing recorded yet."
      />
      <Chart
        title="Errors"
        hint="Errors, refusals and deadlines passed, before the shield hides them from clients"
        at={t.at_ms}
        series={
          arms
            ? [
                { name: "stable", tone: "stable", values: rate(arms.stable) },
                { name: "canary", tone: "canary", values: rate(arms.canary) },
              ]
            : []
        }
        say={percent}
        least={0.01}
        empty="Nothing recorded yet."
      />
    </div>
  );
}
