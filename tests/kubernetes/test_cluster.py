"""The cluster that other tests use: a real API server of the version asked for, which is killed and comes back, tells accounts apart, and schedules pods."""

import json
import os
import subprocess

import cluster as control_plane
from cluster import BUILD_COMMAND, VERSION, why_not
from conftest import ROOT, wait_until

SETTLES = 60
RESTRICTED = {"runAsNonRoot": True, "runAsUser": 1000, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
              "seccompProfile": {"type": "RuntimeDefault"}}


def pod(name, **security):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "containers": [{"name": "a", "image": "a", "securityContext": security, "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}


def config_map(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}


def test_what_is_missing_is_named_with_the_command_that_builds_it(monkeypatch, tmp_path):
    monkeypatch.setattr(control_plane, "BUILT", tmp_path)
    assert why_not("etcd", "helm") == f"no etcd, helm of Kubernetes {VERSION} here: run {BUILD_COMMAND}"
    assert os.access(ROOT / BUILD_COMMAND, os.X_OK)
    (tmp_path / "bin").mkdir()
    for name in ("etcd", "helm"):
        (tmp_path / "bin" / name).touch()
    assert why_not("etcd", "helm") == "" != why_not()


def test_a_wrong_word_builds_nothing(tmp_path):
    done = subprocess.run([ROOT / BUILD_COMMAND, "--adaptor"], capture_output=True, text=True, check=False, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    assert done.returncode == 2 and "usage: " in done.stderr and not any(tmp_path.iterdir())


def test_it_is_of_the_version_that_is_built(cluster):
    assert cluster.api("/version").json["gitVersion"] == f"v{VERSION}"
    assert cluster.ready_nodes() == 6


def test_a_pod_is_scheduled_and_ready_unless_it_may_do_too_much(cluster, namespace):
    cluster.kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(pod("careful", **RESTRICTED)))
    wait_until(lambda: cluster.get("-n", namespace, "pod", "careful")["status"].get("phase") == "Running", SETTLES, "the pod runs")
    refused = cluster.run_kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(pod("careless")))
    assert refused.returncode != 0 and 'violates PodSecurity "restricted:latest"' in refused.stderr


def test_an_account_may_do_what_its_role_says(cluster, namespace):
    token = cluster.service_account(namespace, "reader", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}])
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    assert cluster.api(maps, token=token).status == 200
    assert cluster.api(maps, body=config_map("made"), method="POST", token=token).status == 403
    assert cluster.api("/api/v1/nodes", token=token).status == 403
    assert cluster.api(maps, token="unknown").status == 401
    listed = cluster.run_kubectl("get", "configmaps", kubeconfig=cluster.kubeconfig_of(token, "reader", namespace))
    assert (listed.returncode, "kube-root-ca.crt" in listed.stdout) == (0, True), listed.stderr


def test_what_was_stored_is_there_after_the_api_server_was_killed(cluster, namespace):
    cluster.apply([config_map("kept")], "-n", namespace)
    cluster.kill_api_server()
    try:
        assert not cluster.ready()
    finally:
        cluster.start_api_server()
    assert cluster.get("-n", namespace, "configmap", "kept")["data"] == {"a": "b"}
    assert cluster.api_server.process.poll() is None


def test_a_claim_of_any_access_mode_is_bound(cluster, namespace):
    cluster.create_volumes(2)
    for mode in ("ReadOnlyMany", "ReadWriteMany"):
        cluster.apply([{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": mode.lower()}, "spec": {
            "accessModes": [mode], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}}], "-n", namespace)
    wait_until(lambda: [claim["status"]["phase"] for claim in cluster.get("-n", namespace, "pvc")["items"]] == ["Bound", "Bound"], SETTLES, "claims bound")
