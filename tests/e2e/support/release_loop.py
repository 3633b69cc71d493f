"""What a release works with, on loopback: a registry whose version 1 is in production, a runtime for each slot, a router, clients that never stop."""

import base64
import json
import re
import signal
import subprocess

from conftest import MODELS, ON_FREE_PORTS, SERIN, Process, serin, wait_until
from routers import PATIENT, QUICK_HEALTH, SOON, Router, write_config

DIGITS = MODELS / "digits"
EVAL = DIGITS / "eval.npz"
SHADOW = {"shadow": {"percent": 20}}
RULES = {"steps": [SHADOW, 20, 50], "guard": {**PATIENT, "resources": "off"}, "certify": SOON}


class Load:
    """`serin load` with real digits; .end() is what its clients saw."""

    def __init__(self, url, rate=150):
        self.process = subprocess.Popen([SERIN, "load", url, "--model", "digits", "--data", EVAL, "--rate", str(rate), "--seconds", "600", "--json"],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=60)
        assert out.strip(), err
        return json.loads(out)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


class Loop:
    def __init__(self, folder, stack, rules=None):
        self.folder, self.stack, self.registry = folder, stack, folder / "registry"
        added = serin("registry", "add", self.registry, "digits", DIGITS / "1", "--settings", DIGITS / "serin.yaml", "--tag", "production", "--tag", "blue", "--tag", "green")
        assert added.returncode == 0, added.stderr
        self.runtimes = {}
        for slot in "blue", "green":
            self.start_runtime(slot)
        versions = [{"name": slot, "health": QUICK_HEALTH, "endpoints": [{"url": f"{runtime.url}/v2/models/digits"}]} for slot, runtime in self.runtimes.items()]
        config = write_config(folder, {"name": "digits", "initial_stable": "blue", "versions": versions})
        self.router = stack.enter_context(Router(folder, "route", "--drain-seconds", 0, "--config", config))
        for slot in self.runtimes:
            wait_until(lambda slot=slot: self.router.healthy(slot) == 1, 20, f"{slot} healthy")
        self.rules = rules or RULES
        self.policy()

    def start_runtime(self, slot, port=0):
        ports = [*ON_FREE_PORTS]
        ports[1] = port
        self.runtimes[slot] = self.stack.enter_context(
            Process(self.folder, "serve", f"registry://{self.registry}/digits:{slot}", "--registry-cache", self.folder / "cache", *ports))

    def policy(self, name="release.yaml", **more):
        self.file = self.folder / name
        slots = {slot: {"runtimes": [runtime.url]} for slot, runtime in self.runtimes.items()}
        evaluation = {"require": ["top1 >= 95%"], "noWorseBy": "1pt"}
        keys = {"kind": "Release", "registry": "registry", "data": str(EVAL), "slots": slots, "eval": evaluation, "rollout": self.rules, "load": {"timeout": "20s"}, **more}
        self.file.write_text(json.dumps({key: value for key, value in keys.items() if value is not None}))
        return self.file

    def command(self, model, *more):
        return [str(word) for word in (SERIN, "release", model, "--service", "digits", "--policy", self.file, "--admin", f"127.0.0.1:{self.router.ports['admin']}", *more)]

    def release(self, model, *more, code=0, timeout=180):
        done = subprocess.run(self.command(model, *more), capture_output=True, text=True, timeout=timeout, check=False)
        assert done.returncode == code, f"{done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def outcome(self, model, *more, code=0, **options):
        return json.loads(self.release(model, *more, "--json", code=code, **options).stdout)

    def tags(self):
        """{tag: version}"""
        shown = json.loads(serin("registry", "list", self.registry, "digits", "--json").stdout)
        return {tag: version["version"] for version in shown for tag in version["tags"]}

    def versions(self):
        return [version["version"] for version in json.loads(serin("registry", "list", self.registry, "digits", "--json").stdout)]

    def records(self):
        """The predicates of the records, read without the program."""
        file = self.registry / ".releases/digits/records.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(base64.b64decode(json.loads(line)["payload"]))["predicate"] for line in lines]

    def journal(self):
        return self.registry / ".releases/digits/journal.json"

    def weight(self):
        rollout = self.router.rollout()
        return rollout["weight"] if rollout and rollout["phase"] != "Succeeded" else 0


def stages(text):
    """The stages of the lines that a release printed, each once, in order."""
    found = re.findall(r"^ *[\d.]+ s  (\w+(?: %)?) ", text, re.M)
    return [stage for i, stage in enumerate(found) if i == 0 or found[i - 1] != stage]
