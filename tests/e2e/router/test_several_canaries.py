"""Several rollouts of one service at once, and plain splits: who gets what, who is judged, who is promoted, and what a crash leaves."""

import collections

import pytest

from backends import Faults
from conftest import call, serin, wait_until
from routers import NO_SECOND_TRY, hold, reload, service, spec, write_config
from traffic import Traffic, ask


@pytest.fixture
def trio(route, backend):
    """(begin, backends): begin() is a router on one store whose service permits three rollouts; versions 1 (stable), 2, 3 and 4."""
    backends = [backend(version) for version in "1234"]

    def begin(**more):
        router = route(service(*backends, rollouts=3, **more))
        wait_until(lambda: all(router.healthy(version) == 1 for version in "1234"), 10, "health checked")
        return router

    return begin, backends


def shares(router, count, **headers):
    seen = collections.Counter(found["x-serin-version"] for _, found, _ in ask(router.url, count, headers=headers))
    return {version: seen[version] / count for version in seen}


def begin_two(router, first=10, second=20, **more):
    router.start_rollout(canary="2", steps=[hold(first)], shield=NO_SECOND_TRY, **more)
    started = router.start_rollout(canary="3", steps=[hold(second)], shield=NO_SECOND_TRY, **more)
    assert started["service"] == "digits~2" and started["rollout"]["id"].startswith("digits~2-")


def test_each_canary_gets_its_weight_and_its_verdict(trio):
    begin, (_, _, third, _) = trio
    router = begin()
    begin_two(router)
    seen = shares(router, 3000)
    assert abs(seen["2"] - 0.1) < 0.03 and abs(seen["3"] - 0.2) < 0.04 and abs(seen["1"] - 0.7) < 0.05
    assert router.metric("serin_route_weight_ppm", service="digits", version="1") == 700_000
    assert router.metric("serin_route_weight_ppm", service="digits", version="3") == 200_000
    shown = serin("rollout", "status", "digits", "--admin", router.admin).stdout
    assert "digits: stable version 1" in shown and "digits~2: stable version 1" in shown
    for name in ("digits", "digits~2"):
        answers = router.rollout(name)["answers"]
        assert answers["stable"] > 1900, "an answer of stable counts for both"
    third.faults = Faults(error_rate=0.5)
    with Traffic(router.url, clients=2):
        wait_until(lambda: router.rollout("digits~2")["phase"] == "RolledBack", 30, "version 3 is out")
    assert router.rollout("digits~2")["cause"] == "err"
    assert router.rollout()["phase"] == "Progressing", "version 2 goes on"
    seen = shares(router, 1000)
    assert "3" not in seen and seen["2"] > 0.05
    assert [entry["event"] for entry in router.history("digits~2")][-1] == "rolled_back"


def test_a_bad_canary_takes_no_good_one_with_it_and_all_are_named(trio):
    """Three at once, two of them bad in different ways; alpha is divided among them."""
    begin, (_, second, third, _) = trio
    router = begin()
    begin_two(router, 10, 10)
    assert router.start_rollout(canary="4", steps=[hold(10)], shield=NO_SECOND_TRY)["service"] == "digits~3"
    second.faults, third.faults = Faults(error_rate=0.3), Faults(delay=0.3)
    with Traffic(router.url, clients=4):
        wait_until(lambda: router.rollout()["phase"] == router.rollout("digits~2")["phase"] == "RolledBack", 60, "both are out")
    assert router.rollout()["cause"] == "err"
    assert router.rollout("digits~3")["phase"] == "Progressing"
    listed = call(router.admin + "/v1/rollouts").json["rollouts"]
    assert {status["service"]: status["rollout"]["canary"] for status in listed} == {"digits": "2", "digits~2": "3", "digits~3": "4"}
    # ln(3 / 0.001) instead of ln(1 / 0.001): a third of alpha each
    evidence = {entry["guard"]: entry["bits_to_trip"] for entry in router.rollout()["evidence"]}
    assert evidence["err"] > 12


def test_a_fourth_is_refused_and_so_are_two_of_one_version(trio):
    begin, _ = trio
    router = begin()
    begin_two(router)
    again = router.post("/v1/rollouts", spec(canary="3", steps=[hold(5)]))
    assert again.status == 400 and "is the canary of rollout" in again.json["error"]
    baseline = router.post("/v1/rollouts", spec(canary={"version": "4", "baseline": "1"}, stable="2", steps=[hold(5)]))
    assert baseline.status == 400
    router.start_rollout(canary="4", steps=[hold(5)])
    full = router.post("/v1/rollouts", spec(canary="4", steps=[hold(5)]))
    assert full.status == 409 and "3 rollouts in progress" in full.json["error"]
    other = router.command("abort", name="digits~3")
    assert other.status == 200
    deadline = router.post("/v1/rollouts", spec(canary="4", steps=[hold(5)], guard={"latency": {"deadline": "2s"}}))
    assert deadline.status == 400 and "deadline" in deadline.json["error"]


def test_weights_that_do_not_fit_are_lowered_alike(trio):
    begin, _ = trio
    router = begin()
    begin_two(router, 60, 80)
    seen = shares(router, 2000)
    assert all(abs(seen[version] - share) < 0.05 for version, share in {"1": 0.1, "2": 0.45, "3": 0.45}.items())
    shown = router.rollout()
    assert shown["weight"] == 45 and "stable keeps 10 %" in shown["note"]
    router.command("abort", name="digits~2")
    assert abs(shares(router, 1000)["2"] - 0.6) < 0.08 and router.rollout()["weight"] == 60


def test_users_stay_where_they_are(trio):
    begin, _ = trio
    router = begin()
    for canary in "23":
        router.start_rollout(canary={"version": canary, "sticky": {"header": "x-user", "salt": "same"}}, steps=[hold(30)], shield=NO_SECOND_TRY)
    users = [f"user {i}" for i in range(150)]
    where = {user: shares(router, 3, **{"x-user": user}) for user in users}
    assert all(len(seen) == 1 for seen in where.values())
    count = collections.Counter(next(iter(seen)) for seen in where.values())
    assert all(count[version] > 20 for version in "123"), count
    router.command("abort", name="digits~2")
    after = {user: next(iter(shares(router, 1, **{"x-user": user}))) for user in users}
    assert all(after[user] == "2" for user in users if where[user] == {"2": 1.0}), "who was on version 2 stays there"
    assert "3" not in after.values()


def test_the_one_that_a_person_promotes_ends_the_others(trio):
    begin, _ = trio
    router = begin()
    begin_two(router)
    with Traffic(router.url, clients=2) as traffic:
        wait_until(lambda: traffic.answers > 100, 20, "traffic")
        assert router.command("promote", name="digits~2").status == 200
        wait_until(lambda: router.status()["stable"] == "3", 20, "version 3 is stable")
    assert traffic.failures == []
    wait_until(lambda: set(shares(router, 50)) == {"3"}, 10, "its weight rises once the promotion is stored")
    assert router.rollout("digits~2")["phase"] == "Succeeded"
    other = router.rollout()
    assert (other["phase"], other["cause"]) == ("RolledBack", "superseded") and "version '3' is promoted" in other["reason"]
    assert router.status("digits~2")["stable"] == "3"
    undone = router.command("undo", name="digits~2")
    assert undone.status == 200
    assert router.status()["stable"] == "1" and wait_until(lambda: set(shares(router, 20)) == {"1"}, 10, "undone")
    assert router.command("undo").status == 409


def test_none_is_promoted_by_itself_while_another_runs(trio):
    begin, _ = trio
    router = begin()
    router.start_rollout(canary="2", steps=[30], shield=NO_SECOND_TRY)
    router.start_rollout(canary="3", steps=[hold(30)], shield=NO_SECOND_TRY)
    with Traffic(router.url, clients=2):
        wait_until(lambda: "every step has passed" in router.rollout()["note"], 30, "every step has passed")
        assert router.rollout()["phase"] == "Progressing" and router.rollout()["weight"] == 30
        router.command("abort", name="digits~2")
        router.wait_for("Succeeded")
        wait_until(lambda: set(shares(router, 20)) == {"2"}, 10, "promoted")
    assert router.status("digits~2")["stable"] == "2", "the next rollout is compared with it"
    started = router.start_rollout(canary="3", steps=[hold(5)])
    assert started["rollout"]["stable"] == "2"


def test_a_crash_keeps_every_rollout_and_a_promotion_all_of_it(trio):
    begin, _ = trio
    router = begin()
    begin_two(router)
    router.kill()
    router = begin()
    assert router.rollout()["weight"] == 10 and router.rollout("digits~2")["weight"] == 20
    seen = shares(router, 1000)
    assert seen["2"] > 0.05 and seen["3"] > 0.1
    router.command("promote", name="digits~2")
    # The history is read from the store, where the service's record comes before the track's. A status may be ahead of it.
    wait_until(lambda: router.history("digits~2")[-1]["event"] == "promoted", 20, "promoted")
    router.kill()
    router = begin()
    assert set(shares(router, 20)) == {"3"} and router.status()["stable"] == router.status("digits~2")["stable"] == "3"
    assert router.rollout("digits~2")["phase"] == "Succeeded"


def test_a_reload_ends_no_rollout(trio, tmp_path):
    begin, backends = trio
    router = begin()
    begin_two(router)
    before = router.rollout("digits~2")["answers"]["stable"]
    for refused in ({"rollouts": 1}, {"split": {"weights": {"1": 100}}}):
        write_config(tmp_path, service(*backends, **refused))
        assert not reload(router)
    ask(router.url, 50)
    assert router.rollout("digits~2")["answers"]["stable"] > before
    write_config(tmp_path, service(*backends, rollouts=2))
    assert reload(router)
    assert router.rollout()["weight"] == 10 and router.rollout("digits~2")["weight"] == 20
    seen = shares(router, 1000)
    assert seen["2"] > 0.05 and seen["3"] > 0.1
    router.command("abort", name="digits~2")
    again = router.command("retry", name="digits~2")
    assert again.status == 200 and again.json["service"] == "digits~2" and again.json["rollout"]["canary"] == "3"


def test_a_track_that_is_gone_at_a_start_is_over(trio, route):
    begin, backends = trio
    router = begin()
    begin_two(router)
    router.kill()
    router = route(service(*backends))
    assert router.rollout()["weight"] == 10 and "3" not in shares(router, 200)
    router.kill()
    router = begin()
    ended = router.rollout("digits~2")
    assert (ended["phase"], ended["cause"]) == ("RolledBack", "configuration")
    assert router.history("digits~2")[-1]["event"] == "rolled_back"


def test_copies_and_replays_find_each_wrong_canary(trio):
    begin, (_, second, _, _) = trio
    router = begin()
    second.faults = Faults(label=5)
    for canary in "23":
        router.start_rollout(canary=canary, steps=[{"shadow": {"percent": 100}}, hold(5)])
    with Traffic(router.url, clients=2) as traffic:
        wait_until(lambda: router.rollout()["phase"] == "RolledBack", 30, "version 2 is wrong")
        wait_until(lambda: router.rollout("digits~2")["shadow"]["compared"] > 0, 30, "version 3 is compared, too")
    assert traffic.failures == [] and router.rollout()["cause"].startswith("shadow")
    good = router.rollout("digits~2")
    assert good["phase"] == "Progressing" and good["shadow"]["mismatches"] == 0


def test_a_service_that_permits_one_has_no_further_track(pair):
    router = pair[0]
    router.start_rollout(steps=[hold(5)])
    second = router.post("/v1/rollouts", spec(canary="2", steps=[hold(5)]))
    assert second.status == 409
    assert router.post("/v1/rollouts", spec(name="digits~2", canary="2", steps=[hold(5)])).status == 404


# --- plain splits -------------------------------------------------------------------------------------------------------------------


def test_a_plain_split_divides_the_requests_and_judges_nobody(route, backend, tmp_path):
    backends = [backend(version) for version in "123"]
    backends[2].faults = Faults(error_rate=1)
    split = {"weights": {"1": 60, "2": 30, "3": 10}}
    router = route(service(*backends, split=split))
    wait_until(lambda: all(router.healthy(version) == 1 for version in "123"), 10, "health checked")
    seen = shares(router, 2000)
    assert all(abs(seen[version] - share) < 0.05 for version, share in {"1": 0.6, "2": 0.3, "3": 0.1}.items())
    assert router.metric("serin_route_weight_ppm", service="digits", version="2") == 300_000
    refused = router.post("/v1/rollouts", spec(steps=[hold(5)]))
    assert refused.status == 409 and "split" in refused.json["error"]
    # Read again: the weights of the file apply at once, and a version of weight 0 gets nothing.
    write_config(tmp_path, service(*backends, split={"weights": {"1": 50, "2": 50, "3": 0}, "sticky": {"header": "x-user"}}))
    assert reload(router)
    assert "3" not in shares(router, 300)
    placed = [shares(router, 3, **{"x-user": str(i)}) for i in range(40)]
    assert all(len(seen) == 1 for seen in placed) and len({next(iter(seen)) for seen in placed}) == 2


def test_a_version_of_the_split_that_is_down_leaves_its_share_to_stable(route, backend):
    backends = [backend(version) for version in "12"]
    router = route(service(*backends, split={"weights": {"1": 50, "2": 50}}))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    backends[1].down()
    wait_until(lambda: router.healthy("2") == 0, 10, "it is gone")
    assert set(shares(router, 100)) == {"1"}
