"""The weights of a rollout in an HTTPRoute of the Gateway API, here of an API in memory. tests/kubernetes/test_gateway_route.py asks a real one."""

import contextlib
import copy
import json

import pytest

from backends import Faults
from conftest import serin, wait_until
from http_routes import ROUTES, http_route, of_service, weights
from kube_api import Objects, Server
from routers import QUICK_HEALTH, hold, reload, service
from test_kubernetes_store import EmulatedGroup
from traffic import Traffic


@pytest.fixture
def api():
    with Server(Objects()) as server:
        server.objects.create(ROUTES, http_route())
        yield server


@pytest.fixture
def routed(route, backend, api):
    """(router, stable, canary): the route has the weights of a service without a rollout."""
    stable, canary = backend("1"), backend("2")
    router = route(of_service(service(stable, canary)), kubernetes={"server": api.url, "namespace": "models", "timeout": "500ms"})
    wait_until(lambda: router.healthy("2") == 1 and now(api) == (100, 0), 10, "all to stable")
    return router, stable, canary


def now(api):
    return weights(api.objects.get(ROUTES, "digits"))


def has(api, stable, canary, seconds=10):
    wait_until(lambda: now(api) == (stable, canary), seconds, f"{stable} and {canary}: {now(api)}")


def behind(router):
    return router.metric("serin_route_http_route_behind_seconds", service="digits")


def patches(api):
    return [each for each in list(api.asked) if each[1] == "PATCH"]


def test_the_weights_follow_a_rollout_until_it_is_promoted(routed, api):
    router, *_ = routed
    before = api.objects.get(ROUTES, "digits")
    router.start_rollout(steps=[hold(5), hold(50)])
    has(api, 95, 5)
    router.command("set-weight", {"weight": 0.5})
    has(api, 995, 5)
    router.command("set-weight", {"weight": 50})
    has(api, 50, 50)
    assert router.command("promote").status == 200
    router.wait_for("Succeeded")
    has(api, 0, 100)
    after = api.objects.get(ROUTES, "digits")
    for each in before, after:
        for rule in each["spec"]["rules"]:
            for backend in rule["backendRefs"]:
                backend.pop("weight", None)
    assert before["spec"] == after["spec"] and before["metadata"]["labels"] == after["metadata"]["labels"]
    assert router.command("undo").status == 200
    has(api, 100, 0)
    wait_until(lambda: behind(router) == 0, 5, "written")
    assert router.metric("serin_route_http_route_writes_total", result="written") >= 5


def test_a_bad_canary_gets_nothing_from_the_gateway_either(routed, api):
    router, _, canary = routed
    router.start_rollout(steps=[hold(50)])
    has(api, 50, 50)
    canary.faults = Faults(error_rate=1)
    with Traffic(router.url, clients=2) as traffic:  # no more than the shield may run again at once
        router.wait_for("RolledBack")
    has(api, 100, 0, seconds=2)
    assert set(traffic.statuses) == {200}


def test_a_fall_is_written_once_the_api_is_back_and_a_rise_waits_for_it(routed, api):
    router, _, canary = routed
    router.start_rollout(steps=[{"setWeight": 20, "until": {"duration": "2s"}}, hold(60)])
    has(api, 80, 20)
    api.cut()
    try:
        with Traffic(router.url):  # a step without an answer of the canary never ends
            wait_until(lambda: router.rollout()["weight"] == 60, 20, "the next step")
        wait_until(lambda: behind(router) > 0, 10, "seen")
        wait_until(lambda: "HTTPRoute 'models/digits'" in router.rollout()["note"], 10, "told")
        canary.faults = Faults(error_rate=1)
        with Traffic(router.url):
            router.wait_for("RolledBack")
        assert now(api) == (80, 20) and "HTTPRoute 'models/digits'" in router.rollout()["note"]
    finally:
        api.mend()
    has(api, 100, 0)
    wait_until(lambda: behind(router) == 0 and "HTTPRoute" not in router.rollout()["note"], 10, "told")
    said = router.log.count("it keeps its last weights until they can be written")
    assert 1 <= said <= 2 and "has the weights again" in router.log, "once for each reason: the first attempt writes, the next ones read"


def test_no_step_passes_while_the_weights_cannot_be_written(routed, api):
    router, *_ = routed
    api.objects.delete(ROUTES, "digits")
    router.start_rollout(steps=[{"setWeight": 5, "until": {"duration": "1s"}}, hold(50)])
    with Traffic(router.url):
        router.wait_for_answers(5)
        wait_until(lambda: "404" in router.rollout()["note"], 10, "told")
        wait_until(lambda: router.rollout()["seconds"] > 4, 10, "longer than the step")
        assert router.rollout()["weight"] == 5
        api.objects.create(ROUTES, http_route())
        has(api, 50, 50, seconds=20)


def test_somebody_elses_changes_are_kept_and_other_weights_are_not(routed, api):
    router, *_ = routed
    router.start_rollout(steps=[hold(25)])
    has(api, 75, 25)
    found = api.objects.get(ROUTES, "digits")
    found["spec"]["hostnames"] = ["other.example.com"]
    found["spec"]["rules"].insert(0, {"name": "new", "backendRefs": [{"name": "third", "port": 80}]})
    found["spec"]["rules"][1]["backendRefs"][1]["weight"] = 99
    api.objects.replace(ROUTES, "digits", found)
    has(api, 75, 25, seconds=15)
    wanted = copy.deepcopy(found["spec"])
    wanted["rules"][1]["backendRefs"][1]["weight"] = 25
    assert api.objects.get(ROUTES, "digits")["spec"] == wanted


def test_a_write_at_a_version_that_is_gone_is_made_again(routed, api):
    router, *_ = routed
    api.objects.patch(ROUTES, "digits", {"metadata": {"labels": {"changed": "yes"}}})  # the router has read the one before
    seen = len(patches(api))
    router.start_rollout(steps=[hold(25)])
    has(api, 75, 25, seconds=4)
    assert 1 <= len(patches(api)) - seen <= 2 and api.objects.get(ROUTES, "digits")["metadata"]["labels"]["changed"] == "yes"
    assert router.metric("serin_route_http_route_writes_total", result="failed") == 0, "at once, and not as after a failure"


@pytest.mark.parametrize("change, told", [
    (lambda found: found["spec"]["rules"][0]["backendRefs"].pop(0), "no rule has the backend 'serin'"),
    (lambda found: found["spec"]["rules"][0]["backendRefs"].pop(1), "no rule has each of the backends once"),
    (lambda found: found["spec"].pop("rules"), "no rule has the backend 'serin'"),
], ids=["stable", "canary", "rules"])
def test_what_the_route_lacks_is_named(routed, api, change, told):
    router, *_ = routed
    found = api.objects.get(ROUTES, "digits")
    found["spec"]["rules"] = found["spec"]["rules"][:1]
    change(found)
    api.objects.replace(ROUTES, "digits", found)
    wait_until(lambda: f"HTTPRoute 'models/digits': {told}" in router.log, 15, "told")
    assert not patches(api)[1:] and behind(router) > 0


def test_a_refusal_is_told_with_its_reason(routed, api):
    router, *_ = routed
    api.answer_next(403, times=1000)
    router.start_rollout(steps=[hold(25)])
    wait_until(lambda: "403" in router.rollout()["note"], 10, "told")
    assert now(api) == (100, 0)
    api.refusals.clear()
    has(api, 75, 25, seconds=15)


def test_the_route_of_a_rollout_under_way_cannot_change(routed, api, tmp_path):
    """The one before would keep the weights of the canary for ever."""
    router, *_ = routed
    router.start_rollout(steps=[hold(25)])
    has(api, 75, 25)
    config = json.loads((tmp_path / "router.yaml").read_text())
    route = config["services"][0].pop("http_route")
    (tmp_path / "router.yaml").write_text(json.dumps(config))
    assert not reload(router) and "'http_route' of service 'digits' changes" in router.log
    config["services"][0]["http_route"] = {**route, "name": "another"}
    (tmp_path / "router.yaml").write_text(json.dumps(config))
    assert not reload(router)
    assert router.command("abort").status == 200
    has(api, 100, 0)
    assert reload(router)


def test_a_restarted_router_writes_what_it_restores(routed, api):
    router, *_ = routed
    router.start_rollout(steps=[hold(25)])
    has(api, 75, 25)
    api.objects.patch(ROUTES, "digits", {"spec": {"rules": http_route()["spec"]["rules"]}})
    assert reload(router)
    has(api, 75, 25)


def test_the_leader_writes_and_then_the_next_one(tmp_path, backend):
    with contextlib.ExitStack() as stack:
        group = EmulatedGroup(tmp_path, [backend("1"), backend("2")], stack, http_route=of_service({})["http_route"])
        group.objects.create(ROUTES, http_route())
        group.settled()

        def has(stable, canary, seconds):
            wait_until(lambda: weights(group.objects.get(ROUTES, "digits")) == (stable, canary), seconds, f"{stable} and {canary}")
        group.start(25)
        has(75, 25, 10)
        leader = group.leader()
        writers = {name for name in "abc" if any(each[1] == "PATCH" and "httproutes" in each[2] for each in list(group.ways[name].asked))}
        group.routers[leader].kill()
        left = "".join(name for name in "abc" if name != leader)
        new = group.leader(left)
        wait_until(lambda: group.set_weight(new, 40).status == 200, 20, "the killed one is not counted any more")
        has(60, 40, 10)
        group.fail_canary()
        follower = next(name for name in left if name != new)
        with Traffic(group.routers[follower].url, clients=2):
            group.wait_for_phase("RolledBack", left)
        has(100, 0, 5)
    assert leader in writers


@pytest.mark.parametrize("given, told", [
    ({"backends": {"1": "serin", "2": "serin-canary"}}, "name"),
    ({"name": "digits"}, "backends"),
    ({"name": "digits", "backends": {"1": "serin"}}, "version '2'"),
    ({"name": "digits", "backends": {"1": "serin", "2": "serin-canary", "3": "x"}}, "'3' is no version of service 'digits'"),
    ({"name": "digits", "backends": {"1": "serin", "2": "serin"}}, "'serin' given twice"),
    ({"name": "Digits!", "backends": {"1": "serin", "2": "serin-canary"}}, "lower-case letters"),
    ({"name": "digits", "rule": "a", "backends": {"1": "serin", "2": "serin-canary"}}, "unknown key 'rule'"),
    ({"name": "digits", "backends": {"1": "serin", "2": "serin-canary"}}, "leave `rollouts` out"),
], ids=["name", "backends", "a-version", "an-unknown-version", "twice", "no-name", "unknown-key", "several-rollouts"])
def test_a_mistake_in_the_configuration_is_told_by_its_place(tmp_path, given, told):
    versions = [{"name": name, "endpoints": [{"url": f"http://127.0.0.1:{port}"}], "health": QUICK_HEALTH} for name, port in (("1", 8), ("2", 9))]
    config = tmp_path / "router.yaml"
    more = {"rollouts": 2} if "rollouts" in told else {}
    config.write_text(json.dumps({"kubernetes": {"server": "http://127.0.0.1:1", "namespace": "models"}, "services": [
        {"name": "digits", "initial_stable": "1", "versions": versions, "http_route": given, **more}]}))
    done = serin("route", "--config", config, "--check")
    assert done.returncode == 2 and "router.yaml:1:" in done.stderr and told in done.stderr, done.stderr
