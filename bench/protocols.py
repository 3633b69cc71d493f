"""The runtime's protocols beside Triton's and grpc++'s, in one run: see bench/protocols --help."""

import contextlib
import dataclasses
import datetime
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from tritonclient.grpc import service_pb2

import proxies
import table

ROOT = proxies.ROOT
sys.path.insert(0, str(ROOT / "tests/differential"))

import models  # noqa: E402
import triton  # noqa: E402

EPILOGUE = """
Each server has one core to itself and its client another; all speak over loopback. The model gives back what it is given: for Triton in its Python
backend, the only one in its wheel, for Serin in ONNX; grpc++ has no model at all. In every round each server measures once, in turn; the medians over the
rounds are divided. A ratio above 1 means that Serin is ahead of the better peer.
"""

SERVER_CORE, CLIENT_CORE = proxies.PROXY_CORE, proxies.TRAFFIC_CORE
IMAGE = (1, 3 * 224 * 224)
MAX_BATCH = 64
H2LOAD_RATE = 100  # of a connection: h2load looks at its clock 100 times a second, and would send more of them in bursts
RATE = 4_000  # requests a second: the slowest server's core is then a quarter busy


def flags():
    parser = table.parser_for("protocols", "serin serve beside Triton and grpc++.", EPILOGUE)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    return table.parse_with_parts(parser, PARTS)


class Serin(proxies.Process):
    title = "Serin"

    def __init__(self, folder, environment=None):
        repository, ready = folder / "serin-models", folder / "serin.ready"
        models.write_serin_repository(repository)
        (repository / "identity/serin.yaml").write_text(f"max_batch: {MAX_BATCH}\n")
        command = [ROOT / "build/serin", "serve", "--models", repository, "--port", 0, "--grpc-port", 0, "--metrics-port", 0, "--ready-file", ready]
        super().__init__(proxies.pinned(SERVER_CORE, *command), folder, "serin", environment)
        deadline = time.monotonic() + 60
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"serin serve did not get ready: {self.log.read_text()[-1000:]}")
            time.sleep(0.05)
        self.ports = json.loads(ready.read_text())


class GrpcEcho(proxies.Process):
    title = "grpc++"

    def __init__(self, folder):
        self.ports = {"grpc": proxies.free_port()}
        super().__init__(proxies.pinned(SERVER_CORE, ROOT / "build/grpc_echo", self.ports["grpc"]), folder, "grpc_echo")
        proxies.await_port(self.ports["grpc"], self.process, self.log)


class Triton(triton.Triton):
    """Batches as Serin does: its own default is to run one request at a time."""

    title = "Triton"

    def __init__(self, folder):
        super().__init__(folder, cores=SERVER_CORE, max_batch=MAX_BATCH, dynamic_batching=True)
        self.ports = {"http": self.http, "grpc": self.grpc}


@contextlib.contextmanager
def running(folder, *kinds):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(kind(folder)) for kind in kinds]


def medians(options, servers, measure):
    """By title: measure(server), a dict, over the rounds."""
    samples = {server.title: [] for server in servers}
    for _ in range(options.rounds):
        for server in servers:
            samples[server.title].append(measure(server))
    return {title: {key: statistics.median(one[key] for one in all) for key in all[0]} for title, all in samples.items()}


def add(out, work, metric, found, key, less_is_better=True, note=""):
    figures = {title: one[key] for title, one in found.items()}
    out.add(table.Row(work, metric, figures.pop("Serin"), figures, less_is_better, note))


def json_floats(out, options, folder):
    rows, columns = IMAGE

    def measure(server):
        client = [ROOT / "build/json_client", server.ports["http"], "identity", rows, columns, options.seconds]
        told = json.loads(subprocess.run(proxies.pinned(CLIENT_CORE, *client), check=True, capture_output=True, text=True).stdout)
        if not told["exact"]:
            raise RuntimeError(f"{server.title}: a float did not come back as it was")
        return {"ms": statistics.median(told["ms"])}

    with running(folder, Serin, Triton) as servers:
        add(out, f"REST, {rows * columns:,} floats as JSON in and out", "ms", medians(options, servers, measure), "ms", note="one client; every float read back bit by bit")


@dataclasses.dataclass
class Requests:
    """What h2load sends, again and again."""

    work: str
    port: str
    path: str
    body: bytes
    headers: tuple
    connections: int
    at_once: int  # on each connection
    http1: bool = False


ROW = np.linspace(-1, 1, 16, dtype=np.float32)


def grpc_requests():
    message = service_pb2.ModelInferRequest(model_name="identity", raw_input_contents=[ROW.tobytes()])
    message.inputs.add(name="INPUT0", datatype="FP32", shape=[1, ROW.size])
    headers = ("content-type: application/grpc", "te: trailers")
    return Requests("gRPC, ModelInfer of 16 floats", "grpc", proxies.INFER, proxies.framed(message.SerializeToString()), headers, 8, 8)


def rest_requests(binary):
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1, ROW.size]}
    tensor |= {"parameters": {"binary_data_size": ROW.nbytes}} if binary else {"data": ROW.tolist()}
    head = json.dumps({"inputs": [tensor], **({"parameters": {"binary_data_output": True}} if binary else {})}).encode()
    kind = (f"inference-header-content-length: {len(head)}",) if binary else ("content-type: application/json",)
    work = f"REST, infer of 16 floats {'in binary' if binary else 'as JSON'}"
    return Requests(work, "http", "/v2/models/identity/infer", head + (ROW.tobytes() if binary else b""), kind, 32, 1, http1=True)


def whole_seconds(seconds):
    """What h2load takes for its duration."""
    return max(round(seconds), 1)


def h2load(server, folder, seconds, requests, *extra):
    body = folder / "request"
    body.write_bytes(requests.body)
    command = ["/usr/bin/h2load", "-c", requests.connections, "-m", requests.at_once, "-D", whole_seconds(seconds), "-d", body, *extra]
    command += ["--h1"] if requests.http1 else []
    for header in requests.headers:
        command += ["-H", header]
    url = f"http://127.0.0.1:{server.ports[requests.port]}{requests.path}"
    told = subprocess.run(proxies.pinned(CLIENT_CORE, *command, url), check=True, capture_output=True, text=True).stdout
    done, good, failed, errored = map(int, re.search(r"(\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored", told).groups())
    if not done or good < done or failed or errored:
        raise RuntimeError(f"{server.title}: {told[-800:]}")
    return {"rate": float(re.search(r"([\d.]+) req/s", told)[1]), "all": done}


def throughput(out, options, folder, servers, requests):
    def measure(server):
        before = cpu_seconds(server)
        done = h2load(server, folder, options.seconds, requests)
        spent = cpu_seconds(server) - before
        return {"rate": done["rate"], "cpu_us": spent / done["all"] * 1e6, "busy": spent / whole_seconds(options.seconds)}

    found = medians(options, servers, measure)
    idle = [f"{title}'s core only {one['busy']:.0%} busy" for title, one in found.items() if one["busy"] < proxies.BUSY]
    work = f"{requests.work}, {requests.connections} connections of {requests.at_once}"
    add(out, work, "requests/s", found, "rate", less_is_better=False, note="; ".join(idle))
    add(out, work, "CPU us per request", found, "cpu_us")


def grpc(out, options, folder):
    with running(folder, Serin, GrpcEcho, Triton) as servers:
        throughput(out, options, folder, servers, grpc_requests())


def rest(out, options, folder):
    with running(folder, Serin, Triton) as servers:
        for binary in (False, True):
            throughput(out, options, folder, servers, rest_requests(binary))


def latency(out, options, folder):
    """At a rate that no server is full at, whatever the answers take: nobody waits with the next request for them."""
    requests = dataclasses.replace(grpc_requests(), connections=RATE // H2LOAD_RATE, at_once=100)
    log = folder / "times"

    def measure(server):
        log.unlink(missing_ok=True)
        h2load(server, folder, options.seconds, requests, f"--rps={H2LOAD_RATE}", f"--log-file={log}")
        microseconds = [int(line.split("\t")[2]) for line in log.read_text().splitlines()]
        return {f"p{share}": float(np.percentile(microseconds, share)) for share in (50, 99)}

    with running(folder, Serin, GrpcEcho, Triton) as servers:
        found = medians(options, servers, measure)
        for key in ("p50", "p99"):
            add(out, f"{requests.work}, {RATE:,} a second over {requests.connections} connections", f"{key} us", found, key)


def cpu_seconds(server):
    return proxies.cpu_seconds(server.process.pid)


def allocations(out, options, folder):
    """malloc and its like, counted while a steady load runs."""
    count = folder / "allocations"
    environment = {"LD_PRELOAD": str(ROOT / "build/libcount_allocations.so"), "COUNT_ALLOCATIONS": str(count)}
    with Serin(folder, environment) as server:
        requests = grpc_requests()
        h2load(server, folder, options.seconds, requests)
        before = proxies.read_count(count)
        done = h2load(server, folder, options.seconds, requests)
        out.add(table.Row(requests.work, "allocations per request", (proxies.read_count(count) - before) / done["all"], {}, note="libraries included"))


PARTS = {"json": json_floats, "grpc": grpc, "rest": rest, "latency": latency, "allocations": allocations}


def main():
    options = flags()
    machine = table.machine()
    grpc_version = subprocess.run(["pkg-config", "--modversion", "grpc++"], capture_output=True, text=True, check=True).stdout.strip()
    out = table.Table(
        ["Triton", "grpc++"],
        f"{datetime.date.today()}, {machine}\nTriton 24.10 (server 2.51.0), grpc++ {grpc_version}; {options.rounds} rounds of {options.seconds:g} s",
    )
    for name in options.parts:
        with tempfile.TemporaryDirectory(prefix="serin-bench-") as folder:
            PARTS[name](out, options, pathlib.Path(folder))
    if options.json:
        out.save(options.json, machine)


if __name__ == "__main__":
    main()
