"""The engines that are measured, each in a process of its own that is kept warm: a line goes in, a measurement comes out."""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

from work import ROOT, listing
from worker import memory

HERE = pathlib.Path(__file__).resolve().parent
SERIN = pathlib.Path(os.environ.get("SERIN", ROOT / "build/serin"))
PEERS = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}


class CannotRun(Exception):
    """The engine refuses the model or the setting; the message is its own."""


class Engine:
    """A child that prints a JSON object when it is ready and one for each line it is sent."""

    def __init__(self, command):
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115: closed with the child
        self.child = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, cwd=ROOT
        )
        self.ready = self.answer()

    def answer(self):
        line = self.child.stdout.readline()
        if not line:
            self.child.wait()
            self.errors.seek(0)
            said = self.errors.read().strip().splitlines() or [f"ended with {self.child.returncode}"]
            raise CannotRun(said[-1][:160])
        return json.loads(line)

    def measure(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        return self.answer()["median_ms"]

    def memory(self, field):
        return memory(field, self.child.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()
        self.errors.close()


def in_turn(starters, rounds):
    """{name: median ms} of engines measured alternately; one that cannot run gets None, and why is the second result."""
    running, why = {}, {}
    try:
        for name, start in starters.items():
            try:
                running[name] = start()
            except CannotRun as error:
                why[name] = f"{name} cannot: {error}"
        times = {name: [] for name in running}
        for _ in range(rounds):
            for name, engine in running.items():
                times[name].append(engine.measure())
    finally:
        for engine in running.values():
            engine.__exit__()
    return {name: statistics.median(times[name]) if name in times else None for name in starters}, "; ".join(why.values())


def serin(job, seconds, flags=()):
    sizes = [part for name, size in job.dims.items() if name != "batch" for part in ("--dim", f"{name}={size}")]
    precision = [] if job.precision == "fp32" else ["--precision", job.precision]
    return Engine(
        [
            SERIN,
            "bench",
            job.model,
            "--batch",
            job.dims.get("batch", 1),
            "--threads",
            job.threads,
            "--seconds",
            seconds,
            "--json",
            "--on-request",
            *sizes,
            *precision,
            *flags,
        ]
    )


def peer(name, job, seconds, outputs=None):
    command = [
        sys.executable,
        "-B",
        HERE / "worker.py",
        name,
        job.model,
        job.inputs,
        "--threads",
        job.threads,
        "--precision",
        job.precision,
        "--seconds",
        seconds,
        "--dims",
        json.dumps(job.dims),
    ]
    return Engine([*command, *(["--outputs", outputs] if outputs else [])])


def peer_outputs(name, job):
    """What a peer answers to the job's inputs."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "outputs.npz"
        with peer(name, job, 0, path):
            return [value.astype(np.float64) for value in np.load(path).values()]


def relative_l2(actual, expected):
    return float(np.linalg.norm(actual[0] - expected[0]) / np.linalg.norm(expected[0]))


@contextlib.contextmanager
def data_set(job, expected):
    """A folder for `serin check`: the job's inputs and the outputs to compare with."""
    with tempfile.TemporaryDirectory() as folder:
        listing.write_data_set(pathlib.Path(folder), np.load(job.inputs).values(), [value.astype(np.float32) for value in expected])
        yield folder


def serin_check(job, folder, flags=()):
    """One whole process that loads, answers once and compares: what it prints."""
    command = [SERIN, "check", job.model, folder, "--json", "--threads", str(job.threads), *flags]
    if job.precision != "fp32":
        command += ["--precision", job.precision]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode > 1:
        raise CannotRun((done.stderr.strip().splitlines() or ["serin check failed"])[-1][:160])
    return json.loads(done.stdout)


def serin_error(job, expected, flags=()):
    """Serin's relative L2 error of the first output."""
    with data_set(job, expected) as folder:
        return serin_check(job, folder, flags)["data_sets"][0]["outputs"][0]["relative_l2_error"]
