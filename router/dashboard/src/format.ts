// format.ts: numbers as people read them.

export const count = (n: number): string => Math.round(n).toLocaleString("en");

/** "12.5 %" from parts per million. */
export const ppm = (parts: number): string => `${+(parts / 10_000).toFixed(4)} %`;

export const percent = (share: number): string => {
  const value = 100 * share;
  return `${value === 0 || value >= 10 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : value.toPrecision(2)} %`;
};

export const milliseconds = (ms: number): string =>
  ms === 0 ? "–" : ms < 10 ? `${ms.toFixed(1)} ms` : ms < 10_000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(1)} s`;

/** "0.4 s", "42 s", "3 min 05 s", "2 h 10 min" */
export function duration(seconds: number): string {
  if (seconds > 0 && seconds < 9.95) return `${+seconds.toFixed(1)} s`;
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s`;
  return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
}

export const bits = (value: number): string => Math.max(0, value).toFixed(1);
