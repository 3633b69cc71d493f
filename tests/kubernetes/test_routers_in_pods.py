"""Two real routers as the pods of the overlay `canary` start them: its flags, its router.yaml, the account and the role that it makes, and a token where kubelet puts one."""

import contextlib
import hashlib
import os
import shutil
import subprocess
import urllib.parse

import pytest
import yaml
from cluster import program
from conftest import call, wait_until
from manifests import KUBERNETES, kinds
from routers import Router, spec

TOKEN = "a-token-of-an-administrator"
ASKING = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
# The account's folder, where the API's client of the router looks for it; then the program, in this process.
AS_KUBELET = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "bash", "-euc", """
mount --make-rprivate /
mount -t tmpfs none /run
mkdir -p /run/secrets/kubernetes.io/serviceaccount
mount --bind "$0" /run/secrets/kubernetes.io/serviceaccount
exec "$@"
"""]


def no_mounts():
    if not shutil.which("unshare"):
        return "no unshare here"
    return subprocess.run([*AS_KUBELET[:-3], "true"], capture_output=True, text=True, check=False).stderr.strip()


pytestmark = pytest.mark.skipif(bool(no_mounts()), reason=f"no mounts of its own here: {no_mounts()}")


def objects_in(namespace, folder):
    """Of the overlay, as a user's kustomization places them in a namespace."""
    folder.mkdir()
    resource = os.path.relpath(KUBERNETES / "overlays/canary", folder.resolve())
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({"namespace": namespace, "resources": [resource]}))
    built = subprocess.run([program("kustomize"), "build", folder], capture_output=True, text=True, check=True, timeout=60).stdout
    return list(yaml.safe_load_all(built))


def only(objects, kind, name):
    return next(each for each in kinds(objects, kind) if each["metadata"]["name"] == name)


@pytest.fixture
def objects(cluster, namespace, tmp_path):
    """What the overlay makes, once its definitions and rights are there."""
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", KUBERNETES / "crds")
    cluster.kubectl("wait", "--for=condition=Established", "crd/rollouts.serin.dev", "crd/routerrecords.serin.dev", "--timeout=60s")
    made = objects_in(namespace, tmp_path / "mine")
    cluster.apply([only(made, kind, "serin-router") for kind in ("ServiceAccount", "Role", "RoleBinding")])
    return made


@pytest.fixture
def pods(cluster, namespace, objects, tmp_path, backend):
    """pods(): one more of them, on ports of its own and before servers of the test."""
    backends = {"1": backend("1"), "2": backend("2")}
    account = tmp_path / "account"
    account.mkdir()
    container = only(objects, "Deployment", "serin-router")["spec"]["template"]["spec"]["containers"][0]
    assert [entry["name"] for entry in container["env"]] == ["POD_IP"]

    with contextlib.ExitStack() as stack:
        def begin(number):
            home = tmp_path / f"router-{number}"
            home.mkdir()
            (account / "token").write_text(cluster.kubectl("-n", namespace, "create", "token", "serin-router"))
            (account / "ca.crt").write_bytes(open(cluster.ca, "rb").read())
            (account / "namespace").write_text(namespace)
            (home / "tokens.yaml").write_text(yaml.safe_dump({"tokens": [{"name": "me", "role": "admin", "sha256": hashlib.sha256(TOKEN.encode()).hexdigest()}]}))
            text = only(objects, "ConfigMap", "serin-router")["data"]["router.yaml"].replace("/etc/serin/tokens", str(home)).replace("/var/lib/serin", str(home))
            config = yaml.safe_load(text)
            config["listen"] = config["admin"]["listen"] = "127.0.0.1:0"
            config["replicas"]["listen"] = "0.0.0.0:0"
            for version in config["services"][0]["versions"]:
                version["endpoints"] = [{"url": backends[version["name"]].url}]
            (home / "router.yaml").write_text(yaml.safe_dump(config))
            args = [word.replace("/etc/serin/config", str(home)) for word in container["args"]]
            args[args.index("--drain-seconds") + 1] = "0"
            url = urllib.parse.urlsplit(cluster.url)
            env = {"POD_IP": "127.0.0.1", "KUBERNETES_SERVICE_HOST": url.hostname, "KUBERNETES_SERVICE_PORT": str(url.port)}
            return stack.enter_context(Router(home, args[0], *args[1:], env=env, run_by=[*AS_KUBELET, str(account)]))
        yield begin


def rollouts(router):
    return call(f"{router.admin}/v1/rollouts/digits", headers=ASKING).json


def test_they_share_a_rollout_by_the_rights_that_they_have(cluster, namespace, objects, pods):
    assert only(objects, "RoleBinding", "serin-router")["subjects"] == [{"kind": "ServiceAccount", "name": "serin-router", "namespace": namespace}]
    routers = [pods(0), pods(1)]
    wait_until(lambda: all(len(rollouts(router)["replicas"]["alive"]) == 2 for router in routers), 60, "both know each other")
    assert call(f"{routers[0].admin}/v1/rollouts/digits").status == 401
    asked = spec(steps=[{"setWeight": 25, "until": {"duration": "1h"}}])
    wait_until(lambda: any(call(f"{router.admin}/v1/rollouts", asked, ASKING).status == 201 for router in routers), 30, "the leader starts a rollout")
    wait_until(lambda: all((rollouts(router)["rollout"] or {}).get("weight") == 25 for router in routers), 30, "both have the weight")
    records = cluster.get("-n", namespace, "routerrecords")["items"]
    leases = cluster.get("-n", namespace, "leases")["items"]
    assert records and "serin-router" in {each["metadata"]["name"] for each in leases} and all(router.end() == 0 for router in routers)


def test_without_the_role_nothing_begins(cluster, namespace, pods):
    cluster.kubectl("-n", namespace, "delete", "rolebinding", "serin-router")
    router = pods(0)
    refused = call(f"{router.admin}/v1/rollouts", spec(), ASKING)
    assert refused.status == 503 and "routerrecords.serin.dev is forbidden" in router.log, refused.body
