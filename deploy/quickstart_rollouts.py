"""The four rollouts of deploy/quickstart, with nothing but Python's standard library.

Starts a runtime and a router on free loopback ports, sends steady traffic with `serin load`, starts one rollout after the other, prints
what the router reports while it judges, and holds each verdict against the story of models/README.md.
"""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SERIN = ROOT / "build" / "serin"
RATE = 400  # requests per second: 20 a second on the canary at 5 %
TIMEOUT = 60  # seconds a rollout may take before the demonstration has failed

# What is rolled out, on which steps, and what must come of it. Versions 2 to 4 are first compared on copies of live requests (0 % of the
# answers); whoever rolls out version 5 is in a hurry and skips that, so that only the shield stands between it and the clients.
SHADOW_FIRST = "[{shadow: {percent: 10, until: certified}}, {setWeight: 5}, {setWeight: 25}, {setWeight: 50}, {promote: {}}]"
IN_A_HURRY = "[{setWeight: 5}, {setWeight: 25}, {setWeight: 50}, {promote: {}}]"
ROLLOUTS = [
    {"version": "2", "story": "a better network", "steps": SHADOW_FIRST, "phase": "Succeeded", "causes": ("promoted",)},
    {"version": "3", "story": "trained on wrong labels", "steps": SHADOW_FIRST, "phase": "RolledBack", "causes": ("shadow",)},
    {"version": "4", "story": "right but far too slow", "steps": SHADOW_FIRST, "phase": "RolledBack", "causes": ("lat",)},
    {"version": "5", "story": "wants another input shape", "steps": IN_A_HURRY, "phase": "RolledBack", "causes": ("rej",)},
]

# Margins that fit a demonstration: at 400 requests a second every step gets its certificate within seconds. Production keeps the defaults.
SPEC = """kind: Rollout
service: digits
canary: {{version: "{version}"}}
steps: {steps}
guard:
  latency: {{slack: 10%, floor: 5ms, baseline: 1500, skip: 20}}
  output: {{compare: label, output: scores, maxDisagreement: 10%, shadow: 2%}}
certify: {{margin: {{errors: 2%, latency: 4%}}, maxStepDuration: 45s}}
"""

ROUTER = """listen: 127.0.0.1:0
admin: 127.0.0.1:0
store: {folder}/router.db
services:
  - name: digits
    initial_stable: "1"
    force_header: true
    versions:
"""
ROUTER_VERSION = """      - name: "{version}"
        endpoints: [{{url: "http://127.0.0.1:{port}/v2/models/digits/versions/{version}"}}]
"""


class Demo:
    def __init__(self, folder, keep):
        self.folder = pathlib.Path(folder)
        self.keep = keep
        self.processes = []

    def start(self, name, *arguments):
        """Starts a server and waits until it says that it is ready; returns its ports."""
        ready = self.folder / f"{name}.json"
        log = open(self.folder / f"{name}.log", "wb")
        process = subprocess.Popen([SERIN, name, *arguments, "--ready-file", ready], stdout=log, stderr=log, start_new_session=self.keep)
        self.processes.append(process)
        for _ in range(600):
            if ready.exists():
                return json.loads(ready.read_text())
            if process.poll() is not None:
                break
            time.sleep(0.05)
        sys.exit(f"serin {name} did not become ready:\n{(self.folder / f'{name}.log').read_text()}")

    def stop(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in reversed(self.processes):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            if process.poll() is None:
                process.kill()

    def traffic(self, port):
        return subprocess.Popen(
            [SERIN, "load", f"http://127.0.0.1:{port}", "--model", "digits", "--data", ROOT / "models/digits/eval.npz",
             "--rate", str(RATE), "--seconds", str(TIMEOUT + 60), "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def rollout(self, admin, *arguments):
        """`serin rollout ARGUMENTS --json`, parsed."""
        done = subprocess.run([SERIN, "rollout", *arguments, "--admin", f"127.0.0.1:{admin}", "--json"], capture_output=True, text=True, check=False)
        if not done.stdout.strip():
            sys.exit(f"serin rollout {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return json.loads(done.stdout)


def evidence_text(report):
    """The two strongest guards: bits of evidence gathered, of bits that trip."""
    lines = sorted(report["evidence"], key=lambda e: -e["bits"] / max(e["bits_to_trip"], 1e-9))
    return "  ".join(f"{e['guard']} {max(e['bits'], 0):.1f}/{e['bits_to_trip']:.1f}" for e in lines[:2] if e["bits"] > 0.05)


def timeline(demo, admin, started):
    """Prints a line whenever something changed, until the verdict; returns the last status."""
    last, printed = None, 0.0
    while True:
        status = demo.rollout(admin, "status", "digits")
        report = status["rollout"]
        answers = report["answers"]
        certified = min((c["progress"] for c in report["certificates"]), default=0)
        over = report["phase"] in ("Succeeded", "RolledBack")
        line = (report["phase"], report["weight"], report["step"])
        if line != last or time.monotonic() - printed >= 1:
            last, printed = line, time.monotonic()
            print(f"  {printed - started:6.1f} s  {report['phase']:<12} {report['weight']:>5g} %   stable {answers['stable']:>6}  canary {answers['canary']:>5}"
                  f"  shadow {answers['shadow']:>5}   certified {certified:>4.0%}   {evidence_text(report)}", flush=True)
        if over or time.monotonic() - started > TIMEOUT or report["phase"] == "Inconclusive":
            return status
        time.sleep(0.15)


def run_one(demo, ports, admin, plan):
    print(f"\nversion {plan['version']}: {plan['story']}")
    spec = demo.folder / f"rollout-{plan['version']}.yaml"
    spec.write_text(SPEC.format(version=plan["version"], steps=plan["steps"]))
    traffic = demo.traffic(ports["http"])
    time.sleep(1 if plan["version"] != "2" else 4)  # some of stable's latencies before the canary gets any traffic
    started = time.monotonic()
    demo.rollout(admin, "start", "digits", "--spec", spec)
    status = timeline(demo, admin, started)
    time.sleep(0.5)  # clients go on: nothing may fail after the verdict either
    traffic.send_signal(signal.SIGINT)
    out, err = traffic.communicate(timeout=30)
    if not out.strip():
        sys.exit(f"serin load said nothing: {err}")
    load = json.loads(out)
    report = status["rollout"]
    right = report["phase"] == plan["phase"] and report["cause"].startswith(plan["causes"]) and load["errors"] == 0
    print(f"  {report['phase']}: {report['reason']}")
    if load["errors"]:
        print(f"  clients saw errors: {load['errors_by']}")
    return {
        "version": plan["version"], "outcome": report["phase"], "cause": report["cause"],
        "canary answers": report["answers"]["canary"] + report["answers"]["shadow"],
        "seconds": f"{report['seconds']:.1f}", "client errors": f"{load['errors']} of {load['sent']}", "as expected": "yes" if right else "NO",
    }


def print_table(rows):
    widths = {key: max(len(key), *(len(str(row[key])) for row in rows)) for key in rows[0]}
    print("\n" + "  ".join(key.ljust(width) for key, width in widths.items()))
    print("  ".join("-" * width for width in widths.values()))
    for row in rows:
        print("  ".join(str(row[key]).ljust(width) for key, width in widths.items()))


def print_how_to_talk(serve, route):
    base = f"http://127.0.0.1:{route['http']}"
    pixels = ",".join(["0"] * 64)
    print(f"""
Both servers go on running (runtime {serve['pid']}, router {route['pid']}):
  runtime  http://127.0.0.1:{serve['http']}    metrics http://127.0.0.1:{serve['metrics']}/metrics
  router   {base}    admin and metrics http://127.0.0.1:{route['admin']}
Try:
  curl -s {base}/v2/models/digits
  curl -s {base}/v2/models/digits/infer -d '{{"inputs":[{{"name":"pixels","datatype":"FP32","shape":[1,64],"data":[{pixels}]}}]}}'
  curl -s http://127.0.0.1:{route['admin']}/v1/rollouts/digits
End them with: kill {serve['pid']} {route['pid']}""")


def main():
    parser = argparse.ArgumentParser(prog="deploy/quickstart", description="Four rollouts on live traffic.")
    parser.add_argument("--keep", action="store_true", help="leave both servers running and print how to talk to them")
    keep = parser.parse_args().keep
    with contextlib.ExitStack() as stack:
        folder = tempfile.mkdtemp(prefix="serin-quickstart-") if keep else stack.enter_context(tempfile.TemporaryDirectory(prefix="serin-quickstart-"))
        demo = Demo(folder, keep)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        ended_well = False
        try:
            serve = demo.start("serve", "--models", ROOT / "models", "--port", "0", "--grpc-port", "0", "--metrics-port", "0", "--drain-seconds", "0")
            config = demo.folder / "router.yaml"
            config.write_text(ROUTER.format(folder=folder) + "".join(ROUTER_VERSION.format(version=v, port=serve["http"]) for v in "12345"))
            route = demo.start("route", "--config", config, "--drain-seconds", "0")
            print(f"runtime on port {serve['http']}, router on port {route['http']}; {RATE} requests/s of real digits through the router")
            rows = [run_one(demo, route, route["admin"], plan) for plan in ROLLOUTS]
            print_table(rows)
            ended_well = all(row["as expected"] == "yes" for row in rows)
            if keep:
                print_how_to_talk(serve, route)
        finally:
            if not keep:
                demo.stop()
    return 0 if ended_well else 1


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
