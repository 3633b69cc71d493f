// app.tsx: the page's frame: who is connected as whom, which services there are, and the one that is looked at. Its name stands in the address, so
// that a link leads to it.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Badge } from "./badge";
import { ppm } from "./format";
import { Model } from "./model";
import { ServiceView } from "./service";
import type { Service, Status } from "./types";
import { isOver } from "./types";
import { kPhases } from "./words";

function Connection({ model }: { model: Model }) {
  const words = { connecting: "connecting …", live: "live", lost: "connection lost, trying again …", token: "not signed in" };
  return (
    <p class={`connection ${model.connection}`} role="status" title={model.why}>
      <span class="dot" aria-hidden="true" />
      {words[model.connection]}
    </p>
  );
}

function Who({ model }: { model: Model }) {
  const caller = model.caller;
  if (!caller || model.connection === "token") return null;
  return (
    <p class="who">
      {caller.name} <span class="role">{caller.role}</span>
      {sessionStorage.getItem("serin-token") !== null && (
        <button class="plain" type="button" onClick={() => model.signOut()}>
          Sign out
        </button>
      )}
    </p>
  );
}

function SignIn({ model }: { model: Model }) {
  const [value, setValue] = useState("");
  return (
    <main class="sign-in">
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault();
          if (value.trim() !== "") model.signIn(value.trim());
        }}
      >
        <h2>Sign in</h2>
        <label for="token">Token of the admin API</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={value}
          onInput={(event) => setValue(event.currentTarget.value)}
          ref={(input) => void input?.focus()}
        />
        {model.why !== "" && (
          <p class="refusal" role="alert">
            {model.why}
          </p>
        )}
        <button class="primary" type="submit">
          Sign in
        </button>
        <p class="hint">It is kept for this tab only.</p>
      </form>
    </main>
  );
}

function ServiceList({ model }: { model: Model }) {
  const line = (service: Service, status: Status | undefined): string => {
    const rollout = status?.rollout;
    if (!rollout || isOver(rollout.phase)) return `version ${service.stable}`;
    return `${rollout.stable} → ${rollout.canary} at ${rollout.weight_ppm === 0 && rollout.shadow_ppm > 0 ? `${ppm(rollout.shadow_ppm)} shadow` : ppm(rollout.weight_ppm)}`;
  };
  return (
    <nav aria-label="Services">
      <ul>
        {[...model.services.values()].sort((a, b) => a.name.localeCompare(b.name)).map((service) => {
          const status = model.statuses.get(service.name);
          const ill = service.versions.some((v) => v.weight_ppm > 0 && v.healthy === 0);
          return (
            <li key={service.name}>
              <a href={`#${encodeURIComponent(service.name)}`} aria-current={service.name === model.selected ? "page" : undefined}>
                <span class="name">
                  {service.name}
                  {ill && <span title="a version with traffic has no healthy endpoint"> ⚠</span>}
                </span>
                <Badge status={status} />
                <span class="line">{line(service, status)}</span>
              </a>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

function Main({ model }: { model: Model }) {
  const status = model.statuses.get(model.selected);
  const service = model.services.get(model.selected);
  const phase = status?.rollout?.phase;
  useEffect(() => {
    document.title = `${service ? `${service.name}${phase ? `: ${kPhases[phase].words}` : ""} · ` : ""}Serin`;
  }, [service?.name, phase]);
  if (!status || !service) {
    const words = model.services.size === 0 ? "Waiting for the router …" : `There is no service '${model.selected}'.`;
    return (
      <main>
        <p class="empty">{words}</p>
      </main>
    );
  }
  return <ServiceView key={service.name} model={model} service={service} status={status} />;
}

function App({ model }: { model: Model }) {
  // Seconds are counted here between two events; nothing is asked for.
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return (
    <>
      <header>
        <h1>
          <svg width="22" height="22" viewBox="0 0 24 24" aria-hidden="true">
            <path d="M3 15c4-9 12-11 18-9-2 1-3 2-3 4 0 6-5 9-10 9-2 0-4-1-5-4z" fill="currentColor" />
            <circle cx="16" cy="8" r="1.2" class="eye" />
          </svg>
          Serin
        </h1>
        <Connection model={model} />
        <Who model={model} />
      </header>
      {model.connection === "token" ? (
        <SignIn model={model} />
      ) : (
        <div class={`columns${model.connection === "lost" ? " stale" : ""}`}>
          <ServiceList model={model} />
          <Main model={model} />
        </div>
      )}
    </>
  );
}

const root = document.getElementById("app")!;
let asked = false;
const model = new Model(() => {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    render(<App model={model} />, root);
  });
});
const selectByAddress = (): void => model.select(decodeURIComponent(location.hash.slice(1)));
addEventListener("hashchange", selectByAddress);
selectByAddress();
void model.connect();
