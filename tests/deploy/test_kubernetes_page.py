"""The blocks of deploy/kubernetes/README.md, which people copy, without a cluster (tests/kubernetes/test_page.py has one), and the router's file in the manifests."""

import re
import subprocess

import pytest
import yaml
from test_manifests import DEPLOYMENT, KUBERNETES, PROGRAM, misfits, objects, read

PAGE = (KUBERNETES / "README.md").read_text()
BLOCKS = {re.match(r"# (\S+\.yaml)", block).group(1): block for block in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)}


def test_kubernetes_knows_every_field_of_the_page(tmp_path):
    assert BLOCKS.keys() == {"kustomization.yaml", "values.yaml", "writer.yaml", "canary.yaml", "rollout.yaml", "queue.yaml", "in-flight.yaml", "keda.yaml", "registry.yaml"}
    (tmp_path / "writer.yaml").write_text(BLOCKS["writer.yaml"])
    assert misfits(tmp_path / "writer.yaml") == []


def test_the_overlay_names_the_image_of_the_manifests():
    image = read(DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]["image"]
    overlay = yaml.safe_load(BLOCKS["kustomization.yaml"])
    assert overlay["resources"] == ["../serin/deploy/kubernetes/overlays/cpu"] and (KUBERNETES / "overlays/cpu/kustomization.yaml").exists()
    assert [entry["name"] for entry in overlay["images"]] == [image.partition(":")[0]]


def test_the_page_names_every_overlay():
    assert re.findall(r"^\| `([\w-]+)` \|", PAGE, re.M) == ["cpu", "gpu", "gpu-mig", "canary", "monitoring", "keda", "kserve", "istio"]
    assert sorted(path.name for path in (KUBERNETES / "overlays").iterdir()) == sorted(re.findall(r"^\| `([\w-]+)` \|", PAGE, re.M))


def test_the_claim_is_the_one_that_the_deployment_mounts():
    volumes = {volume["name"]: volume for volume in read(DEPLOYMENT)["spec"]["template"]["spec"]["volumes"]}
    claimed = read(KUBERNETES / "base/persistentvolumeclaim.yaml")["metadata"]["name"]
    written = yaml.safe_load(BLOCKS["writer.yaml"])["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
    assert volumes["models"]["persistentVolumeClaim"]["claimName"] == claimed == written


@pytest.mark.parametrize("name", ["canary", "istio"])
def test_parts_of_the_router_fit_each_other_and_the_servers(name):
    made = objects(f"overlays/{name}/objects.yaml")
    routers = made["Deployment", "serin-router"]["spec"]
    pod = routers["template"]
    container = pod["spec"]["containers"][0]
    labels, ports = pod["metadata"]["labels"], {port["name"] for port in container["ports"]}
    assert routers["selector"]["matchLabels"].items() <= labels.items()
    reached = {made["Service", named]["spec"]["ports"][0]["targetPort"] for named in ("serin-router", "serin-router-admin")}
    assert reached == ports - {"routers"} and all(made["Service", named]["spec"]["selector"].items() <= labels.items() for named in ("serin-router", "serin-router-admin"))
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["spec"]["volumes"]}
    account, role = pod["spec"]["serviceAccountName"], read(KUBERNETES / "crds/router-role.yaml")
    bound = made["RoleBinding", account]
    assert (bound["roleRef"]["name"], bound["subjects"][0]["name"]) == (account, account) and made["Role", account]["rules"] == role["rules"]
    config = yaml.safe_load(made["ConfigMap", "serin-router"]["data"]["router.yaml"])
    endpoints = [version["endpoints"] for service in config["services"] for version in service["versions"]]
    assert [each["kubernetes"]["service"] for each in endpoints] == ["serin-pods", "serin-canary-pods"]
    for each in endpoints:
        there = (made | objects("base/service.yaml"))["Service", each["kubernetes"]["service"]]["spec"]["ports"]
        assert {each["kubernetes"]["port"], each["grpc_port"]} <= {port["name"] for port in there}


@pytest.mark.parametrize("name", ["canary", "istio"])
def test_the_router_takes_its_configuration(tmp_path, name):
    text = objects(f"overlays/{name}/objects.yaml")["ConfigMap", "serin-router"]["data"]["router.yaml"]
    (tmp_path / "tokens.yaml").write_text(f"tokens: [{{name: me, role: admin, sha256: {'0' * 64}}}]\n")
    config = tmp_path / "router.yaml"
    config.write_text(text.replace("/etc/serin/tokens", str(tmp_path)).replace("/var/lib/serin", str(tmp_path)))
    assert str(tmp_path) in config.read_text()
    done = subprocess.run([PROGRAM, "route", "--config", config, "--check"], capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 0, done.stderr
