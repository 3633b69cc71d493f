"""The chart and the manifests rendered from it, without a cluster: they cannot differ, bad values are refused by name, and every object has the fields it must."""

import contextlib
import json
import os
import re
import shutil
import subprocess

import pytest
import yaml
from certificates import Authority
from cluster import program, why_not
from conftest import MODELS, ROOT, SERIN, Process, call, free_port, serin
from external_scaler import Scaler
from file_server import FileServer
from manifests import CHART, KUBERNETES, OVERLAYS, SCALERS, chart, files_of, helm_template, kinds, overlay, pod_templates
from registries import tag
from routers import Router, write_config
from value_sets import BAD, GOOD

pytestmark = pytest.mark.skipif(bool(why_not("helm", "kustomize")), reason=why_not("helm", "kustomize"))


@pytest.mark.parametrize("key, values", BAD, ids=[f"{number}-{key}" for number, (key, _) in enumerate(BAD)])
def test_bad_values_are_refused_by_the_name_of_their_key(key, values):
    done = helm_template(values)
    assert done.returncode != 0 and key in done.stderr.replace(str(CHART), ""), done.stderr


def test_the_schema_knows_every_key():
    """Maps are closed, or of texts: labels, variables of the environment, backends of versions. `global` belongs to a chart that has this one as a part."""
    def maps(schema, path):
        if isinstance(schema, list):
            return [found for number, each in enumerate(schema) for found in maps(each, f"{path}.{number}")]
        if not isinstance(schema, dict):
            return []
        own = [(path, schema.get("additionalProperties"))] if schema.get("type") == "object" else []
        return own + [found for key, each in schema.items() for found in maps(each, f"{path}.{key}")]
    found = maps(json.loads((CHART / "values.schema.json").read_text()), "")
    assert len(found) > 30 and {path for path, more in found if more is not False and more != {"type": "string"}} == {".properties.global"}
    assert {path for path, more in found if more == {"type": "string"}} == {".$defs.labels", ".$defs.env", ".$defs.backends"}


def test_the_manifests_are_those_of_the_chart(tmp_path):
    """deploy/kubernetes/render mends what differs."""
    subprocess.run([KUBERNETES / "render", tmp_path], check=True, env={**os.environ, "HELM": str(program("helm"))}, timeout=100)
    for folder in ("base", "overlays"):
        assert files_of(tmp_path / folder) == files_of(KUBERNETES / folder)


@pytest.mark.parametrize("name", GOOD)
def test_fields_of_every_object(name):
    objects = chart(GOOD[name])
    scaled = {each["spec"]["scaleTargetRef"]["name"] for each in objects if each["kind"] in SCALERS}
    for each in objects:
        assert {f"app.kubernetes.io/{label}" for label in ("name", "instance", "version", "component", "part-of", "managed-by")} <= each["metadata"]["labels"].keys()
    for each in kinds(objects, "Service"):
        assert all("appProtocol" in port for port in each["spec"]["ports"])
    for each in pod_templates(objects):
        spec, pod = each["spec"], each["spec"]["template"]["spec"]
        container = pod["containers"][0]
        assert ("replicas" in spec) == (each["metadata"]["name"] not in scaled)
        assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
        drains = float(container["args"][container["args"].index("--drain-seconds") + 1])
        under_way = 30  # ServeOptions::end_seconds
        assert pod["terminationGracePeriodSeconds"] > container["lifecycle"]["preStop"]["sleep"]["seconds"] + drains + under_way
        router = GOOD[name].get("router", {})
        asks = router.get("store", {}).get("kind", "kubernetes") == "kubernetes" or any("httpRoute" in service for service in router.get("services", ()))
        assert pod["automountServiceAccountToken"] is (asks and each["metadata"]["name"] == "serin-router") and container["readinessProbe"]["httpGet"] != container["livenessProbe"]["httpGet"]
        assert container["resources"]["limits"]["memory"] and not any("/" in resource for resource in container["resources"]["requests"])
        assert {mount["name"] for mount in container["volumeMounts"]} <= {
            volume["name"] for volume in pod["volumes"] + [claim["metadata"] for claim in spec.get("volumeClaimTemplates", [])]}


def test_alerts_and_dashboard_are_the_files_of_this_repository():
    objects = chart(GOOD["monitoring"])
    rules = kinds(objects, "PrometheusRule")[0]["spec"]
    sections = {f"https://git.example.com/RUNBOOK.md#{name.lower()}"
                for name in re.findall(r"^## (\w+)", (ROOT / "deploy/prometheus/RUNBOOK.md").read_text(), re.M)}
    assert {alert["annotations"].pop("runbook_url") for group in rules["groups"] for alert in group["rules"]} == sections
    assert rules == yaml.safe_load((ROOT / "deploy/prometheus/serin.rules.yml").read_text())
    dashboard = next(each for each in kinds(objects, "ConfigMap") if each["metadata"]["name"] == "serin-dashboard")
    assert dashboard["data"]["serin-rollouts.json"].strip() == (ROOT / "deploy/grafana/serin-rollouts.json").read_text().strip()


@pytest.mark.parametrize("source", [*OVERLAYS, "keda-defaults", "keda-and-router", "queue.yaml", "in-flight.yaml", "adapter.yml"])
def test_what_replicas_are_counted_by_is_a_gauge_that_the_programs_export(source):
    """A counter only rises, and so would the replicas (pytorch/serve#3286). tests/references holds the pages of metrics to the programs."""
    gauges = {name for page in ("runtime/serving/host/METRICS.md", "router/view/METRICS.md")
              for name in re.findall(r"^\| `(\w+)` \| gauge ", (ROOT / page).read_text(), re.M)}
    if source == "adapter.yml":
        text = (ROOT / "deploy/prometheus/adapter.yml").read_text()
    elif source.endswith(".yaml"):
        text = re.search(rf"```yaml\n# {source}\n(.*?)```", (KUBERNETES / "README.md").read_text(), re.S)[1]
    else:
        values = {"keda-defaults": {"runtime": {"autoscaling": {"kind": "keda"}}}, "keda-and-router": GOOD["keda-and-router"]}
        objects = chart(values[source]) if source in values else overlay(source)
        text = json.dumps([each["spec"] for each in objects if each["kind"] in SCALERS])
    named = set(re.findall(r"\b(?:nv|serin)_\w+", text))
    assert named <= gauges and (named or source not in ("gpu", "gpu-mig", "keda", "keda-defaults", "keda-and-router", "queue.yaml", "in-flight.yaml", "adapter.yml"))


def test_a_router_answers_the_triggers_of_its_scaled_objects(tmp_path):
    """With the names of the chart's router.yaml, and with the metadata that KEDA passes on."""
    objects, asked = chart(GOOD["keda-and-router"]), Scaler()
    [config] = [yaml.safe_load(each["data"]["router.yaml"]) for each in kinds(objects, "ConfigMap") if each["metadata"]["name"] == "serin-router"]
    versions = [{"name": each["name"], "endpoints": [{"url": "http://127.0.0.1:9"}]} for each in config["services"][0]["versions"]]
    write_config(tmp_path, {"name": "digits", "initial_stable": "1", "versions": versions}, external_scaler=asked.yaml)
    with Router(tmp_path, "route", "--drain-seconds", 0, "--config", tmp_path / "router.yaml"):
        found = {each["metadata"]["name"]: [asked.trigger(**trigger["metadata"]).spec() for trigger in each["spec"]["triggers"]]
                 for each in kinds(objects, "ScaledObject")}
    assert found == {"serin": [("serin_route_in_flight_requests", 8, 8)], "serin-canary": [("serin_route_requests_per_second", 1, 0.5)]}
    reached = {trigger["metadata"]["scalerAddress"].partition(":")[::2] for each in kinds(objects, "ScaledObject") for trigger in each["spec"]["triggers"]}
    [service] = [each for each in kinds(objects, "Service") if each["metadata"]["name"] == "serin-router-keda"]
    assert reached == {("serin-router-keda.models.svc", str(service["spec"]["ports"][0]["port"]))} and config["external_scaler"]["listen"].endswith(":8444")
    [pod] = [each["spec"]["template"]["spec"] for each in pod_templates(objects) if each["metadata"]["name"] == "serin-router"]
    ports = {port["name"]: port["containerPort"] for port in pod["containers"][0]["ports"]}
    assert ports[service["spec"]["ports"][0]["targetPort"]] == 8444


def test_a_changed_configuration_starts_new_routers():
    def checksum(steps):
        values = GOOD["a-router-alone"]
        made = kinds(chart({**values, "router": {**values["router"], "config": steps}}), "Deployment")[0]
        return made["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
    assert checksum("listen: 0.0.0.0:8080\n") == checksum("listen: 0.0.0.0:8080\n") != checksum("listen: 0.0.0.0:8090\n")


@pytest.mark.parametrize("name", [name for name, values in GOOD.items() if "services" in values.get("router", {})])
def test_the_router_takes_its_configuration(tmp_path, name):
    made = next(each for each in kinds(chart(GOOD[name]), "ConfigMap") if each["metadata"]["name"] == "serin-router")
    (tmp_path / "tokens.yaml").write_text(f"tokens: [{{name: me, role: admin, sha256: {'0' * 64}}}]\n")
    text = made["data"]["router.yaml"].replace("POD_IP", "10.0.0.5")
    for place in ("/etc/serin/tokens", "/etc/serin/tls", "/etc/serin/external-metrics", "/etc/serin/external-scaler", "/var/lib/serin"):
        text = text.replace(place, str(tmp_path))
    if "tls:" in text:
        Authority(tmp_path).issue("tls")
        for kind in ("crt", "key"):
            (tmp_path / "authority" / f"tls.{kind}").rename(tmp_path / f"tls.{kind}")
        for name in ("ca.crt", "front-proxy-ca.crt"):
            shutil.copy(tmp_path / "authority/ca.crt", tmp_path / name)
    (tmp_path / "router.yaml").write_text(text)
    done = subprocess.run([SERIN, "route", "--config", tmp_path / "router.yaml", "--check"], capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [name for name, values in GOOD.items() if values["runtime"].get("enabled", True) or "kserve" not in values])
def test_the_programs_know_their_flags(name):
    for each in pod_templates(chart(GOOD[name])):
        args = each["spec"]["template"]["spec"]["containers"][0]["args"]
        known = subprocess.run([SERIN, args[0], "--help"], capture_output=True, text=True, check=True, timeout=20).stdout
        flags = [word for word in args if word.startswith("--")]
        assert flags and [flag for flag in flags if f" {flag} " not in known and f" {flag}\n" not in known] == []


def test_pods_of_the_chart_share_the_files_of_a_registry(tmp_path):
    """As the chart starts them, with its flags, its names and its Secret, but for the places of files and for addresses on loopback."""
    registry, authority = tmp_path / "registry", Authority(tmp_path)
    model = tmp_path / "model"
    shutil.copytree(MODELS / "digits/1", model)
    (model / "more.bin").write_bytes(os.urandom(3 << 20))
    assert serin("registry", "add", registry, "digits", model).returncode == 0
    tag(registry, "digits:1", "production")
    pair = authority.issue("tls", names="DNS:serin.models.svc")
    objects = chart(GOOD["peers-with-tls"])
    [peers] = [each for each in kinds(objects, "Service") if each["metadata"]["name"] == "serin-peers"]
    [deployment] = pod_templates(objects)
    pod = deployment["spec"]["template"]
    assert peers["spec"]["clusterIP"] == "None" and peers["spec"]["publishNotReadyAddresses"]
    assert peers["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    container = pod["spec"]["containers"][0]
    [target] = [port["containerPort"] for port in container["ports"] if port["name"] == peers["spec"]["ports"][0]["targetPort"]]
    assert f"serin-peers:{target}" in container["args"]
    port, own = free_port(), authority.folder
    with FileServer(registry) as files, contextlib.ExitStack() as stack:
        pages = []
        for number in (1, 2):
            places = {"registry+https://models.example.com": f"registry+{files.url}", "/models": str(tmp_path / f"cache-{number}"), "/etc/serin/tls": str(own),
                      "0.0.0.0": f"127.0.0.{number}", f"serin-peers:{target}": f"127.0.0.1:{port},127.0.0.2:{port}"}
            args = [next((word.replace(was, now, 1) for was, now in places.items() if word.startswith(was)), word) for word in container["args"]]
            assert pair.cert in args and authority.ca in args and "serin.models.svc" in args
            args[args.index("--drain-seconds") + 1] = "0"
            folder = tmp_path / f"pod-{number}"
            folder.mkdir()
            server = stack.enter_context(Process(folder, *args, "--port", 0, "--grpc-port", 0, "--metrics-port", 0))
            pages.append(call(f"http://127.0.0.{number}:{server.ports['metrics']}/metrics").body.decode())
    taken = [int(re.search(r"^serin_registry_peer_bytes_total (\d+)$", page, re.M)[1]) for page in pages]
    assert taken == [0, 3 << 20]


def test_pods_reach_a_registry_and_each_other_and_nothing_else():
    def of_runtime(name):
        [policy] = [each["spec"] for each in kinds(chart(GOOD[name]), "NetworkPolicy") if each["metadata"]["name"] == "serin-runtime"]
        return policy
    assert of_runtime("defaults")["policyTypes"] == ["Ingress"] and "egress" not in of_runtime("defaults")
    alone, together = of_runtime("registry"), of_runtime("peers")
    assert {"ports": [{"port": 9000}, {"port": 443}]} in alone["egress"] and len(alone["egress"]) == 2 and len(alone["ingress"]) == 2
    itself = {"podSelector": {"matchLabels": together["podSelector"]["matchLabels"]}}
    assert {"to": [itself], "ports": [{"port": 8004}]} in together["egress"] and {"from": [itself], "ports": [{"port": "peers"}]} in together["ingress"]
    claims = {name: kinds(chart(GOOD[name]), "PersistentVolumeClaim") for name in ("defaults", "registry")}
    assert len(claims["defaults"]) == 1 and not claims["registry"]


def test_the_values_of_the_page_serve_a_registry():
    text = re.search(r"```yaml\n# registry.yaml\n(.*?)```", (KUBERNETES / "README.md").read_text(), re.S)[1]
    pod = next(each for each in pod_templates(chart(yaml.safe_load(text))))["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert {"s3://models/registry", "serin-peers:8004"} <= set(container["args"]) and container["envFrom"] == [{"secretRef": {"name": "models-bucket"}}]
    assert {volume["name"]: volume for volume in pod["volumes"]}["models"]["emptyDir"] == {"sizeLimit": "40Gi"}


def test_the_packed_chart_is_whole(tmp_path):
    """What it has by links, alerts, dashboard, role and definitions, is in its package; and helm finds nothing to remark."""
    helm = program("helm")
    subprocess.run([helm, "package", CHART, "--destination", tmp_path], check=True, capture_output=True, timeout=60)
    packed = next(tmp_path.glob("serin-*.tgz"))
    values = yaml.safe_dump(GOOD["monitoring"])

    def rendered(source):
        command = [helm, "template", "serin", source, "--include-crds", "--values", "-"]
        return subprocess.run(command, input=values, capture_output=True, text=True, check=True, timeout=60).stdout
    assert rendered(packed) == rendered(CHART) and rendered(packed).count("kind: CustomResourceDefinition") == 2
    linted = subprocess.run([helm, "lint", "--strict", CHART, "--values", "-"], input=values, capture_output=True, text=True, check=False, timeout=60)
    assert linted.returncode == 0, linted.stdout


def test_istio_divides_and_retries_nothing():
    objects = chart(GOOD["istio"])
    routes = [route for each in kinds(objects, "VirtualService") for route in each["spec"]["http"]]
    assert len(routes) == 4 and all(route["retries"] == {"attempts": 0} and len(route["route"]) == 1 and "weight" not in route["route"][0] for route in routes)
    names = {each["metadata"]["name"] for each in kinds(objects, "Service")}
    assert {route["route"][0]["destination"]["host"] for route in routes} == {"serin-pods", "serin-canary-pods"} < names
