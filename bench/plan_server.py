"""A server whose memory was planned: `serin plan` of a repository with one model, and `serin serve` on it."""

import contextlib
import dataclasses
import http.client
import json
import pathlib
import subprocess
import tempfile
import time

import numpy as np

import engines
from worker import memory

NUMPY = {"FP32": np.float32, "INT64": np.int64, "INT32": np.int32, "BOOL": np.bool_, "FP64": np.float64}


@dataclasses.dataclass
class Served:
    planned: int  # bytes of the whole process
    most: int  # bytes that it held at most
    held: int  # bytes that it held after the last request


@contextlib.contextmanager
def serve(folder, run_by=()):
    """(process id, port) of a server on the repository `folder`/models, started by the command `run_by`."""
    ready = folder / "ready"
    command = [*run_by, engines.SERIN, "serve", "--models", folder / "models", "--port", 0, "--grpc-port", "off", "--metrics-port", "off", "--drain-seconds", 0, "--ready-file", ready]
    with open(folder / "log", "wb") as log:
        server = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)
    try:
        while not ready.exists():
            if server.poll() is not None:
                raise RuntimeError(f"serin serve ended with {server.returncode}: {(folder / 'log').read_text()[-1000:]}")
            time.sleep(0.02)
        yield server.pid, json.loads(ready.read_text())["http"]
    finally:
        server.terminate()
        server.wait()
        ready.unlink(missing_ok=True)


def infer(client, inputs):
    """One request of a client that keeps its connection."""
    names = {np.dtype(kind): name for name, kind in NUMPY.items()}
    head = json.dumps({"inputs": [{"name": name, "shape": value.shape, "datatype": names[value.dtype], "parameters": {"binary_data_size": value.nbytes}}
                                  for name, value in inputs.items()], "parameters": {"binary_data_output": True}}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
    body = head + b"".join(value.tobytes() for value in inputs.values())
    client.request("POST", "/v2/models/m/infer", body, headers)
    answer = client.getresponse()
    if answer.status != 200:
        raise RuntimeError(f"serin serve answers {answer.status}: {answer.read()[:200]}")
    answer.read()


def without_models():
    """Bytes of a server without models."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "models").mkdir()
        with serve(pathlib.Path(folder)) as (pid, _):
            return memory("VmHWM", pid)


def plan_and_serve(path, inputs, sizes, rows, limited=lambda planned: ()):
    """Plans a server of one instance and one client, starts it by `limited(bytes of the plan)`, and sends 20 requests: Served."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        version = folder / "models/m/1"
        version.mkdir(parents=True)
        (version / "model.onnx").symlink_to(path)
        (folder / "models/m/serin.yaml").write_text(f"instances: 1\nthreads: 1\nmax_batch: {rows}\n")
        dims = [flag for dim, size in sizes for flag in ("--dim", f"{dim}={size}")]
        command = [engines.SERIN, "plan", folder / "models", "--batch", rows, "--clients", 1, *dims, "--json"]
        process = json.loads(subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True).stdout)["process"]
        if not process["is_bound"]:
            raise RuntimeError("the plan is no bound: memory depends on the data")
        planned = process["total_bytes"]
        with serve(folder, limited(planned)) as (pid, port), contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as client:
            for _ in range(20):
                infer(client, inputs)
            return Served(planned, memory("VmHWM", pid), memory("VmRSS", pid))
