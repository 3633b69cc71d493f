"""Serin and the framework that exported a model, in one run: milliseconds of a run, from start to first answer, and memory.

Each engine runs in its own process that is kept warm. In every round each measures once, in turn, and the medians over the rounds are divided.
"""

import json
import os
import pathlib
import statistics
import subprocess
import time

import table

ROOT = pathlib.Path(__file__).resolve().parents[1]
SERIN = pathlib.Path(os.environ.get("SERIN", ROOT / "build/serin"))
FOLDER = ROOT / "build/bench-formats"
FRAMEWORKS = {  # part: (its name in the table, its packages, its models)
    "paddle": ("paddle.inference", "paddle", ["resnet50", "mobilenet_v1", "mobilenet_v3_large", "shufflenet_v2", "crnn", "bert"]),
    "tensorflow": ("TensorFlow", "tensorflow-export", ["resnet50", "mobilenet_v3_large", "efficientnet_b0", "densenet121", "bert", "lstm"]),
    "torch": ("torch.compile", "torch", ["resnet50", "mobilenet_v3_large", "shufflenet_v2", "convnext_tiny", "bert"]),
}
EPILOGUE = """paddle.inference runs with oneDNN, TensorFlow with its oneDNN kernels, torch.compile with inductor and frozen weights.
The first call installs the frameworks in .deps/formats (7 GB)."""


def python_of(framework):
    """Of an environment with the framework, which is made once."""
    folder = ROOT / ".deps/formats" / framework
    requirements = ROOT / f"deploy/requirements-{FRAMEWORKS[framework][1]}.txt"
    stamp = folder / "installed-from.txt"
    if not stamp.exists() or stamp.read_text() != requirements.read_text():
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", folder], check=True)
        subprocess.run([folder / "bin/pip", "install", "-q", "--disable-pip-version-check", "-r", requirements], check=True)
        stamp.write_text(requirements.read_text())
    return folder / "bin/python"


class Engine:
    """A process that prints one JSON object after its first answer, then one for each line that it is sent."""

    def __init__(self, command):
        self.started, self.log = time.perf_counter(), FOLDER / "last.log"
        with self.log.open("w") as log:
            self.child = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        self.answer()
        self.start_ms = (time.perf_counter() - self.started) * 1000
        self.times, self.memory = [], 0

    def answer(self):
        for line in self.child.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise SystemExit(f"{' '.join(self.child.args)} ended with {self.child.wait()}:\n{self.log.read_text()[-2000:]}")

    def measure(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        found = self.answer()
        self.times.append(found["median_ms"])
        self.memory = found["peak_rss_bytes"] / 1e6

    def close(self):
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()


def measure(framework, name, batch, threads, options):
    """Both engines after all rounds."""
    path = FOLDER / framework / name
    flags = ["--batch", batch, "--threads", threads, "--seconds", options.seconds]
    peer = [python_of(framework), "-B", ROOT / "bench/formats_peer.py", framework, name, path]
    model = next(path.glob("*.json"), None) or next(path.glob("*.pt2"), path)
    commands = [[SERIN, "bench", model, "--json", "--on-request", *flags], [*peer, *flags]]
    if not path.exists():
        subprocess.run([str(part) for part in peer + ["--export"]], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    engines = [Engine(command) for command in commands]
    started = time.perf_counter()  # Serin's process above measures before it prints
    subprocess.run([str(part) for part in (*commands[0][:3], *flags[:4], "--seconds", 0.001)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    engines[0].start_ms = (time.perf_counter() - started) * 1000
    for _ in range(options.rounds):
        for engine in engines:
            engine.measure()
    for engine in engines:
        engine.close()
    return engines


def main():
    parser = table.parser_for("formats", __doc__, EPILOGUE)
    parser.add_argument("--models", nargs="+", metavar="NAME", help="only these; default: all of the framework")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each measurement")
    options = table.parse_with_parts(parser, FRAMEWORKS)
    FOLDER.mkdir(parents=True, exist_ok=True)
    printed = table.Table(["framework"], f"{table.machine()}; {options.rounds} rounds of {options.seconds} s")
    for framework in options.parts:
        title, _, names = FRAMEWORKS[framework]
        for name in names:
            if options.models and name not in options.models:
                continue
            for batch in options.batches:
                for threads in options.threads:
                    ours, theirs = measure(framework, name, batch, threads, options)
                    work = f"{title}: {name}, batch {batch}, {threads} thread{'s' if threads > 1 else ''}"
                    medians = [statistics.median(engine.times) for engine in (ours, theirs)]
                    printed.add(table.Row(work, "ms", medians[0], {"framework": medians[1]}))
                    if batch == options.batches[0] and threads == options.threads[0]:
                        printed.add(table.Row(work, "ms from start to first answer", ours.start_ms, {"framework": theirs.start_ms}))
                        printed.add(table.Row(work, "MB at most", ours.memory, {"framework": theirs.memory}))
    for framework in options.parts:
        title = FRAMEWORKS[framework][0]
        for metric in ("ms", "ms from start to first answer", "MB at most"):
            printed.geometric_mean(f"{title}, {metric}", lambda row: row.work.startswith(title) and row.metric == metric)  # noqa: B023 (called at once)
    if options.json:
        printed.save(options.json, table.machine())


if __name__ == "__main__":
    main()
