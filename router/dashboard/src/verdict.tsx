// verdict.tsx: why it was decided as it was, or how near it is: the question, and each event with the evidence after it.

import { bits } from "./format";
import { amount } from "./resources";
import type { DecidingEvent, Rollout, Verdict } from "./types";
import { isOver } from "./types";
import { guardWords, question } from "./words";

const kShown = 12;

type Recorded = NonNullable<Verdict["record"]>["events"][number];

/** What a guard on pairs saw in one. */
function pairWords(event: DecidingEvent | Recorded): string {
  if ("bad" in event && event.bad) return "another label";
  return "same" in event && event.same ? "the same numbers" : "other numbers";
}

/** What an event says in the column of its kind: share, value, pair, or measurement of the resource that the guard is about. */
function saidBy(event: DecidingEvent | Recorded, kind: Kind, guard: string): string {
  if (kind === "pairs") return pairWords(event);
  if (kind === "counted") return `${+event.share.toPrecision(4)}`;
  if (kind === "usage") return guard === "res_cpu" ? `${event.share.toFixed(2)} times` : amount(guard, event.share);
  return `${(100 * event.share).toFixed(1)} %`;
}

type Kind = "shares" | "counted" | "pairs" | "usage";
const kColumns: Record<Kind, string> = { shares: "expected share", counted: "value", pairs: "the pair has", usage: "measured" };

const kindOf = (record: Verdict["record"]): Kind => {
  if (record?.question === "silence" || record?.question === "samples") return "counted";
  return record?.question === "above and same" ? "pairs" : record?.question === "usage" ? "usage" : "shares";
};

function Events({ events, trip, kind, guard }: { events: (DecidingEvent | Recorded)[]; trip: number; kind: Kind; guard: string }) {
  const counted = kind === "counted";
  const latest = events.slice(-kShown);
  const hidden = events.length - latest.length;
  return (
    <table class="events">
      <caption>
        {hidden > 0 ? `The latest ${kShown} of ${events.length} events` : "Its events"}; evidence after each
      </caption>
      <thead>
        <tr>
          <th class="number">after</th>
          <th>from</th>
          <th class="number">{kColumns[kind]}</th>
          <th>{counted ? "times" : "bits"}</th>
        </tr>
      </thead>
      <tbody>
        {latest.map((event, i) => (
          <tr key={`${event.at_ms}-${i}`}>
            <td class="number">{(event.at_ms / 1000).toFixed(2)} s</td>
            <td class="arm">
              <span class={`swatch ${event.arm}`} aria-hidden="true" />
              {event.arm}
            </td>
            <td class="number">{saidBy(event, kind, guard)}</td>
            <td class="bar-cell">
              <span class={`bar ${event.bits >= trip ? "strong" : "weak"}`} aria-hidden="true">
                <span style={{ width: `${100 * Math.min(1, Math.max(0, event.bits) / trip)}%` }} />
              </span>
              <span class="said">{counted ? event.bits : bits(event.bits)}</span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Explained({ rollout, verdict }: { rollout: Rollout; verdict: Verdict | null }) {
  const over = isOver(rollout.phase);
  const record = verdict?.id === rollout.id ? verdict.record : null;
  const leading = rollout.evidence.find((line) => line.guard === rollout.leading_guard);
  const decided = rollout.phase === "RolledBack" && record?.guard === rollout.cause;
  const kind = kindOf(record);
  const counted = kind === "counted";
  const trip = record ? (counted ? record.trip_value : Math.log2(record.trip_value)) : (leading?.bits_to_trip ?? 1);
  const guard = record?.guard ?? rollout.leading_guard;
  const events = record?.events ?? rollout.events;
  if (!over && events.length === 0) return null;
  return (
    <section class="panel verdict">
      <h3>{over ? "The verdict, explained" : "What comes nearest to a rollback"}</h3>
      {over && <p class={`decision ${rollout.phase === "RolledBack" ? "bad" : "good"}`}>{rollout.reason}</p>}
      {over && !record && <p class="hint">Decided by a person, or before the router last started: there is no evidence to show.</p>}
      {guard !== "" && (record || !over) && (
        <>
          <p>
            <b>{guard}</b>: {guardWords(guard)}. {record ? question(record) : ""}{" "}
            {`${decided ? "Rolled back" : over ? "It would have rolled back" : "Rolls back"} at ${+trip.toPrecision(4)} ${counted ? "times" : "bits"}.`}
          </p>
          {events.length > 0 && <Events events={events} trip={trip} kind={kind} guard={guard} />}
          {over && (
            <p class="hint">
              <code>serin rollout explain {rollout.id}</code> decides it once more from this record.
            </p>
          )}
        </>
      )}
    </section>
  );
}
