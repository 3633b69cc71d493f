// model.ts: all that the page knows. Events of the router change it, listeners draw it; nothing in it is kept anywhere else.
//
// What is live (weights, evidence, answers) comes with the events. What is long (the curves so far, the audit log, a verdict's record) is asked
// for when a service is looked at, and again when an event shows that it has changed.

import * as api from "./api";
import { follow } from "./feed";
import type { Caller, HistoryEntry, Service, Status, Timeline, Verdict } from "./types";
import { isOver } from "./types";

export type Connection = "connecting" | "live" | "lost" | "token";

/** What is known of a service beside its latest status. */
export interface Detail {
  timeline: Timeline | null;
  history: HistoryEntry[];
  verdict: Verdict | null;
}

const kMostPoints = 1200; // then the router's own, thinned out, is asked for again
const kAfterVerdictMs = 60_000; // as long as the router goes on after one

export class Model {
  connection: Connection = "connecting";
  why = ""; // it is lost, or asks for a token
  caller: Caller | null = null;
  services = new Map<string, Service>();
  statuses = new Map<string, Status>();
  received = new Map<string, number>(); // when a status came, by performance.now()
  selected = "";
  detail: Detail = { timeline: null, history: [], verdict: null };

  private stop: (() => void) | null = null;
  private timelineZero = 0; // performance.now() of the timeline's beginning
  private overSince = 0;
  private known = ""; // of the selected service, what its details were asked for
  private curvesOf = ""; // the service and rollout whose timeline this is

  constructor(private readonly changed: () => void) {}

  async connect(): Promise<void> {
    this.stop?.();
    this.connection = "connecting";
    this.changed();
    this.stop = follow({
      onEvent: (event, data) => this.take(event, data),
      onLive: () => void this.live(),
      onLost: (why, refused) => {
        this.connection = refused ? "token" : "lost";
        this.why = refused && api.token.get() === "" ? "" : why;
        this.changed();
      },
    });
  }

  private async live(): Promise<void> {
    try {
      this.caller = await api.me();
    } catch (error) {
      this.why = String(error);
    }
    this.connection = "live";
    this.known = this.curvesOf = ""; // what happened meanwhile is asked for
    if (this.selected !== "") void this.refresh();
    this.changed();
  }

  signIn(token: string): void {
    api.token.set(token);
    void this.connect();
  }

  signOut(): void {
    api.token.forget();
    this.caller = null;
    void this.connect();
  }

  private take(event: string, data: string): void {
    if (event === "service") {
      const service = JSON.parse(data) as Service;
      this.services.set(service.name, service);
    } else if (event === "rollout") {
      const status = JSON.parse(data) as Status;
      this.statuses.set(status.service, status);
      this.received.set(status.service, performance.now());
      if (status.service === this.selected) {
        this.extendTimeline(status);
        void this.refresh();
      }
    }
    if (this.selected === "") this.select(mostInteresting(this.statuses));
    this.changed();
  }

  select(service: string): void {
    if (service === this.selected || service === "") return;
    this.selected = service;
    this.detail = { timeline: null, history: [], verdict: null };
    this.known = this.curvesOf = "";
    void this.refresh();
    this.changed();
  }

  /** Asks for the details of the selected service where they have changed. */
  private async refresh(): Promise<void> {
    const name = this.selected;
    const status = this.statuses.get(name);
    if (!status) return;
    const rollout = status.rollout;
    const key = [name, status.epoch, rollout?.id, rollout?.phase, rollout?.weight_ppm, rollout?.step].join(" ");
    if (key === this.known) return;
    const curves = `${name} ${rollout?.id}`;
    const other = curves !== this.curvesOf;
    this.known = key;
    try {
      const [timeline, history, verdict] = await Promise.all([
        other ? api.timeline(name) : null,
        api.history(name),
        rollout && isOver(rollout.phase) ? api.verdict(rollout.id) : null,
      ]);
      if (this.selected !== name) return;
      this.detail = { timeline: timeline ?? this.detail.timeline, history, verdict };
      if (timeline) {
        this.curvesOf = curves;
        this.timelineZero = performance.now() - (timeline.at_ms.at(-1) ?? 0);
        this.overSince = 0;
      }
      this.changed();
    } catch {
      this.known = ""; // the next event tries again
    }
  }

  /** The latest point, as the router will have it, too. */
  private extendTimeline(status: Status): void {
    const t = this.detail.timeline;
    const rollout = status.rollout;
    if (!t || !rollout) return;
    const now = performance.now();
    if (!isOver(rollout.phase)) this.overSince = 0;
    else if (this.overSince === 0) this.overSince = now;
    if (this.overSince !== 0 && now - this.overSince > kAfterVerdictMs) return;
    const at = now - this.timelineZero;
    const weight = isOver(rollout.phase) && rollout.phase === "RolledBack" ? 0 : rollout.weight_ppm;
    const turned = t.weight_ppm.at(-1) !== weight;
    if (!turned && at - (t.at_ms.at(-1) ?? 0) < 1000) return;
    if (t.at_ms.length >= kMostPoints) {
      this.known = this.curvesOf = ""; // the router's own is thinned out
      return;
    }
    t.at_ms.push(at);
    t.weight_ppm.push(weight);
    t.shadow_ppm.push(rollout.shadow_ppm);
    for (const arm of ["stable", "canary"] as const)
      for (const column of ["answers", "failures", "p50_ms", "p90_ms", "p99_ms"] as const)
        t[arm][column].push(status.recent[arm][column]);
    for (const line of rollout.evidence) {
      let guard = t.evidence.find((known) => known.guard === line.guard);
      if (!guard) {
        guard = { guard: line.guard, bits_to_trip: line.bits_to_trip, bits: [] };
        t.evidence.push(guard);
      }
      while (guard.bits.length < t.at_ms.length - 1) guard.bits.push(0);
      guard.bits.push(Math.max(0, line.bits));
    }
    for (const guard of t.evidence) while (guard.bits.length < t.at_ms.length) guard.bits.push(0);
  }

  /** Seconds that a status says, and those that have passed since it came. */
  seconds(status: Status, of: number): number {
    const rollout = status.rollout;
    if (!rollout || isOver(rollout.phase)) return of;
    return of + (performance.now() - (this.received.get(status.service) ?? performance.now())) / 1000;
  }

  may(verb: string): boolean {
    return this.connection === "live" && (this.caller?.may.includes(verb) ?? false);
  }
}

/** The service of a rollout under way, else one that had a rollout, else any. */
function mostInteresting(statuses: Map<string, Status>): string {
  const all = [...statuses.values()];
  const found = all.find((s) => s.rollout && !isOver(s.rollout.phase)) ?? all.find((s) => s.rollout) ?? all[0];
  return found?.service ?? "";
}
