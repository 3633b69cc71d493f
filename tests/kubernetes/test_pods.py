"""Pods that come and go under load: real servers that are probed, told to end and replaced as in the manifest, behind a real router that follows them.

No control plane: pod_harness.py does what kubelet and the Deployment's controller would do. The Deployment is that of deploy/kubernetes/base, which
test_chart.py compares with the chart. Each test prints what it measured.
"""

import collections
import contextlib
import json
import os
import signal
import subprocess
import threading
import time

import pytest
import yaml
from conftest import MODELS, SERIN, call, wait_until
from manifests import KUBERNETES
from pod_harness import EndpointFile, Pods
from routers import UNLIMITED_ADMIN, Router

LONG = os.environ.get("SERIN_LONG") == "1"
RATE = 1000 if LONG else 300  # requests a second


def deployment(**pod):
    """With other fields of its pods, where a test does not wait for the manifest's own."""
    made = yaml.safe_load((KUBERNETES / "base/deployment.yaml").read_text())
    made["spec"]["template"]["spec"] |= pod
    return made


def hurried():
    """The manifest, but a container that does not end by itself is killed after 8 s instead of 50."""
    made = deployment(terminationGracePeriodSeconds=8)
    container = made["spec"]["template"]["spec"]["containers"][0]
    container["lifecycle"] = {"preStop": {"sleep": {"seconds": 1}}}
    container["args"][container["args"].index("--drain-seconds") + 1] = "1"
    return made


@pytest.fixture
def start_pods(tmp_path):
    """start_pods(replicas, manifest): ready Pods and a router that follows them, ended after the test."""
    with contextlib.ExitStack() as stack:
        def begin(replicas, manifest):
            path = tmp_path / "endpoints.txt"
            pods = stack.enter_context(Pods(manifest, tmp_path, {"models": MODELS}, EndpointFile(path), replicas))
            pods.await_ready()
            config = {"listen": "127.0.0.1:0", "admin": UNLIMITED_ADMIN, "store": str(tmp_path / "router.db"), "services": [
                {"name": "digits", "initial_stable": "1", "versions": [{"name": "1", "endpoints": {"file": str(path)}}]}]}
            (tmp_path / "router.yaml").write_text(yaml.safe_dump(config))
            router = stack.enter_context(Router(tmp_path, "route", "--drain-seconds", 0, "--config", tmp_path / "router.yaml"))
            wait_until(lambda: router.healthy("1") == replicas, 20, "the router knows all pods")
            return pods, router
        yield begin


class Load:
    """`serin load` at a constant rate, in runs that follow each other until stop()."""

    def __init__(self, url, rate=RATE, seconds=5):
        self.command = [SERIN, "load", url, "--model", "digits", "--rate", str(rate), "--seconds", str(seconds), "--json"]
        self.rate, self.sent, self.ok = rate, 0, 0
        self.errors, self.slowest_ms = collections.Counter(), 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self._stop.set()
        self._thread.join(60)

    def _run(self):
        while not self._stop.is_set():
            done = subprocess.run(self.command, capture_output=True, text=True, check=False, timeout=60)
            if not done.stdout:  # it could not even ask for the model's inputs
                self.sent += 1
                self.errors[done.stderr.strip()] += 1
                continue
            told = json.loads(done.stdout)
            self.sent, self.ok = self.sent + told["sent"], self.ok + told["ok"]
            self.errors.update(told["errors_by"])
            self.slowest_ms = max(self.slowest_ms, told["max_ms"])

    def await_sent(self, count):
        wait_until(lambda: self.sent >= count, 300, f"{count} requests sent")

    def __str__(self):
        return f"{self.sent} requests at {self.rate} a second, {self.sent - self.ok} failed {dict(self.errors)}, slowest {self.slowest_ms:.0f} ms"


def ended_well(pods):
    """The processes of pods that are gone: each ended by itself within its grace period, but for those that a test has killed."""
    return all(run.code == 0 and not run.killed for pod in pods for run in pod.runs[-1:])


def test_a_rolling_restart_loses_no_request(start_pods):
    pods, router = start_pods(6, deployment())
    restarts = 0
    with Load(router.url) as load:
        while restarts == 0 or load.sent < (100_000 if LONG else 10_000):
            pods.restart()
            restarts += 1
            ready_at_times = set()

            def replaced():
                ready_at_times.add(sum(pod.endpoint().ready for pod in list(pods.all)))
                return len(pods.gone) == 6 * restarts
            wait_until(replaced, 180, "all pods replaced")
            assert min(ready_at_times) >= 6 and max(ready_at_times) <= 7  # maxUnavailable 0, maxSurge 1
            pods.await_rollout()
    print(f"{restarts} rolling restarts of 6 pods: {load}")
    assert load.ok == load.sent and ended_well(pods.gone), load


@pytest.mark.skipif(not LONG, reason="a minute: only with --long")
def test_a_killed_process_is_replaced_and_its_requests_are_asked_again(start_pods):
    pods, router = start_pods(3, deployment())
    with Load(router.url) as load:
        for number, pod in enumerate(list(pods.all)):
            time.sleep(0.1 * number)  # each at another moment of its probes
            pod.process.kill()
            wait_until(lambda: pod.restarts == 1 and pod.serving, 30, "started again")
            pods.await_ready()
        wait_until(lambda: router.healthy("1") == 3, 30, "the router has all of them")
        load.await_sent(3000)
    print(f"3 processes killed: {load}")
    assert load.ok == load.sent, load


def test_a_pod_that_does_not_answer_is_restarted(start_pods):
    """SIGSTOP: its connections stay open, so that only time tells. The requests that it holds by then are asked elsewhere once the router's check has failed."""
    pods, router = start_pods(3, deployment() if LONG else hurried())
    stopped = pods.all[0]
    with Load(router.url, seconds=10) as before:
        wait_until(lambda: router.metric("serin_route_requests_total") > RATE, 30, "load")
        began = time.monotonic()
        stopped.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: router.healthy("1") == 2, 60, "left out by the router")
        noticed = time.monotonic() - began
        with Load(router.url) as load:
            wait_until(lambda: stopped.restarts == 1, 180, "restarted by its liveness probe")
            restarted = time.monotonic() - began
            wait_until(lambda: stopped.serving and router.healthy("1") == 3, 60, "ready again")
            load.await_sent(load.sent + RATE)
            before.stop()
    print(f"a stopped process was left out after {noticed:.1f} s and restarted after {restarted:.1f} s")
    print(f"  from before it stopped: {before}\n  once it was left out: {load}")
    assert stopped.runs[0].killed and stopped.runs[0].code == -signal.SIGKILL and [pod.restarts for pod in pods.all] == [1, 0, 0]
    assert load.ok == load.sent and before.ok == before.sent, (before, load)


@pytest.mark.skipif(not LONG, reason="a minute: only with --long")
def test_a_node_that_goes_takes_no_request_with_it(start_pods):
    """Two minutes' notice, as of a spot machine: two of six pods end at once, and their replacements start elsewhere."""
    pods, router = start_pods(6, deployment())
    with Load(router.url) as load:
        load.await_sent(RATE)
        began = time.monotonic()
        leaving = pods.drain("node-2", notice=120)
        pods.await_rollout()
        took = time.monotonic() - began
        load.await_sent(load.sent + RATE)
    print(f"a node with {len(leaving)} of 6 pods was empty after {took:.1f} s: {load}")
    assert len(leaving) == 2 and all(pod.gone.is_set() for pod in leaving) and {pod.node for pod in pods.all} == {"node-1", "node-3"}
    assert load.ok == load.sent and ended_well(leaving), load


@pytest.mark.skipif(not LONG, reason="a minute: only with --long")
def test_from_no_pod_to_an_answer(start_pods):
    pods, router = start_pods(0, deployment())
    asked = f"{router.url}/v2/models/digits/ready"
    assert call(asked).status == 503
    began = time.monotonic()
    pods.scale(1)
    run = wait_until(lambda: pods.all and pods.all[0].runs, 30, "started")[0]
    address = f"http://{pods.all[0].address}:{pods.all[0].ports['http']}/v2/health/ready"

    def answers(url):
        try:
            return call(url).status == 200
        except OSError:
            return False
    wait_until(lambda: answers(address), 30, "its models are loaded")
    loaded = time.monotonic() - run.started
    pods.await_ready()
    wait_until(lambda: answers(asked), 30, "an answer through the router")
    print(f"from no pod: process started to models loaded {loaded:.2f} s, to ready by its probes {run.ready_after:.2f} s, "
          f"scaled to the router's first answer {time.monotonic() - began:.2f} s")
