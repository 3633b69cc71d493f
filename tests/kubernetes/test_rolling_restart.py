"""Rolling restarts of real processes behind a router that follows EndpointSlices on a real API server: not one request fails."""

import json
import os
import subprocess

import yaml
from conftest import MODELS, ROOT, SERIN, wait_until
from discovery import PublishedSlices, RealPods, discover
from pod_harness import Pods

from test_endpoint_sources import counts

LONG = bool(os.environ.get("SERIN_LONG"))
REPLICAS = 6
RATE, SECONDS = (1000, 100) if LONG else (200, 50)


def test_six_processes_are_restarted_under_load(route, cluster, namespace, address, tmp_path):
    """By the manifest that users apply: its probes, its preStop, its SIGTERM and its grace period."""
    manifest = yaml.safe_load((ROOT / "deploy/kubernetes/base/deployment.yaml").read_text())
    slices = RealPods(cluster, namespace)
    with Pods(manifest, tmp_path, {"models": MODELS}, PublishedSlices(slices), REPLICAS, address=address) as pods:
        pods.await_ready()
        router = discover(route, slices, tmp_path)
        wait_until(lambda: counts(router, "1") == (REPLICAS, REPLICAS), 30, "found")
        command = [SERIN, "load", router.url, "--model", "digits", "--rate", str(RATE), "--seconds", str(SECONDS), "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
            restarts = 0
            while load.poll() is None and (LONG or restarts == 0):
                pods.restart()
                pods.await_ready()
                restarts += 1
            told, _ = load.communicate(timeout=SECONDS + 60)
        pods.await_rollout()
        wait_until(lambda: counts(router, "1") == (REPLICAS, REPLICAS), 10, "the new ones alone")
        result = json.loads(told)
        assert result["errors"] == 0 and result["ok"] == result["sent"] == RATE * SECONDS, result
        assert len(pods.gone) >= REPLICAS and all(pod.restarts == 0 for pod in pods.gone + pods.all)
        assert {(pod.runs[0].code, pod.runs[0].killed) for pod in pods.gone} == {(0, False)}
    print(f"{result['ok']} requests, {restarts} restarts of {REPLICAS} pods, p99 {result['p99_ms']} ms, slowest {result['max_ms']} ms")
