"""The runtime's protocols beside Triton's and grpc++'s, in one run: see bench/protocols --help."""

import argparse
import contextlib
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


def flags():
    parser = argparse.ArgumentParser(
        prog="bench/protocols",
        description="serin serve beside Triton and grpc++.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only these: {', '.join(PARTS)}")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the rows there, too")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; allowed: {', '.join(PARTS)}")
    options.parts = options.parts or list(PARTS)
    return options


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


def infer_message(values=16):
    message = service_pb2.ModelInferRequest(model_name="identity", raw_input_contents=[np.zeros(values, np.float32).tobytes()])
    message.inputs.add(name="INPUT0", datatype="FP32", shape=[1, values])
    return proxies.framed(message.SerializeToString())


def whole_seconds(seconds):
    """What h2load takes for its duration."""
    return max(round(seconds), 1)


def h2load(server, folder, seconds, connections, at_once):
    request = folder / "request"
    request.write_bytes(infer_message())
    headers = ["-H", "content-type: application/grpc", "-H", "te: trailers"]
    command = ["/usr/bin/h2load", "-c", connections, "-m", at_once, "-D", whole_seconds(seconds), "-d", request, *headers]
    told = subprocess.run(
        proxies.pinned(CLIENT_CORE, *command, f"http://127.0.0.1:{server.ports['grpc']}{proxies.INFER}"), check=True, capture_output=True, text=True
    ).stdout
    done, good, failed, errored = map(int, re.search(r"(\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored", told).groups())
    if good < done or failed or errored:
        raise RuntimeError(f"{server.title}: {told[-800:]}")
    return {"rate": float(re.search(r"([\d.]+) req/s", told)[1]), "all": done}


def grpc(out, options, folder):
    def measure(server):
        before = cpu_seconds(server)
        done = h2load(server, folder, options.seconds, 8, 8)
        spent = cpu_seconds(server) - before
        return {"rate": done["rate"], "cpu_us": spent / done["all"] * 1e6, "busy": spent / whole_seconds(options.seconds)}

    with running(folder, Serin, GrpcEcho, Triton) as servers:
        found = medians(options, servers, measure)
        idle = [f"{title}'s core only {one['busy']:.0%} busy" for title, one in found.items() if one["busy"] < proxies.BUSY]
        work = "gRPC, ModelInfer of 16 floats, 8 connections of 8 calls"
        add(out, work, "requests/s", found, "rate", less_is_better=False, note="; ".join(idle))
        add(out, work, "CPU us per request", found, "cpu_us")


def cpu_seconds(server):
    return proxies.cpu_seconds(server.process.pid)


def allocations(out, options, folder):
    """malloc and its like, counted while a steady load runs."""
    count = folder / "allocations"
    environment = {"LD_PRELOAD": str(ROOT / "build/libcount_allocations.so"), "COUNT_ALLOCATIONS": str(count)}
    with Serin(folder, environment) as server:
        h2load(server, folder, options.seconds, 8, 8)
        before = proxies.read_count(count)
        done = h2load(server, folder, options.seconds, 8, 8)
        out.add(table.Row("gRPC, ModelInfer of 16 floats", "allocations per request", (proxies.read_count(count) - before) / done["all"], {}, note="libraries included"))


PARTS = {"json": json_floats, "grpc": grpc, "allocations": allocations}


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
