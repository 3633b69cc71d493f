// service.tsx: one service: what is decided about it now, on what evidence, and how it came to this.

import { Audit } from "./audit";
import { Badge } from "./badge";
import { Commands } from "./commands";
import { Curves } from "./curves";
import { Certificates, EvidencePanel } from "./evidence";
import { count, duration, milliseconds, percent, ppm } from "./format";
import type { Model } from "./model";
import { Resources } from "./resources";
import { Shadow } from "./shadow";
import type { Answers, Rollout, Service, Status } from "./types";
import { isOver } from "./types";
import { Explained } from "./verdict";

function Headline({ model, status }: { model: Model; status: Status }) {
  const rollout = status.rollout;
  if (!rollout) {
    return (
      <section class="headline">
        <h2>{status.service}</h2>
        <Badge status={status} />
        <p class="reason">
          All traffic goes to version {status.stable}. <code>serin rollout start {status.service} --canary VERSION</code> begins a rollout.
        </p>
      </section>
    );
  }
  const eta = rollout.step_eta_seconds;
  const left = eta === null ? null : Math.max(0, eta - (model.seconds(status, rollout.step_seconds) - rollout.step_seconds));
  return (
    <section class="headline">
      <h2>
        {status.service}{" "}
        <span class="versions">
          {rollout.stable} <span aria-label="to">→</span> {rollout.canary}
        </span>
      </h2>
      <Badge status={status} />
      <p class="reason">{rollout.reason}</p>
      {rollout.note !== "" && !isOver(rollout.phase) && <p class="note">{rollout.note}</p>}
      <dl class="facts">
        <Fact name="rollout" value={rollout.id} />
        <Fact name="for" value={duration(model.seconds(status, rollout.seconds))} />
        {!isOver(rollout.phase) && <Fact name="step" value={`${rollout.step + 1} of ${rollout.steps}`} />}
        {!isOver(rollout.phase) && <Fact name="next step" value={left === null ? nextStep(rollout) : `in about ${duration(left)}`} />}
      </dl>
      <Commands model={model} status={status} rollout={rollout} />
    </section>
  );
}

const nextStep = (rollout: Rollout): string =>
  rollout.phase === "Paused" || rollout.phase === "Inconclusive" ? "waits for resume" : "not known yet";

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** Where the traffic goes, and who is there to take it. */
function Traffic({ service, status }: { service: Service; status: Status }) {
  const rollout = status.rollout;
  const canary = rollout && !isOver(rollout.phase) ? rollout.canary : "";
  const tone = (name: string): string => (name === canary ? "canary" : name === service.stable ? "stable" : "other");
  const busy = service.versions.filter((version) => version.weight_ppm > 0);
  return (
    <section class="panel traffic">
      <h3>Traffic</h3>
      <div class="shares" role="img" aria-label={busy.map((v) => `version ${v.name} ${ppm(v.weight_ppm)}`).join(", ")}>
        {busy.map((version) => (
          <span key={version.name} class={tone(version.name)} style={{ flexGrow: version.weight_ppm }} />
        ))}
      </div>
      <table>
        <thead>
          <tr>
            <th>version</th>
            <th class="number">traffic</th>
            <th class="number">healthy</th>
            <th class="number">req/s</th>
            <th class="number">errors</th>
            <th class="number wide">p50</th>
            <th class="number">p99</th>
          </tr>
        </thead>
        <tbody>
          {service.versions.map((version) => {
            const kind = tone(version.name);
            const recent = kind === "canary" ? status.recent.canary : kind === "stable" ? status.recent.stable : null;
            return (
              <tr key={version.name} class={kind === "other" ? "idle" : ""}>
                <td>
                  <span class={`swatch ${kind}`} aria-hidden="true" />
                  {version.name} {kind !== "other" && <span class="kind">{kind}</span>}
                </td>
                <td class="number">{ppm(version.weight_ppm)}</td>
                <td class={`number${version.healthy === 0 && version.weight_ppm > 0 ? " alarm" : ""}`}>
                  {version.healthy ?? "?"} / {version.endpoints}
                </td>
                <Recent recent={recent} />
              </tr>
            );
          })}
        </tbody>
      </table>
      <p class="hint">
        The last 10 to 20 seconds, every attempt counted.
        {rollout && ` In this rollout: stable ${count(rollout.answers.stable)}, canary ${count(rollout.answers.canary)} answers.`}
      </p>
    </section>
  );
}

function Recent({ recent }: { recent: Answers | null }) {
  const known = recent && recent.answers > 0 ? recent : null;
  return (
    <>
      <td class="number">{known ? count(known.answers / Math.max(1, known.seconds)) : "–"}</td>
      <td class="number">{known ? percent(known.failures / known.answers) : "–"}</td>
      <td class="number wide">{known ? milliseconds(known.p50_ms) : "–"}</td>
      <td class="number">{known ? milliseconds(known.p99_ms) : "–"}</td>
    </>
  );
}

export function ServiceView({ model, service, status }: { model: Model; service: Service; status: Status }) {
  const rollout = status.rollout;
  return (
    <main>
      <Headline model={model} status={status} />
      <Traffic service={service} status={status} />
      {rollout && (
        <>
          <Certificates rollout={rollout} />
          {isOver(rollout.phase) && <Explained rollout={rollout} verdict={model.detail.verdict} />}
          <Curves timeline={model.detail.timeline} />
          <EvidencePanel rollout={rollout} />
          {!isOver(rollout.phase) && <Explained rollout={rollout} verdict={null} />}
          <Shadow rollout={rollout} />
          <Resources rollout={rollout} />
        </>
      )}
      <Audit entries={model.detail.history} />
    </main>
  );
}
