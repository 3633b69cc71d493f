"""deploy/kubernetes/README.md, command by command, once with kustomize and once with Helm, on a real API server. Fake nodes run no pods: what speaks with one
is asked of a real server, and what builds images or copies into pods is left out (tests/deploy has the images)."""

import json
import os
import re
import shutil
import subprocess

import pytest
import yaml
from cluster import BUILT, why_not
from conftest import ROOT, wait_until
from manifests import KUBERNETES, helm_template, kinds, overlay
from value_sets import GOOD

PAGE = re.sub(r"(?s)## 7\. Scale.*?(?=## Notes)", "", (ROOT / "deploy/kubernetes/README.md").read_text())  # test_autoscaling.py and test_chart.py have that part
NEED_A_POD = re.compile(r"docker |helm -n models test |kubectl -n models ((port-forward|cp|exec) |wait --for=condition=Ready rollouts)|SERIN_TOKEN=|curl ")
KINDS = ("rollouts.serin.dev", "routerrecords.serin.dev")
WAYS = {"kustomize": "**With kustomize**", "helm": "**With Helm**"}


def blocks(way):
    """(file name or nothing, text) of those that a reader copies who takes this way, in their order."""
    found, current = [], None
    for part in re.split(r"(^```yaml\n[\s\S]*?^```\n|(?:^    .*\n)+)", PAGE, flags=re.M):
        if part.startswith("```yaml") or part.startswith("    "):
            if current in (None, way):
                found.append((re.match(r"```yaml\n# (\S+)\n", part)[1], part.removeprefix("```yaml\n").removesuffix("```\n")) if part.startswith("`") else
                             ("", re.sub(r"^    ", "", part, flags=re.M)))
            continue
        if "\n#" in part or "\nThen " in part:
            current = None
        current = next((name for name, marker in WAYS.items() if marker in part), current)
    return found


def commands(way):
    return [line for name, text in blocks(way) if not name for line in text.splitlines()]


def test_the_page_is_read_as_it_is_written():
    assert [name for name, _ in blocks("kustomize") if name] == ["kustomization.yaml", "writer.yaml", "rollout.yaml"]
    assert [name for name, _ in blocks("helm") if name] == ["values.yaml", "writer.yaml", "canary.yaml", "rollout.yaml"]
    assert sum(line.startswith("helm upgrade") for line in commands("helm")) == 2 == sum(line.startswith("kubectl apply -k") for line in commands("kustomize"))
    assert {line for way in WAYS for line in commands(way) if NEED_A_POD.match(line)} < {*commands("kustomize"), *commands("helm")}


@pytest.mark.parametrize("way", WAYS)
def test_its_commands_bring_up_server_and_router(cluster, tmp_path, way):
    cluster.kubectl("delete", "namespace", "models", "--ignore-not-found", "--wait")
    cluster.kubectl("delete", "customresourcedefinition", *KINDS, "--ignore-not-found", "--wait")  # the page creates them
    cluster.create_volumes(4)
    shutil.copytree(ROOT / "deploy", tmp_path / "serin/deploy", symlinks=True)
    here = tmp_path / "mine"
    here.mkdir()
    env = {**os.environ, "PATH": f"{BUILT / 'bin'}:{os.environ['PATH']}", "KUBECONFIG": str(cluster.kubeconfig), "HOME": str(tmp_path)}
    for name, text in blocks(way):
        if name:
            (here / name).write_text(text)
            continue
        lines = [line for line in text.splitlines() if not NEED_A_POD.match(line)]
        done = subprocess.run(["bash", "-euc", "\n".join(lines)], cwd=here, env=env, capture_output=True, text=True, check=False, timeout=150)
        assert done.returncode == 0, f"{lines}: {done.stderr}"
        assert "Warning" not in done.stderr, done.stderr
    ready = {each["metadata"]["name"]: each["status"]["readyReplicas"] for each in cluster.get("-n", "models", "deployments,statefulsets")["items"]}
    assert cluster.get("customresourcedefinition", *KINDS)["items"]
    assert ready.keys() == {"serin", "serin-canary", "serin-router"}
    assert cluster.get("-n", "models", "secret", "serin-router")["data"].keys() == {"tokens.yaml"}


def test_its_requests_are_answered(shared_runtime):
    lines = [line.replace("localhost:8000", shared_runtime.url.removeprefix("http://")) for line in commands("helm") if line.startswith("curl ")]
    answers = [subprocess.run(["bash", "-euc", line], capture_output=True, text=True, check=True, timeout=60).stdout.strip() for line in lines]
    assert answers[0] == "200" and json.loads(answers[1])["name"] == "digits" and len(json.loads(answers[2])["predictions"]) == 1


@pytest.mark.skipif(bool(why_not("helm")), reason=why_not("helm"))
@pytest.mark.parametrize("name, path", [("defaults", "/v2/health/ready"), ("canary", "/health/ready")])
def test_helm_test_tells_whether_clients_are_served(name, path, shared_runtime, request):
    pod = yaml.safe_load(helm_template(GOOD[name], "--show-only", "templates/tests/ready.yaml").stdout)
    container = pod["spec"]["containers"][0]
    env = {entry["name"]: entry["value"] for entry in container["env"]}
    assert env["ASKED"] == path and pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    server = shared_runtime if name == "defaults" else request.getfixturevalue("pair")[0]
    port = server.ports["http" if name == "defaults" else "admin"]

    def run(**other):
        return subprocess.run(container["command"], env={**os.environ, **env, "PLACE": f"127.0.0.1/{port}", **other}, capture_output=True, text=True, check=False,
                              timeout=30)
    assert "answers 200" in run().stdout and run().returncode == 0
    assert "answers 404" in run(ASKED="/nowhere").stdout and run(ASKED="/nowhere").returncode != 0
    assert run(PLACE="127.0.0.1/1").returncode != 0


def test_services_of_an_overlay_find_its_pods(cluster, namespace):
    """By what the endpoint controller makes of their selectors."""
    objects = overlay("canary")
    cluster.create_volumes(2)
    cluster.kubectl("apply", "-n", namespace, "--server-side", "--force-conflicts", "-k", KUBERNETES / "overlays/canary")
    names = {each["metadata"]["name"] for each in kinds(objects, "Service")}

    def found():
        slices = cluster.get("-n", namespace, "endpointslices")["items"]
        counts = dict.fromkeys(names, 0)
        for each in slices:
            counts[each["metadata"]["labels"]["kubernetes.io/service-name"]] += sum(point["conditions"]["ready"] for point in each.get("endpoints") or [])
        return counts if counts == {"serin": 2, "serin-pods": 2, "serin-canary": 1, "serin-canary-pods": 1, "serin-router": 2, "serin-router-admin": 2} else None
    wait_until(found, 90, "endpoints of every Service")
