"""`capacity: endpoints`: the canary's weight stays within what its healthy endpoints carry, which come and go while it is rolled out."""

import contextlib

import pytest

from conftest import call, wait_until
from router_group import HOLD
from routers import QUICK_HEALTH, spec
from traffic import Traffic


@pytest.fixture
def fleet(route, backend, tmp_path):
    """(router, scale): four endpoints of stable, and as many of the canary as scale(number) says."""
    stable, canaries = [backend("1") for _ in range(4)], [backend("2") for _ in range(4)]
    file = tmp_path / "canaries"

    def scale(number):
        temporary = tmp_path / "next"
        temporary.write_text("".join(f"{each.url}\n" for each in canaries[:number]))
        temporary.rename(file)

    scale(1)
    router = route({"name": "digits", "initial_stable": "1", "versions": [
        {"name": "1", "endpoints": [{"url": each.url} for each in stable], "health": QUICK_HEALTH},
        {"name": "2", "endpoints": {"file": str(file), "interval": "100ms"}, "health": QUICK_HEALTH}]})
    wait_until(lambda: router.healthy("2") == 1 and router.healthy("1") == 4, 10, "health checked")
    return router, scale


def weight(router):
    return router.metric("serin_route_weight_ppm", version="2") / 10_000


def test_the_weight_follows_the_endpoints_and_steps_wait_for_them(fleet):
    router, scale = fleet
    router.start_rollout(capacity="endpoints", steps=[{"setWeight": 50, "until": {"duration": "1s"}}])
    with contextlib.ExitStack() as stack:
        stack.enter_context(Traffic(router.url, clients=2))
        wait_until(lambda: weight(router) == 25, 10, "one of four")
        assert router.rollout()["weight"] == 25 and "carry no more" in router.rollout()["note"], router.rollout()
        scale(2)
        wait_until(lambda: weight(router) == 50, 10, "two of four")
        wait_until(lambda: "the next step has 100 %" in router.rollout()["note"], 20, "the step is done and waits")
        for verb, body in (("promote", {}), ("set-weight", {"weight": 90})):
            refused = router.command(verb, body)
            assert refused.status == 409 and "carry 50 %" in refused.json["error"], refused.body
        scale(1)
        wait_until(lambda: weight(router) == 25, 10, "an endpoint is gone")
        assert [entry["event"] for entry in router.history()] == ["started"], "the step stays"
        scale(4)
        wait_until(lambda: router.rollout()["phase"] == "Succeeded", 30, "as many as stable has")
    assert router.status()["stable"] == "2"


def test_a_command_that_needs_no_more_is_taken(fleet):
    router, _ = fleet
    router.start_rollout(capacity="endpoints", steps=[{"setWeight": 25, **HOLD}])
    wait_until(lambda: weight(router) == 25, 10, "one of four")
    assert router.command("set-weight", {"weight": 10}).status == 200
    assert router.command("set-weight", {"weight": 25}).status == 200
    assert router.command("set-weight", {"weight": 26}).status == 409


def test_without_it_the_weight_is_the_one_of_the_step(fleet):
    router, _ = fleet
    router.start_rollout(steps=[{"setWeight": 50, **HOLD}])
    wait_until(lambda: weight(router) == 50, 10, "as the step says")
    assert "carry" not in router.rollout()["note"]


def test_a_bad_word_is_named(fleet):
    router, _ = fleet
    refused = call(f"{router.admin}/v1/rollouts", spec(capacity="pods"), {"Content-Type": "application/json"})
    assert refused.status == 400 and "capacity" in refused.json["error"]
