"""Rolling restarts of real processes behind a router that follows EndpointSlices on a real API server: not one request fails."""

import json
import os
import subprocess

import yaml
from conftest import MODELS, ROOT, SERIN, wait_until
from discovery import RealPods, discover
from slice_pods import Deployment

from test_endpoint_sources import counts

LONG = bool(os.environ.get("SERIN_LONG"))
REPLICAS = 6
RATE, SECONDS = (1000, 100) if LONG else (200, 50)


def test_six_processes_are_restarted_under_load(route, cluster, namespace, address, tmp_path):
    """By the manifest that users apply: its probes, its preStop, its SIGTERM and its grace period."""
    manifest = yaml.safe_load((ROOT / "deploy/kubernetes/base/deployment.yaml").read_text())
    pods = RealPods(cluster, namespace)
    with Deployment(manifest, pods, address, MODELS, tmp_path, REPLICAS) as deployment:
        router = discover(route, pods, tmp_path)
        wait_until(lambda: counts(router, "1") == (REPLICAS, REPLICAS), 30, "found")
        command = [SERIN, "load", router.url, "--model", "digits", "--rate", str(RATE), "--seconds", str(SECONDS), "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
            restarts = 0
            while load.poll() is None and (LONG or restarts == 0):
                deployment.restart()
                restarts += 1
            told, _ = load.communicate(timeout=SECONDS + 60)
        deployment.settle()
        wait_until(lambda: counts(router, "1") == (REPLICAS, REPLICAS), 10, "the new ones alone")
        result = json.loads(told)
        assert result["errors"] == 0 and result["ok"] == result["sent"] == RATE * SECONDS, result
        gone = [pod for pod in deployment.all if pod not in deployment.running]
        assert len(gone) >= REPLICAS and not any(pod.killed or pod.dead for pod in deployment.all)
        assert {pod.process.returncode for pod in gone} == {0}
    print(f"{result['ok']} requests, {restarts} restarts of {REPLICAS} pods, p99 {result['p99_ms']} ms, slowest {result['max_ms']} ms")
