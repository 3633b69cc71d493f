"""Requests of several models and batch sizes at once through `serin serve --device cuda`: none fails, and the answers are the CPU's."""

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import time
import urllib.request

import numpy as np

from results import FAILED, PASSED, SKIPPED, Case, clip

BATCHES = (1, 3, 8)
CLIENTS = 4  # for each model and batch
SECONDS = 3  # of one round
READY_S, REQUEST_S = 540, 60  # a first load measures kernels of every batch size
COMPARED = 16  # requests of each model whose answers are compared
# Of the element, of the largest: batches are put together anew on every run.
TOLERANCES = {"fp32": (1e-3, 1e-4), "fp16": (2e-2, 2e-2)}


def mixed_requests(setting, unit, sources, precision="fp32"):
    """sources: {model: (model.onnx, .npz with rows of its inputs)}."""
    folder = repository(setting, unit, {name: path for name, (path, _) in sources.items()})
    with server(setting, folder, flags=("--precision", precision)) as device, server(setting, folder, device="cpu") as cpu:
        answered, cases = load(setting, device.url, sources)
        for name, (_, data) in sources.items():
            cases.append(compared(name, np.load(data), device.url, cpu.url, TOLERANCES[precision]))
    return cases, {"requests answered": answered}


def second_start(setting, unit, paths):
    """What one process measured of kernels, the next one does not measure again: each measurement would be a line more."""
    folder = repository(setting, unit, paths)
    for name in paths:
        (folder / "models" / name / "serin.yaml").write_text("max_batch: 1\ninstances: 1\n")
    keeping = dataclasses.replace(setting, cache=("--cuda-cache", str(folder / "cache")))
    lines = []
    for _ in range(2):
        with server(keeping, folder):
            pass
        lines.append([line for file in sorted((folder / "cache").glob("tactics-*")) for line in file.read_text().splitlines()[1:]])
    measured = len(lines[0])
    if not measured:
        return [Case("", unit, SKIPPED, detail="nothing is measured on this device")], {}
    wrong = "" if lines[0] == lines[1] else f"{measured} kernels were measured first, then {len(lines[1]) - measured} more"
    return [Case("", unit, FAILED if wrong else PASSED, detail=wrong)], {"kernels measured once": measured}


def repository(setting, unit, paths):
    """A fresh folder with models/<name>/1/model.onnx."""
    folder = setting.folder / "serve" / unit.replace("/", "-")
    shutil.rmtree(folder, ignore_errors=True)
    for name, path in paths.items():
        (folder / "models" / name / "1").mkdir(parents=True)
        shutil.copy(path, folder / "models" / name / "1/model.onnx")
    return folder


@dataclasses.dataclass
class Served:
    url: str
    metrics: str
    process: subprocess.Popen


@contextlib.contextmanager
def server(setting, folder, device="cuda", flags=(), environment=()):
    """Serves folder/models, once every model is loaded or refused."""
    ready, log = folder / f"{device}.ready", folder / f"{device}.log"
    command = [setting.serin, "serve", "--models", folder / "models", "--port", "0", "--grpc-port", "0", "--metrics-port", "0", "--drain-seconds", "0", *flags]
    if device != "cpu":
        command += ["--device", device, *setting.device_flags[2:]]
    with log.open("wb") as out:
        process = subprocess.Popen([*command, "--ready-file", ready], stdout=out, stderr=out, env={**os.environ, **dict(environment)})
    try:
        end = time.monotonic() + READY_S
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"serin serve on {device} is not ready: {clip(log.read_text(errors='replace'))}")
            time.sleep(0.05)
        ports = json.loads(ready.read_text())
        yield Served(f"http://127.0.0.1:{ports['http']}", f"http://127.0.0.1:{ports['metrics']}", process)
    finally:
        process.terminate()
        process.wait()


def load(setting, url, sources):
    """How many requests were answered, and a case for each stream of them. All streams at once, until each model has answered its share."""
    answered, failed = dict.fromkeys(sources, 0), {}
    streams = [(name, data, batch) for name, (_, data) in sources.items() for batch in BATCHES]
    while min(answered.values()) < setting.requests / len(sources) and not failed:
        running = [
            subprocess.Popen(
                [setting.serin, "load", url, "--model", name, "--data", data, "--batch", str(batch), "--concurrency", str(CLIENTS),
                 "--seconds", str(SECONDS), "--timeout", str(REQUEST_S), "--json"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for name, data, batch in streams
        ]
        for (name, _, batch), process in zip(streams, running):
            said, complaint = process.communicate()
            counts = json.loads(said) if process.returncode == 0 else {"ok": 0, "errors": 1, "errors_by": complaint.strip()}
            answered[name] += counts["ok"]
            if counts["errors"] or not counts["ok"]:
                failed[name, batch] = f"{counts['errors']} errors: {counts['errors_by']}; {counts['ok']} answers"
    return sum(answered.values()), [
        Case("", f"{name} batch {batch}", FAILED if (name, batch) in failed else PASSED, detail=failed.get((name, batch), ""))
        for name, _, batch in streams
    ]


def compared(name, rows, device, cpu, tolerance):
    rtol, atol = tolerance
    metadata = json.loads(ask(f"{device}/v2/models/{name}"))
    wrong = 0
    for i in range(COMPARED):
        inputs = []
        for tensor in metadata["inputs"]:
            value = rows[tensor["name"]]
            row = value[i % len(value)][None]
            fixed = min(tensor["shape"][1:], default=1) > 0  # then 64 pixels go as [64] or as [8, 8], however they lie in the file
            shape = [1, *tensor["shape"][1:]] if fixed else row.shape
            inputs.append({"name": tensor["name"], "datatype": tensor["datatype"], "shape": shape, "data": row.ravel().tolist()})
        body = json.dumps({"inputs": inputs})
        answers = [json.loads(ask(f"{url}/v2/models/{name}/infer", body))["outputs"] for url in (device, cpu)]
        for ours, theirs in zip(*answers, strict=True):
            a, b = np.asarray(ours["data"], np.float64), np.asarray(theirs["data"], np.float64)
            near = a.shape == b.shape and np.abs(a - b) <= rtol * np.abs(b) + atol * np.abs(b).max()
            wrong += not np.all(near)  # NaN is near nothing
    detail = f"{wrong} of {COMPARED} answers differ" if wrong else ""
    return Case("", f"{name} answers as the CPU does", FAILED if wrong else PASSED, detail=detail)


def ask(url, body=None):
    with urllib.request.urlopen(url, data=body.encode() if body else None, timeout=REQUEST_S) as response:
        return response.read()
