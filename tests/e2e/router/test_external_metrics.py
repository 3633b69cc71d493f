"""The API external.metrics.k8s.io of a router, as an API server asks it: by a certificate. tests/kubernetes/test_autoscaling.py has a real one."""

import json

import pytest

from backends import Faults
from certificates import Authority
from conftest import call, free_port, serin, wait_until
from etcd import Cluster
from routers import QUICK_HEALTH, hold, reload, service
from traffic import Traffic

API = "/apis/external.metrics.k8s.io/v1beta1"


class Asked:
    """The listener of a router, its place in router.yaml, and a client with the right certificate."""

    def __init__(self, folder):
        self.authority = Authority(folder, f"authority-{free_port()}")
        self.port = free_port()
        self.yaml = {"listen": f"127.0.0.1:{self.port}", "tls": self.authority.issue("router").yaml(client_ca=self.authority.ca)}
        self._client = self.authority.client(self.authority.issue("front-proxy"))

    def get(self, path, tls=None):
        return call(f"https://127.0.0.1:{self.port}{path}", tls=tls or self._client)

    def values(self, metric, selector=""):
        """{(service, version): quantity}"""
        answer = self.get(f"{API}/namespaces/models/{metric}?labelSelector={selector}")
        assert answer.status == 200, answer.body
        return {(item["metricLabels"]["service"], item["metricLabels"]["version"]): item["value"] for item in answer.json["items"]}


def test_it_tells_the_load_of_each_version_and_nobody_else_may_ask(route, backend, tmp_path):
    asked, stable, canary = Asked(tmp_path), backend("1"), backend("2")
    router = route(service(stable, canary), external_metrics=asked.yaml)
    with pytest.raises(OSError):
        asked.get(API, tls=asked.authority.client())
    assert asked.get(f"{API}/namespaces/models/unknown").json["kind"] == "Status"
    stable.faults = Faults(delay=1)
    with Traffic(router.url, clients=5):
        wait_until(lambda: asked.values("serin_route_in_flight_requests") == {("digits", "1"): "5", ("digits", "2"): "0"}, 10, "five in flight")
        assert router.metric("serin_route_in_flight_requests", version="1") == 5
        assert asked.values("serin_route_in_flight_requests", "version%3D2") == {("digits", "2"): "0"}
        wait_until(lambda: asked.values("serin_route_requests_per_second")["digits", "1"] not in ("0", "500m"), 10, "a rate")
    wait_until(lambda: asked.values("serin_route_in_flight_requests", "version%3D1") == {("digits", "1"): "0"}, 10, "nothing in flight")
    wait_until(lambda: asked.values("serin_route_requests_per_second", "version%3D1") == {("digits", "1"): "0"}, 20, "no rate")


def test_stable_keeps_what_a_rollback_needs_until_the_rollout_is_over(route, backend, tmp_path):
    asked, stable, canary = Asked(tmp_path), backend("1", delay=0.3), backend("2", delay=0.3)
    router = route(service(stable, canary), external_metrics=asked.yaml)
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    in_flight = lambda: {version: int(value) for (_, version), value in asked.values("serin_route_in_flight_requests").items()}  # noqa: E731
    router.start_rollout(steps=[hold(90)])
    with Traffic(router.url, clients=8):
        wait_until(lambda: in_flight()["1"] == 8 and in_flight()["2"] >= 5, 20, "most at the canary, all counted for stable")
        assert router.command("promote").status == 200
        router.wait_for("Succeeded")
        wait_until(lambda: in_flight() == {"1": 0, "2": 8}, 20, "over")


def test_it_is_there_again_after_a_reload_and_gone_where_the_key_is(route, backend, tmp_path):
    asked = Asked(tmp_path)
    router = route(service(backend("1")), external_metrics=asked.yaml)
    assert reload(router) and asked.get(API).status == 200
    path = tmp_path / "router.yaml"
    path.write_text(json.dumps({key: value for key, value in json.loads(path.read_text()).items() if key != "external_metrics"}))
    assert reload(router)
    with pytest.raises(OSError):
        asked.get(API)


def test_routers_that_share_a_load_tell_the_whole(tmp_path, backend, start):
    stable = backend("1", delay=0.5)
    with Cluster(tmp_path) as etcd:
        routers, listeners = [], []
        for name in "ab":
            home, asked = tmp_path / name, Asked(tmp_path)
            home.mkdir()
            (home / "router.yaml").write_text(json.dumps({
                "listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "services": [service(stable)], "external_metrics": asked.yaml,
                "store": {"file": str(home / "router.db"), "etcd": {"endpoints": [etcd.members[0].url]}},
                "replicas": {"max": 2, "listen": "127.0.0.1:0", "name": name}}))
            routers.append(start("route", "--drain-seconds", 0, "--config", home / "router.yaml"))
            listeners.append(asked)
        with Traffic(routers[0].url, clients=5), Traffic(routers[1].url, clients=1):
            for asked in listeners:
                wait_until(lambda asked=asked: asked.values("serin_route_in_flight_requests") == {("digits", "1"): "6"}, 30, "what both have in flight")


@pytest.mark.parametrize("metrics, told", [
    ({"listen": "127.0.0.1:0"}, "tls"),
    ({"tls": {"cert": "tls.crt", "key": "tls.key"}}, "listen"),
    ({"listen": "0.0.0.0:8443", "tls": "OPEN"}, "0.0.0.0 is not loopback: give tls a client_ca"),
    ({"listen": "127.0.0.1:0", "tls": "OPEN", "port": 1}, "unknown key 'port'"),
], ids=["without-tls", "without-listen", "open-to-all", "unknown-key"])
def test_a_mistake_is_told_by_its_place(tmp_path, metrics, told):
    if metrics.get("tls") == "OPEN":
        metrics = {**metrics, "tls": Authority(tmp_path).issue("router").yaml()}
    versions = [{"name": "1", "endpoints": [{"url": "http://127.0.0.1:9"}], "health": QUICK_HEALTH}]
    config = tmp_path / "router.yaml"
    config.write_text(json.dumps({"services": [{"name": "digits", "initial_stable": "1", "versions": versions}], "external_metrics": metrics}))
    done = serin("route", "--config", config, "--check")
    assert done.returncode == 2 and "router.yaml:1:" in done.stderr and told in done.stderr, done.stderr
