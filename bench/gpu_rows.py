"""What bench/gpu can measure. A key such as `speed/ResNet-50/fp16/8` names it; measuring it answers rows of the table of its section.

speed     one run after the other, inputs and outputs in the host's memory: milliseconds, beside the peers
roofline  each kernel's arithmetic or bytes a second, whichever is nearer to what the card gives at most
batching  requests a second through `serin serve` from 64 clients, beside one client
memory    bytes on the device as planned, beside what the device says
"""

import dataclasses
import functools
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import engines
import serving
import table
import weights
import work

weights.drawn_will_do = True  # speed does not see them
HERE = pathlib.Path(__file__).resolve().parent
PEERS = {"torch-reduce-overhead": "torch reduce-overhead", "torch-max-autotune": "torch max-autotune", "onnxruntime": "ONNX Runtime CUDA"}
SECTIONS = {"speed": list(PEERS.values()), "roofline": ["the card"], "batching": ["one client"], "memory": ["the device"]}
BATCHES = (1, 8, 32, 128)
PRECISIONS = ("fp16", "fp32")
# Autotuning takes minutes a row: of four.
AUTOTUNED = {("ResNet-50", "fp16", 1), ("ResNet-50", "fp16", 32), ("ViT-B/16", "fp16", 8), ("BERT-base seq 128", "fp16", 8)}
ROOFLINE_BATCH = 32
CLIENTS, ROUND_S = 64, 10
LEAST_SHARE = 0.01  # of the time: kernels below it are left out of the roofline
MODELS = [item for item in work.WORK if item.name in ("ResNet-50", "MobileNetV3-L", "ViT-B/16", "BERT-base seq 128", "MiniLM seq 128")]


@dataclasses.dataclass
class Setting:
    """How Serin is run, and for how long anything is measured."""

    serin: pathlib.Path
    device_flags: tuple
    seconds: float = 0.5
    rounds: int = 7

    @functools.cached_property
    def peaks(self):
        """What the card gives at most, as torch measures it."""
        done = subprocess.run([sys.executable, "-B", HERE / "gpu_worker.py", "peaks"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise engines.CannotRun((done.stderr.strip().splitlines() or ["no answer"])[-1][:160])
        return json.loads(done.stdout)


def all_rows():
    """{key: measure(setting)}."""
    found = {}
    for item in MODELS:
        for precision in PRECISIONS:
            for batch in BATCHES:
                found[f"speed/{item.name}/{precision}/{batch}"] = functools.partial(speed, item, precision, batch)
    for item in MODELS:
        for precision in PRECISIONS:
            found[f"roofline/{item.name}/{precision}"] = functools.partial(roofline, item, precision, ROOFLINE_BATCH)
    resnet = MODELS[0]
    found[f"batching/{resnet.name}/fp16"] = functools.partial(batching, resnet, "fp16")
    for item in MODELS:
        found[f"memory/{item.name}/fp16"] = functools.partial(memory, item, "fp16", 8)
    return found


def turn(key):
    """What is measured first where there is not time for all: what decides a bar alone, then speed, the smallest batches first, then the rest."""
    section, *rest = key.split("/")
    if section != "speed":
        return (("batching", "speed", "memory", "roofline").index(section), 0, 0, key)
    return (1, int(rest[-1]), PRECISIONS.index(rest[-2]), key)


def usual_seconds(key):
    """Of a row that was not measured yet, with what its peers compile."""
    section, *rest = key.split("/")
    if section == "speed" and ("/".join(rest[:-2]), rest[-2], int(rest[-1])) in AUTOTUNED:
        return 330
    return {"speed": 150, "roofline": 60, "batching": 120, "memory": 45}[section]


def peer(engine, item, job, seconds):
    command = [sys.executable, "-B", HERE / "gpu_worker.py", engine, job.model, job.inputs, "--name", item.model]
    return engines.Engine([*command, "--precision", job.precision, "--seconds", seconds])


def speed(item, precision, batch, setting):
    job = work.job(item, batch, 1, precision)
    starters = {"serin": lambda: engines.serin(job, setting.seconds, setting.device_flags)}
    for engine, title in PEERS.items():
        if engine != "torch-max-autotune" or (item.name, precision, batch) in AUTOTUNED:
            starters[title] = functools.partial(peer, engine, item, job, setting.seconds)
    times, why = engines.in_turn(starters, setting.rounds)
    ours, errors = times.pop("serin"), {}
    if ours and batch == 1 and precision != "fp32":
        exact = engines.peer_outputs("onnxruntime", work.job(item, batch))
        errors["Serin"] = engines.serin_error(job, exact, setting.device_flags)
    note = "; ".join(filter(None, [f"{batch * 1e3 / ours:.0f} items/s" if ours else "", why]))
    return [table.Row(f"{item.name}, batch {batch}", f"{precision} ms", ours, times, note=note, errors=errors)]


def profile(item, precision, batch, setting):
    """The steps of a run, as `serin bench --profile` times them: by the device's clock, in a replay."""
    sizes = [part for name, size in item.sizes for part in ("--dim", f"{name}={size}")]
    command = [setting.serin, "bench", item.path, "--batch", batch, "--precision", precision, "--seconds", setting.seconds, *sizes]
    command += ["--profile", "--json", *setting.device_flags]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise engines.CannotRun(done.stderr.strip()[-160:])
    return json.loads(done.stdout)["profile"]


def by_kernel(steps):
    """{"Conv cudnn": {ms, flops, bytes, steps}}, the slowest first."""
    sums = {}
    for step in steps:
        total = sums.setdefault(f"{step['op']} {step['kernel']}", {"ms": 0.0, "flops": 0, "bytes": 0, "steps": 0})
        for field in ("ms", "flops", "bytes"):
            total[field] += step[field]
        total["steps"] += 1
    return dict(sorted(sums.items(), key=lambda pair: -pair[1]["ms"]))


def roofline(item, precision, batch, setting):
    peaks, kernels, rows = setting.peaks, by_kernel(profile(item, precision, batch, setting)), []
    whole = sum(total["ms"] for total in kernels.values())
    for name, total in kernels.items():
        if total["ms"] < LEAST_SHARE * whole:
            continue
        reached = {
            "TFLOP/s": (total["flops"] / total["ms"] / 1e9, peaks[f"{precision}_tflops"]),
            "GB/s": (total["bytes"] / total["ms"] / 1e6, peaks["copy_gbps"]),
        }
        metric = max(reached, key=lambda name: reached[name][0] / reached[name][1])
        ours, peak = reached[metric]
        note = f"{total['ms'] / whole:.0%} of the time, {total['steps']} steps"
        title = f"{item.name}, batch {batch}: {name}"
        rows.append(table.Row(title, f"{precision} {metric}", ours, {"the card": peak}, less_is_better=False, note=note))
    return rows


def batching(item, precision, setting):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        version = folder / "models" / item.model / "1"
        version.mkdir(parents=True)
        shutil.copy(item.path, version / "model.onnx")
        (version.parent / "serin.yaml").write_text(f"max_batch: {CLIENTS}\nprecision: {precision}\n")
        with serving.server(setting, folder) as served:
            many, one = (load(setting, served.url, item, clients) for clients in (CLIENTS, 1))
    title = f"{item.name}, {CLIENTS} clients through serve"
    return [table.Row(title, f"{precision} requests/s", many, {"one client": one}, less_is_better=False)]


def load(setting, url, item, clients):
    command = [setting.serin, "load", url, "--model", item.model, "--concurrency", str(clients), "--seconds", str(ROUND_S)]
    command += ["--timeout", "60", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    counts = json.loads(done.stdout) if done.returncode == 0 else {"errors": 1}
    if counts["errors"]:
        raise engines.CannotRun(f"{counts}{done.stderr}"[-160:])
    return counts["ok_per_s"]


def memory(item, precision, batch, setting):
    """What the plan says that the process holds on the device, and what the driver says, without the context that any process has there."""
    job = work.job(item, batch, 1, precision)
    digits = work.job(next(each for each in work.WORK if each.kind == "digits"), 1)

    def start(job):
        return engines.serin(job, 0.001, setting.device_flags)

    with start(digits) as first, start(digits) as small, start(job) as large:
        held = [device_bytes(engine, before) for engine, before in ((small, first), (large, small))]
        context, plan, reported = held[0] - planned(small), planned(large), held[1]
    off = (plan + context) / reported - 1
    note = f"with a context of {context / 1e6:.0f} MB {off:+.1%} of what the device reports"
    measured = {"the device": (reported - context) / 1e6}
    return [table.Row(f"{item.name}, batch {batch}", f"{precision} MB on the device", plan / 1e6, measured, note=note)]


def planned(engine):
    held = engine.ready["device_bytes"]
    return held["weights"] + held["arena"]


def device_bytes(engine, before):
    """What nvidia-smi says that a process holds; in a container it may not name it: then what it takes more than was taken when `before` had started."""
    asked = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    lines = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.splitlines() if shutil.which(asked[0]) else []
    for process, mebibytes in (map(str.strip, line.split(",")) for line in lines if line.count(",") == 1):
        if process == str(engine.child.pid) and mebibytes.isdecimal():
            return int(mebibytes) * 2**20
    return engine.ready["device_bytes"]["taken_by_all"] - before.ready["device_bytes"]["taken_by_all"]

