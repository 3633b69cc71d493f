"""The real controllers of Argo Rollouts and Flagger with the objects of deploy/neighbours, and a real router that they ask: one version ends well, the next one badly.
Pods run nowhere, so the router's versions are backends of this test. Addresses and intervals are replaced, and nothing else."""

import contextlib
import json
import os

import pytest
import yaml
from backends import Faults
from cluster import Daemon, why_not
from conftest import ROOT, free_port, wait_until
from manifests import await_ready, overlay
from prometheus_server import program, scraping
from routers import PATIENT, SOON, service
from traffic import Traffic

FOLDER = ROOT / "deploy/neighbours"
TOKEN = "a-token-that-only-reads"


def needs(name):
    return pytest.mark.skipif(bool(why_not(name)), reason=f"{why_not(name)} --neighbours")


@pytest.fixture
def asked(route, backend, tmp_path):
    """A router with versions 1 to 3, of which the last one is broken, and clients; it asks for tokens."""
    tokens = tmp_path / "tokens.yaml"
    tokens.write_text(f"tokens: [{{name: tool, role: viewer, token: {TOKEN}}}, {{name: pipeline, role: operator, token: a-token-that-starts-them}}]\n")
    tokens.chmod(0o600)
    backends = [backend("1"), backend("2"), backend("3")]
    backends[2].faults = Faults(error_rate=1)
    router = route(service(*backends), admin={"listen": "127.0.0.1:0", "rate": 0, "tokens": str(tokens)})
    with Traffic(router.url, clients=2):
        yield router


def roll_out(router, version):
    body = {"kind": "Rollout", "service": "digits", "canary": version, "steps": [20, 100], "guard": PATIENT, "certify": SOON}
    answer = router.post("/v1/rollouts", body, Authorization="Bearer a-token-that-starts-them")
    assert answer.status == 201, answer.body


def applied(cluster, namespace, name, replaced):
    """The objects of a file with other texts, and the secret that they need."""
    text = (FOLDER / f"{name}.yaml").read_text()
    for old, new in replaced.items():
        assert old in text, old
        text = text.replace(old, new)
    cluster.kubectl("-n", namespace, "create", "secret", "generic", "serin-viewer", f"--from-literal=token={TOKEN}")
    cluster.kubectl("-n", namespace, "create", "--validate=strict", "-f", "-", stdin=text)


def deploy(cluster, namespace):
    """What a user has before: version 1 in the Deployment `serin`."""
    cluster.create_volumes(1)
    cluster.kubectl("-n", namespace, "create", "-f", "-", stdin=yaml.safe_dump_all(overlay("base")))
    await_ready(cluster, namespace)


def release(cluster, namespace, version):
    """A new version of the pods, as a commit would change it."""
    patch = {"spec": {"template": {"metadata": {"labels": {"serin.dev/version": version}}}}}
    cluster.kubectl("-n", namespace, "patch", "deployment", "serin", "--type=strategic", "-p", json.dumps(patch))


def versions(cluster, namespace):
    """{version: how many pods are ready}"""
    found = {}
    for pod in cluster.get("-n", namespace, "pods", "-l", "app.kubernetes.io/component=runtime")["items"]:
        ready = any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", []))
        if ready and "deletionTimestamp" not in pod["metadata"]:
            found[pod["metadata"]["labels"]["serin.dev/version"]] = found.get(pod["metadata"]["labels"]["serin.dev/version"], 0) + 1
    return found


@contextlib.contextmanager
def controller(folder, *command):
    daemon = Daemon(folder, *command)
    try:
        yield daemon
    finally:
        daemon.end()


def argo(cluster, namespace):
    return ["rollouts-controller", "--kubeconfig", cluster.kubeconfig, "--namespaced", "--namespace", namespace, "--leader-elect=false",
            f"--metricsPort={free_port()}", f"--healthzPort={free_port()}"]


@contextlib.contextmanager
def metrics_of(router, folder):
    """Prometheus, with the token that the router asks for."""
    target = {"static_configs": [{"targets": [f"127.0.0.1:{router.ports['admin']}"]}], "authorization": {"credentials": TOKEN}}
    with scraping(folder, [{"job_name": "router", **target}]) as server:
        yield server


@needs("rollouts-controller")
def test_argo_goes_on_after_the_promotion_and_back_after_the_rollback(cluster, namespace, asked, tmp_path):
    cluster.install_crds("argo-rollouts")
    deploy(cluster, namespace)
    applied(cluster, namespace, "argo-rollouts", {"http://serin-router-admin:8081": asked.admin, "interval: 15s": "interval: 1s"})

    def state():
        status = cluster.get("-n", namespace, "rollouts.argoproj.io", "digits").get("status", {})
        return status.get("phase"), status.get("currentStepIndex")

    def runs():
        return [run["status"].get("phase") for run in cluster.get("-n", namespace, "analysisruns", "--sort-by=.metadata.creationTimestamp")["items"] if "status" in run]

    def waits():
        measured = [metric["measurements"][-1]["value"] for run in cluster.get("-n", namespace, "analysisruns")["items"]
                    if run.get("status", {}).get("phase") == "Running" for metric in run["status"].get("metricResults", []) if metric.get("inconclusive", 0) >= 2]
        return measured == ['"insufficient_data"']

    with controller(tmp_path, *argo(cluster, namespace)):
        wait_until(lambda: versions(cluster, namespace) == {"1": 4} and state()[0] == "Healthy", 90, "Argo has taken the pods over")
        release(cluster, namespace, "2")
        wait_until(waits, 60, "Argo waits at the analysis")
        assert versions(cluster, namespace) == {"1": 2, "2": 2}
        roll_out(asked, "2")
        wait_until(lambda: versions(cluster, namespace) == {"2": 4} and state()[0] == "Healthy", 90, "Argo has replaced the other pods")
        assert runs() == ["Successful"]
        patch = [{"op": "replace", "path": "/spec/strategy/canary/steps/1/analysis/args/1/value", "value": "3"}]
        cluster.kubectl("-n", namespace, "patch", "rollouts.argoproj.io", "digits", "--type=json", "-p", json.dumps(patch))
        release(cluster, namespace, "3")
        wait_until(waits, 60, "Argo waits again")
        roll_out(asked, "3")
        wait_until(lambda: state()[0] == "Degraded" and versions(cluster, namespace) == {"2": 4}, 90, "Argo has removed the new pods")
        assert runs() == ["Successful", "Failed"]


@needs("rollouts-controller")
@pytest.mark.skipif(program("prometheus") is None, reason="no prometheus here; deploy/install-deps --tests gets it")
def test_argo_reads_the_same_from_prometheus(cluster, namespace, asked, tmp_path):
    cluster.install_crds("argo-rollouts")
    template = next(each for each in yaml.safe_load_all((FOLDER / "argo-rollouts.yaml").read_text()) if each["metadata"]["name"] == "serin-metrics")

    def ask(version):
        given = {"service": "digits", "canary": version, "prometheus": metrics.url}
        spec = {"args": [{"name": each["name"], "value": given[each["name"]]} for each in template["spec"]["args"]],
                "metrics": [{**each, "interval": "1s"} for each in template["spec"]["metrics"]]}
        run = {"apiVersion": template["apiVersion"], "kind": "AnalysisRun", "metadata": {"name": f"of-version-{version}"}, "spec": spec}
        cluster.kubectl("-n", namespace, "create", "--validate=strict", "-f", "-", stdin=json.dumps(run))

    def phase(version):
        return cluster.get("-n", namespace, "analysisrun", f"of-version-{version}").get("status", {}).get("phase")

    with metrics_of(asked, tmp_path) as metrics, controller(tmp_path, *argo(cluster, namespace)):
        for version, outcome in {"2": "Successful", "3": "Failed"}.items():
            ask(version)
            wait_until(lambda version=version: phase(version) == "Running", 60, "Argo waits")
            roll_out(asked, version)
            wait_until(lambda version=version, outcome=outcome: phase(version) == outcome, 60, outcome)


@needs("flagger")
@pytest.mark.skipif(program("prometheus") is None, reason="no prometheus here; deploy/install-deps --tests gets it")
@pytest.mark.skipif(not os.environ.get("SERIN_LONG"), reason="Flagger looks every ten seconds at most: SERIN_LONG=1")
def test_flagger_promotes_after_the_router_and_rolls_back_after_it(cluster, namespace, asked, tmp_path):
    cluster.install_crds("flagger")
    deploy(cluster, namespace)
    with metrics_of(asked, tmp_path) as metrics:
        applied(cluster, namespace, "flagger", {"http://serin-router-admin.models:8081": asked.admin, "VIEWER_TOKEN": TOKEN, "interval: 15s": "interval: 10s",
                                                "http://prometheus-operated.monitoring:9090": metrics.url})

        def phase():
            return cluster.get("-n", namespace, "canary", "serin").get("status", {}).get("phase")

        command = ["flagger", "-kubeconfig", cluster.kubeconfig, "-mesh-provider=kubernetes", f"-namespace={namespace}", "-control-loop-interval=1s",
                   f"-metrics-server={metrics.url}", f"-port={free_port()}"]
        with controller(tmp_path, *command):
            wait_until(lambda: phase() == "Initialized" and versions(cluster, namespace) == {"1": 2}, 90, "Flagger has a primary")
            release(cluster, namespace, "2")
            wait_until(lambda: phase() == "WaitingPromotion", 120, "Flagger waits for the router")
            assert versions(cluster, namespace) == {"1": 2, "2": 2}
            roll_out(asked, "2")
            wait_until(lambda: phase() == "Succeeded" and versions(cluster, namespace) == {"2": 2}, 120, "Flagger has promoted")
            canary = cluster.get("-n", namespace, "canary", "serin")
            for webhook in canary["spec"]["analysis"]["webhooks"]:
                webhook["url"] = webhook["url"].replace("canary=2", "canary=3")
            canary["spec"]["analysis"]["metrics"][0]["templateVariables"]["canary"] = "3"
            cluster.kubectl("-n", namespace, "replace", "-f", "-", stdin=json.dumps(canary))
            release(cluster, namespace, "3")
            wait_until(lambda: phase() == "Progressing", 60, "Flagger tries the next version")
            roll_out(asked, "3")
            wait_until(lambda: phase() == "Failed" and versions(cluster, namespace) == {"2": 2}, 120, "Flagger has rolled back")
