"""Endpoints from EndpointSlices of a real API server, with an account that may do what deploy/kubernetes/crds/router-role.yaml says.

tests/e2e/router/test_endpoint_slices.py asks the same of an API in memory, which has faults on command. A real server takes no slice with an address on
loopback, so the backends listen on this machine's own address.
"""

import os
import socket
import time

import pytest
import yaml
from conftest import ROOT, wait_until

from backends import Backend
from routers import QUICK_HEALTH
from slices import endpoint, slice_of
from test_endpoint_sources import counts, left_alone
from traffic import Traffic

WATCH = 60  # seconds that a watch of the router takes at most


def own_address():
    """The address that a packet to anywhere would come from; none is sent. None: there is only loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        try:
            asker.connect(("192.0.2.254", 9))
        except OSError:
            return None
        address = asker.getsockname()[0]
    return None if address.startswith(("127.", "169.254.")) else address


@pytest.fixture
def address():
    found = own_address()
    if found is None:
        pytest.skip("this machine has no address but loopback, which the API server refuses in an EndpointSlice")
    return found


@pytest.fixture
def pod(backend, address):
    return lambda version="1": backend(version, host=address)


class RealPods:
    """Slices of backends, each with its own, written as an administrator."""

    def __init__(self, cluster, namespace):
        self.cluster, self.collection = cluster, f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"

    def set(self, backend: Backend, **conditions):
        name = f"serin-v1-{backend.port}"
        made = slice_of(name, [endpoint(backend.host, **conditions)], backend.port, labels={"endpointslice.kubernetes.io/managed-by": "test.serin.dev"})
        answer = self.cluster.api(f"{self.collection}/{name}", made, "PATCH", content_type="application/merge-patch+json")
        if answer.status == 404:
            answer = self.cluster.api(self.collection, made, "POST")
        assert answer.status in (200, 201), answer.body

    def remove(self, backend):
        assert self.cluster.api(f"{self.collection}/serin-v1-{backend.port}", method="DELETE").status == 200


@pytest.fixture
def pods(cluster, namespace):
    return RealPods(cluster, namespace)


@pytest.fixture
def discover(route, cluster, namespace, tmp_path):
    def begin(first):
        rules = yaml.safe_load((ROOT / "deploy/kubernetes/crds/router-role.yaml").read_text())["rules"]
        token = tmp_path / "token"
        token.write_text(cluster.service_account(namespace, "serin-router", rules))
        source = {"kubernetes": {"service": "serin-v1", "port": "http", "path": f"/v2/models/{first.service}/versions/1"}}
        version = {"name": "1", "endpoints": source, "health": QUICK_HEALTH}
        return route({"name": "digits", "initial_stable": "1", "versions": [version]},
                     kubernetes={"server": cluster.url, "namespace": namespace, "token_file": str(token), "tls": {"ca": str(cluster.ca)}})
    return begin


def serves(backend, more=20):
    seen = backend.inferences
    wait_until(lambda: backend.inferences > seen + more, 30, "it serves")


def test_pods_come_and_go_under_load(discover, pod, pods):
    old = pod()
    pods.set(old)
    router = discover(old)
    wait_until(lambda: counts(router, "1") == (1, 1), 20, "found")
    with Traffic(router.url) as traffic:
        for _ in range(3):
            new = pod()
            pods.set(new, ready=False)
            pods.set(new)
            serves(new)
            pods.set(old, ready=False, terminating=True)
            wait_until(lambda old=old: left_alone(traffic, {old}), 30, "drained")
            pods.remove(old)
            old.down()
            old = new
        pods.set(old, ready=False, terminating=True)
        serves(old, 100)
    assert traffic.failures == []


def test_the_api_server_is_killed_and_started_again(cluster, discover, pod, pods):
    first, second = pod(), pod()
    pods.set(first)
    router = discover(first)
    wait_until(lambda: counts(router, "1") == (1, 1), 20, "found")
    with Traffic(router.url) as traffic:
        cluster.kill_api_server()
        try:
            wait_until(lambda: "what is known stays" in router.log, 20, "noticed")
            serves(first, 200)
            assert counts(router, "1") == (1, 1)
        finally:
            cluster.start_api_server()
        pods.set(second)
        serves(second)
        pods.remove(first)
        wait_until(lambda: left_alone(traffic, {first}), 30, "the change after it")
    assert traffic.failures == []


@pytest.mark.skipif(not os.environ.get("SERIN_LONG"), reason="takes longer than a watch: SERIN_LONG=1")
def test_an_idle_watch_goes_on_from_its_bookmark(cluster, discover, pod, pods):
    """The server's bookmark before the end of a watch is where the next one begins, so nothing is listed again."""
    first, second = pod(), pod()
    pods.set(first)
    router = discover(first)
    wait_until(lambda: counts(router, "1") == (1, 1), 20, "found")
    time.sleep(WATCH + 5)  # the subject of this test
    pods.set(second)
    wait_until(lambda: counts(router, "1") == (2, 2), 10, "seen by the second watch")
    assert "listed again" not in router.log and "what is known stays" not in router.log
