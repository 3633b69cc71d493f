"""The harness itself: what it reads of manifests and refuses, its probes of a program that answers as told, and limits in a folder like cgroup v2's."""

import http.server
import subprocess
import threading

import pytest
import yaml
from cluster import why_not
from conftest import free_port, wait_until
from manifests import KUBERNETES, OVERLAYS, chart, kinds, overlay
from pod_cgroup import Groups
from pod_harness import EndpointFile, PodEndpoint, Prober
from pod_manifest import NotUnderstood, Probe, quantity, read_strategy, read_template
from value_sets import GOOD


@pytest.fixture
def manifest():
    return yaml.safe_load((KUBERNETES / "base/deployment.yaml").read_text())


def container_of(manifest):
    return manifest["spec"]["template"]["spec"]["containers"][0]


def test_a_command_is_that_of_the_manifest_on_this_machine(manifest, tmp_path):
    container_of(manifest)["args"] += ["--port", "8000", "--cuda-cache", "/tmp/serin"]
    template = read_template(manifest)
    assert template.command("127.1.0.7", {"http": 21000, "grpc": 21001, "metrics": 21002}, {"models": "/a/b", "tmp": "/c"}) == [
        "serve", "--models", "/a/b", "--address", "127.1.0.7", "--drain-seconds", "10", "--log-format", "json", "--port", "21000", "--cuda-cache", "/c/serin",
        "--grpc-port", "21001", "--metrics-port", "21002"]
    container_of(manifest)["env"] = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}, {"name": "CACHE", "value": "/tmp"}]
    assert read_template(manifest).environment("127.1.0.7", "serin-1", {"models": "/a/b", "tmp": "/c"}) == {"POD_IP": "127.1.0.7", "CACHE": "/c"}
    container_of(manifest)["envFrom"] = [{"secretRef": {"name": "bucket"}}]
    with pytest.raises(NotUnderstood, match="no Secret bucket"):
        read_template(manifest).environment("127.1.0.7", "serin-1", {"models": "/a/b", "tmp": "/c"})
    (tmp_path / "AWS_REGION").write_text("eu-1")
    given = read_template(manifest).environment("127.1.0.7", "serin-1", {"models": "/a/b", "tmp": "/c"}, {"bucket": tmp_path})
    assert given == {"AWS_REGION": "eu-1", "POD_IP": "127.1.0.7", "CACHE": "/c"}
    assert (template.pre_stop, template.grace, template.cores, template.memory) == (5, 50, 2, 2 << 30)
    assert template.startup == Probe("/v2/health/live", "http", period=2, failures=30)
    assert template.liveness == Probe("/v2/health/live", "http", timeout=5) and template.readiness == Probe("/v2/health/ready", "http", period=2, timeout=2)


@pytest.mark.parametrize("change, named", [
    (lambda pod, container: pod.update(initContainers=[]), "initContainers"),
    (lambda pod, container: pod["containers"].append(container), "several containers"),
    (lambda pod, container: container.update(command=["sh"]), "command"),
    (lambda pod, container: container.update(envFrom=[{"configMapRef": {"name": "x"}}]), "configMapRef"),
    (lambda pod, container: container.update(lifecycle={"postStart": {}}), "postStart"),
    (lambda pod, container: container.update(lifecycle={"preStop": {"exec": {}}}), "exec"),
    (lambda pod, container: container["livenessProbe"].update(exec={}), "exec"),
    (lambda pod, container: container["readinessProbe"]["httpGet"].update(host="x"), "host"),
    (lambda pod, container: container["volumeMounts"][0].update(subPath="x"), "subPath"),
])
def test_what_the_harness_does_not_do_is_refused_by_name(manifest, change, named):
    change(manifest["spec"]["template"]["spec"], container_of(manifest))
    with pytest.raises(NotUnderstood, match=named):
        read_template(manifest)


def test_strategies_and_quantities():
    def strategy(replicas, **rolling):
        return read_strategy({"spec": {"replicas": replicas, "strategy": {"rollingUpdate": rolling}}})
    assert strategy(6, maxSurge=1, maxUnavailable=0) == (1, 0) and strategy(6) == (2, 1) and strategy(10, maxSurge="15%", maxUnavailable="15%") == (2, 1)
    assert [quantity(text) for text in ("500m", "2", 3, "64Mi", "1k")] == [0.5, 2, 3, 64 << 20, 1000]
    with pytest.raises(NotUnderstood, match="Recreate"):
        read_strategy({"spec": {"strategy": {"type": "Recreate"}}})


@pytest.mark.skipif(bool(why_not("helm", "kustomize")), reason=why_not("helm", "kustomize"))
def test_it_reads_every_deployment_that_we_ship():
    made = [each for name in OVERLAYS for each in kinds(overlay(name), "Deployment")] + [
        each for values in GOOD.values() for each in kinds(chart(values), "Deployment")]
    assert len(made) > 15
    for each in made:
        template = read_template(each)
        assert template.startup and template.readiness and template.liveness and template.memory and read_strategy(each) == (1, 0)


@pytest.fixture
def told():
    """A server at `port` that answers with `status`, and with nothing at all while that is None."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if Handler.status is None:
                Handler.go_on.wait(30)
            self.send_response(Handler.status or 200)
            self.end_headers()

        def log_message(self, *_):
            pass
    Handler.status, Handler.go_on = 503, threading.Event()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Handler.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Handler
        Handler.go_on.set()
        server.shutdown()


def test_a_probe_tells_after_as_many_answers_as_it_needs(told):
    """Each status is given from the verdict before on, so that only thresholds decide which verdicts there are."""
    verdicts = []
    probe = Probe("/", "http", period=0.05, timeout=0.2, successes=2, failures=3)
    prober = Prober(probe, "127.0.0.1", told.port, verdicts.append)
    for status, verdict in (503, False), (399, True), (None, False), (200, True), (400, False):
        told.status = status
        if status:
            told.go_on.set()
            told.go_on = threading.Event()
        verdicts.clear()
        wait_until(lambda: verdict in verdicts, 30, f"{verdict} for {status}")
    prober.stop()
    nobody = []
    prober = Prober(probe, "127.0.0.1", free_port(), nobody.append)
    wait_until(lambda: nobody, 30, "a verdict on nobody")
    prober.stop()
    assert not any(nobody)


def test_the_router_is_told_of_ready_pods_only(tmp_path):
    published = EndpointFile(tmp_path / "endpoints.txt")
    ready = PodEndpoint("a", "n", "127.1.0.1", {"http": 21000}, serving=True, terminating=False)
    terminating = PodEndpoint("b", "n", "127.1.0.2", {"http": 21000}, serving=True, terminating=True)
    published.publish([ready, terminating, PodEndpoint("c", "n", "127.1.0.3", {"http": 21000}, serving=False, terminating=False)])
    assert (tmp_path / "endpoints.txt").read_text() == "http://127.1.0.1:21000\n"


def test_limits_are_written_where_groups_can_be_made(tmp_path):
    groups, reason = Groups.find(tmp_path)
    assert groups is None and reason == f"no cgroup v2 at {tmp_path}"
    (tmp_path / "cgroup.controllers").write_text("cpu io\n")
    assert Groups.find(tmp_path) == (None, f"cgroup v2 at {tmp_path} has no controller memory")
    (tmp_path / "cgroup.controllers").write_text("cpu io memory\n")
    groups, reason = Groups.find(tmp_path)
    assert reason == "" and (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +memory" == (groups.path / "cgroup.subtree_control").read_text()
    group = groups.make("serin-1", cores=0.5, memory=64 << 20)
    assert ((group.path / "cpu.max").read_text(), (group.path / "memory.max").read_text()) == ("50000 100000", "67108864")
    done = subprocess.run([*group.run_by, "sh", "-c", "echo $$ \"$@\"", "x", "a b"], capture_output=True, text=True, check=True)
    entered = (group.path / "cgroup.procs").read_text().strip()
    assert done.stdout == f"{entered} a b\n"  # the process in the group is the program itself
    unlimited = groups.make("serin-2", cores=None, memory=None)
    assert ((unlimited.path / "cpu.max").read_text(), (unlimited.path / "memory.max").read_text()) == ("max 100000", "max")
