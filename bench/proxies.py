"""The proxies that bench/route measures: each started with the configuration that suits it best, on one core, in front of the same servers."""

import contextlib
import json
import os
import pathlib
import re
import resource
import socket
import struct
import subprocess
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRAFFIC = ROOT / "build/route_traffic"
PROXY_CORE, TRAFFIC_CORE = 0, 1
CANARY_PERCENT = 5
BUSY = 0.95  # a server that has time left was not measured, but whoever it waited for


def allow_descriptors():
    """As many as may be: idle connections need one at each end, and HAProxy reserves two for each client."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


DESCRIPTORS = allow_descriptors()
IDLE = 10_000 if DESCRIPTORS >= 20_500 else 9_800  # connections that say nothing
MOST_CLIENTS = min(30_000, DESCRIPTORS // 2 - 50)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def pinned(core, *command):
    return ["taskset", "-c", str(core), *map(str, command)]


def await_port(port, process, log):
    for _ in range(500):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise RuntimeError(f"{process.args[3]} does not listen: {log.read_text()[-1000:]}")


def cpu_seconds(pid):
    """Of a process and its children. Precise: clock ticks would be 10 ms. A server on loopback pays in its own name for what the kernel does to deliver
    its messages."""
    spent, processes = 0, [pid]
    while processes:
        for task in pathlib.Path(f"/proc/{processes.pop()}/task").iterdir():
            with contextlib.suppress(OSError):
                spent += int((task / "schedstat").read_text().split()[0])
                processes += map(int, (task / "children").read_text().split())
    return spent / 1e9


class Process:
    """Something started in `folder`, ended with it. A session of its own has its own share of the cores where the kernel groups tasks by session."""

    def __init__(self, command, folder, name, environment=None, pipes=False, own_session=False):
        self.log = folder / f"{name}.log"
        environment = {**os.environ, **(environment or {})}
        with self.log.open("w") as log:
            ends = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE} if pipes else {"stdout": log}
            self.process = subprocess.Popen(command, stderr=log, cwd=folder, env=environment, text=True, start_new_session=own_session, **ends)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def pids(self):
        """The process and its children (nginx works in one)."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [self.process.pid, *map(int, children)]

    def cpu_seconds(self):
        return cpu_seconds(self.process.pid)

    def memory_mb(self):
        """What is its own: pages shared with nobody."""
        fields = [pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in self.pids()]
        return sum(int(re.search(r"^Private_Dirty: +(\d+)", text, re.M)[1]) for text in fields) / 1e3


class Traffic(Process):
    """A stable and a canary server that answer at once, and the clients: one process, told by commands what to load."""

    def __init__(self, folder, answer_bytes=0):
        self.ports = [free_port(), free_port()]
        arguments = [argument for port in self.ports for argument in (port, answer_bytes)]
        super().__init__(pinned(TRAFFIC_CORE, TRAFFIC, *arguments), folder, "traffic", pipes=True)
        for port in self.ports:
            await_port(port, self.process, self.log)

    def load(self, port, connections, seconds, body_bytes, rate=0.0, idle=0):
        self.process.stdin.write(f"load {port} {connections} {seconds} {body_bytes} {rate} {idle}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


INFER = "/inference.GRPCInferenceService/ModelInfer"


def framed(message):
    """As gRPC sends it: not compressed, with its length."""
    return struct.pack(">BI", 0, len(message)) + message


def field(number, content):
    return bytes([number << 3 | 2, len(content)]) + content


class GrpcTraffic:
    """The same over HTTP/2, with the programs of nghttp2: servers that give a file as the answer and grpc-status in trailers, and a client."""

    def __init__(self, folder):
        self.folder, self.ports = folder, [free_port(), free_port()]
        output = field(5, field(1, b"y") + field(2, b"FP32") + field(3, b"\x01\x01")) + field(6, struct.pack("<f", 0.5))
        messages = {INFER: field(1, b"m") + output, "/grpc.health.v1.Health/Check": b"\x08\x01"}
        for path, message in messages.items():
            file = folder / "answers" / path[1:]
            file.parent.mkdir(parents=True)
            file.write_bytes(framed(message))
        self.servers = contextlib.ExitStack()

    def __enter__(self):
        for port in self.ports:
            command = pinned(TRAFFIC_CORE, "/usr/sbin/nghttpd", "--no-tls", "-d", self.folder / "answers", "--trailer", "grpc-status: 0", port)
            server = self.servers.enter_context(Process(command, self.folder, f"nghttpd-{port}"))
            await_port(port, server.process, server.log)
        return self

    def __exit__(self, *_):
        self.servers.close()

    def load(self, port, connections, seconds, body_bytes, rate=0.0):
        request = self.folder / "request"
        request.write_bytes(framed(field(1, b"m") + field(7, bytes(min(body_bytes, 127)))))
        headers = ["-H", "content-type: application/grpc", "-H", "te: trailers"]
        command = pinned(TRAFFIC_CORE, "/usr/bin/h2load", "-c", connections, "-m", 8, "-D", max(round(seconds), 1), "-d", request, *headers,
                         f"http://127.0.0.1:{port}{INFER}")
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        done = re.search(r"(\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored", told)
        answers, good, failed, errored = map(int, done.groups())
        return {"rate": float(re.search(r"([\d.]+) req/s", told)[1]), "all": answers, "errors": answers - good, "broken": failed + errored}


class Haproxy(Process):
    title = "HAProxy"

    def __init__(self, folder, ports, grpc=False):
        self.port = free_port()
        stable, canary = ports
        http2 = "proto h2" if grpc else ""
        config = folder / "haproxy.cfg"
        config.write_text(f"""
global
  nbthread 1
  maxconn {MOST_CLIENTS}
defaults
  mode http
  option http-keep-alive
  http-reuse always
  option forwardfor
  timeout connect 5s
  timeout client 75s
  timeout server 30s
frontend data
  bind 127.0.0.1:{self.port} {http2}
  default_backend versions
backend versions
  balance random
  server stable 127.0.0.1:{stable} weight {100 - CANARY_PERCENT} pool-max-conn -1 check inter 1s observe layer7 {http2}
  server canary 127.0.0.1:{canary} weight {CANARY_PERCENT} pool-max-conn -1 check inter 1s observe layer7 {http2}
""")
        super().__init__(pinned(PROXY_CORE, "/usr/sbin/haproxy", "-db", "-f", config), folder, "haproxy")
        await_port(self.port, self.process, self.log)


class Nginx(Process):
    title = "nginx"

    def __init__(self, folder, ports, grpc=False):
        self.port = free_port()
        stable, canary = ports
        passed_on = "grpc_pass grpc://versions;" if grpc else 'proxy_pass http://versions; proxy_http_version 1.1; proxy_set_header Connection "";'
        config = folder / "nginx.conf"
        config.write_text(f"""
daemon off;
worker_processes 1;
worker_rlimit_nofile {DESCRIPTORS};
pid {folder}/nginx.pid;
error_log {folder}/nginx_error.log;
events {{ worker_connections {2 * MOST_CLIENTS}; }}
http {{
  access_log off;
  keepalive_requests 100000000;
  client_max_body_size 64m;
  client_body_buffer_size 1m;
  proxy_buffers 16 64k;
  proxy_buffer_size 16k;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u;
  scgi_temp_path {folder}/s;
  upstream versions {{
    server 127.0.0.1:{stable} weight={100 - CANARY_PERCENT};
    server 127.0.0.1:{canary} weight={CANARY_PERCENT};
    keepalive 256;
    keepalive_requests 100000000;
  }}
  server {{
    listen 127.0.0.1:{self.port} backlog=4096 {"http2" if grpc else ""};
    location / {{
      {passed_on}
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }}
  }}
}}
""")
        super().__init__(pinned(PROXY_CORE, "/usr/sbin/nginx", "-c", config, "-p", folder), folder, "nginx")
        await_port(self.port, self.process, self.log)


class Serin(Process):
    """`serin route` with a rollout in progress, whose step nothing ends; `judged=False`: without one, so that nothing is weighed."""

    title = "Serin"

    def __init__(self, folder, ports, judged=True, threads=1, core=PROXY_CORE, environment=None, grpc=False, program=ROOT / "build/serin"):
        stable, canary = ports
        scheme, health = ("grpc", "") if grpc else ("http", ", health: {path: /}")
        name = f"serin-{free_port()}"
        config, ready = folder / f"{name}.yaml", folder / f"{name}.ready"
        config.write_text(f"""
listen: 127.0.0.1:0
admin: 127.0.0.1:0
store: {folder}/{name}.db
io_threads: {threads}
limits: {{connections: {MOST_CLIENTS}}}
services:
  - name: m
    initial_stable: "1"
    versions:
      - {{name: "1", endpoints: [{{url: "{scheme}://127.0.0.1:{stable}"}}]{health}}}
      - {{name: "2", endpoints: [{{url: "{scheme}://127.0.0.1:{canary}"}}]{health}}}
""")
        super().__init__(
            pinned(core, program, "route", "--config", config, "--ready-file", ready, "--drain-seconds", 0), folder, name, environment
        )
        for _ in range(500):
            if ready.exists():
                break
            time.sleep(0.02)
        started = json.loads(ready.read_text())
        self.port, self.admin = started["http"], started["admin"]
        await_port(self.port, self.process, self.log)
        if judged:
            self.start_rollout()

    def start_rollout(self):
        body = {
            "kind": "Rollout",
            "service": "m",
            "stable": {"version": "1"},
            "canary": {"version": "2"},
            "steps": [{"setWeight": CANARY_PERCENT, "until": {"duration": "24h"}}],
        }
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.admin}/v1/rollouts", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        urllib.request.urlopen(request, timeout=10).close()

    def phase(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/v1/rollouts/m", timeout=10) as answer:
            return json.load(answer)["rollout"]["phase"]


def read_count(path):
    return struct.unpack("<Q", path.read_bytes()[:8])[0]
