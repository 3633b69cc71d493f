// audit.tsx: who did what, when and why; newest first.

import { useState } from "preact/hooks";
import type { HistoryEntry } from "./types";

const kFirst = 8;

const when = (time: string): string => new Date(time).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export function Audit({ entries }: { entries: HistoryEntry[] }) {
  const [all, setAll] = useState(false);
  const newest = [...entries].reverse();
  const shown = all ? newest : newest.slice(0, kFirst);
  return (
    <section class="panel audit">
      <h3>Audit log</h3>
      {entries.length === 0 ? (
        <p class="empty">Nothing has happened yet.</p>
      ) : (
        <ol>
          {shown.map((entry) => (
            <li key={entry.id}>
              <span class="event">{entry.event.replace("_", " ")}</span>
              <span class="what">
                {entry.detail} <span class="kind">{entry.weight} %</span>
              </span>
              <span class="by">
                {entry.actor} · {entry.rollout} · <time dateTime={entry.time}>{when(entry.time)}</time>
              </span>
            </li>
          ))}
        </ol>
      )}
      {newest.length > kFirst && (
        <button class="plain" type="button" onClick={() => setAll(!all)}>
          {all ? "Show fewer" : `Show all ${newest.length}`}
        </button>
      )}
    </section>
  );
}
