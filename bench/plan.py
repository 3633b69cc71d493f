"""How far the latencies that `serin plan` predicts are from those that `serin bench` measures. See bench/plan --help."""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SERIN = ROOT / "build/serin"
MODELS = ("resnet18 resnet50 resnext50_32x4d vgg11_bn mobilenet_v2 mobilenet_v3_large efficientnet_b0 shufflenet_v2_x1_0 densenet121 googlenet inception_v3 "
          "regnet_y_400mf convnext_tiny vit_small swin_small unet deeplabv3 yolo squeezenet1_1 mnasnet1_0 bert_tiny minilm gpt2 whisper_encoder").split()
EPILOGUE = """
All models are run once to calibrate, then each is predicted without what was measured on it (`--leave-out`), and measured by `serin bench`. The error is
predicted / measured - 1. The last lines are the mean and the largest of absolute errors.
"""


def flags():
    parser = argparse.ArgumentParser("bench/plan", description="Predicted latencies beside measured ones.", epilog=EPILOGUE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, help="names of tests/models.txt")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--seconds", type=float, default=30, help="of the calibration (30)")
    parser.add_argument("--bench-seconds", type=float, default=1, help="of each measurement (1)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    return parser.parse_args()


def run(*command):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def listed_sizes():
    rows = (line.split("|") for line in (ROOT / "tests/models.txt").read_text().splitlines() if "|" in line and not line.startswith("#"))
    return {re.sub("[*~]", "", row[0]).strip(): [size for size in row[1].split() if not size.startswith("batch=")] for row in rows}


def questions(names):
    """For each model its file and the flags of its open dimensions."""
    sizes = listed_sizes()
    for name in names:
        file = run(sys.executable, ROOT / "tests/models/materialise.py", name).strip()
        yield name, file, [flag for size in sizes[name] for flag in ("--dim", size)]


def main():
    options = flags()
    batches = ["--batch", ",".join(map(str, options.batches))]
    asked = list(questions(options.models))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        kept = ["--calibration", f"{folder}/calibration.json"]
        for _, file, dims in asked:
            run(SERIN, "plan", file, *dims, *batches, *kept, "--calibrate", max(0.1, options.seconds / len(asked)), "--json")
        for name, file, dims in asked:
            answer = json.loads(run(SERIN, "plan", file, *dims, *batches, *kept, "--leave-out", "--json"))["models"][0]
            for bucket in (bucket for bucket in answer["buckets"] if bucket["rows"] in options.batches):
                at = [flag for symbol, size in bucket["sizes"].items() for flag in ("--dim", f"{symbol}={size}")]
                bench = json.loads(run(SERIN, "bench", file, *at, "--seconds", options.bench_seconds, "--json"))
                predicted = bucket["calibrated"]["seconds"] * 1e3
                rows.append({"model": name, "rows": bucket["rows"], "predicted_ms": predicted, "median_ms": bench["median_ms"], "least_ms": bench["min_ms"],
                             "known_share": bucket["calibrated"]["known_share"], "error": predicted / bench["median_ms"] - 1, "error_to_least": predicted / bench["min_ms"] - 1})
    print(f"{'model':<22} {'rows':>4} {'predicted':>10} {'median':>10} {'error':>9} {'least':>10} {'error':>9} {'known kernels':>14}")
    for row in rows:
        print(f"{row['model']:<22} {row['rows']:>4} {row['predicted_ms']:>7.2f} ms {row['median_ms']:>7.2f} ms {100 * row['error']:>+7.1f} % {row['least_ms']:>7.2f} ms "
              f"{100 * row['error_to_least']:>+7.1f} % {100 * row['known_share']:>12.0f} %")
    for key, what in (("error", "median"), ("error_to_least", "least")):
        errors = [abs(row[key]) for row in rows]
        print(f"{len(rows)} rows, to the {what}: mean error {100 * statistics.mean(errors):.1f} %, median {100 * statistics.median(errors):.1f} %, "
              f"largest {100 * max(errors):.1f} %")
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=1))


if __name__ == "__main__":
    main()
