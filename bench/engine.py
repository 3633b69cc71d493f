"""The engine beside ONNX Runtime: one thread, fp32, the same machine and the same minute.

    .deps/venv/bin/python bench/engine.py [--pairs 7] [--seconds 0.5] [MODEL:BATCH[:DIM=N...] ...]

For each model the two are measured in turn, A B A B ..., and the ratio of each pair is taken, so that a machine whose speed drifts spoils
neither. Printed is the median ratio and its range: above 1, Serin is faster. Both run the model alone, without a server. ONNX Runtime is
called through its Python binding with inputs and outputs bound beforehand; what such a call costs by itself (an Identity model) is printed,
because it weighs on the smallest models.
"""

import argparse
import datetime
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEFAULT = ["models/digits/1/model.onnx:1", "models/digits/1/model.onnx:32", "models/digits/2/model.onnx:1", "models/digits/2/model.onnx:32",
           "models/digits/4/model.onnx:1", "tests/data/attention/model.onnx:1:seq=16", "tests/data/attention/model.onnx:8:seq=16",
           "tests/data/conv_bn/model.onnx:1", "tests/data/conv_bn/model.onnx:8"]
DTYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}


def serin_ms(model, dims, seconds):
    arguments = [part for name, value in dims.items() if name != "batch" for part in ("--dim", f"{name}={value}")]
    done = subprocess.run([ROOT / "build/serin", "bench", model, "--batch", str(dims["batch"]), "--threads", "1", "--seconds", str(seconds), "--json", *arguments],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"serin bench {model}: {done.stderr.strip()}")
    return json.loads(done.stdout)["median_ms"]


def identity_model():
    tensor = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch"]) for name in ("x", "y")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["x"], ["y"])], "identity", tensor[:1], tensor[1:])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10).SerializeToString()


class OnnxRuntime:
    def __init__(self, model, dims):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        random = np.random.default_rng(1)
        for tensor in self.session.get_inputs():
            shape = [dims[d] if isinstance(d, str) else d for d in tensor.shape]
            dtype = DTYPES[tensor.type]
            self.binding.bind_cpu_input(tensor.name, random.random(shape).astype(dtype) if dtype == np.float32 else random.integers(0, 2, shape).astype(dtype))
        for tensor in self.session.get_outputs():
            self.binding.bind_output(tensor.name)

    def ms(self, seconds):
        for _ in range(10):
            self.session.run_with_iobinding(self.binding)
        times, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 5:
            begin = time.perf_counter()
            self.session.run_with_iobinding(self.binding)
            times.append((time.perf_counter() - begin) * 1e3)
        return statistics.median(times)


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=DEFAULT, metavar="MODEL:BATCH[:DIM=N]")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5)
    arguments = parser.parse_args()

    print(f"{datetime.date.today()}, {cpu_name()}, ONNX Runtime {onnxruntime.__version__}, {arguments.pairs} pairs: `bench/engine.py`")
    print(f"A call of ONNX Runtime costs {OnnxRuntime(identity_model(), {'batch': 1}).ms(0.2) * 1000:.1f} us by itself.\n")
    print("| model | batch | Serin ms | ONNX Runtime ms | ONNX Runtime / Serin | range |\n|---|---|---|---|---|---|")
    for item in arguments.models:
        path, batch, *more = item.split(":")
        dims = {"batch": int(batch), **{name: int(value) for name, value in (pair.split("=") for pair in more)}}
        model = (ROOT / path).resolve() if not pathlib.Path(path).is_absolute() else pathlib.Path(path)
        peer = OnnxRuntime(str(model), dims)
        ours, theirs, ratios = [], [], []
        for _ in range(arguments.pairs):
            ours.append(serin_ms(model, dims, arguments.seconds))
            theirs.append(peer.ms(arguments.seconds))
            ratios.append(theirs[-1] / ours[-1])
        name = str(model.relative_to(ROOT)) if model.is_relative_to(ROOT) else model.name
        print(f"| {name} {' '.join(more)} | {batch} | {statistics.median(ours):.4f} | {statistics.median(theirs):.4f} | "
              f"**{statistics.median(ratios):.2f}** | {min(ratios):.2f} to {max(ratios):.2f} |", flush=True)


if __name__ == "__main__":
    main()
