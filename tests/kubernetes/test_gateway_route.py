"""The weights of a rollout in an HTTPRoute of a real API server with the definitions of the Gateway API; the router's account may do what the chart's Role says.

tests/e2e/router/test_http_route.py asks the same of an API in memory, which has faults on command.
"""

import copy
import json

import pytest
from conftest import wait_until
from manifests import chart, kinds
from value_sets import GOOD

from backends import Faults
from http_routes import http_route, of_service, weights
from routers import hold, service
from traffic import Traffic


class RealRoute:
    """The route of a namespace, and what a router needs to write it."""

    def __init__(self, cluster, namespace, folder):
        cluster.install_crds("gateway-api")
        self.cluster, self.namespace = cluster, namespace
        self.apply(http_route())
        [role] = kinds(chart(GOOD["http-route-and-a-volume"]), "Role")
        (folder / "token").write_text(cluster.service_account(namespace, "serin-router", role["rules"]))
        self.kubernetes = {"server": cluster.url, "namespace": namespace, "token_file": str(folder / "token"), "tls": {"ca": str(cluster.ca)}}

    def apply(self, wanted):
        self.cluster.kubectl("-n", self.namespace, "create", "--validate=strict", "-f", "-", stdin=json.dumps(wanted))

    def get(self):
        return self.cluster.get("-n", self.namespace, "httproute", "digits")

    def has(self, stable, canary, seconds=15):
        wait_until(lambda: weights(self.get()) == (stable, canary), seconds, f"{stable} and {canary}: {weights(self.get())}")


@pytest.fixture
def real(cluster, namespace, tmp_path):
    return RealRoute(cluster, namespace, tmp_path)


@pytest.fixture
def routed(real, route, backend):
    stable, canary = backend("1"), backend("2")
    router = route(of_service(service(stable, canary)), kubernetes=real.kubernetes)
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    real.has(100, 0)
    return router, canary


def test_the_weights_follow_and_other_fields_stay(real, routed):
    router, _ = routed
    router.start_rollout(steps=[hold(25), hold(50)])
    real.has(75, 25)
    found = real.get()
    found["spec"]["hostnames"] = ["other.example.com"]
    found["spec"]["rules"].insert(0, {"matches": [{"path": {"type": "Exact", "value": "/"}}], "backendRefs": [{"name": "third", "port": 80}]})
    found["spec"]["rules"][1]["backendRefs"][0]["weight"] = 1
    real.cluster.kubectl("-n", real.namespace, "replace", "-f", "-", stdin=json.dumps(found))
    real.has(75, 25)
    assert router.command("set-weight", {"weight": 12.5}).status == 200
    real.has(875, 125)
    wanted = copy.deepcopy(found["spec"])
    for backend, weight in zip(wanted["rules"][1]["backendRefs"], (875, 125), strict=True):
        backend["weight"] = weight
    written = real.get()["spec"]
    for rule in written["rules"] + wanted["rules"]:
        for backend in rule["backendRefs"]:
            backend.update({"group": "", "kind": "Service", "weight": backend.get("weight", 1)})  # defaults of the API
    assert written == {**written, **wanted}
    assert router.command("promote").status == 200
    router.wait_for("Succeeded")
    real.has(0, 100)


def test_a_fall_is_written_when_the_api_server_is_back(real, routed):
    router, canary = routed
    router.start_rollout(steps=[hold(50)])
    real.has(50, 50)
    real.cluster.kill_api_server()
    try:
        canary.faults = Faults(error_rate=1)
        with Traffic(router.url, clients=2) as traffic:  # no more than the shield may run again at once
            router.wait_for("RolledBack")
        wait_until(lambda: f"HTTPRoute '{real.namespace}/digits'" in router.rollout()["note"], 10, "told")
        assert set(traffic.statuses) == {200}
    finally:
        real.cluster.start_api_server()
    real.has(100, 0, seconds=30)
    wait_until(lambda: router.metric("serin_route_http_route_behind_seconds") == 0 and "HTTPRoute" not in router.rollout()["note"], 10, "told")


def test_what_the_account_may_not_do_is_told(real, route, backend):
    real.apply(http_route("another"))
    router = route(of_service(service(backend("1"), backend("2")), name="another"), kubernetes=real.kubernetes)
    wait_until(lambda: "403" in router.log and 'cannot get resource "httproutes"' in router.log, 15, "told")
    assert router.metric("serin_route_http_route_behind_seconds") > 0
