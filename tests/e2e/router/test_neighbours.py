"""What Argo Rollouts and Flagger ask of a router with the objects of deploy/neighbours, in rollouts that end well, badly and not at all."""

import re

import pytest

from backends import Faults
from conftest import call, wait_until
from neighbour_tools import FOLDER, Argo, Flagger
from prometheus_server import program, prometheus
from routers import hold, service
from traffic import BODY, Traffic

GATES = ("confirm-rollout", "rollout", "confirm-promotion", "rollback")


def gates(flagger):
    """The types that are answered with yes."""
    return [type for type in GATES if flagger.ask(type)]


def test_a_good_canary_is_promoted(pair):
    router, _, _ = pair
    argo, flagger = Argo("serin-verdict", router, "2"), Flagger(router)
    assert (argo.measure(), gates(flagger)) == ("Inconclusive", ["confirm-rollout", "rollout"])
    router.start_rollout(steps=[20, 100])
    assert (argo.measure(), gates(flagger)) == ("Inconclusive", ["confirm-rollout", "rollout"])
    with Traffic(router.url, clients=3):
        router.wait_for("Succeeded")
    assert (argo.measure(), gates(flagger)) == ("Successful", ["confirm-rollout", "rollout", "confirm-promotion"])


def test_a_bad_canary_is_rolled_back_and_the_next_one_does_not_inherit_that(pair):
    router, _, canary = pair
    canary.faults = Faults(error_rate=1)
    router.start_rollout(steps=[hold(25)])
    with Traffic(router.url, clients=3):
        router.wait_for("RolledBack")
    argo, flagger = Argo("serin-verdict", router, "2"), Flagger(router)
    assert (argo.measure(), gates(flagger)) == ("Failed", ["rollback"])
    assert Argo("serin-verdict", router, "3").measure() == "Inconclusive"
    assert gates(Flagger(router, "3")) == ["confirm-rollout", "rollout"]
    assert Argo("serin-verdict", router, "1").measure() == "Successful"  # where everything is as it was


def test_thin_traffic_is_no_reason_for_anything(pair):
    router, _, _ = pair
    router.start_rollout(steps=[hold(50)])
    for _ in range(40):
        assert call(f"{router.url}/v2/models/digits/infer", BODY, {"Content-Type": "application/json"}).status == 200
    router.wait_for_answers(5)
    answer = call(f"{router.admin}/v1/rollouts/digits/verdict?canary=2").json
    assert (answer["verdict"], answer["certified"], answer["weight"], answer["stable"], answer["canary"]) == ("insufficient_data", False, 50, "1", "2")
    assert Argo("serin-verdict", router, "2").measure() == "Inconclusive"
    assert gates(Flagger(router)) == ["confirm-rollout", "rollout"]


def test_the_certificate_of_the_last_step_allows_the_promotion(pair):
    """So Flagger may also decide itself, where the router's rollout only holds a weight."""
    router, _, _ = pair
    flagger = Flagger(router)
    router.start_rollout(steps=[25, 50, {"pause": {}}])
    assert (word(router), flagger.ask("confirm-promotion")) == (("insufficient_data", False), False)
    with Traffic(router.url, clients=3):
        router.wait_for("Paused")
        assert (word(router), flagger.ask("confirm-promotion"), router.rollout()["weight"]) == (("healthy", True), True, 50)
    assert router.command("abort").status == 200
    assert (word(router)[0], flagger.ask("confirm-promotion")) == ("rolled_back", False)


def word(router):
    answer = call(f"{router.admin}/v1/rollouts/digits/verdict").json
    return answer["verdict"], answer["certified"]


def test_both_tools_give_a_token_of_role_viewer(route, backend, tmp_path):
    tokens = tmp_path / "tokens.yaml"
    tokens.write_text("tokens: [{name: argo, role: viewer, token: a-token-that-only-reads}]\n")
    tokens.chmod(0o600)
    router = route(service(backend("1"), backend("2")), admin={"listen": "127.0.0.1:0", "rate": 0, "tokens": str(tokens)})
    assert Argo("serin-verdict", router, "2", "a-token-that-only-reads").measure() == "Inconclusive"
    assert Flagger(router, "2", "a-token-that-only-reads").ask("rollout")
    assert Argo("serin-verdict", router, "2", "another").measure() == "Error" and not Flagger(router, "2", "another").ask("rollout")


def value(server, query):
    """Of the one series that a query has, or nothing."""
    return next((float(each["value"][1]) for each in server.query(query)), None)


@pytest.mark.skipif(program("prometheus") is None, reason="no prometheus here; deploy/install-deps --tests gets it")
def test_the_metrics_say_the_same(pair, tmp_path):
    router, _, canary = pair
    argo, flagger = Argo("serin-metrics", router, "2"), Flagger(router)
    named = set(re.findall(r"\bserin_\w+", "".join(path.read_text() for path in FOLDER.glob("*.yaml"))))
    with prometheus(tmp_path, f"127.0.0.1:{router.ports['admin']}") as server, Traffic(router.url, clients=3):
        assert value(server, flagger.query()) == 0
        canary.faults = Faults(error_rate=1)
        router.start_rollout(steps=[hold(25)])
        router.wait_for("RolledBack")
        wait_until(lambda: value(server, flagger.query()) == 1, 20, "Flagger sees the rollback")
        wait_until(lambda: argo.phase_of([value(server, argo.query())]) == "Failed", 20, "Argo sees the rollback")
        other = Argo("serin-metrics", router, "1")
        assert other.phase_of([value(server, other.query())]) == "Inconclusive" and value(server, Flagger(router, "1").query()) == 0
        assert named and named <= set(re.findall(r"^(serin_\w+)", router.metrics(), re.M))
        canary.faults = Faults()
        assert router.command("retry").status == 200
        router.command("promote")
        router.wait_for("Succeeded")
        wait_until(lambda: argo.phase_of([value(server, argo.query())]) == "Successful", 20, "Argo sees the promotion")
        assert value(server, flagger.query()) == 0
    assert argo.phase_of([]) == "Inconclusive"  # Prometheus has nothing
