"""serin plan --fleet on what kubectl prints: nodes, cards, slices, what pods have taken, and notes about everything that is left out."""

import json
import subprocess

import pytest
import yaml

from conftest import MODELS, SERIN, serin

READY = [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]


def node(name, product="", conditions=READY, labels=None, taints=None, unschedulable=None, **resources):
    found = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": "40960"} if product else {}
    spec = {key: value for key, value in (("taints", taints), ("unschedulable", unschedulable)) if value is not None}
    allocatable = {"cpu": "15890m", "memory": "65843260Ki", "ephemeral-storage": "95551679124", "hugepages-2Mi": "0", "pods": "110",
                   **{key.replace("mig_", "nvidia.com/mig-").replace("__", "."): value for key, value in resources.items()}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name, **found, **(labels or {})}},
            "spec": {"providerID": f"kind://{name}", **spec}, "status": {"allocatable": allocatable, "capacity": allocatable, "conditions": conditions}}


def container(name="c", restart=None, limits=None, **requests):
    resources = {"requests": {key.replace("gpu", "nvidia.com/gpu").replace("mig_", "nvidia.com/mig-").replace("__", "."): value for key, value in requests.items()}}
    return {"name": name, "image": "example.org/app:1", "resources": resources, **({"restartPolicy": restart} if restart else {})}


def pod(name, where, containers, phase="Running", init=(), overhead=None, whole=None):
    spec = {"nodeName": where, **({"resources": {"requests": whole}} if whole else {}), "containers": containers, **({"initContainers": list(init)} if init else {}), **({"overhead": overhead} if overhead else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "serving"}, "spec": spec, "status": {"phase": phase}}


def cluster(tmp_path, *items, name="cluster.json"):
    path = tmp_path / name
    path.write_text(json.dumps({"apiVersion": "v1", "items": list(items), "kind": "List", "metadata": {"resourceVersion": ""}}, indent=4))
    return path


def fleet(tmp_path, models, nodes="cluster.json"):
    path = tmp_path / "fleet.yaml"
    path.write_text(yaml.safe_dump({"nodes": nodes, "models": models, "scheduler": {"timeout": 10}}))
    return path


def plan(*arguments, code=0):
    done = serin("plan", "--json", *arguments, env={"XDG_CACHE_HOME": "/dev/null"})
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def needs(name, replicas=1, memory="10G", cores=1, ram="1Gi", **more):
    return {"name": name, "replicas": replicas, "needs": {"device_memory": memory, "busy": 0.9 if memory != "0" else 0, "cores": cores, "memory": ram}, **more}


def test_cards_and_slices_are_found_by_their_labels(tmp_path):
    cluster(tmp_path, node("a100", "NVIDIA-A100-SXM4-40GB", **{"nvidia.com/gpu": "1", "mig_1g__5gb": "2"}), node("single", "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb", **{"nvidia.com/gpu": "2"}),
            node("t4", "Tesla-T4", **{"nvidia.com/gpu": "1"}), node("gke", labels={"cloud.google.com/gke-accelerator": "nvidia-l4"}, **{"nvidia.com/gpu": "1"}),
            node("old", labels={"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}, **{"nvidia.com/gpu": "1"}), node("cpu"))
    answer = plan("--fleet", fleet(tmp_path, [needs(f"m{i}", 1, "4G") for i in range(8)]))
    assert answer["use"]["before"] == {"models": 0, "in_use": 0, "accelerators": 8, "memory": 0.0, "time": 0.0} and answer["notes"] == []
    kinds = {(each["node"], each["kind"]) for each in answer["placed"]}
    assert kinds == {("a100", "NVIDIA A100-SXM4-40GB"), ("a100", "NVIDIA A100-SXM4-40GB 1g.5gb"), ("single", "NVIDIA A100-SXM4-40GB 3g.20gb"), ("t4", "Tesla T4"), ("old", "Tesla T4"), ("gke", "NVIDIA L4")}


def test_what_pods_have_requested_is_taken(tmp_path):
    items = [node("gpu", "NVIDIA-L4", **{"nvidia.com/gpu": "2"}), node("mig", "NVIDIA-A100-SXM4-40GB", **{"mig_1g__5gb": "3"}),
             pod("runs", "gpu", [container(gpu="1", cpu="2", memory="4Gi")]), pod("pending", "gpu", [container(gpu="1")], phase="Succeeded"),
             pod("failed", "gpu", [container(gpu="1")], phase="Failed"), pod("slice", "mig", [container(mig_1g__5gb="2")]), pod("elsewhere", "gone", [container(gpu="1")])]
    cluster(tmp_path, *items)
    answer = plan("--fleet", fleet(tmp_path, [needs(f"m{i}", 1, "4G") for i in range(3)]), code=1)
    assert answer["use"]["before"]["in_use"] == 3 and answer["use"]["before"]["accelerators"] == 5
    assert plan("--fleet", fleet(tmp_path, [needs(f"m{i}", 1, "4G") for i in range(2)]))["use"]["packed"]["in_use"] == 5


@pytest.mark.parametrize("taken, free", [
    (pod("sum", "n", [container(cpu="4"), container("d", cpu="3500m")]), 8),
    (pod("init", "n", [container(cpu="1")], init=[container("i", cpu="9"), container("j", cpu="2")]), 6),
    (pod("sidecar", "n", [container(cpu="1")], init=[container("s", "Always", cpu="2"), container("i", cpu="5")]), 8),
    (pod("late", "n", [container(cpu="4")], init=[container("i", cpu="3"), container("s", "Always", cpu="2")]), 9),
    (pod("overhead", "n", [container(cpu="4")], overhead={"cpu": "250m"}), 11),
    (pod("whole", "n", [container(cpu="1"), container("d", cpu="1")], whole={"cpu": "5"}), 10),
    (pod("exponent", "n", [container(cpu="1e0"), container("b", cpu=2), container("c", cpu="900000u"), container("d", cpu="0.1")]), 11),
])
def test_requests_count_as_the_scheduler_counts_them(tmp_path, taken, free):
    cluster(tmp_path, node("n"), taken)  # 15.89 cores
    plan("--fleet", fleet(tmp_path, [needs("m", free, "0", cores=1)]))
    answer = plan("--fleet", fleet(tmp_path, [needs("m", free + 1, "0", cores=1)]), code=1)
    assert f"there is room for {free} " in answer["not_placed"][0]["why"]


def test_a_node_takes_only_so_many_pods(tmp_path):
    small = node("n")
    small["status"]["allocatable"] = {**small["status"]["allocatable"], "pods": "4"}
    cluster(tmp_path, small, pod("a", "n", [container(cpu="1")]), pod("ended", "n", [container(cpu="1")], phase="Succeeded"))
    plan("--fleet", fleet(tmp_path, [needs("m", 3, "0")]))
    assert "there is room for 3 " in plan("--fleet", fleet(tmp_path, [needs("m", 4, "0")]), code=1)["not_placed"][0]["why"]
    cluster(tmp_path, small, *(pod(f"p{i}", "n", [container()]) for i in range(5)))
    why = plan("--fleet", fleet(tmp_path, [needs("m", 1, "0")]), code=1)["not_placed"][0]["why"]
    assert "a replica needs 1 pods, and the most that is free on node 'n' is 0 pods" in why


def test_what_is_left_out_is_named(tmp_path):
    items = [node("good"), node("closed", unschedulable=True), node("tainted", taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}]),
             node("preferred", taints=[{"key": "team", "effect": "PreferNoSchedule"}]), node("for-cards", "NVIDIA-L4", taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}], **{"nvidia.com/gpu": "1"}),
             node("down", conditions=[{"type": "Ready", "status": "Unknown"}]), node("shared", "NVIDIA-L4-SHARED", **{"nvidia.com/gpu": "4"}), node("nameless", **{"nvidia.com/gpu": "1"}),
             node("renamed", "NVIDIA-L4", **{"nvidia.com/gpu.shared": "4"}), node("new", "NVIDIA-X9000", **{"nvidia.com/gpu": "1"}), node("odd", "NVIDIA-A100-SXM4-40GB", mig_9g__9gb="1")]
    path = cluster(tmp_path, *items)
    answer = plan("--fleet", path, MODELS / "digits/2")
    notes = "\n".join(answer["notes"])
    for words in ("node closed is unschedulable: it is left out", "node tainted has the taint team:NoSchedule: it is left out", "node down is not ready: it is left out",
                  "node shared: its cards are shared by time", "node renamed: nvidia.com/gpu.shared are cards that are shared by time", "node nameless: no label nvidia.com/gpu.product names its cards", "node new: the catalogue has no device 'NVIDIA-X9000'",
                  "node odd: NVIDIA A100-SXM4-40GB has no slice '9g.9gb'"):
        assert words in notes, notes
    assert len(answer["notes"]) == 8 and answer["use"]["before"]["accelerators"] == 1
    text = serin("plan", "--fleet", path, MODELS / "digits/2").stdout
    assert "\nnotes\n" in text and "on 8 nodes" in text


def test_a_pipe_and_labels_of_nodes(tmp_path):
    path = cluster(tmp_path, node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"}))
    done = subprocess.run([SERIN, "plan", MODELS / "digits/2", "--fleet", "-", "--json"], input=path.read_text(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and len(json.loads(done.stdout)["placed"]) == 1, done.stderr
    placed = plan("--fleet", fleet(tmp_path, [needs("m", 1, "0", on={"zone": "b"})]))["placed"]
    assert [each["node"] for each in placed] == ["b"]


def test_lists_that_are_none_are_refused(tmp_path):
    def refused(*arguments):
        done = serin("plan", *arguments)
        assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done.stdout + done.stderr
        return done.stderr

    model = MODELS / "digits/2"
    (tmp_path / "cut.json").write_text(cluster(tmp_path, node("a")).read_text()[:-20])
    assert "cut.json: is no JSON" in refused(model, "--fleet", tmp_path / "cut.json")
    (tmp_path / "one.json").write_text(json.dumps(node("a")))
    assert "one.json: is of kind 'Node'; a list is needed, as kubectl get nodes,pods -A -o json prints it" in refused(model, "--fleet", tmp_path / "one.json")
    assert "has no nodes: kubectl get nodes,pods" in refused(model, "--fleet", cluster(tmp_path, pod("p", "n", []), name="pods.json"))
    assert "no node takes pods: node a is unschedulable" in refused(model, "--fleet", cluster(tmp_path, node("a", unschedulable=True), name="none.json"))
    assert "pod serving/p: cpu: 'two' is no quantity" in refused(model, "--fleet", cluster(tmp_path, node("a"), pod("p", "a", [container(cpu="two")]), name="q.json"))
    assert "node a: nvidia.com/gpu: 1e+18 is more than 4096" in refused(model, "--fleet", cluster(tmp_path, node("a", "NVIDIA-L4", **{"nvidia.com/gpu": "1E"}), name="many.json"))
    assert "node a: cpu: '1e3Ki' is no quantity" in refused(model, "--fleet", cluster(tmp_path, node("a", cpu="1e3Ki"), name="both.json"))
    assert "node a: memory: '-1Gi' is no quantity" in refused(model, "--fleet", cluster(tmp_path, node("a", memory="-1Gi"), name="m.json"))
    assert "nodes: " in refused("--fleet", fleet(tmp_path, [needs("m")], nodes="missing.json")) and "missing.json" in refused("--fleet", fleet(tmp_path, [needs("m")], nodes="missing.json"))
