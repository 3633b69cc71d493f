"""The judge in the data path: sticky users, cohorts, the baseline arm, rehearsals, drifting answers, and verdicts that can be decided again."""

import json
import time

import pytest

from backends import Faults
from conftest import serin, wait_until
from routers import NO_SECOND_TRY, hold, service
from traffic import Traffic, ask


def start(router, canary, **asked):
    """Starts a rollout whose canary is described by more than its version."""
    body = {"service": "digits", "canary": {"version": "2", **canary}, "guard": {"latency": {"baseline": 200, "floor": "50ms"}}, **asked}
    answer = router.post("/v1/rollouts", body)
    assert answer.status == 201, answer.body
    return answer.json


def versions(router, count, **headers):
    return [found["x-serin-version"] for _, found, _ in ask(router.url, count, headers=headers)]


# --- who gets the canary ------------------------------------------------------------------------------------------------------------


def test_a_user_stays_on_one_version_while_the_weight_allows(pair):
    router = pair[0]
    start(router, {"sticky": {"header": "x-user"}}, steps=[hold(20), hold(60)], shield=NO_SECOND_TRY)
    users = [f"user {i}" for i in range(200)]
    at_20 = {user: set(versions(router, 3, **{"x-user": user})) for user in users}
    assert all(len(seen) == 1 for seen in at_20.values()), "the same user, the same version"
    on_canary = {user for user, seen in at_20.items() if seen == {"2"}}
    assert 10 < len(on_canary) < 75
    router.command("set-weight", {"weight": 60})
    at_60 = {user for user in users if versions(router, 1, **{"x-user": user}) == ["2"]}
    assert on_canary <= at_60 and 80 < len(at_60) < 160, "as the weight rises nobody goes back"
    router.command("set-weight", {"weight": 20})
    assert {user for user in users if versions(router, 1, **{"x-user": user}) == ["2"]} == on_canary


def test_a_cookie_may_be_the_key(pair):
    router = pair[0]
    start(router, {"sticky": {"cookie": "session"}}, steps=[hold(50)], shield=NO_SECOND_TRY)
    for session in "abcdefgh":
        assert len(set(versions(router, 4, Cookie=f"theme=dark; session={session}"))) == 1


def test_r13_nobody_can_make_up_a_key_that_lands_on_the_canary(pair):
    """The salt is drawn when the rollout starts: the same keys land elsewhere in the next one."""
    router = pair[0]
    placed = []
    for _ in range(2):
        start(router, {"sticky": {"header": "x-user"}}, steps=[hold(50)], shield=NO_SECOND_TRY)
        placed.append([versions(router, 1, **{"x-user": str(i)})[0] for i in range(60)])
        router.command("abort")
    assert placed[0] != placed[1]


def test_r13_a_header_reaches_the_canary_only_where_it_is_configured(pair):
    router, _, canary = pair
    start(router, {}, steps=[hold(0.0001)])
    for header in ("x-cohort", "x-canary", "X-Canary", "x-serin-force-version"):
        assert set(versions(router, 10, **{header: "beta"})) == {"1"}
    assert canary.served == 0


def test_a_cohort_is_served_by_the_canary_and_compared_with_nobody(pair):
    router, _, canary = pair
    start(router, {"cohort": {"header": "x-cohort", "values": ["beta"]}}, steps=[hold(0.0001)])
    assert set(versions(router, 20, **{"X-Cohort": "beta"})) == {"2"}
    assert set(versions(router, 20, **{"X-Cohort": "gamma"})) == {"1"}
    canary.faults = Faults(error_rate=1)
    assert {status for status, _, _ in ask(router.url, 50, headers={"x-cohort": "beta"})} == {200}, "the shield holds for them as well"
    rollout = router.rollout()
    assert rollout["phase"] == "Progressing" and rollout["answers"]["canary"] >= 60
    router.command("abort")
    assert set(versions(router, 5, **{"x-cohort": "beta"})) == {"1"}


def test_the_baseline_arm_is_what_the_canary_is_compared_with(route, backend):
    """Version 1 on fresh machines is as slow as the canary on fresh machines: that says nothing about version 2."""
    stable, fresh, canary = backend("1"), backend("1-fresh", delay=0.1), backend("2", delay=0.1)
    router = route(service(stable, fresh, canary))
    wait_until(lambda: router.healthy("2") == 1 and router.healthy("1-fresh") == 1, 10, "health checked")
    with Traffic(router.url, clients=3) as traffic:
        wait_until(lambda: traffic.answers > 400, 30, "stable's latencies known")
        start(router, {"baseline": "1-fresh"}, steps=[hold(20)], shield={"hedge": "off"})
        wait_until(lambda: canary.inferences > 100 and fresh.inferences > 60, 60, "both fresh arms serve")
        assert router.rollout()["phase"] == "Progressing"
        canary.faults = Faults(error_rate=1)
        assert router.wait_for("RolledBack")["cause"] == "err"
    assert traffic.failures == []


def test_nothing_is_evidence_while_the_baseline_arm_is_down(route, backend):
    """What goes wrong for everybody would otherwise be seen on the canary alone."""
    stable, fresh, canary = backend("1"), backend("1-fresh"), backend("2")
    router = route(service(stable, fresh, canary))
    fresh.healthy = False
    wait_until(lambda: router.healthy("2") == 1 and router.healthy("1-fresh") == 0, 10, "health checked")
    stable.faults = canary.faults = Faults(error_rate=0.5)
    start(router, {"baseline": "1-fresh"}, steps=[hold(20)])
    with Traffic(router.url, clients=3):
        wait_until(lambda: canary.inferences > 100, 30, "an outage of all")
        rollout = router.rollout()
        assert rollout["phase"] == "Progressing" and rollout["answers"]["canary"] == 0
        stable.faults = canary.faults = Faults()
        fresh.healthy = True
        router.wait_for_answers(50)


def test_r2_a_baseline_that_is_not_there_is_400(pair):
    refused = pair[0].post("/v1/rollouts", {"service": "digits", "canary": {"version": "2", "baseline": "9"}})
    assert refused.status == 400 and "'9'" in refused.error


def test_blue_green_switches_everything_when_a_person_says_so(pair):
    router, stable, canary = pair
    start(router, {}, steps="blue-green", certify={"margin": "20%"})
    with Traffic(router.url, clients=3) as traffic:
        wait_until(lambda: router.rollout()["phase"] == "Paused", 40, "green is certified on copies")
        assert set(traffic.versions) == {"1"}, "and has served nobody"
        assert router.command("resume").status == 200
        wait_until(lambda: traffic.versions["2"] > 100, 10, "all traffic on green")
    assert router.rollout()["weight"] == 100 and traffic.failures == []


# --- what is found ------------------------------------------------------------------------------------------------------------------


def test_an_answer_that_is_always_the_same_is_found_in_live_traffic(pair):
    router, stable, canary = pair
    stable.faults, canary.faults = Faults(label=-1), Faults(label=7)  # any label, and one
    start(router, {}, steps=[hold(50)], guard={"output": {"drift": 2, "shadow": 0}, "latency": {"floor": "1h"}})
    with Traffic(router.url, clients=3) as traffic:
        verdict = router.wait_for("RolledBack", 60)
    assert verdict["cause"].startswith("out_label_") and traffic.failures == []


def test_answers_of_another_shape_are_found_in_live_traffic(pair):
    router, _, canary = pair
    start(router, {}, steps=[hold(20)])
    with Traffic(router.url, clients=3) as traffic:
        router.wait_for_answers(200)
        canary.faults = Faults(classes=7)
        assert router.wait_for("RolledBack", 60)["cause"] == "out_form"
    assert traffic.failures == []


R11 = {
    "flapping": (lambda canary, turn: Faults(error_rate=turn % 2), "err"),
    "brown-out": (lambda canary, turn: Faults(error_rate=0.5), "err"),
    "slow-only": (lambda canary, turn: Faults(delay=0.2), "lat"),
}


@pytest.mark.parametrize("fault", R11)
def test_r11_every_kind_of_regression_is_found(pair, fault, capsys):
    router, stable, canary = pair
    faults, cause = R11[fault]
    with Traffic(router.url, clients=3) as traffic:
        wait_until(lambda: traffic.answers > 400, 30, "stable's latencies known")
        start(router, {}, steps=[hold(20)])
        began = time.monotonic()
        turn = 1
        canary.faults = faults(canary, turn)
        while router.rollout()["phase"] == "Progressing" and time.monotonic() < began + 60:
            turn += 1
            canary.faults = faults(canary, turn)
            time.sleep(0.05)
        rollout = router.rollout()
    with capsys.disabled():
        print(f"\n  {fault}: found after {time.monotonic() - began:.1f} s, {rollout['answers']['canary']} answers of the canary")
    assert rollout["cause"].startswith(cause) and traffic.failures == []


def test_a_rehearsing_guard_says_what_it_would_have_done(pair):
    router, _, canary = pair
    canary.faults = Faults(error_rate=1)
    start(router, {}, steps=[hold(20)], dryRun=["err"])
    with Traffic(router.url, clients=3) as traffic:
        wait_until(lambda: router.rollout()["dry_run"], 20, "the rehearsed verdict")
        router.wait_for_answers(50)
    rollout = router.rollout()
    assert rollout["phase"] == "Progressing" and rollout["weight"] == 20 and traffic.failures == []
    assert rollout["dry_run"][0]["guard"] == "err" and "e-value" in rollout["dry_run"][0]["reason"]
    assert next(line for line in rollout["evidence"] if line["guard"] == "err")["dry_run"]


# --- why --------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def cli(pair):
    router = pair[0]
    return lambda *arguments: serin("rollout", *arguments, "--admin", f"127.0.0.1:{router.ports['admin']}")


def test_a_verdict_is_explained_and_decided_again(cli, pair):
    router, _, canary = pair
    canary.faults = Faults(error_rate=0.7)
    start(router, {}, steps=[hold(20)])
    with Traffic(router.url, clients=3):
        router.wait_for("RolledBack")
    for name in ("digits-1", "digits"):
        done = cli("explain", name)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert "digits-1: canary 2 compared with stable 1, RolledBack" in lines[0] and "e-value" in lines[1]
        assert "does it come from the canary more often" in done.stdout and "rolls back at 11.7 bits" in done.stdout
        assert lines[-1].startswith("decided again from this record alone: rolled back by event")
    record = json.loads(cli("explain", "digits-1", "--json").stdout)["record"]
    assert record["guard"] == "err" and record["events"][-1]["arm"] == "canary"
    assert cli("explain", "digits-9").returncode == 1


def test_a_persons_decision_needs_no_evidence(cli, pair):
    start(pair[0], {}, steps=[hold(20)])
    cli("abort", "digits", "--reason", "wrong file")
    done = cli("explain", "digits")
    assert done.returncode == 0 and "wrong file" in done.stdout and "decided by a person" in done.stdout


def test_undo_brings_the_old_version_back_at_once(cli, pair):
    router, stable, canary = pair
    start(router, {}, steps=[hold(20)])
    assert cli("undo", "digits").returncode == 1
    cli("promote", "digits")
    router.wait_for("Succeeded")
    with Traffic(router.url, clients=3) as traffic:
        wait_until(lambda: traffic.versions["2"] > 50, 10, "the new version serves")
        done = cli("undo", "digits", "--reason", "customers complain")
        assert done.returncode == 0 and "stable version 1" in done.stdout
        seen = canary.inferences
        wait_until(lambda: traffic.versions["1"] > 100, 10, "the old version serves again")
        assert canary.inferences <= seen + 3
    assert traffic.failures == [] and router.history()[-1]["event"] == "undone"
    assert json.loads(cli("retry", "digits", "--json").stdout)["rollout"]["weight"] == 20
