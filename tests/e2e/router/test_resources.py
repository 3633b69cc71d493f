"""Canaries that answer well and quickly, and use up their machine: found by their own metrics, which real processes take from the kernel."""

import subprocess
import sys

import pytest

from conftest import MODELS, ON_FREE_PORTS, ROOT, Process, call, free_port, serin, wait_until
from routers import QUICK_HEALTH, SOON, hold
from traffic import Traffic

QUICK = {"interval": "100ms"}  # of these canaries latency is only rehearsed: on a busy machine, CPU time is latency, too
PIXELS = b'{"inputs": [{"name": "pixels", "shape": [1, 1, 8, 8], "datatype": "FP32", "data": [' + b"0, " * 63 + b"0]}]}"


@pytest.fixture
def hungry():
    """hungry("2", "memory"): the URL of such a process."""
    processes = []

    def start(version, *hunger):
        port = free_port()
        processes.append(subprocess.Popen([sys.executable, ROOT / "tests/e2e/support/hungry_backend.py", str(port), version, *hunger]))
        return f"http://127.0.0.1:{port}/v2/models/digits"

    yield start
    for process in processes:
        process.kill()
        process.wait()


def routed(route, stable, canary):
    router = route({"name": "digits", "initial_stable": "1", "guard": {"resources": QUICK}, "versions": [
        {"name": version, "endpoints": [{"url": url}], "health": QUICK_HEALTH} for version, url in (("1", stable), ("2", canary))]})
    wait_until(lambda: router.healthy("1") == 1 and router.healthy("2") == 1, 20, "health checked")
    return router


def line(router, guard):
    return next(entry for entry in router.rollout()["resources"] if entry["guard"] == guard)


@pytest.mark.parametrize("hunger, words", [("memory", "res_memory: memory of the canary grows by"), ("descriptors", "res_descriptors: open descriptors of"),
                                           ("cpu", "res_cpu: an answer of the canary takes")])
def test_a_canary_that_uses_up_its_machine_is_rolled_back(route, hungry, hunger, words, capsys):
    router = routed(route, hungry("1", "none"), hungry("2", hunger))
    with Traffic(router.url) as traffic:
        wait_until(lambda: traffic.answers > 200, 30, "stable warm")
        router.start_rollout(steps=[hold(50)], guard={"resources": QUICK}, shield={"hedge": "off"}, dryRun=["latency"])
        verdict = router.wait_for("RolledBack", 90)
    with capsys.disabled():
        print(f"\n  {hunger}: {verdict['answers']['canary']} answers, {verdict['seconds']:.1f} s: {verdict['reason']}")
    assert verdict["cause"] == words.split(":")[0] and verdict["reason"].startswith(words)
    assert "at least" in verdict["reason"] and traffic.failures == []
    done = serin("rollout", "explain", "digits", "--admin", f"127.0.0.1:{router.ports['admin']}")
    assert done.returncode == 0 and verdict["reason"] in done.stdout, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("decided again from this record alone: rolled back by event")
    shown = serin("rollout", "status", "digits", "--admin", f"127.0.0.1:{router.ports['admin']}").stdout
    assert "resources of an endpoint" in shown and f"res_{hunger}" in shown
    curves = call(f"{router.admin}/v1/rollouts/digits/timeline").json["evidence"]
    assert f"res_{hunger}" in [curve["guard"] for curve in curves]


def test_declared_names_are_judged_and_missing_ones_are_told(route, hungry):
    router = routed(route, hungry("1", "none", "old"), hungry("2", "memory", "old"))
    with Traffic(router.url):
        router.start_rollout(steps=[hold(50)], guard={"resources": QUICK}, shield={"hedge": "off"}, dryRun=["latency"])
        wait_until(lambda: line(router, "res_memory")["note"] == "not judged: both versions do not export memory", 20, "the note")
        wait_until(lambda: line(router, "res_cpu")["note"] == "", 20, "CPU time is exported")
        router.command("abort")
        router.start_rollout(steps=[hold(50)], guard={"resources": {**QUICK, "memory": "app_heap_bytes"}}, shield={"hedge": "off"}, dryRun=["latency"])
        verdict = router.wait_for("RolledBack", 60)
    assert verdict["cause"] == "res_memory", verdict["reason"]


@pytest.fixture
def runtimes(tmp_path):
    """Two processes of the real runtime, with the same model."""
    processes = []
    for name in "12":
        folder = tmp_path / name
        folder.mkdir()
        processes.append(Process(folder, "serve", "--models", MODELS, *ON_FREE_PORTS).__enter__())
    yield [f"http://127.0.0.1:{process.ports['http']}/v2/models/digits" for process in processes]
    for process in processes:
        process.__exit__(None, None, None)


def test_a_healthy_canary_is_promoted(route, runtimes, capsys):
    router = routed(route, *runtimes)
    with Traffic(router.url, body=PIXELS) as traffic:
        wait_until(lambda: traffic.answers > 200, 30, "stable warm")
        assert router.post("/v1/rollouts", {
            "service": "digits", "canary": "2", "steps": [{"setWeight": 50, "until": {"duration": "8s"}}, {"setWeight": 80, "until": {"duration": "4s"}}],
            "guard": {"resources": QUICK, "latency": {"floor": "50ms"}}, "certify": SOON, "shield": {"hedge": "off"}}).status == 201
        wait_until(lambda: all(line(router, f"res_{name}")["note"] == "" for name in ("memory", "descriptors", "cpu")), 20, "measured")
        rollout = router.wait_for("Succeeded", 60)
    lines = rollout["resources"]
    with capsys.disabled():
        print(f"\n  promoted after {rollout['seconds']:.1f} s; {lines}\n  {[e for e in rollout['evidence'] if e['guard'].startswith('res_')]}")
    assert traffic.failures == []
    assert all(entry["canary"] > 0 for entry in lines if entry["guard"] != "res_gpu")


def test_two_versions_in_one_process_are_not_told_apart(route, runtimes):
    one = runtimes[0]
    router = routed(route, one, one)
    with Traffic(router.url, body=PIXELS):
        assert router.post("/v1/rollouts", {"service": "digits", "canary": "2", "steps": [hold(50)], "guard": {"resources": QUICK}}).status == 201
        wait_until(lambda: line(router, "res_memory")["note"] == "not judged: both versions run in one process", 20, "the note")
