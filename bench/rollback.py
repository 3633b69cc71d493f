"""Bad answers until a bad canary is out: Serin beside HAProxy in one run. See bench/rollback --help."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

import proxies
import table

sys.path[:0] = [str(proxies.ROOT / "tests/e2e/support"), str(proxies.ROOT / "tests/e2e")]
from backends import Backend, Faults  # noqa: E402
from traffic import Traffic  # noqa: E402

EPILOGUE = """
Two versions of a service, 95 % of the requests on stable and 5 % on a canary that fails half of its requests, or all; or cuts off a tenth of its
answers, or all: fewer bytes than their Content-Length, then the end of the connection; or answers ten times or twice as slowly as stable's 20 ms;
or gives a wrong label to 2 % of them, or 20 %, with the status 200 (in five times as many requests). Four clients ask as fast as they are answered,
sixteen where answers are slow. Counted are the answers that clients see fail, the requests that reach the canary until it gets no more, and how many of those it answered badly; "never"
where it still got some in the last quarter of the run. HAProxy three times: weights alone, `observe layer7` (10 errors in a row take the server
out), and `retry-on all-retryable-errors` with redispatch, which hides errors and never rolls back. Serin with its shield and without.

The time from the verdict to the last request that reached the canary is an upper bound: requests drawn before the verdict are on their way, and the
audit log's time is rounded down to a millisecond. tests/router/admin prints what the router itself takes.
"""

SERIN = pathlib.Path(os.environ.get("SERIN", proxies.ROOT / "build/serin"))
CLIENTS = 4
STABLE_DELAY = 0.02  # seconds, where the canary is slow
CANARY_PERCENT = 5

HAPROXY = """
global
  maxconn 1000
defaults
  mode http
  timeout connect 1s
  timeout client 30s
  timeout server 30s
  {retry}
frontend in
  bind 127.0.0.1:{port}
  default_backend model
backend model
  balance random(1)
  {check}
  server stable 127.0.0.1:{stable} weight 95 {server}
  server canary 127.0.0.1:{canary} weight 5 {server}
"""
PARTS = {
    "errors": {"fails 50%": Faults(error_rate=0.5), "fails 100%": Faults(error_rate=1)},
    "cut-off": {"cuts off 10%": Faults(truncated=True, garbage_rate=0.1), "cuts off 100%": Faults(truncated=True)},
    "slow": {"is 10 times slower": Faults(delay=10 * STABLE_DELAY), "is twice as slow": Faults(delay=2 * STABLE_DELAY)},
    "wrong": {"is wrong for 2%": Faults(wrong_rate=0.02), "is wrong for 20%": Faults(wrong_rate=0.2)},
}
HAPROXIES = {
    "HAProxy weights": {"retry": "", "check": "", "server": ""},
    "HAProxy observe": {"retry": "", "check": "", "server": "check inter 1h observe layer7 error-limit 10 on-error mark-down"},
    "HAProxy retry-on": {"retry": "retry-on all-retryable-errors\n  retries 3\n  option redispatch 1", "check": "", "server": ""},
}


def flags():
    parser = table.parser_for("rollback", "Bad answers until a bad canary is out, Serin beside HAProxy.", EPILOGUE)
    parser.add_argument("--requests", type=int, default=20_000, help="of one run (20000)")
    parser.add_argument("--runs", type=int, default=3, help="the medians are shown (3)")
    return table.parse_with_parts(parser, PARTS)


def ask_admin(port, path, body=None):
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


class Run:
    """What one run came to."""

    def __init__(self, traffic, canary, requests):
        self.errors = traffic.answers - traffic.statuses[200] + traffic.broken
        times = [when for when, headers, _ in canary.requests if "x-serin-shadow" not in headers]
        self.canary, self.pairs, self.bad = len(times), canary.shadows, canary.bad
        self.last = times[-1] if times else None
        self.out = not times or times[-1] < traffic.began + 0.75 * (time.monotonic() - traffic.began)
        self.requests = requests
        self.after_verdict_ms = None


def drive(url, canary, requests):
    with Traffic(url, clients=4 * CLIENTS if canary.faults.delay else CLIENTS) as traffic:
        traffic.began = time.monotonic()
        while traffic.answers < requests:
            time.sleep(0.01)
    return Run(traffic, canary, requests)


def serin(folder, stable, canary, requests, shield):
    versions = [{"name": backend.version, "endpoints": [{"url": backend.url}]} for backend in (stable, canary)]
    config = folder / "router.yaml"
    store = folder / f"router-{time.monotonic_ns()}.db"
    config.write_text(json.dumps({"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "store": str(store),
                                  "services": [{"name": "digits", "initial_stable": "1", "versions": versions}]}))
    ready = folder / "ready"
    ready.unlink(missing_ok=True)
    with open(folder / "serin.log", "wb") as log:
        process = subprocess.Popen([SERIN, "route", "--config", config, "--ready-file", ready, "--drain-seconds", "0"],
                                   stdout=log, stderr=log)
    try:
        while not ready.exists():
            if process.poll() is not None:
                raise RuntimeError((folder / "serin.log").read_text())
            time.sleep(0.01)
        ports = json.loads(ready.read_text())
        ask_admin(ports["admin"], "/v1/rollouts", {
            "service": "digits", "canary": "2", "steps": [{"setWeight": CANARY_PERCENT, "until": {"duration": "1h"}}],
            "shield": {"retryStable": shield}})
        run = drive(f"http://127.0.0.1:{ports['http']}", canary, requests)
        verdict = ask_admin(ports["admin"], "/v1/rollouts/digits/history")["history"][-1]
        if verdict["event"] == "rolled_back":
            last_wall_ms = (run.last - time.monotonic() + time.time()) * 1000
            run.after_verdict_ms = max(0.0, last_wall_ms - verdict["wall_ms"])
        return run
    finally:
        process.terminate()
        process.wait(20)


def haproxy(folder, stable, canary, requests, settings):
    port = proxies.free_port()
    config = folder / "haproxy.cfg"
    config.write_text(HAPROXY.format(port=port, stable=stable.port, canary=canary.port, **settings))
    with open(folder / "haproxy.log", "wb") as log:
        process = subprocess.Popen(["/usr/sbin/haproxy", "-db", "-f", config], stdout=log, stderr=log)
    try:
        proxies.await_port(port, process, folder / "haproxy.log")
        return drive(f"http://127.0.0.1:{port}", canary, requests)
    finally:
        process.terminate()
        process.wait(20)


SERINS = {"with the shield": True, "without": False}


def contenders(folder):
    for name, shield in SERINS.items():
        yield name, lambda stable, canary, requests, shield=shield: serin(folder, stable, canary, requests, shield)
    for name, settings in HAPROXIES.items():
        yield name, lambda stable, canary, requests, settings=settings: haproxy(folder, stable, canary, requests, settings)


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def measure(faults, options, requests, folder):
    """{name: its runs}"""
    runs = {}
    for _ in range(options.runs):
        for name, contender in contenders(folder):
            with Backend("1") as stable, Backend("2") as canary:
                canary.faults = faults
                stable.faults = Faults(delay=STABLE_DELAY if faults.delay else 0)
                runs.setdefault(name, []).append(contender(stable, canary, requests))
    return runs


def main():
    options = flags()
    rows = table.Table(list(HAPROXIES), f"{options.requests} requests a run, medians of {options.runs}; {table.machine()}")
    with tempfile.TemporaryDirectory() as name:
        for what, faults in (each for part in options.parts for each in PARTS[part].items()):
            requests = options.requests * (5 if faults.wrong_rate else 1)
            runs = measure(faults, options, requests, pathlib.Path(name))
            if faults.wrong_rate or faults.delay:
                add_rows_without_errors(rows, f"canary {what}", runs)
                continue
            for serin_name in SERINS:
                add_rows(rows, f"canary {what}, {serin_name}", runs, serin_name)
    if options.json:
        rows.save(options.json, table.machine())


def never_out(serin_name, runs):
    never = [name for name in (serin_name, *HAPROXIES) if not all(run.out for run in runs[name])]
    return f"never out: {', '.join(never)}" if never else ""


def add_rows_without_errors(rows, work, runs):
    serin_name = next(iter(SERINS))
    figures = {name: median([run.canary for run in runs[name]]) for name in (serin_name, *HAPROXIES)}
    rows.add(table.Row(work, "requests to the canary", figures[serin_name], {peer: figures[peer] for peer in HAPROXIES}, note=never_out(serin_name, runs)))
    rows.add(table.Row(work, "mirrored requests", median([run.pairs for run in runs[serin_name]]), {}))


def add_rows(rows, work, runs, serin_name):
    for metric, figure in (("bad answers to clients", lambda run: run.errors), ("requests to the canary", lambda run: run.canary),
                           ("bad answers of the canary", lambda run: run.bad)):
        figures = {name: median([figure(run) for run in all_of]) for name, all_of in runs.items()}
        rows.add(table.Row(work, metric, figures[serin_name], {peer: figures[peer] for peer in HAPROXIES},
                           note=never_out(serin_name, runs) if metric.startswith("requests") else ""))
    late = [run.after_verdict_ms for run in runs[serin_name] if run.after_verdict_ms is not None]
    rows.add(table.Row(work, "verdict to the canary's last request, ms", median(late) if late else None, {}))


if __name__ == "__main__":
    main()
