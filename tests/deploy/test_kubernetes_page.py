"""The blocks of deploy/kubernetes/README.md, which people copy: Kubernetes knows every field, their parts fit each other, and the router takes its file."""

import re
import subprocess

import yaml
from test_manifests import KUBERNETES, PROGRAM, misfits

PAGE = (KUBERNETES / "README.md").read_text()
BLOCKS = {re.match(r"# (\S+\.yaml)", block).group(1): block for block in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)}


def documents(name):
    return {document["kind"]: document for document in yaml.safe_load_all(BLOCKS[name])}


def test_kubernetes_knows_every_field_of_the_page(tmp_path):
    assert {"claim.yaml", "router.yaml"} <= BLOCKS.keys()
    paths = [tmp_path / name for name in ("claim.yaml", "router.yaml")]
    for path in paths:
        path.write_text(BLOCKS[path.name])
    assert misfits(*paths) == []


def test_the_overlay_names_the_image_of_the_manifests():
    image = yaml.safe_load((KUBERNETES / "deployment.yaml").read_text())["spec"]["template"]["spec"]["containers"][0]["image"]
    overlay = documents("kustomization.yaml")["Kustomization"]
    assert overlay["resources"] == ["../serin/deploy/kubernetes"] and [entry["name"] for entry in overlay["images"]] == [image]
    assert documents("router.yaml")["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]["image"] == image


def test_the_claim_is_the_one_that_the_deployment_mounts():
    volumes = yaml.safe_load((KUBERNETES / "deployment.yaml").read_text())["spec"]["template"]["spec"]["volumes"]
    claimed = documents("claim.yaml")["PersistentVolumeClaim"]["metadata"]["name"]
    assert [volume["persistentVolumeClaim"]["claimName"] for volume in volumes] == [claimed]


def test_parts_of_the_router_fit_each_other_and_the_servers():
    stateful = documents("router.yaml")["StatefulSet"]["spec"]
    pod = stateful["template"]
    container = pod["spec"]["containers"][0]
    labels, ports = pod["metadata"]["labels"], {port["containerPort"] for port in container["ports"]}
    services = {each["metadata"]["name"]: each["spec"] for each in yaml.safe_load_all(BLOCKS["router.yaml"]) if each["kind"] == "Service"}
    assert services["serin-router"]["selector"] == stateful["selector"]["matchLabels"] == labels
    assert {port["port"] for port in services["serin-router"]["ports"]} == ports
    assert services["serin-pods"]["selector"] == yaml.safe_load((KUBERNETES / "service.yaml").read_text())["spec"]["selector"]
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]} | {claim["metadata"]["name"] for claim in stateful["volumeClaimTemplates"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    drain = float(container["args"][container["args"].index("--drain-seconds") + 1])
    assert pod["spec"]["terminationGracePeriodSeconds"] > drain + 30


def test_the_router_takes_its_configuration(tmp_path):
    text = documents("router.yaml")["ConfigMap"]["data"]["router.yaml"]
    (tmp_path / "tokens.yaml").write_text(f"tokens: [{{name: me, role: admin, sha256: {'0' * 64}}}]\n")
    config = tmp_path / "router.yaml"
    config.write_text(text.replace("/etc/serin/secret", str(tmp_path)).replace("/var/lib/serin", str(tmp_path)))
    assert str(tmp_path) in config.read_text()
    done = subprocess.run([PROGRAM, "route", "--config", config, "--check"], capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 0, done.stderr
