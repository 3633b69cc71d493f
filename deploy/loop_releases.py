"""The four releases of deploy/loop, with nothing but Python's standard library.

`serin up` serves a folder in which version 1 of digits lies. Then one version folder after the other is copied into it, as an export would do, and the lines
of its release are shown as they come. At the end the records are verified, by the program and by deploy/verify_record.py.
"""

import argparse
import array
import ast
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SERIN = pathlib.Path(os.environ.get("SERIN", ROOT / "build/serin"))
DIGITS = ROOT / "models/digits"
RATE = 300  # requests a second: 15 on the canary at 5 %
PATIENCE = 150  # seconds for one release

# The folder that appears, the files in it, the data of its evaluation, and what must come of it.
RELEASES = [
    {"version": "2", "files": "2", "data": "eval.npz", "story": "a better network", "outcome": "promoted", "stage": "tag"},
    {"version": "3", "files": "3", "data": "eval.npz", "story": "trained on labels of the wrong rows", "outcome": "refused", "stage": "eval"},
    {"version": "4", "files": "3", "data": "wrong.jsonl", "story": "the same network; the held-out rows have the same wrong labels now, so only live traffic shows it",
     "outcome": "rolled_back", "stage": "shadow"},
    {"version": "5", "files": "4", "data": "eval.npz", "story": "right, but far too slow", "outcome": "rolled_back", "stage": "canary"},
]

# Margins that fit a demonstration: every step gets its certificate within seconds. Production keeps the defaults.
POLICY = """kind: Release
data: {data}
eval: {{require: ["top1 >= 95%"], noWorseBy: 5pt}}
plan: {{memory: 1Gi}}
rollout:
  steps: [{{shadow: {{percent: 10}}}}, 5, 25, 50, {{promote: {{bake: 3s}}}}]
  guard: {{latency: {{slack: 10%, floor: 5ms, baseline: 1500, skip: 20}}, resources: "off"}}
  certify: {{margin: {{errors: 2%, latency: 4%}}, maxStepDuration: 60s}}
timeout: 5m
"""


def read_npz(path):
    """{name: (shape, numbers)} of an uncompressed archive."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            raw = archive.read(name)
            size = int.from_bytes(raw[8:10], "little")
            header = ast.literal_eval(raw[10:10 + size].decode())
            arrays[name.removesuffix(".npy")] = (header["shape"], array.array({"<f4": "f", "<i8": "q"}[header["descr"]], raw[10 + size:]))
    return arrays


def write_wrong_labels(folder):
    """The held-out rows, labelled by the network that was trained on wrong labels."""
    answers = folder / "answers.jsonl"
    subprocess.run([SERIN, "predict", DIGITS / "3", DIGITS / "eval.npz", answers], check=True, capture_output=True)
    (rows, width), pixels = read_npz(DIGITS / "eval.npz")["pixels"]
    scores = [json.loads(line)["scores"] for line in answers.read_text().splitlines()]
    with open(folder / "models/digits/wrong.jsonl", "w") as file:
        for row in range(rows):
            file.write(json.dumps({"pixels": list(pixels[row * width:(row + 1) * width]), "label": scores[row].index(max(scores[row]))}) + "\n")


class Up:
    """`serin up` and clients, ended together."""

    def __init__(self, folder):
        self.folder, self.models, self.ready = folder, folder / "models", folder / "up.ready"
        self.seen, self.log = 0, folder / "up.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([SERIN, "up", self.models, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--poll-seconds", "0.2",
                                             "--ready-file", self.ready], stdout=log, stderr=log)
        self.load = None
        while not self.ready.exists():
            if self.process.poll() is not None:
                sys.exit(f"serin up did not become ready:\n{self.log.read_text()}")
            time.sleep(0.05)
        port = json.loads(self.ready.read_text())["http"]
        self.load = subprocess.Popen([SERIN, "load", f"http://127.0.0.1:{port}", "--model", "digits", "--data", DIGITS / "eval.npz", "--rate", str(RATE),
                                      "--seconds", "3600", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def news(self):
        """Whole lines since the last call."""
        text = self.log.read_text()
        end = text.rfind("\n") + 1
        lines, self.seen = text[self.seen:end].splitlines(), end
        return lines

    def records(self):
        listed = subprocess.run([SERIN, "history", "list", self.models / ".serin/registry", "--json"], capture_output=True, text=True, check=False)
        return json.loads(listed.stdout) if listed.returncode == 0 else []

    def release(self, plan, policy):
        (self.models / "digits/release.yaml").write_text(policy.format(data=plan["data"]))
        staged = self.folder / "export"
        shutil.copytree(DIGITS / plan["files"], staged)
        staged.rename(self.models / "digits" / plan["version"])
        known, begun = len(self.records()), time.monotonic()
        while time.monotonic() - begun < PATIENCE:
            time.sleep(0.2)
            for line in self.news():
                print(f"  {line}", flush=True)
            records = self.records()
            if len(records) > known:
                time.sleep(0.5)
                for line in self.news():
                    print(f"  {line}", flush=True)
                return records[-1]
        sys.exit(f"no record of version {plan['version']} after {PATIENCE} s")

    def end(self):
        """What the clients saw."""
        seen = {}
        if self.load is not None:
            self.load.send_signal(signal.SIGINT)
            out, _ = self.load.communicate(timeout=60)
            seen = json.loads(out) if out.strip() else {}
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(90)
        return seen


def verify(folder):
    registry = folder / "models/.serin/registry"
    print("\nThe records, verified by the program and by a script that shares no code with it:", flush=True)
    by_program = subprocess.run([SERIN, "history", "verify", registry], check=False)
    by_script = subprocess.run([sys.executable, ROOT / "deploy/verify_record.py", registry / ".releases/digits/records.jsonl", "--registry", registry], check=False)
    return by_program.returncode == 0 and by_script.returncode == 0


def main():
    parser = argparse.ArgumentParser(prog="deploy/loop", description="Four releases on live traffic.")
    parser.add_argument("--only", help="versions to release, e.g. 2,3", default="2,3,4,5")
    wanted = parser.parse_args().only.split(",")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="serin-loop-") as name:
        folder = pathlib.Path(name)
        (folder / "models/digits").mkdir(parents=True)
        shutil.copytree(DIGITS / "1", folder / "models/digits/1")
        shutil.copy(DIGITS / "serin.yaml", folder / "models/digits")
        shutil.copy(DIGITS / "eval.npz", folder / "models/digits")
        write_wrong_labels(folder)
        up, right = Up(folder), True
        try:
            time.sleep(3)  # some of stable's latencies
            for plan in (plan for plan in RELEASES if plan["version"] in wanted):
                print(f"\nversion {plan['version']}: {plan['story']}", flush=True)
                record = up.release(plan, POLICY)
                good = (record["outcome"], record["stage"]) == (plan["outcome"], plan["stage"])
                right = right and good
                print(f"  {record['outcome']} at {record['stage']}: {'as expected' if good else 'NOT as expected'}", flush=True)
            right = verify(folder) and right
        finally:
            seen = up.end()
    print(f"\nclients: {seen.get('sent')} requests, {seen.get('errors')} errors")
    return 0 if right and seen.get("errors") == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
