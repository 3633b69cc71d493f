// api.ts: requests to the admin API. The token lives in sessionStorage: it is gone with the tab, and no other page can make the browser send it.

import type { Caller, HistoryEntry, Timeline, Verdict } from "./types";

const kToken = "serin-token";

export const token = {
  get: (): string => sessionStorage.getItem(kToken) ?? "",
  set: (value: string): void => sessionStorage.setItem(kToken, value),
  forget: (): void => sessionStorage.removeItem(kToken),
};

/** A refusal, in the router's words. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export async function call(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  if (token.get() !== "") headers.set("Authorization", `Bearer ${token.get()}`);
  const response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
  if (response.ok) return response;
  const body: unknown = await response.json().catch(() => null);
  const said = typeof body === "object" && body !== null && "error" in body ? String(body.error) : response.statusText;
  throw new Refused(response.status, said || `the router answered ${response.status}`);
}

const get = async <T>(path: string): Promise<T> => (await call(path)).json() as Promise<T>;
const rollouts = (service: string): string => `v1/rollouts/${encodeURIComponent(service)}`;

export const me = (): Promise<Caller> => get("v1/me");
export const timeline = (service: string): Promise<Timeline> => get(`${rollouts(service)}/timeline`);
export const verdict = (rollout: string): Promise<Verdict> => get(`v1/verdicts/${encodeURIComponent(rollout)}`);
export const history = async (service: string): Promise<HistoryEntry[]> =>
  (await get<{ history: HistoryEntry[] }>(`${rollouts(service)}/history?limit=200`)).history;

export type Verb = "pause" | "resume" | "promote" | "abort";

/** Done only if nobody has changed the service since `epoch` was seen. */
export async function command(service: string, verb: Verb, epoch: number, reason: string): Promise<void> {
  await call(`${rollouts(service)}:${verb}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "If-Match": `"${epoch}"` },
    body: JSON.stringify(reason === "" ? {} : { reason }),
  });
}
