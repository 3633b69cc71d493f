"""The manifests under deploy/: as Kubernetes reads them, and what they start, with their very arguments, ports and probes, in a network of its own."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import dockerfile
import pytest
import sandbox
import yaml
from dockerfile import ROOT

KSERVE = sorted(path for path in (ROOT / "deploy/kserve").glob("*.yaml") if path.stem != "kustomization")
KUBERNETES = ROOT / "deploy/kubernetes"  # tests/kubernetes has what a real API server says of it
DEPLOYMENT = KUBERNETES / "base/deployment.yaml"
NEIGHBOURS = ROOT / "deploy/neighbours"
KNATIVE = NEIGHBOURS / "knative.yaml"
PROGRAM = ROOT / "build/serin"
ZEROS = json.dumps({"instances": [[0.0] * 64]}).encode()
WHY_NOT = sandbox.why_not()
ISOLATED = pytest.mark.skipif(bool(WHY_NOT), reason=f"no namespaces here: {WHY_NOT}")


def read(path):
    return yaml.safe_load(path.read_text())


def misfits(*paths):
    """What Kubernetes would say of these files."""
    packages = os.pathsep.join(str(ROOT / ".deps" / name) for name in ("clients", "tensorflow"))
    done = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("kubernetes_types.py"), *paths], capture_output=True, text=True, check=False,
                          timeout=100, env={**os.environ, "PYTHONPATH": packages})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def objects(path):
    """{(kind, name): object} of a file with several."""
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all((KUBERNETES / path).read_text())}


def deployment():
    return read(DEPLOYMENT)["spec"]["template"]["spec"]


def container_of(path):
    spec = read(path)["spec"]
    return (spec["template"]["spec"] if "template" in spec else spec)["containers"][0]


def target_of(container):
    """What its image is built as; the tag of the ordinary one is its version."""
    tag = container["image"].partition(":")[2]
    return tag if tag in dockerfile.targets() else "serin"


def command_of(container):
    """What its image starts with these arguments, in their order."""
    words = [*(container.get("command") or dockerfile.said(target_of(container), "ENTRYPOINT") or []), *container["args"]]
    return [word.replace("{{.Name}}", "digits") for word in words]


# --- as they are written ----------------------------------------------------------------------------------------------------------------

def test_kubernetes_knows_every_field():
    assert misfits(*KSERVE, *(KUBERNETES / "base" / name for name in read(KUBERNETES / "base/kustomization.yaml")["resources"]),
                   *(KUBERNETES / f"overlays/{name}/objects.yaml" for name in ("cpu", "gpu", "gpu-mig", "canary", "kserve"))) == []


WRONG = {"a field": ("livenessProbe:", "livenesProbe:"), "a word for a number": ("replicas: 2", "replicas: two"), "no list": ("[ALL]", "ALL"),
         "none of what must be there": ("  selector: {matchLabels: {a: b}}\n", ""), "a kind": ("apps/v1", "apps/v3")}


def test_what_kubernetes_does_not_know_is_found(tmp_path):
    """So that the test above can fail."""
    right = """apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  replicas: 2
  selector: {matchLabels: {a: b}}
  template:
    spec:
      containers:
        - name: a
          livenessProbe: {httpGet: {port: http}}
          securityContext: {capabilities: {drop: [ALL]}}
"""
    files = {name: tmp_path / name for name in (*WRONG, "nothing")}
    for name, file in files.items():
        file.write_text(right.replace(*WRONG.get(name, ("", ""))))
    found = misfits(*files.values())
    assert {name: sum(str(file) in problem for problem in found) for name, file in files.items()} == {**dict.fromkeys(WRONG, 1), "nothing": 0}, found


@pytest.mark.parametrize("path", [*KSERVE, DEPLOYMENT, KNATIVE], ids=lambda path: path.stem)
def test_a_manifest_names_an_image_that_there_is_and_asks_for_no_privilege(path):
    container = container_of(path)
    name, _, tag = container["image"].partition(":")
    assert name == "serin" and tag in (*dockerfile.targets(), version())
    assert container["securityContext"]["readOnlyRootFilesystem"] and container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"]["limits"].keys() == {"cpu", "memory"}


def test_the_pods_of_neighbours_have_images_that_there_are():
    tags = {path.stem: re.findall(r"image: serin:(\S+)", path.read_text()) for path in NEIGHBOURS.glob("*.yaml")}
    assert {name for name, found in tags.items() if found} == {"knative", "seldon-v1", "seldon-v2"}
    assert {tag for found in tags.values() for tag in found} <= {*dockerfile.targets(), version()}


def version():
    return re.search(r"^project\(serin VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]


def test_the_chart_is_of_the_version_of_the_program():
    chart = read(ROOT / "deploy/helm/serin/Chart.yaml")
    assert chart["version"] == chart["appVersion"] == version()


def test_parts_of_the_deployment_fit_each_other():
    whole = read(DEPLOYMENT)
    pod, container = whole["spec"]["template"], deployment()["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    labels = pod["metadata"]["labels"].items()
    assert whole["spec"]["selector"]["matchLabels"].items() <= labels
    services = objects("base/service.yaml")
    for name, reached in {"serin": {"http", "grpc"}, "serin-pods": {"http", "grpc", "metrics"}}.items():
        service = services["Service", name]["spec"]
        assert service["selector"].items() <= labels and {port["targetPort"] for port in service["ports"]} == reached <= ports.keys()
    monitor = objects("overlays/monitoring/objects.yaml")["PodMonitor", "serin"]["spec"]
    assert monitor["selector"]["matchLabels"].items() <= labels and [point["port"] for point in monitor["podMetricsEndpoints"]] == ["metrics"]
    assert pod["metadata"]["annotations"]["prometheus.io/port"] == str(ports["metrics"])
    scaled = objects("overlays/cpu/objects.yaml")["HorizontalPodAutoscaler", "serin"]["spec"]["scaleTargetRef"]
    assert (scaled["kind"], scaled["name"]) == ("Deployment", whole["metadata"]["name"])


def test_the_pod_has_time_to_end_in():
    args = deployment()["containers"][0]["args"]
    under_way = 30  # ServeOptions::end_seconds
    assert deployment()["terminationGracePeriodSeconds"] > float(args[args.index("--drain-seconds") + 1]) + under_way


# --- what they start --------------------------------------------------------------------------------------------------------------------

@pytest.fixture
def start(tmp_path):
    """start(manifest): what it starts, as if from its image, with models where it looks for them: below /mnt, for of this machine's folders only that is replaced.
    start(command=...): the same of a command."""
    shutil.copytree(ROOT / "models/digits/1", tmp_path / "models/digits/1")
    with contextlib.ExitStack() as stack:
        def begin(path=None, command=None):
            command = command or ["/mnt/models" if word == "/models" else word for word in command_of(container_of(path))]
            source = tmp_path / "models" if "--model_name=digits" not in command else tmp_path / "models/digits"
            return stack.enter_context(sandbox.Sandbox([PROGRAM, *command], {"/mnt/models": source}, tmp_path / "log"))
        yield begin


@ISOLATED
@pytest.mark.parametrize("path", KSERVE, ids=lambda path: path.stem)
def test_a_runtime_of_kserve_serves_at_the_ports_that_kserve_asks(start, path):
    spec = read(path)["spec"]
    server = start(path)
    probe = container_of(path)["readinessProbe"]["httpGet"]
    server.await_answer(probe["port"], probe["path"])
    metrics = spec["annotations"]
    assert server.ask(metrics["prometheus.kserve.io/port"], metrics["prometheus.kserve.io/path"])[0] == 200
    answers = {"v1": lambda: server.ask(8080, "/v1/models/digits:predict", data=ZEROS)[0] == 200,
               "v2": lambda: server.ask(8080, "/v2/models/digits")[0] == 200, "grpc-v1": lambda: server.serves_grpc(9000),
               "grpc-v2": lambda: server.serves_grpc(9000)}
    assert {version: answers[version]() for version in spec["protocolVersions"]} == dict.fromkeys(spec["protocolVersions"], True)
    assert server.end() == 0


@ISOLATED
def test_the_deployment_serves_on_while_it_drains(start):
    container = deployment()["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    server = start(DEPLOYMENT)
    for probe in (container["startupProbe"]["httpGet"], container["livenessProbe"]["httpGet"], container["readinessProbe"]["httpGet"]):
        server.await_answer(ports[probe["port"]], probe["path"])
    assert server.ask(ports["metrics"], "/metrics")[0] == 200 and server.serves_grpc(ports["grpc"])
    os.kill(server.pid, signal.SIGTERM)
    server.await_answer(ports["http"], container["readinessProbe"]["httpGet"]["path"], status=503)
    assert server.ask(ports["http"], container["livenessProbe"]["httpGet"]["path"])[0] == 200
    assert server.ask(ports["http"], "/v1/models/digits:predict", data=ZEROS)[0] == 200
    assert server.end() == 0


@ISOLATED
def test_the_service_of_knative_serves_at_its_one_port(start):
    container = container_of(KNATIVE)
    port, = [each["containerPort"] for each in container["ports"]]
    server = start(KNATIVE)
    assert {container[name]["httpGet"]["port"] for name in ("readinessProbe", "livenessProbe")} == {port}
    for name in ("livenessProbe", "readinessProbe"):
        server.await_answer(port, container[name]["httpGet"]["path"])
    assert server.ask(port, "/v1/models/digits:predict", data=ZEROS)[0] == 200
    assert server.end() == 0


# What Seldon starts in the container of its Triton server: addTritonServer in its operator of 1.18, and operator/config/serverconfigs/triton.yaml of 2.9.
SELDON = {1: ["tritonserver", "--grpc-port=9500", "--http-port=9000", "--model-repository=/mnt/models", "--strict-model-config=false"],
          2: ["tritonserver", "--model-repository=/mnt/models", "--http-port=9000", "--grpc-port=9500", "--log-verbose=1", "--model-control-mode=explicit",
              "--backend-config=python,shm-default-byte-size=16777216"]}


@ISOLATED
@pytest.mark.parametrize("generation", SELDON)
def test_a_server_serves_with_the_arguments_of_seldon(start, generation):
    server = start(command=SELDON[generation])
    server.await_answer(9000, "/v2/health/live")
    if generation == 2:  # whose agent loads what it has put there
        assert server.ask(9000, "/v2/models/digits/ready")[0] != 200
        assert server.ask(9000, "/v2/repository/models/digits/load", data=b"{}")[0] == 200
    server.await_answer(9000, "/v2/models/digits/ready")
    assert server.serves_grpc(9500)
    assert server.end() == 0
