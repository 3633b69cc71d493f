"""What bench/gpu can measure. A key such as `speed/ResNet-50/fp16/8` names it; measuring it answers rows of the table of its section.

speed     one run after the other, inputs and outputs in the host's memory: milliseconds, beside the peers
roofline  each kernel's arithmetic or bytes a second, whichever is nearer to what the card gives at most
batching  requests a second through `serin serve` from 64 clients, beside the same without batches
memory    bytes on the device as planned, beside what the process holds by its own count and what the device says

BARS are what the rows must reach.
"""

import concurrent.futures
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
ONE_BY_ONE, HELD, REPORTED = "max_batch 1", "held", "reported"
SECTIONS = {"speed": list(PEERS.values()), "roofline": ["the card"], "batching": [ONE_BY_ONE], "memory": [HELD, REPORTED]}
BATCHES = (1, 8, 32, 128)
PRECISIONS = ("fp16", "fp32")
# Autotuning takes minutes a row: of four.
AUTOTUNED = {("ResNet-50", "fp16", 1), ("ResNet-50", "fp16", 32), ("ViT-B/16", "fp16", 8), ("BERT-base seq 128", "fp16", 8)}
ROOFLINE_BATCH = 32
CLIENTS, ROUND_S = 64, 10
LEAST_SHARE = 0.01  # of the time: kernels below it are left out of the roofline
BESIDE_ARENA = 256  # bytes of the slab that are no plan's: where kernels report faults (runtime/engine/device/device_arena.h)
MODELS = [item for item in work.WORK if item.name in ("ResNet-50", "MobileNetV3-L", "ViT-B/16", "BERT-base seq 128", "MiniLM seq 128")]


@dataclasses.dataclass
class Setting:
    """How Serin is run, and for how long anything is measured."""

    serin: pathlib.Path
    device_flags: tuple
    seconds: float = 0.5
    rounds: int = 7
    peers: tuple = tuple(PEERS)

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
    return {"speed": 150, "roofline": 60, "batching": 180, "memory": 60}[section]


def peer(engine, item, job, seconds):
    command = [sys.executable, "-B", HERE / "gpu_worker.py", engine, job.model, job.inputs, "--name", item.model]
    return engines.Engine([*command, "--precision", job.precision, "--seconds", seconds])


def starters_of(item, precision, batch, setting):
    """{name: start an engine} of a row of speed, Serin's first."""
    job = work.job(item, batch, 1, precision)
    starters = {"serin": functools.partial(engines.serin, job, setting.seconds, setting.device_flags)}
    for engine, title in PEERS.items():
        if engine in setting.peers and (engine != "torch-max-autotune" or (item.name, precision, batch) in AUTOTUNED):
            starters[title] = functools.partial(peer, engine, item, job, setting.seconds)
    return starters


def started(rows, setting):
    """{key: starters} of several rows of speed, for `speed`: their engines have started and wait to be measured. Serin's measure their kernels, so that
    each starts alone; peers compile side by side."""
    starters = {key: starters_of(*row.args, setting) for key, row in rows.items()}
    tasks = {key: {} for key in rows}
    with concurrent.futures.ThreadPoolExecutor(len(rows) * len(PEERS)) as pool:
        for key, each in starters.items():
            tasks[key]["serin"] = pool.submit(each.pop("serin"))
            concurrent.futures.wait([tasks[key]["serin"]])
        for key, each in starters.items():
            tasks[key] |= {name: pool.submit(start) for name, start in each.items()}
    return {key: {name: task.result for name, task in each.items()} for key, each in tasks.items()}


def speed(item, precision, batch, setting, starters=None):
    times, why = engines.in_turn(starters or starters_of(item, precision, batch, setting), setting.rounds)
    ours = times.pop("serin")  # how far fp16 is off tests/gpu/run tells, in its part `models`
    note = "; ".join(filter(None, [f"{batch * 1e3 / ours:.0f} items/s" if ours else "", why]))
    return [table.Row(f"{item.name}, batch {batch}", f"{precision} ms", ours, times, note=note)]


def profile(item, precision, batch, setting):
    """The steps of a run, as `serin bench --profile` times them: by the device's clock, in a replay."""
    sizes = [part for name, size in item.sizes for part in ("--dim", f"{name}={size}")]
    command = [setting.serin, "bench", item.path, "--batch", batch, "--precision", precision, "--seconds", setting.seconds, *sizes]
    return printed([*command, "--profile", "--json", *setting.device_flags])["profile"]


def printed(command):
    """The JSON that a program prints."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise engines.CannotRun(done.stderr.strip()[-160:])
    return json.loads(done.stdout)


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
    """The baseline has as many clients and no batches: one client alone would show how long an answer takes, not what the device can do."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, most in (("batched", CLIENTS), ("one-by-one", 1)):
            version = folder / "models" / name / "1"
            version.mkdir(parents=True)
            shutil.copy(item.path, version / "model.onnx")
            (version.parent / "serin.yaml").write_text(f"max_batch: {most}\nprecision: {precision}\n")
        with serving.server(setting, folder) as served:
            streams = (("batched", CLIENTS), ("one-by-one", CLIENTS), ("one-by-one", 1))
            batched, one_by_one, alone = (load(setting, served.url, name, clients) for name, clients in streams)
    title, note = f"{item.name}, {CLIENTS} clients through serve", f"one client {alone:.0f} requests/s"
    return [table.Row(title, f"{precision} requests/s", batched, {ONE_BY_ONE: one_by_one}, less_is_better=False, note=note)]


def load(setting, url, model, clients):
    command = [setting.serin, "load", url, "--model", model, "--concurrency", str(clients), "--seconds", str(ROUND_S)]
    command += ["--timeout", "60", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    counts = json.loads(done.stdout) if done.returncode == 0 else {"errors": 1}
    if counts["errors"]:
        raise engines.CannotRun(f"{counts}{done.stderr}"[-160:])
    return counts["ok_per_s"]


def memory(item, precision, batch, setting):
    """Each figure with the context: what the same model at batch 1 takes beyond its plan, so that code which libraries load for it is in there."""
    one, many = (work.job(item, size, 1, precision) for size in (1, batch))
    arenas = [planned_arena(job, setting) for job in (one, many)]  # first: kernels are measured now, not by the processes that are compared

    def start(job):
        return engines.serin(job, 0.001, setting.device_flags)

    with start(one) as first, start(one) as small, start(many) as large:
        plans = [arena + engine.ready["device_bytes"]["weights"] for arena, engine in zip(arenas, (small, large))]
        context, reported = device_bytes(small, first) - plans[0], device_bytes(large, small)
        plan, holds = plans[1], held(large)
    note = f"all with a context of {context / 1e6:.1f} MB; without it {plan} bytes planned, {holds} held, {reported - context} reported"
    beside = {HELD: (holds + context) / 1e6, REPORTED: reported / 1e6}
    return [table.Row(f"{item.name}, batch {batch}", f"{precision} MB on the device", (plan + context) / 1e6, beside, note=note)]


def planned_arena(job, setting):
    """The slab of one executor, as `serin inspect` plans it. What weights will take it does not print: there what is held has to do."""
    sizes = [part for name, size in job.dims.items() for part in ("--dim", f"{name}={size}")]
    report = printed([setting.serin, "inspect", job.model, "--json", "--precision", job.precision, *sizes, *setting.device_flags])
    return report["device"]["bytes"] + BESIDE_ARENA


def held(engine):
    """By its own count."""
    counted = engine.ready["device_bytes"]
    return counted["weights"] + counted["arena"]


def device_bytes(engine, before):
    """What nvidia-smi says that a process holds; in a container it may not name it: then what it takes more than was taken when `before` had started."""
    asked = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    lines = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.splitlines() if shutil.which(asked[0]) else []
    for process, mebibytes in (map(str.strip, line.split(",")) for line in lines if line.count(",") == 1):
        if process == str(engine.child.pid) and mebibytes.isdecimal():
            return int(mebibytes) * 2**20
    return engine.ready["device_bytes"]["taken_by_all"] - before.ready["device_bytes"]["taken_by_all"]


@dataclasses.dataclass(frozen=True)
class Bar:
    """What rows must reach: each at least `least`, or their geometric mean."""

    what: str
    rows: str  # pattern of their keys
    least: float
    score: object  # of a row: the number to compare, or None where it does not have what that takes
    mean: bool = False


def over_peer(row):
    """Of the better peer; the bars are against torch, so that beside ONNX Runtime alone a row is not measured."""
    return row.ratio if row.peers.get(PEERS["torch-reduce-overhead"]) else None


def over_one_by_one(row):
    return row.serin / row.peers[ONE_BY_ONE] if row.peers.get(ONE_BY_ONE) else None


def likeness(peer, row):
    """1 less the share by which the plan is off."""
    return 1 - abs(row.serin / row.peers[peer] - 1) if row.peers.get(peer) else None


BARS = [
    Bar("throughput over the better peer's, every row", "speed/*", 1.0, over_peer),
    Bar("throughput over the better peer's, geometric mean", "speed/*", 1.3, over_peer, mean=True),
    Bar("the better peer's latency over Serin's at batch 1, every row (1.25 is 0.8x the latency)", "speed/*/1", 1.25, over_peer),
    Bar("planned bytes as held, every row (1: to the byte)", "memory/*", 1.0, functools.partial(likeness, HELD)),
    Bar("planned bytes as the device reports, every row (0.98: within 2 %)", "memory/*", 0.98, functools.partial(likeness, REPORTED)),
    Bar(f"throughput with batches over max_batch 1, both from {CLIENTS} clients", "batching/*", 10.0, over_one_by_one),
]
