"""Replicas by load, as the page of Kubernetes describes it: the real autoscaler, a real `serin serve` under `serin load`, and either a real prometheus-adapter with the rules
of deploy/prometheus and a real Prometheus, or the router. Fake nodes run no pods, so the metrics of each pod are read from that one server."""

import contextlib
import json
import re
import subprocess
import threading
import time

import pytest
import yaml
from certificates import Authority
from cluster import Daemon, why_not
from conftest import ON_FREE_PORTS, ROOT, SERIN, Process, call, free_port, wait_until
from manifests import await_ready, chart, kinds
from prometheus_server import program, scraping
from routers import Router, write_config
from slow_model import save_busy

pytestmark = [
    pytest.mark.skipif(bool(why_not("prometheus-adapter")), reason=f"{why_not('prometheus-adapter')} --adapter"),
    pytest.mark.skipif(program("prometheus") is None, reason="no prometheus here; deploy/install-deps --tests gets it"),
]

RISES, WINDOW = 30, 15  # seconds: what is promised, and what these tests have in place of 300
PAGE = (ROOT / "deploy/kubernetes/README.md").read_text()


def values_of_the_page(name):
    """A file that a reader copies, with a short window."""
    values = yaml.safe_load(re.search(rf"```yaml\n# {name}\n(.*?)```", PAGE, re.S)[1])
    values["runtime"]["models"] = {"create": True}
    values["runtime"]["autoscaling"]["scaleDownSeconds"] = WINDOW
    return values


@contextlib.contextmanager
def pods_read_from(server, cluster, namespace, folder):
    """Scrapes of that server, once for each pod that has the annotation, with labels of namespace and pod. Debian's Prometheus does not speak with Kubernetes: a file
    has the pods, as `kubernetes_sd_configs` would find them."""
    listed, ended = folder / "pods.json", threading.Event()

    def write():
        pods = [pod["metadata"] for pod in cluster.get("-n", namespace, "pods")["items"]]
        found = [{"targets": [f"127.0.0.1:{server.ports['metrics']}"], "labels": {"namespace": namespace, "pod": pod["name"]}}
                 for pod in pods if pod["annotations"].get("prometheus.io/scrape") == "true"]
        listed.with_suffix(".new").write_text(json.dumps(found))
        listed.with_suffix(".new").rename(listed)

    def follow():
        while not ended.wait(1):
            write()
    write()
    following = threading.Thread(target=follow)
    following.start()
    try:
        yield [{"job_name": "pods", "file_sd_configs": [{"files": [str(listed)]}]}]
    finally:
        ended.set()
        following.join()


@contextlib.contextmanager
def aggregated(cluster, namespace, group, version, port):
    """An API of another server below that of the cluster, until the end of the test."""
    name = f"{version}.{group}"
    cluster.apply([
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "aggregated", "namespace": namespace},
         "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}},
        {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name}, "spec": {
            "group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": True,
            "service": {"name": "aggregated", "namespace": namespace, "port": port}}}])
    try:
        cluster.kubectl("wait", "--for=condition=Available", f"apiservice/{name}", "--timeout=60s", timeout=90)
        yield
    finally:
        cluster.kubectl("delete", "apiservice", name)  # else namespaces would not go


@contextlib.contextmanager
def adapter(cluster, namespace, prometheus, folder):
    port, kubeconfig = free_port(), cluster.kubeconfig
    pair = Authority(folder, "adapter-ca").issue("adapter")
    daemon = Daemon(folder, "prometheus-adapter", f"--prometheus-url={prometheus.url}", f"--config={ROOT / 'deploy/prometheus/adapter.yml'}",
                    "--metrics-relist-interval=1s", "--metrics-max-age=1m", "--bind-address=127.0.0.1", f"--secure-port={port}",
                    f"--tls-cert-file={pair.cert}", f"--tls-private-key-file={pair.key}",
                    *(f"--{each}-kubeconfig={kubeconfig}" for each in ("lister", "authentication", "authorization")))
    try:
        with aggregated(cluster, namespace, "custom.metrics.k8s.io", "v1beta1", port):
            yield
    finally:
        daemon.end()


@contextlib.contextmanager
def load(url, model, clients):
    """`serin load`, until the end of the block."""
    command = [SERIN, "load", url, "--model", model, "--concurrency", str(clients), "--seconds", "600", "--timeout", "60"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
        assert process.poll() is None, "the load lasted as long as it was needed"
    finally:
        process.kill()
        process.wait()


class Scaled:
    """A Deployment of the chart with its autoscaler."""

    def __init__(self, cluster, namespace, values):
        self.cluster, self._namespace = cluster, namespace
        cluster.create_volumes(1)
        cluster.apply([each for each in chart(values) if each["kind"] in ("Deployment", "HorizontalPodAutoscaler", "PersistentVolumeClaim", "ServiceAccount")],
                      "-n", namespace)
        self.name = "serin"

    def replicas(self):
        return self.cluster.get("-n", self._namespace, "deployment", self.name)["spec"]["replicas"]

    def sees(self):
        """Why the autoscaler may act, or may not."""
        listed = self.cluster.get("-n", self._namespace, "hpa", self.name)["status"].get("conditions") or []
        return next((each["reason"] for each in listed if each["type"] == "ScalingActive"), None)

    def await_sight(self, reason):
        wait_until(lambda: self.sees() == reason, 60, f"{reason} at the autoscaler")

    def seconds_until(self, replicas, limit, what):
        begun = time.monotonic()
        wait_until(lambda: replicas(self.replicas()), limit, f"{what} (the autoscaler: {self.sees()})")
        return time.monotonic() - begun

    def stays(self, replicas, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.replicas() == replicas
            time.sleep(0.5)


@pytest.fixture
def server(tmp_path):
    """One whose model takes some tens of milliseconds for each request, so that nine clients are a queue of about eight."""
    save_busy(tmp_path / "models", 1000)
    with Process(tmp_path, "serve", "--models", tmp_path / "models", *ON_FREE_PORTS, "--threads", 1) as process:
        yield process


def follow_the_load(scaled, url, model, clients, most, without_metric, stop, start):
    """Replicas rise with the load, fall after it and the window, and stay while there is no metric. The seconds until they rose and fell."""
    scaled.await_sight("ValidMetricFound")
    assert scaled.replicas() == 2
    with load(url, model, clients):
        rise = scaled.seconds_until(lambda count: count > 2, RISES, "more replicas")
        scaled.seconds_until(lambda count: count == most, 90, f"{most} replicas")
    fall = scaled.seconds_until(lambda count: count < most, WINDOW + 30, "fewer replicas")
    assert fall > WINDOW - 5, "the autoscaler looks every two seconds, and what it saw last may be older than the end of the load"
    with load(url, model, clients):
        scaled.seconds_until(lambda count: count == most, 90, f"{most} replicas")
    stop()
    scaled.await_sight(without_metric)
    scaled.stays(most, WINDOW + 5)  # as long as would lower it
    start()
    scaled.seconds_until(lambda count: count < most, WINDOW + 60, "fewer replicas, with the metric again")
    return rise, fall


def report(capsys, by, rise, fall):
    with capsys.disabled():
        print(f"\nautoscaling by {by}: {rise:.1f} s from the load to more replicas, {fall:.1f} s from its end to fewer (window {WINDOW} s)")


def test_replicas_follow_the_queue_and_stay_without_prometheus(cluster, namespace, server, tmp_path, capsys):
    values = values_of_the_page("queue.yaml")
    values["runtime"]["autoscaling"]["max"] = 6
    scaled = Scaled(cluster, namespace, values)
    await_ready(cluster, namespace)
    with pods_read_from(server, cluster, namespace, tmp_path) as scrapes, scraping(tmp_path, scrapes, until="count(up == 1) == 2") as prometheus, \
            adapter(cluster, namespace, prometheus, tmp_path):
        offered = {each["name"].removeprefix("pods/") for each in cluster.api("/apis/custom.metrics.k8s.io/v1beta1").json["resources"]}
        assert {"nv_inference_pending_request_count", "serin_model_in_flight_requests", "serin_model_queue_wait_ms", "serin_model_busy_ratio"} <= offered
        rise, fall = follow_the_load(scaled, server.url, "busy", 9, 6, "FailedGetPodsMetric", prometheus.stop, prometheus.start)
    report(capsys, "Prometheus", rise, fall)


@contextlib.contextmanager
def ended_at_last(routers):
    try:
        yield
    finally:
        for router in routers:
            router.close()


def test_replicas_follow_what_the_router_has_in_flight_and_stay_without_it(cluster, namespace, server, tmp_path, capsys):
    values = values_of_the_page("in-flight.yaml")
    port, front = free_port(), Authority(tmp_path, "router-ca").issue("router")
    versions = [{"name": "1", "endpoints": [{"url": f"{server.url}/v2/models/busy"}]}]
    write_config(tmp_path, {"name": "digits", "initial_stable": "1", "versions": versions},
                 external_metrics={"listen": f"127.0.0.1:{port}", "tls": front.yaml(client_ca=cluster.ca)})
    routers = []

    def start():
        routers.append(Router(tmp_path, "route", "--drain-seconds", 0, "--config", tmp_path / "router.yaml"))
    services = [{"name": "digits", "initialStable": "1", "versions": [{"name": "1", "track": "stable"}]}]
    objects = chart({**values, "router": {**values["router"], "enabled": True, "services": services}})
    assert [each["spec"]["group"] for each in kinds(objects, "APIService")] == ["external.metrics.k8s.io"]
    scaled = Scaled(cluster, namespace, values)
    with ended_at_last(routers):
        start()
        with pytest.raises(OSError):  # nobody but the API server has a certificate that counts
            call(f"https://127.0.0.1:{port}/apis", tls=Authority(tmp_path, "another").client())
        with aggregated(cluster, namespace, "external.metrics.k8s.io", "v1beta1", port):
            asked = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/serin_route_requests_per_second?labelSelector=service%3Ddigits"
            assert [each["metricLabels"] for each in cluster.api(asked).json["items"]] == [{"service": "digits", "version": "1"}]
            may = ["auth", "can-i", "get", "serin_route_in_flight_requests.external.metrics.k8s.io", "--as"]
            assert cluster.run_kubectl(*may, "system:serviceaccount:kube-system:horizontal-pod-autoscaler").stdout.strip() == "yes"
            assert cluster.run_kubectl(*may, "system:serviceaccount:default:default").stdout.strip() == "no"
            rise, fall = follow_the_load(scaled, routers[0].url, "digits", 40, 5, "FailedGetExternalMetric", lambda: routers[-1].end(), start)
    report(capsys, "the router", rise, fall)
