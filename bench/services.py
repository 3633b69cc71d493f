"""Whole services, from the file of a picture to labels, beside Triton's and FastAPI's, in one run: see bench/services --help."""

import contextlib
import dataclasses
import datetime
import importlib.metadata
import io
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from PIL import Image

import proxies
import services_servers as servers
import table

ROOT = proxies.ROOT
sys.path.insert(0, str(ROOT / "tests/models"))

from materialise import materialise  # noqa: E402

EPILOGUE = """
Each server gets JPEG files and answers the five best classes with their probabilities. Before anything is measured, all servers have to give the same labels.
Servers and clients share all cores. In every round each server measures once, in turn; the medians over the rounds are divided. A ratio above 1 means that
Serin is ahead of the best peer.

--quick: 500x375 only, 3 rounds of one second; under two minutes.
"""

SIZES = ((500, 375), (1920, 1080))
PICTURES = 3
CLIENTS = 9  # a third of them for each picture
TOLERANCE = 1e-3  # of probabilities, absolute


def flags():
    parser = table.parser_for("services", "serin serve beside Triton and FastAPI, from pictures to labels.", EPILOGUE)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, help="5; 3 with --quick")
    parser.add_argument("--seconds", type=int, help="of one measurement: 2; 1 with --quick")
    options = table.parse_with_parts(parser, MODELS)
    options.rounds = options.rounds or (3 if options.quick else 5)
    options.seconds = options.seconds or (1 if options.quick else 2)
    options.sizes = SIZES[:1] if options.quick else SIZES
    return options


@dataclasses.dataclass(frozen=True)
class Model:
    title: str
    recipe: str
    longer: int = 1  # factor of the time of a measurement, for at least several answers to each client


MODELS = {"mobilenet": Model("MobileNetV3-small", "mobilenet_v3_small"), "resnet": Model("ResNet-50", "resnet50", longer=2)}


def save_model(recipe, folder):
    """A recipe of tests/models with drawn weights, for pictures of 224 x 224 pixels, and labels."""
    model = onnx.load(materialise(recipe))
    for dim in model.graph.input[0].type.tensor_type.shape.dim[2:]:
        dim.dim_value = servers.code.SIDE
    del model.graph.value_info[:]  # of another size
    folder.mkdir()
    onnx.save(model, folder / "model.onnx")
    (folder / "labels.txt").write_text("".join(f"class {index}\n" for index in range(1000)))


def draw_picture(width, height, seed):
    """Clouds of all sizes, the larger the stronger, as in photographs, and edges. A JPEG of quality 90."""
    random = np.random.default_rng(seed)
    pixels = np.zeros((height, width, 3), np.float32)
    size = width
    while size > 1:
        noise = random.normal(0, 1, (size * height // width + 2, size, 3)).astype(np.float32)
        planes = [Image.fromarray(noise[..., channel]).resize((width, height), Image.BICUBIC) for channel in range(3)]
        pixels += np.stack(planes, -1) * (45 / size**0.25)
        size //= 2
    for _ in range(20):
        left, top = random.integers(0, width * 9 // 10), random.integers(0, height * 9 // 10)
        pixels[top : top + random.integers(8, height // 2), left : left + random.integers(8, width // 2)] += random.normal(0, 40, 3)
    file = io.BytesIO()
    Image.fromarray(np.clip(pixels + 128, 0, 255).astype(np.uint8)).save(file, "JPEG", quality=90)
    return file.getvalue()


def save_pictures(size, folder):
    paths = [folder / f"{size[0]}x{size[1]}-{seed}.jpg" for seed in range(PICTURES)]
    for seed, path in enumerate(paths):
        path.write_bytes(draw_picture(*size, seed))
    return paths


def check(running, paths):
    """All servers give the labels of the first one, which are not the same for all pictures."""
    differences, seen = [], set()
    for path in paths:
        expected = None
        for server in running:
            labels, scores = servers.wait_until_answered(server, path.read_bytes())
            expected = expected or (labels, scores)
            if labels != expected[0] or not np.allclose(scores, expected[1], rtol=0, atol=TOLERANCE):
                differences.append(f"{path.name}: {server.title} gives {labels} {scores}, {running[0].title} {expected[0]} {expected[1]}")
        seen.add(tuple(expected[0]))
    if differences:
        raise SystemExit("bench/services: the servers do not agree\n" + "\n".join(differences))
    if len(seen) == 1:
        raise SystemExit(f"bench/services: the model cannot tell the pictures apart: {seen}")


def h2load(server, path, connections, *extra):
    headers = [word for name, value in server.headers.items() for word in ("-H", f"{name}: {value}")]
    command = ["/usr/bin/h2load", "--h1", "-c", connections, "-d", path, *headers, *extra, server.url]
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def told(server, client):
    output, _ = client.communicate()
    counted = re.search(r"(\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored", output)
    if counted is None or counted[1] == "0" or counted[1] != counted[2] or counted[3] != "0" or counted[4] != "0":
        raise RuntimeError(f"{server.title}: {output[-800:]}")
    return float(re.search(r"([\d.]+) req/s", output)[1])


def throughput(server, paths, seconds):
    """Each picture has clients of its own, at the same time. CPU time is read in the middle, so that start and end do not count."""
    clients = [h2load(server, path, CLIENTS // len(paths), "-D", seconds, "--warm-up-time", 1) for path in paths]
    time.sleep(1)
    before, start = proxies.cpu_seconds(server.process.pid), time.monotonic()
    time.sleep(seconds * 0.9)
    spent = (proxies.cpu_seconds(server.process.pid) - before) / (time.monotonic() - start)
    rate = sum(told(server, client) for client in clients)
    return {"rate": rate, "cpu_ms": spent / rate * 1e3}


def latency(server, path, seconds, log):
    log.unlink(missing_ok=True)
    told(server, h2load(server, path, 1, "-D", seconds, f"--log-file={log}"))
    return {"p50": statistics.median(int(line.split("\t")[2]) for line in log.read_text().splitlines()) / 1e3}


def medians(samples):
    return {title: {key: statistics.median(one[key] for one in all) for key in all[0]} for title, all in samples.items()}


def steps_between(before, after):
    """What the parts of Serin's steps took for each picture."""
    parts = {part: (sums["sum"] - before[part]["sum"]) / (sums["count"] - before[part]["count"]) for part, sums in after.items()}
    return "Serin's steps, ms: " + ", ".join(f"{part} {seconds * 1e3:.2f}" for part, seconds in parts.items())


def add(out, work, metric, found, key, less_is_better=True, note=""):
    figures = {title: one[key] for title, one in found.items()}
    out.add(table.Row(work, metric, figures.pop("Serin"), figures, less_is_better, note))


def measure(out, options, model, size, folder):
    paths, seconds = save_pictures(size, folder), options.seconds * model.longer
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(kind(folder, folder / "model")) for kind in servers.KINDS]
        check(running, paths)
        for server in running:  # warm
            throughput(server, paths, max(seconds, 2))
        before = running[0].step_seconds()
        samples = {server.title: [] for server in running}
        for index in range(options.rounds):
            for server in running:
                alone = latency(server, paths[index % len(paths)], seconds, folder / "times")
                samples[server.title].append(throughput(server, paths, seconds) | alone)
        found = medians(samples)
        note = steps_between(before, running[0].step_seconds())
        for server in running:
            found[server.title]["memory"] = servers.memory_mb(server.process.pid)
    work = f"{model.title}, {size[0]}x{size[1]}, {statistics.mean(path.stat().st_size for path in paths) / 1e3:.0f} KB"
    add(out, work, "pictures/s", found, "rate", less_is_better=False, note=note)
    add(out, work, "CPU ms per picture", found, "cpu_ms")
    add(out, work, "p50 ms, one client", found, "p50")
    add(out, work, "MB after the load", found, "memory")


def main():
    options = flags()
    machine = table.machine()
    versions = ", ".join(f"{title} {importlib.metadata.version(name)}" for title, name in
                         (("ONNX Runtime", "onnxruntime"), ("Pillow", "pillow"), ("FastAPI", "fastapi"), ("uvicorn", "uvicorn")))  # fmt: skip
    out = table.Table(
        [kind.title for kind in servers.KINDS[1:]],
        f"{datetime.date.today()}, {machine}\nTriton 24.10 (server 2.51.0), {versions}; {options.rounds} rounds of {options.seconds} s, {CLIENTS} clients",
    )
    for name in options.parts:
        for size in options.sizes:
            with tempfile.TemporaryDirectory(prefix="serin-bench-") as folder:
                save_model(MODELS[name].recipe, pathlib.Path(folder) / "model")
                measure(out, options, MODELS[name], size, pathlib.Path(folder))
    if options.json:
        out.save(options.json, machine)


if __name__ == "__main__":
    main()
