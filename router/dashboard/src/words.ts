// words.ts: the judge's short names, said in full. What is not here is shown as it is named.

import type { Phase, Verdict } from "./types";

const kGuards: Record<string, string> = {
  err: "errors: 5xx, resets, malformed, NaN",
  rej: "refusals: 4xx",
  dl: "deadline passed",
  lat_rank: "slower than stable",
  lat_p50: "slower than stable's median",
  lat_p90: "slower than stable's p90",
  lat_p99: "slower than stable's p99",
  lat_2xp99: "slower than twice stable's p99",
  shadow: "other answers to copied requests",
  shadow_few: "entirely other answers to a few copied requests",
  out_form: "outputs of another form",
  out_score_high: "scores above stable's p95",
  out_score_low: "scores below stable's p5",
  out_label: "a label too often, or too rarely",
  hang: "no answer at all",
  res_memory: "memory that grows",
  res_descriptors: "open descriptors that grow",
  res_gpu: "GPU memory that grows",
  res_cpu: "CPU time for an answer",
};

const kOfClass: Record<string, string> = { errors: "failures", latency: "slower than stable", shadow: "other answers" };

export function guardWords(guard: string): string {
  const known = kGuards[guard];
  if (known) return known;
  const label = /^out_label_(\d+)_(often|rarely)$/.exec(guard);
  if (label) return `label ${label[1]} too ${label[2]}`;
  const slice = /^slice:(.+):(errors|latency|shadow)$/.exec(guard);
  if (slice) return `${kOfClass[slice[2] ?? ""]}: requests of ${slice[1]}`;
  if (guard.startsWith("threshold:")) return `your limit on ${guard.slice("threshold:".length)}`;
  if (guard.startsWith("outcome:")) return `your outcome ${guard.slice("outcome:".length)}`;
  if (guard.startsWith("prometheus:")) return `your query ${guard.slice("prometheus:".length)}`;
  return guard;
}

/** A mark beside the word: nobody has to tell colours apart. */
export const kPhases: Record<Phase, { mark: string; tone: string; words: string }> = {
  Progressing: { mark: "▶", tone: "going", words: "Progressing" },
  Paused: { mark: "❚❚", tone: "waiting", words: "Paused" },
  Inconclusive: { mark: "?", tone: "waiting", words: "Inconclusive" },
  Promoting: { mark: "▲", tone: "going", words: "Promoting" },
  Baking: { mark: "◷", tone: "going", words: "Baking" },
  Succeeded: { mark: "✓", tone: "good", words: "Succeeded" },
  RolledBack: { mark: "✕", tone: "bad", words: "Rolled back" },
};

export function question(record: NonNullable<Verdict["record"]>): string {
  const limit = `${+(100 * record.p0).toPrecision(4)} %`;
  switch (record.question) {
    case "worse":
      return `Does it come from ${record.mirrored ? "stable" : "the canary"} more often than its share of the traffic explains?`;
    case "above":
      return `Is the canary's rate above ${limit}?`;
    case "above and worse":
      return `Is the canary's rate above ${limit}, and is it worse than stable?`;
    case "silence":
      return "How often did the canary fall silent while stable answered?";
    case "slower":
      return "Are the canary's answers slower than stable's, by their ranks among stable's?";
    case "samples":
      return `How many samples in a row were above ${record.p0}?`;
    case "above and same":
      return `Has the canary an entirely different label in more than ${limit} of the pairs, although it gives the same numbers otherwise?`;
    case "usage":
      return record.guard === "res_cpu"
        ? "Does an answer cost more CPU time than tolerated in more than half of the comparisons?"
        : "Is it more than before, and grown by more than stable's, in more than half of its changes?";
    case "outcomes":
      return `Are the outcomes that were reported for the canary worse than stable's by more than ${record.p0}?`;
    default:
      return record.question;
  }
}
