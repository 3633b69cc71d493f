"""One run of bench/rollback: a contender in front of two versions, clients that ask at a fixed rate, and what came of it."""

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import proxies
from analysis import Answer

sys.path[:0] = [str(proxies.ROOT / "tests/e2e/support"), str(proxies.ROOT / "tests/e2e")]
from backends import Backend, Faults  # noqa: E402
from traffic import BODY, Connection, infer_request  # noqa: E402

SERIN = pathlib.Path(os.environ.get("SERIN", proxies.ROOT / "build/serin"))
RATE = 250  # requests a second, of both versions together
PEER_RATE = 1000  # at which HAProxy is asked: its rule counts answers, so its seconds are those of RATE
CANARY_PERCENT = 5

# Classes of requests: three of a hundred name a country of their own.
RARE, OTHERS, RARE_SHARE = "de", ("fr", "it", "es", "pl"), 0.03
FAILS_ANYWAY = 0.05  # of the other classes' requests, on both versions

STABLE_MEDIAN, SPREAD = 0.02, 0.3  # of latency, where it matters: seconds, and the standard deviation of its logarithm
TAIL = 0.03  # share of answers with another latency ...
TAIL_FACTOR = 3 * math.exp(SPREAD * (2.3263 - 0.4307))  # ... so that p99 is three times as large: it is then the tail's 67th percentile


@dataclasses.dataclass(frozen=True)
class Case:
    title: str
    faults: Faults = Faults()
    slower: float = 0.0  # the median latency over stable's; 0: both answer at once
    tail: bool = False
    stable: Faults = Faults()
    classes: bool = False
    healthy: bool = False
    beside: int = 0  # further canaries at once, which are well
    leak: float = 0.0  # share of its memory that the canary grows by in a minute
    patience: float = 180.0  # seconds without a verdict of Serin


@dataclasses.dataclass(frozen=True)
class ByClass(Faults):
    """What is set applies to the class; the other requests have faults of their own."""

    others: Faults = Faults()

    def of(self, headers):
        return self if headers.get(self.only[0]) == self.only[1] else self.others


ANYWAY = Faults(error_rate=FAILS_ANYWAY)
CASES = {
    "errors": (Case("fails for 50 %", Faults(error_rate=0.5)), Case("fails for 100 %", Faults(error_rate=1))),
    "cut-off": (Case("cuts off 10 %", Faults(truncated=True, garbage_rate=0.1)), Case("cuts off 100 %", Faults(truncated=True))),
    "slow": (Case("is 10 times slower", slower=10), Case("is twice as slow", slower=2), Case("has p99 x3 only", slower=1, tail=True)),
    "wrong": (Case("is wrong for 2 %", Faults(wrong_rate=0.02)), Case("is wrong for 20 %", Faults(wrong_rate=0.2))),
    "class": (Case("fails for one class, 3 % of the requests", ByClass(error_rate=1, only=("x-country", RARE), others=ANYWAY), classes=True,
                   stable=ByClass(only=("x-country", RARE), others=ANYWAY)),),
    "several": (Case("is one of three, and fails for 50 %", Faults(error_rate=0.5), beside=2),),
    "leak": (Case("leaks 10 % of its memory a minute", leak=0.1, patience=600),),
    "healthy": (Case("is as good as stable", slower=1, healthy=True),),
}

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
  http-response set-header x-serin-version %s
  default_backend model
backend model
  balance random(1)
  {check}
{servers}
"""
HAPROXIES = {
    "HAProxy weights": {"retry": "", "check": "", "server": ""},
    "HAProxy observe": {"retry": "", "check": "", "server": "check inter 1h observe layer7 error-limit 10 on-error mark-down"},
    "HAProxy retry-on": {"retry": "retry-on all-retryable-errors\n  retries 3\n  option redispatch 1", "check": "", "server": ""},
}
SERINS = {"Serin": True, "Serin without its shield": False}


MEMORY = 500 << 20  # bytes that a version needs


def send_text(connection, text):
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len(text)}\r\n\r\n"
    connection.sendall((head + text).encode())


class Model(Backend):
    """A version that takes its time: lognormal, with a tail of its own."""

    def __init__(self, version, case, is_canary):
        super().__init__(version)
        self.faults = case.faults if is_canary else case.stable
        self.median = STABLE_MEDIAN * (case.slower and (case.slower if is_canary else 1))
        self.tail = is_canary and case.tail
        self.leak = case.leak if is_canary else 0.0
        self.exports = case.leak > 0
        self.began = time.monotonic()

    def _answer(self, connection, method, path, headers):
        if path != "/metrics" or not self.exports:
            return super()._answer(connection, method, path, headers)
        send_text(connection, "".join(f"{name} {value}\n" for name, value in self.exported().items()))
        return True

    def exported(self):
        """As a client of Prometheus exports it: memory goes up and down by a percent, and is full in no run."""
        minutes = (time.monotonic() - self.began) / 60
        memory = MEMORY * (1 + self.leak * minutes) * random.uniform(0.99, 1.01)
        return {"process_resident_memory_bytes": int(memory), "process_open_fds": 20 + self.under_way, "process_max_fds": 1 << 20,
                "process_cpu_seconds_total": 0.001 * self.inferences, "process_start_time_seconds": 1}

    def _infer(self, connection, asked):
        if self.median:
            time.sleep(self.median * random.lognormvariate(0, SPREAD) * (TAIL_FACTOR if self.tail and random.random() < TAIL else 1))
        return super()._infer(connection, asked)


GOOD_SCORES = json.dumps([0.9 if i == Faults().label else 0.01 for i in range(Faults().classes)]).encode()


class HeadConnection(Connection):
    """Remembers the head of an answer that ended too soon."""

    head = (0, {})

    def ask(self, request):
        self.head = (0, {})
        self.send(request)
        status = int(self.stream.readline().split()[1])
        headers = {}
        while field := self.stream.readline().strip():
            name, _, value = field.decode().partition(":")
            headers[name.lower()] = value.strip()
        self.head = (status, headers)
        body = self.stream.read(int(headers.get("content-length", 0)))
        if len(body) < int(headers.get("content-length", 0)):
            raise ConnectionError("closed in the middle of the answer")
        if headers.get("connection", "").lower() == "close":
            self.close()
        return status, headers, body


class Clients:
    """An open loop: requests are due at Poisson times; the next free thread sends the next one. Keeps [(version, Answer)]."""

    def __init__(self, url, rate, classes):
        self.url, self.rate, self.classes = url, rate, classes
        self.answers, self.failures = [], 0
        self._due, self._lock, self._stop = 0.0, threading.Lock(), threading.Event()
        self._requests = {country: infer_request(body=BODY, headers={"x-country": country}) for country in (RARE, *OTHERS)}
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(max(24, rate // 16))]

    def __enter__(self):
        self.began = self._due = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _run(self):
        connection = HeadConnection(self.url)
        while not self._stop.is_set():
            with self._lock:
                self._due += random.expovariate(self.rate)
                due = self._due
                country = RARE if self.classes and random.random() < RARE_SHARE else random.choice(OTHERS)
            time.sleep(max(0.0, due - time.monotonic()))
            self._ask(connection, country)
        connection.close()

    def _ask(self, connection, country):
        began, whole, body = time.monotonic(), True, b""
        try:
            _, _, body = connection.ask(self._requests[country])
        except (OSError, ValueError, IndexError):
            connection.close()
            whole = False
        status, headers = connection.head
        ours = not self.classes or country == RARE  # what fails anyway is not the canary's doing
        bad = ours and (not whole or status != 200 or GOOD_SCORES not in body)
        answer = Answer(began - self.began, status, not whole, time.monotonic() - began, bad)
        with self._lock:
            self.failures += bad
            self.answers.append((headers.get("x-serin-version"), answer))


@dataclasses.dataclass
class Outcome:
    """Until the canary gets no more requests, or of the whole run if it always does."""

    out: bool
    canary: int  # its answers
    seconds: float  # at RATE
    bad: int  # answers to clients
    asked: int = 0  # requests of clients in the run
    mirrored: int = 0
    of_class: int = 0  # requests of clients, to both versions
    after_verdict_ms: float | None = None
    cause: str = ""
    good_out: int | None = None  # of the canaries that are well
    ejections: int = 0
    stable_out: bool = False  # would the same rule take stable out?
    bad_in_an_hour: float | None = None


def ask_admin(port, path, body=None):
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def in_an_hour(found):
    """Bad answers to clients, if the canary gets its whole share: HAProxy's draws give it a little less than its weight."""
    return found.bad / max(found.canary, 1) * CANARY_PERCENT / 100 * RATE * 3600


def outcome(clients, stable, canary, out, rate):
    mine = [(when, headers) for when, headers, _ in list(canary.requests) if "x-serin-shadow" not in headers]
    last = mine[-1][0] if mine else clients.began
    found = Outcome(out, len(mine), (last - clients.began) * rate / RATE, clients.failures, len(clients.answers), canary.shadows)
    if clients.classes:
        asked = [headers for when, headers, _ in list(stable.requests) if when <= last] + [headers for _, headers in mine]
        found.of_class = sum(headers.get("x-country") == RARE for headers in asked)
    return found, last


def start(command, folder, name):
    with open(folder / f"{name}.log", "wb") as log:
        return subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)


@contextlib.contextmanager
def models(case):
    """Stable, the canary, and those beside it."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Model(str(number), case, number == 2)) for number in range(1, 3 + case.beside)]


def serin(case, shield):
    with tempfile.TemporaryDirectory() as name, models(case) as backends:
        folder = pathlib.Path(name)
        versions = [{"name": backend.version, "endpoints": [{"url": backend.url}]} for backend in backends]
        config, ready = folder / "router.yaml", folder / "ready"
        config.write_text(json.dumps({"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "store": str(folder / "router.db"),
                                      "services": [{"name": "digits", "initial_stable": "1", "versions": versions, "rollouts": 1 + case.beside}]}))
        process = start([SERIN, "route", "--config", config, "--ready-file", ready, "--drain-seconds", "0"], folder, "serin")
        try:
            while not ready.exists():
                if process.poll() is not None:
                    raise RuntimeError((folder / "serin.log").read_text())
                time.sleep(0.01)
            ports = json.loads(ready.read_text())
            return judged(case, shield, ports, *backends)
        finally:
            process.terminate()
            process.wait(20)


def judged(case, shield, ports, stable, canary, *beside):
    rollout = {"service": "digits", "canary": "2", "steps": [{"setWeight": CANARY_PERCENT, "until": {"duration": "1h"}}],
               "shield": {"retryStable": shield}}
    if case.classes:
        rollout["guard"] = {"slices": [{"name": "country", "header": "x-country"}]}
    for version in (canary.version, *(other.version for other in beside)):
        ask_admin(ports["admin"], "/v1/rollouts", {**rollout, "canary": version})
    verdict = None
    with Clients(f"http://127.0.0.1:{ports['http']}", RATE, case.classes) as clients:
        until = clients.began + (20 if case.healthy else case.patience)
        while time.monotonic() < until and verdict is None:
            time.sleep(0.1)
            last = ask_admin(ports["admin"], "/v1/rollouts/digits/history")["history"][-1]
            verdict = last if last["event"] == "rolled_back" else None
        time.sleep(0.5)  # for requests that reach the canary although it is out
    found, last = outcome(clients, stable, canary, verdict is not None, RATE)
    if verdict is None:
        found.bad_in_an_hour = in_an_hour(found)
    else:
        found.after_verdict_ms = max(0.0, (last - time.monotonic() + time.time()) * 1000 - verdict["wall_ms"])
        found.cause = ask_admin(ports["admin"], "/v1/rollouts/digits")["rollout"]["cause"]
    if beside:
        standing = ask_admin(ports["admin"], "/v1/rollouts")["rollouts"]
        found.good_out = sum(status["rollout"]["phase"] == "RolledBack" for status in standing if status["rollout"]["canary"] != canary.version)
    return found


def haproxy(case, name, requests):
    """The outcome and the tapes: {version: its answers}."""
    with tempfile.TemporaryDirectory() as temporary, models(case) as backends:
        stable, canary, *_ = backends
        folder, port = pathlib.Path(temporary), proxies.free_port()
        config = folder / "haproxy.cfg"
        weights = [100 - CANARY_PERCENT * (len(backends) - 1)] + [CANARY_PERCENT] * (len(backends) - 1)
        servers = [f"  server {backend.version} 127.0.0.1:{backend.port} weight {weight} {HAPROXIES[name]['server']}"
                   for backend, weight in zip(backends, weights)]
        config.write_text(HAPROXY.format(port=port, servers="\n".join(servers), **HAPROXIES[name]))
        process = start(["/usr/sbin/haproxy", "-db", "-f", config], folder, "haproxy")
        try:
            proxies.await_port(port, process, folder / "haproxy.log")
            with Clients(f"http://127.0.0.1:{port}", PEER_RATE, case.classes) as clients:
                while len(clients.answers) < requests:
                    time.sleep(0.01)
            whole = time.monotonic() - clients.began
        finally:
            process.terminate()
            process.wait(20)
    found, last = outcome(clients, stable, canary, False, PEER_RATE)
    found.out = last - clients.began < 0.75 * whole  # no more in the last quarter
    tapes = {version: [answer for of, answer in clients.answers if of == version] for version in ("1", "2")}
    if not found.out:
        found.bad_in_an_hour = in_an_hour(found)
    return found, tapes


def of_many(values):
    """(median, worst); None is "never", and the worst."""
    ordered = sorted(values, key=lambda value: math.inf if value is None else value)
    return ordered[(len(ordered) - 1) // 2], ordered[-1]
