"""`serin predict` beside a loop over ONNX Runtime that a person would write, from a file of rows to a file of answers.

Each of them is a process that reads the file, runs the model on all rows in batches of 64, and writes the answers in the same format. Its time is
measured from the first read to the end of the write, without the start of the process: Python takes longer for its imports than Serin for a whole small
file. Both load the model before that, and both may use all cores: Serin computes several batches at the same time, ONNX Runtime one batch on all
cores, or several in threads; the better one counts. In every round each measures once, in turn. The answers are compared first.

    bench/predict --rounds 5
"""

import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime
import pyarrow.parquet

import table

ROOT = pathlib.Path(__file__).resolve().parents[1]
SERIN = ROOT / "build/serin"
BATCH = 64
WORK = {  # version of the model, kind of file, rows
    "digits/1, npz to npz": (1, "npz", 540_000), "digits/1, jsonl to jsonl": (1, "jsonl", 54_000), "digits/1, csv to csv": (1, "csv", 54_000),
    "digits/1, parquet to parquet": (1, "parquet", 540_000),
    "digits/2, npz to npz": (2, "npz", 108_000), "digits/4, npz to npz": (4, "npz", 128)}

LOOP = '''
import concurrent.futures, csv, json, os, sys, time
import numpy as np, onnxruntime, pyarrow.parquet
model, data, out, batch, ways = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5]
options = onnxruntime.SessionOptions()
workers = os.cpu_count() if ways == "several batches" else 1
options.intra_op_num_threads = 1 if workers > 1 else os.cpu_count()
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
began = time.perf_counter()
if data.endswith(".npz"):
    pixels = np.load(data)["pixels"]
elif data.endswith(".parquet"):
    pixels = pyarrow.parquet.read_table(data)["pixels"].combine_chunks().flatten().to_numpy().reshape(-1, 64)
elif data.endswith(".jsonl"):
    with open(data) as file:
        pixels = np.array([json.loads(line)["pixels"] for line in file], np.float32)
else:
    with open(data, newline="") as file:
        rows = csv.reader(file)
        next(rows)
        pixels = np.array([row for row in rows], np.float32)
run = lambda at: session.run(None, {"pixels": pixels[at:at + batch]})[0]
with concurrent.futures.ThreadPoolExecutor(workers) as pool:
    scores = np.concatenate(list(pool.map(run, range(0, len(pixels), batch))))
if out.endswith(".npz"):
    np.savez(out, row=np.arange(len(scores)), scores=scores)
elif out.endswith(".parquet"):
    lists = pyarrow.ListArray.from_arrays(pyarrow.array(range(0, scores.size + 1, scores.shape[1]), pyarrow.int32()), pyarrow.array(scores.reshape(-1)))
    pyarrow.parquet.write_table(pyarrow.table({"row": np.arange(len(scores)), "scores": lists}), out)
elif out.endswith(".jsonl"):
    with open(out, "w") as file:
        for i, row in enumerate(scores.tolist()):
            file.write(json.dumps({"row": i, "scores": row}) + "\\n")
else:
    with open(out, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "scores"])
        for i, row in enumerate(scores.tolist()):
            writer.writerow([i, json.dumps(row)])
print(time.perf_counter() - began)
'''


def write_rows(path, pixels):
    if path.suffix == ".npz":
        np.savez(path, pixels=pixels)
    elif path.suffix == ".parquet":
        lists = pyarrow.ListArray.from_arrays(pyarrow.array(range(0, pixels.size + 1, pixels.shape[1]), pyarrow.int32()), pyarrow.array(pixels.reshape(-1)))
        pyarrow.parquet.write_table(pyarrow.table({"pixels": lists}), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"pixels": row}) + "\n" for row in pixels.tolist()))
    else:
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([f"p{i}" for i in range(pixels.shape[1])])
            writer.writerows(pixels.tolist())


def scores_of(path):
    if path.suffix == ".npz":
        return np.load(path)["scores"]
    if path.suffix == ".parquet":
        return np.array(pyarrow.parquet.read_table(path)["scores"].to_pylist())
    if path.suffix == ".jsonl":
        return np.array([json.loads(line)["scores"] for line in path.open()])
    with path.open(newline="") as file:
        return np.array([json.loads(row["scores"]) for row in csv.DictReader(file)])


def serin_seconds(model, data, out):
    flags = ["--map", "pixels=p*"] if data.suffix == ".csv" else []
    said = subprocess.run([SERIN, "predict", model, data, out, "--batch", str(BATCH), "--json", *flags], capture_output=True, text=True, check=True)
    return json.loads(said.stdout)["seconds"]


def loop_seconds(model, data, out, way):
    said = subprocess.run([sys.executable, "-c", LOOP, model, data, out, str(BATCH), way], capture_output=True, text=True, check=True)
    return float(said.stdout)


def main():
    parser = table.parser_for("predict", "serin predict beside a loop over ONNX Runtime, from a file to a file.", __doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = table.parse_with_parts(parser, WORK)
    results = table.Table([f"ONNX Runtime {onnxruntime.__version__}"], f"{table.machine()}, rows/s, more is better")
    pixels = np.load(ROOT / "models/digits/eval.npz")["pixels"]
    ways = ("one batch on all cores", "several batches")
    for name in options.parts:
        version, kind, count = WORK[name]
        with tempfile.TemporaryDirectory() as folder:
            data, mine, theirs = (pathlib.Path(folder) / f"{what}.{kind}" for what in ("data", "serin", "onnxruntime"))
            rows = np.tile(pixels, (-(-count // len(pixels)), 1))[:count]
            write_rows(data, rows)
            model = str(ROOT / f"models/digits/{version}/model.onnx")
            spent = {way: [] for way in ("Serin", *ways)}
            for _ in range(options.rounds):
                spent["Serin"].append(serin_seconds(model, data, mine))
                for way in ways:
                    spent[way].append(loop_seconds(model, data, theirs, way))
            np.testing.assert_allclose(scores_of(mine), scores_of(theirs), rtol=1e-3, atol=1e-4)
        rate = {way: len(rows) / statistics.median(seconds) for way, seconds in spent.items()}
        note = f"{len(rows)} rows; " + ", ".join(f"{way}: {rate[way]:.0f}" for way in ways)
        results.add(table.Row(name, "rows/s", rate["Serin"], dict.fromkeys(results.peers, max(rate[way] for way in ways)), less_is_better=False, note=note))
    results.geometric_mean("all rows", lambda row: True)
    if options.json:
        results.save(options.json, table.machine())


if __name__ == "__main__":
    main()
