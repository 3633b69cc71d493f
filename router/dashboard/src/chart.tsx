// chart.tsx: lines over time, in SVG: it takes the page's colours in light and dark, is as sharp as the screen, and its numbers are text.
//
// The cursor is the pointer or, with the chart focused, the arrow keys; the legend shows the values under it, else the latest. Lines differ by
// dashes as well as by colour.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { duration } from "./format";

export interface Series {
  name: string;
  tone: string; // class of the line and its legend
  values: (number | null)[];
  dashed?: boolean;
  stepped?: boolean;
  say?: (value: number, index: number) => string; // instead of the chart's own
}

interface Props {
  title: string;
  hint: string;
  at: number[]; // milliseconds
  series: Series[];
  say: (value: number) => string;
  limit?: { at: number; words: string };
  least?: number; // the top of the axis is at least this
  empty: string;
}

const kHeight = 168;
const kMargin = { left: 46, right: 12, top: 10, bottom: 22 };

/** About four round numbers from 0 to the top. */
function ticks(top: number): number[] {
  const rough = top / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const unit = [1, 2, 2.5, 5, 10].map((m) => m * power).find((u) => u >= rough) ?? rough;
  const list: number[] = [];
  for (let i = 0; i * unit <= top * 1.0001; ++i) list.push(i * unit);
  return list;
}

function timeTicks(from: number, to: number, most: number): number[] {
  const units = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400].map((s) => 1000 * s);
  const unit = units.find((u) => (to - from) / u <= most) ?? 86_400_000;
  const list: number[] = [];
  for (let t = Math.ceil(from / unit) * unit; t <= to; t += unit) list.push(t);
  return list;
}

function useWidth(): [preact.RefObject<HTMLDivElement | null>, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver((entries) => setWidth(Math.floor(entries[0]!.contentRect.width)));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  return [box, width];
}

export function Chart(props: Props) {
  const { at, series, say, limit } = props;
  const [box, width] = useWidth();
  const [cursor, setCursor] = useState<number | null>(null);
  const last = at.length - 1;
  const from = at[0] ?? 0;
  const to = Math.max(at[last] ?? 0, from + 10_000);
  const shown = cursor === null ? last : Math.min(cursor, last);

  const highest = Math.max(props.least ?? 0, limit?.at ?? 0, ...series.flatMap((s) => s.values.filter((v): v is number => v !== null)));
  const yTicks = ticks(highest * 1.08 || 1);
  const top = Math.max(highest * 1.08, yTicks.at(-1)!) || 1;
  const inner = { w: Math.max(0, width - kMargin.left - kMargin.right), h: kHeight - kMargin.top - kMargin.bottom };
  const x = (t: number): number => kMargin.left + ((t - from) / (to - from)) * inner.w;
  const y = (v: number): number => kMargin.top + inner.h - (Math.min(v, top) / top) * inner.h;

  const paths = useMemo(() => series.map((s) => path(s, at, x, y)), [series, at, last, width, top]);
  const nearest = (clientX: number, target: Element): number => {
    const t = from + ((clientX - target.getBoundingClientRect().left - kMargin.left) / inner.w) * (to - from);
    let best = 0;
    for (let i = 0; i < at.length; ++i) if (Math.abs(at[i]! - t) < Math.abs(at[best]! - t)) best = i;
    return best;
  };
  const onKey = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -at.length, End: at.length }[event.key];
    if (event.key === "Escape") setCursor(null);
    if (by === undefined || last < 0) return;
    event.preventDefault();
    setCursor(Math.max(0, Math.min(last, shown + by)));
  };

  return (
    <figure class="panel chart">
      <figcaption>
        <h3>{props.title}</h3>
        <p class="hint">{props.hint}</p>
      </figcaption>
      <div ref={box} class="plot">
        {last < 0 ? (
          <p class="empty">{props.empty}</p>
        ) : (
          width > 0 && (
            <svg
              width={width}
              height={kHeight}
              role="img"
              aria-label={`${props.title}: ${series.map((s) => `${s.name} ${spoken(s, last, say)}`).join(", ")}. Arrow keys move through time.`}
              tabIndex={0}
              onKeyDown={onKey}
              onBlur={() => setCursor(null)}
              onPointerMove={(event) => setCursor(nearest(event.clientX, event.currentTarget))}
              onPointerLeave={() => setCursor(null)}
            >
              {yTicks.map((tick) => (
                <g key={tick}>
                  <line class="grid" x1={kMargin.left} x2={width - kMargin.right} y1={y(tick)} y2={y(tick)} />
                  <text class="tick" x={kMargin.left - 6} y={y(tick) + 4} text-anchor="end">
                    {say(tick)}
                  </text>
                </g>
              ))}
              {timeTicks(from, to, Math.max(2, inner.w / 90)).map((tick) => (
                <text key={tick} class="tick" x={x(tick)} y={kHeight - 6} text-anchor="middle">
                  {tick === 0 ? "start" : duration(tick / 1000)}
                </text>
              ))}
              {limit && (
                <g class="limit">
                  <line x1={kMargin.left} x2={width - kMargin.right} y1={y(limit.at)} y2={y(limit.at)} />
                  <text x={kMargin.left + 4} y={y(limit.at) - 5}>
                    {limit.words}
                  </text>
                </g>
              )}
              {series.map((s, i) => (
                <path key={s.name} class={`line ${s.tone}${s.dashed ? " dashed" : ""}`} d={paths[i]} />
              ))}
              {cursor !== null && <line class="cursor" x1={x(at[shown]!)} x2={x(at[shown]!)} y1={kMargin.top} y2={kMargin.top + inner.h} />}
            </svg>
          )
        )}
      </div>
      <ul class="legend" aria-live={cursor === null ? "off" : "polite"}>
        {last >= 0 && cursor !== null && <li class="when">after {duration(at[shown]! / 1000)}</li>}
        {series.map((s) => (
          <li key={s.name} class={s.tone}>
            <svg width="22" height="10" aria-hidden="true">
              <line class={`line ${s.tone}${s.dashed ? " dashed" : ""}`} x1="1" x2="21" y1="5" y2="5" />
            </svg>
            {s.name} <b>{spoken(s, shown, say)}</b>
          </li>
        ))}
      </ul>
    </figure>
  );
}

function spoken(series: Series, index: number, say: (value: number) => string): string {
  const value = series.values[index];
  if (value === undefined || value === null) return "–";
  return series.say ? series.say(value, index) : say(value);
}

function path(series: Series, at: number[], x: (t: number) => number, y: (v: number) => number): string {
  let d = "";
  let before: number | null = null;
  for (let i = 0; i < at.length; ++i) {
    const value = series.values[i];
    if (value === null || value === undefined) {
      before = null;
      continue;
    }
    const px = x(at[i]!).toFixed(1);
    if (before === null) d += `M${px},${y(value).toFixed(1)}`;
    else d += `${series.stepped ? `L${px},${y(before).toFixed(1)}` : ""}L${px},${y(value).toFixed(1)}`;
    before = value;
  }
  return d;
}
