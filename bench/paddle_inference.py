"""Serin beside paddle.inference with oneDNN, on models that Paddle exports, in one run.

    python3 -m venv venv && venv/bin/pip install -r deploy/requirements-paddle.txt
    venv/bin/python bench/paddle_inference.py [NAME...] [--threads 1 2] [--batches 1 8] [--rounds 5] [--seconds 0.3]

Each engine runs in a process of its own that is kept warm. In every round each measures once, in turn, and the medians over the rounds are divided. A ratio above 1
means that Serin is faster.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

os.environ.setdefault("GLOG_minloglevel", "3")
ROOT = pathlib.Path(__file__).resolve().parents[1]
SERIN = pathlib.Path(os.environ.get("SERIN", ROOT / "build/serin"))
FOLDER = ROOT / "build/bench-paddle"
sys.path[:0] = [str(ROOT / path) for path in ("tests/formats/paddle", "tests/formats", "tests/models")]


def models():
    import zoo_detection
    import zoo_sequence
    from paddle.vision import models as vision

    image = ([3, 224, 224], "float32")
    ids = ([128], "int64")
    return {  # a DB detector is missing: with oneDNN on, Paddle 3.3.1 cannot run it
        "resnet50": (vision.resnet50, [image]),
        "mobilenet_v1": (vision.mobilenet_v1, [image]),
        "mobilenet_v3_large": (vision.mobilenet_v3_large, [image]),
        "shufflenet_v2_x1_0": (vision.shufflenet_v2_x1_0, [image]),
        "crnn": (lambda: zoo_detection.Crnn(16), [([3, 32, 320], "float32")]),
        "bert_small": (lambda: zoo_sequence.Bert(width=256, length=128), [ids, ids, ids]),
    }


def export(name):
    import paddle

    make, inputs = models()[name]
    path = FOLDER / name / "inference"
    if not path.with_suffix(".json").exists():
        paddle.seed(1)
        net = make()
        net.eval()
        spec = [paddle.static.InputSpec([None, *dims], dtype, f"x{i}") for i, (dims, dtype) in enumerate(inputs)]
        paddle.jit.save(net, str(path), input_spec=spec)
    return path.with_suffix(".json")


def worker(name, batch, threads, seconds):
    """Measures once for each line on standard input, as `serin bench --on-request` does."""
    import numpy as np
    from paddle import inference

    path = FOLDER / name / "inference"
    config = inference.Config(str(path.with_suffix(".json")), str(path.with_suffix(".pdiparams")))
    config.disable_gpu()
    config.enable_mkldnn()
    config.set_cpu_math_library_num_threads(threads)
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    random = np.random.default_rng(1)
    for handle, (dims, dtype) in zip(map(predictor.get_input_handle, predictor.get_input_names()), models()[name][1]):
        handle.copy_from_cpu(random.integers(0, 2, (batch, *dims)).astype(dtype) if dtype == "int64" else random.standard_normal((batch, *dims), dtype))

    def measure():
        times, end = [], time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            start = time.perf_counter()
            predictor.run()
            times.append(time.perf_counter() - start)
        return statistics.median(times) * 1000

    for _ in range(3):
        predictor.run()
    print(json.dumps({"median_ms": measure()}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"median_ms": measure()}), flush=True)


class Child:
    def __init__(self, command):
        self.child = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.answer()

    def answer(self):
        for line in self.child.stdout:
            if line.startswith("{"):
                return json.loads(line)["median_ms"]
        raise SystemExit(f"{self.child.args} ended")

    def measure(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        return self.answer()

    def close(self):
        self.child.stdin.close()
        self.child.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options.names[0], options.batches[0], options.threads[0], options.seconds)
    print("| model | batch | threads | Serin ms | Paddle ms | ratio |\n|---|---|---|---|---|---|", flush=True)
    ratios = []
    for name in options.names or models():
        path = export(name)
        for batch in options.batches:
            for threads in options.threads:
                flags = ["--threads", threads, "--seconds", options.seconds]
                engines = {
                    "serin": Child([SERIN, "bench", path, "--batch", batch, "--json", "--on-request", *flags]),
                    "paddle": Child([sys.executable, __file__, name, "--worker", "--batches", batch, *flags]),
                }
                times = {engine: [] for engine in engines}
                for _ in range(options.rounds):
                    for engine, child in engines.items():
                        times[engine].append(child.measure())
                for child in engines.values():
                    child.close()
                ours, theirs = statistics.median(times["serin"]), statistics.median(times["paddle"])
                ratios.append(theirs / ours)
                print(f"| {name} | {batch} | {threads} | {ours:.2f} | {theirs:.2f} | **{theirs / ours:.2f}** |", flush=True)
    print(f"\ngeometric mean {statistics.geometric_mean(ratios):.2f}")
    return None


if __name__ == "__main__":
    main()
