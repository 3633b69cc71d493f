"""A canary that answers slowly, where stable is known from the rollout only: found within a few answers, and explained."""

import re

import pytest

from backends import Faults
from conftest import serin
from routers import hold, service
from traffic import Traffic

LIMITS = ["p25", "p50", "p75", "p90", "p97", "p99", "2 x p99", "4 x p99"]
STABLE = 0.02  # seconds: long compared with what a busy machine adds


@pytest.fixture
def versions(route, backend):
    stable, canary = backend("1"), backend("2")
    stable.faults = Faults(delay=STABLE)
    return route(service(stable, canary)), canary


def begin(router, guard=None):
    body = {"service": "digits", "canary": "2", "steps": [hold(20)], "guard": guard or {}}
    answer = router.post("/v1/rollouts", body)
    assert answer.status == 201, answer.body


# The first five answers of the canary are its warm-up. At 20 % of the traffic x10 takes 17 answers in the median (router/rollout/README.md).
@pytest.mark.parametrize("slower, most", [(10, 60), (4, 120)])
@pytest.mark.parametrize("batch", [0, 1], ids=["names no batches", "batches of one"])
def test_a_slow_canary_is_out_after_a_few_answers(versions, slower, most, batch):
    router, canary = versions
    canary.faults = Faults(delay=slower * STABLE, batch=batch)
    begin(router)
    with Traffic(router.url, clients=8) as traffic:
        router.wait_for("RolledBack", seconds=60)
    rollout = router.rollout()
    assert traffic.failures == []
    assert rollout["cause"] == "lat_rank" and "slower than stable's" in rollout["reason"], rollout["reason"]
    assert 5 < rollout["answers"]["canary"] <= most, rollout["answers"]

    explained = serin("rollout", "explain", "digits", "--admin", router.admin.removeprefix("http://"))
    assert explained.returncode == 0, explained.stdout + explained.stderr
    assert "by their ranks among stable's limits" in explained.stdout, explained.stdout
    limit = re.search(r"slower than stable's (.+?), ", rollout["reason"])[1]
    canary_lines = [line for line in explained.stdout.splitlines() if " canary " in line and " share " in line]
    beyond = [line for line in canary_lines if any(line.endswith(f"slower than {name}") for name in LIMITS[LIMITS.index(limit):])]
    assert len(beyond) >= 3, f"the reason names {limit}\n{explained.stdout}"
    assert "decided again from this record alone: rolled back by event" in explained.stdout and "does NOT match" not in explained.stdout


def test_a_canary_that_is_as_slow_as_stable_stays(versions):
    router, canary = versions
    canary.faults = Faults(delay=STABLE)
    begin(router)
    with Traffic(router.url, clients=8):
        router.wait_for_answers(400, seconds=60)
    assert router.rollout()["phase"] == "Progressing"


def test_a_declared_warm_up_is_not_judged(versions):
    router, canary = versions
    canary.faults = Faults(delay=10 * STABLE)
    begin(router, {"latency": {"skip": 60}})
    with Traffic(router.url, clients=8):
        router.wait_for_answers(40, seconds=60)
        canary.faults = Faults(delay=STABLE)
        router.wait_for_answers(300, seconds=60)
    assert router.rollout()["phase"] == "Progressing"
