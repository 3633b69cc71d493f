"""KEDA's protocol of external scalers at a router, asked by a client of gRPC. tests/kubernetes has the ScaledObject."""

import json

import grpc
import pytest

from backends import Faults
from certificates import Authority
from conftest import call, serin, wait_until
from etcd import Cluster
from external_scaler import Scaler
from grpc_clients import code_of
from routers import QUICK_HEALTH, hold, reload, service
from traffic import Traffic, ask

RATE = "serin_route_requests_per_second"


def from_file(backend, path):
    """A version whose endpoints are in that file: none at first."""
    path.write_text("")
    return {"name": backend.version, "endpoints": {"file": str(path), "interval": "50ms"}, "health": QUICK_HEALTH}


def alone(versions, **more):
    return {"name": "digits", "initial_stable": versions[0]["name"], "versions": versions, **more}


def refusal(failing):
    with pytest.raises(grpc.RpcError) as error:
        failing()
    return error.value.code(), error.value.details()


def test_it_tells_the_load_of_a_version_and_what_its_replica_takes(route, backend):
    asked, stable = Scaler(), backend("1", delay=1)
    router = route(service(stable, backend("2")), external_scaler=asked.yaml)
    trigger, idle = asked.trigger(), asked.trigger(version="2")
    assert trigger.spec() == ("serin_route_in_flight_requests", 8, 8)
    assert asked.trigger(metric=RATE, threshold="2.5").spec() == (RATE, 3, 2.5)
    assert trigger.value() == (0, 0) and not trigger.is_active()
    with Traffic(router.url, clients=5):
        wait_until(lambda: trigger.value() == (5, 5), 10, "five in flight")
        assert trigger.is_active() and not asked.trigger(activationThreshold="5").is_active() and not idle.is_active()
        rate = asked.trigger(metric=RATE, threshold="2.5", activationThreshold="0.4")
        wait_until(rate.is_active, 10, "a rate")
        whole, exact = rate.value(RATE)
        assert 0 < exact <= whole < exact + 1
    stable.faults = Faults()
    wait_until(lambda: not trigger.is_active() and trigger.value() == (0, 0), 10, "nothing in flight")


def test_a_mistake_is_told_by_its_key(route, backend):
    asked = Scaler()
    route(service(backend("1")), external_scaler=asked.yaml)
    for metadata, code, told in [
            ({"version": "7"}, grpc.StatusCode.NOT_FOUND, "service 'digits' has no version '7'"),
            ({"service": "cats"}, grpc.StatusCode.NOT_FOUND, "no service 'cats'"),
            ({"treshold": "8"}, grpc.StatusCode.INVALID_ARGUMENT, "ScaledObject models/serin: unknown key 'treshold'"),
            ({"threshold": "many"}, grpc.StatusCode.INVALID_ARGUMENT, "threshold: 'many'")]:
        trigger = asked.trigger(**metadata)
        for question in (trigger.is_active, trigger.spec, trigger.value):
            assert refusal(question)[0] == code and told in refusal(question)[1], refusal(question)
        with trigger.stream() as activity:
            wait_until(lambda activity=activity: activity.ended, 10, "refused")
            assert activity.ended == code and not activity.told
    assert code_of(lambda: asked.trigger().value(RATE)) == grpc.StatusCode.INVALID_ARGUMENT
    method = asked.channel.unary_unary("/externalscaler.ExternalScaler/StreamMetricSpec")
    assert code_of(lambda: method(b"", timeout=10)) == grpc.StatusCode.UNIMPLEMENTED  # then KEDA asks for the specification instead
    for name in ("IsActive", "GetMetrics", "GetMetricSpec"):
        broken = asked.channel.unary_unary(f"/externalscaler.ExternalScaler/{name}")
        assert code_of(lambda broken=broken: broken(b"\xff", timeout=10)) == grpc.StatusCode.INVALID_ARGUMENT


def test_one_request_wakes_a_version_without_replicas_and_the_stream_tells_it_at_once(route, backend, tmp_path):
    asked, pod, pods = Scaler(), backend("1"), tmp_path / "pods.txt"
    router = route(alone([from_file(pod, pods)]), external_scaler=asked.yaml)
    trigger = asked.trigger()
    with trigger.stream() as activity, asked.trigger(metric=RATE, activationThreshold="0.15").stream() as by_rate:
        wait_until(lambda: activity.told == [False] == by_rate.told, 10, "nobody asks")
        [(status, headers, _)] = ask(router.url, 1)
        assert status == 503 and headers["retry-after"] == "1"
        wait_until(lambda: activity.told == [False, True], 1, "woken")
        assert trigger.is_active() and trigger.value() == (0, 0) and by_rate.told == [False]
        ask(router.url, 1)
        wait_until(lambda: by_rate.told == [False, True], 1, "two in ten seconds are enough")
        pods.write_text(f"{pod.url}\n")  # what KEDA does then
        wait_until(lambda: ask(router.url, 1)[0][0] == 200, 10, "served")
        wait_until(lambda: activity.told[-1] is False, 20, "nobody asks any more")
        assert not trigger.is_active()


def test_a_share_of_a_fixed_division_wakes_its_version(route, backend, tmp_path):
    asked, stable, other = Scaler(), backend("1"), backend("2")
    versions = [{"name": "1", "endpoints": [{"url": stable.url}], "health": QUICK_HEALTH}, from_file(other, tmp_path / "pods.txt")]
    router = route(alone(versions, split={"weights": {"1": 50, "2": 50}}), external_scaler=asked.yaml)
    assert not asked.trigger(version="2").is_active()
    assert {status for status, _, _ in ask(router.url, 40)} == {200}
    assert asked.trigger(version="2").is_active()


def test_what_a_rollout_compares_is_active_without_requests(route, backend):
    asked = Scaler()
    router = route(service(backend("1"), backend("2"), backend("3")), external_scaler=asked.yaml)
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")

    def active():
        return [asked.trigger(version=version).is_active() for version in "123"]
    assert active() == [False, False, False]
    router.start_rollout(steps=[hold(50)])
    assert active() == [True, True, False]
    assert router.command("abort").status == 200
    assert active() == [False, False, False]
    router.start_rollout(steps=[hold(50), {"promote": {"keepWarm": "1h"}}])
    assert router.command("promote").status == 200
    router.wait_for("Succeeded")
    assert active() == [True, True, False], "the one before gets copies, and traffic may go back to it"


def test_a_request_at_one_router_is_told_by_the_other(tmp_path, backend, start):
    pod = backend("1", delay=0.5)
    with Cluster(tmp_path) as etcd:
        routers, scalers = [], []
        for name in "ab":
            home, asked = tmp_path / name, Scaler()
            home.mkdir()
            (home / "router.yaml").write_text(json.dumps({
                "listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "services": [alone([from_file(pod, home / "pods.txt")])], "external_scaler": asked.yaml,
                "store": {"file": str(home / "router.db"), "etcd": {"endpoints": [etcd.members[0].url]}},
                "replicas": {"max": 2, "listen": "127.0.0.1:0", "name": name}}))
            routers.append(start("route", "--drain-seconds", 0, "--config", home / "router.yaml"))
            scalers.append(asked)
        wait_until(lambda: all(len(call(f"{router.admin}/v1/rollouts/digits").json["replicas"]["alive"]) == 2 for router in routers), 20, "both alive")
        with scalers[1].trigger().stream() as activity:
            wait_until(lambda: activity.told == [False], 10, "nobody asks")
            assert ask(routers[0].url, 1)[0][0] == 503
            wait_until(lambda: activity.told == [False, True], 3, "told by the other router")
        for name in "ab":
            (tmp_path / name / "pods.txt").write_text(f"{pod.url}\n")
        with Traffic(routers[0].url, clients=5), Traffic(routers[1].url, clients=1):
            wait_until(lambda: all(asked.trigger().value() == (6, 6) for asked in scalers), 30, "what both have in flight, exactly")


def test_keda_shows_a_certificate(route, backend, tmp_path):
    authority = Authority(tmp_path)
    keda = authority.issue("keda")

    def credentials(pair=None):
        files = [open(path, "rb").read() for path in ((pair.key, pair.cert) if pair else ())]
        return grpc.ssl_channel_credentials(open(authority.ca, "rb").read(), *files)
    asked = Scaler(authority.issue("router").yaml(client_ca=authority.ca), credentials(keda))
    router = route(service(backend("1")), external_scaler=asked.yaml)
    assert asked.trigger().spec()[1] == 8
    with asked.connect(credentials()) as stranger:
        assert code_of(asked.trigger(stranger).is_active) == grpc.StatusCode.UNAVAILABLE
    wait_until(lambda: router.metric("serin_http_bad_requests_total", listener="external_scaler", reason="tls_client_certificate") >= 1, 10, "counted")


def test_a_stream_ends_well_with_its_configuration_and_is_there_again(route, backend, tmp_path):
    asked = Scaler()
    router = route(service(backend("1")), external_scaler=asked.yaml)
    trigger = asked.trigger()
    with trigger.stream() as activity:
        wait_until(lambda: activity.told == [False], 10, "told")
        assert reload(router)
        wait_until(lambda: activity.ended, 10, "ended")
        assert activity.ended == grpc.StatusCode.OK, "KEDA waits longer each time after an error"
    wait_until(lambda: code_or_answer(trigger) is False, 10, "there again")
    path = tmp_path / "router.yaml"
    path.write_text(json.dumps({key: value for key, value in json.loads(path.read_text()).items() if key != "external_scaler"}))
    assert reload(router)
    assert code_of(trigger.is_active) == grpc.StatusCode.UNAVAILABLE


def code_or_answer(trigger):
    try:
        return trigger.is_active()
    except grpc.RpcError as error:
        return error.code()


@pytest.mark.parametrize("scaler, told", [
    ({"tls": "none"}, "listen"),
    ({"listen": "0.0.0.0:8444"}, "0.0.0.0 is not loopback: give tls"),
    ({"listen": "127.0.0.1:0", "tls": "off"}, "none"),
    ({"listen": "127.0.0.1:0", "tls": {"cert": "tls.crt"}}, "key"),
    ({"listen": "127.0.0.1:0", "port": 1}, "unknown key 'port'"),
], ids=["without-listen", "open-to-all", "another-word", "half-a-pair", "unknown-key"])
def test_a_mistake_in_the_configuration_is_told_by_its_place(tmp_path, scaler, told):
    versions = [{"name": "1", "endpoints": [{"url": "http://127.0.0.1:9"}], "health": QUICK_HEALTH}]
    config = tmp_path / "router.yaml"
    config.write_text(json.dumps({"services": [alone(versions)], "external_scaler": scaler}))
    done = serin("route", "--config", config, "--check")
    assert done.returncode == 2 and "router.yaml:1:" in done.stderr and told in done.stderr, done.stderr
    config.write_text(json.dumps({"services": [alone(versions)], "external_scaler": {"listen": "0.0.0.0:8444", "tls": "none"}}))
    assert serin("route", "--config", config, "--check").returncode == 0
