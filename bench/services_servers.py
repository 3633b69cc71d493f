"""The servers that bench/services measures, each with one model, started on free ports."""

import json
import pathlib
import shutil
import struct
import sys
import time
import urllib.request

import proxies

ROOT = proxies.ROOT
sys.path.insert(0, str(ROOT / "tests/differential"))

import services_code as code  # noqa: E402
import triton  # noqa: E402

WORKERS = 2  # processes of a Python server: one for each core
MAX_BATCH = 4  # of Triton: half of the clients, so that no instance waits for the other

SERIN_SETTINGS = f"""
pre:
  - picture: picture
    resize: {{to: {code.RESIZED}, fit: shortest, rule: pil.bilinear}}
    crop: {code.SIDE}
    mean: {list(code.MEAN)}
    std: {list(code.STD)}
post:
  - classes: scores
    softmax: true
    top: {code.TOP}
    labels: labels.txt
"""


def processes(pid):
    """A process and all that it has started."""
    found = [pid]
    for one in found:
        for task in pathlib.Path(f"/proc/{one}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def memory_mb(pid):
    """Of all its processes; pages that several share count once."""
    rollups = [pathlib.Path(f"/proc/{one}/smaps_rollup").read_text() for one in processes(pid)]
    return sum(int(line.split()[1]) for text in rollups for line in text.splitlines() if line.startswith("Pss:")) / 1e3


def ask(url, file, headers):
    with urllib.request.urlopen(urllib.request.Request(url, file, headers), timeout=60) as answer:
        return answer.headers, answer.read()


def wait_until_answered(server, file):
    """Until the server classifies: a worker that listens may not have loaded its model."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return server.classify(file)
        except OSError as error:
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{server.title} does not answer ({error}): {server.log.read_text(errors='replace')[-2000:]}") from error
            time.sleep(0.1)


class Serin(proxies.Process):
    """With its defaults."""

    title = "Serin"
    headers = {"content-type": "application/octet-stream"}

    def __init__(self, folder, source):
        ready = folder / "serin.ready"
        write_model(folder / "serin-models/service", source, "model.onnx", "model.onnx")
        shutil.copy(source / "labels.txt", folder / "serin-models/service")
        (folder / "serin-models/service/serin.yaml").write_text(SERIN_SETTINGS)
        command = [ROOT / "build/serin", "serve", "--models", folder / "serin-models", "--port", 0, "--grpc-port", "off", "--metrics-port", 0]
        super().__init__([*map(str, command), "--ready-file", str(ready)], folder, "serin", own_session=True)
        deadline = time.monotonic() + 60
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"serin serve did not get ready: {self.log.read_text()[-2000:]}")
            time.sleep(0.05)
        ports = json.loads(ready.read_text())
        self.url = f"http://127.0.0.1:{ports['http']}/v2/models/service/infer"
        self.metrics = f"http://127.0.0.1:{ports['metrics']}/metrics"

    def classify(self, file):
        _, body = ask(self.url, file, self.headers)
        outputs = {output["name"]: output["data"] for output in json.loads(body)["outputs"]}
        return outputs["label"], outputs["score"]

    def step_seconds(self):
        """By part of a step: the rows so far and the seconds that they took."""
        found = {}
        with urllib.request.urlopen(self.metrics, timeout=10) as answer:
            for line in answer.read().decode().splitlines():
                name, _, rest = line.partition("{")
                if name in ("serin_step_seconds_count", "serin_step_seconds_sum"):
                    part = rest.split('step="')[1].split('"')[0]
                    found.setdefault(part, {})[name.rsplit("_", 1)[1]] = float(line.rsplit(" ", 1)[1])
        return found


class Triton(triton.Triton):
    """Its wheel has the Python backend only, so ONNX Runtime runs in that. Requests are raw: the body is the only element of the only input."""

    headers = {"content-type": "application/octet-stream", "inference-header-content-length": "0"}

    def __init__(self, folder, source):
        (folder / self.model).mkdir()
        super().__init__(folder / self.model, write=lambda repository: self.write(repository, source))
        self.url = f"http://127.0.0.1:{self.http}/v2/models/{self.model}/infer"

    def classify(self, file):
        headers, body = ask(self.url, file, self.headers)
        length = int(headers.get("inference-header-content-length", len(body)))
        found, at = {}, length
        for output in json.loads(body[:length])["outputs"]:
            size = output.get("parameters", {}).get("binary_data_size")
            found[output["name"]] = output["data"] if size is None else numbers(output["datatype"], body[at : at + size])
            at += size or 0
        return found["label"], found["score"]


def numbers(datatype, data):
    if datatype == "FP32":
        return list(struct.unpack(f"<{len(data) // 4}f", data))
    texts, at = [], 0
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        texts.append(data[at + 4 : at + 4 + size].decode())
        at += 4 + size
    return texts


PICTURE = 'name: "picture" data_type: TYPE_STRING dims: [ 1 ]'
TENSOR = f'name: "TENSOR" data_type: TYPE_FP32 dims: [ 3, {code.SIDE}, {code.SIDE} ]'
SCORES = 'name: "SCORES" data_type: TYPE_FP32 dims: [ 1000 ]'
BEST = [f'name: "{name}" data_type: {kind} dims: [ {code.TOP} ]' for name, kind in (("label", "TYPE_STRING"), ("score", "TYPE_FP32"))]


def write_model(folder, source, *files):
    """files: pairs of a source and a name in version 1."""
    (folder / "1").mkdir(parents=True)
    for file, name in zip(files[::2], files[1::2]):
        shutil.copy(source / file, folder / "1" / name)


def write_config(folder, inputs, outputs, *lines):
    tensors = [f"{kind} {{ {tensor} }}" for kind, all in (("input", inputs), ("output", outputs)) for tensor in all]
    (folder / "config.pbtxt").write_text("\n".join([f"max_batch_size: {MAX_BATCH}", *tensors, *lines]) + "\n")


def write_python_model(repository, source, name, inputs, outputs):
    bench = ROOT / "bench"
    write_model(repository / name, source, bench / "services_triton.py", "model.py", bench / "services_code.py", "services_code.py",
                "model.onnx", "model.onnx", "labels.txt", "labels.txt")  # fmt: skip
    write_config(repository / name, inputs, outputs, 'backend: "python"', f"instance_group {{ count: {WORKERS} kind: KIND_CPU }}", "dynamic_batching { }")


class TritonEnsemble(Triton):
    title, model = "Triton ensemble", "ensemble"

    def write(self, repository, source):
        write_python_model(repository, source, "prepare", [PICTURE], [TENSOR])
        write_python_model(repository, source, "run", [TENSOR], [SCORES])
        write_python_model(repository, source, "finish", [SCORES], BEST)
        write_model(repository / "ensemble", source)
        steps = [("prepare", ["picture"], ["TENSOR"]), ("run", ["TENSOR"], ["SCORES"]), ("finish", ["SCORES"], ["label", "score"])]
        write_config(repository / "ensemble", [PICTURE], BEST, 'platform: "ensemble"', f"ensemble_scheduling {{ {' '.join(map(step, *zip(*steps)))} }}")


def step(model, inputs, outputs):
    maps = [f'{kind}_map {{ key: "{name}" value: "{name}" }}' for kind, names in (("input", inputs), ("output", outputs)) for name in names]
    return f'step {{ model_name: "{model}" model_version: -1 {" ".join(maps)} }}'


class TritonWhole(Triton):
    title, model = "Triton, one model", "whole"

    def write(self, repository, source):
        write_python_model(repository, source, "whole", [PICTURE], BEST)


class Plain(proxies.Process):
    title = "FastAPI"
    headers = {"content-type": "application/octet-stream"}

    def __init__(self, folder, source):
        port = proxies.free_port()
        command = [sys.executable, "-B", "-m", "uvicorn", "services_plain:app", "--app-dir", ROOT / "bench", "--workers", WORKERS, "--port", port,
                   "--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]  # fmt: skip
        super().__init__(list(map(str, command)), folder, "plain", {"SERVICES_FOLDER": str(source)}, own_session=True)
        self.url = f"http://127.0.0.1:{port}/classify"

    def classify(self, file):
        _, body = ask(self.url, file, self.headers)
        found = json.loads(body)
        return found["label"], found["score"]


KINDS = (Serin, TritonEnsemble, TritonWhole, Plain)
