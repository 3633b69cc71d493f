"""Endpoints from EndpointSlices of a real API server. tests/e2e/router/test_endpoint_slices.py asks the same of an API in memory, which has faults on command."""

import os
import time

import pytest
from conftest import wait_until
from discovery import RealPods, discover

from test_endpoint_sources import counts, left_alone
from traffic import Traffic

WATCH = 60  # seconds that a watch of the router takes at most


@pytest.fixture
def pod(backend, address):
    return lambda version="1": backend(version, host=address)


@pytest.fixture
def pods(cluster, namespace):
    return RealPods(cluster, namespace)


@pytest.fixture
def discovering(route, pods, tmp_path):
    return lambda first: discover(route, pods, tmp_path, path=f"/v2/models/{first.service}/versions/1")


def serves(backend, more=20):
    seen = backend.inferences
    wait_until(lambda: backend.inferences > seen + more, 30, "it serves")


def test_pods_come_and_go_under_load(discovering, pod, pods):
    old = pod()
    pods.set(old)
    router = discovering(old)
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


def test_the_api_server_is_killed_and_started_again(cluster, discovering, pod, pods):
    first, second = pod(), pod()
    pods.set(first)
    router = discovering(first)
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


def test_pods_of_a_node_that_is_about_to_end_are_drained(cluster, route, pods, pod, tmp_path):
    leaving, staying, node = pod(), pod(), f"{pods.namespace}-spot"
    cluster.apply([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}])
    try:
        pods.set(leaving, node=node)
        pods.set(staying)
        router = discover(route, pods, tmp_path, taints=["karpenter.sh/disrupted"], path=f"/v2/models/{leaving.service}/versions/1")
        wait_until(lambda: counts(router, "1") == (2, 2), 20, "found")
        with Traffic(router.url) as traffic:
            serves(leaving)
            cluster.kubectl("taint", "node", node, "karpenter.sh/disrupted=:NoSchedule")
            wait_until(lambda: counts(router, "1") == (1, 1) and left_alone(traffic, {leaving}), 30, "drained")
            cluster.kubectl("taint", "node", node, "karpenter.sh/disrupted-")
            serves(leaving)
        assert traffic.failures == []
    finally:
        cluster.kubectl("delete", "node", node)


@pytest.mark.skipif(not os.environ.get("SERIN_LONG"), reason="takes longer than a watch: SERIN_LONG=1")
def test_an_idle_watch_goes_on_from_its_bookmark(discovering, pod, pods):
    """The server's bookmark before the end of a watch is where the next one begins, so nothing is listed again."""
    first, second = pod(), pod()
    pods.set(first)
    router = discovering(first)
    wait_until(lambda: counts(router, "1") == (1, 1), 20, "found")
    time.sleep(WATCH + 5)  # the subject of this test
    pods.set(second)
    wait_until(lambda: counts(router, "1") == (2, 2), 10, "seen by the second watch")
    assert "listed again" not in router.log and "what is known stays" not in router.log
