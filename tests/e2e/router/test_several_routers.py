"""Three routers that share their rollouts through three etcd members, while etcd, the network and the routers fail one after the other.

What must hold whatever happens: traffic goes on, no weight rises that a majority has not agreed on, and no verdict is lost.
"""

import concurrent.futures
import contextlib
import json
import os
import signal
import time

import pytest

from backends import Faults
from conftest import serin, wait_until
from etcd import text64
from etcd_group import EtcdGroup, clusters_in
from router_group import HOLD
from routers import AppliedWeight, reload, spec
from traffic import Traffic, ask

LONG = bool(os.environ.get("SERIN_LONG"))
RUNS = 200 if LONG else 10


@pytest.fixture(scope="module")
def clusters(tmp_path_factory):
    with clusters_in(tmp_path_factory) as clusters:
        yield clusters


@pytest.fixture
def group(tmp_path, backend, clusters):
    with contextlib.ExitStack() as stack:
        group = EtcdGroup(tmp_path, clusters(), [backend("1"), backend("2")], stack)
        group.settled()
        yield group


def test_what_the_leader_was_asked_all_do_and_any_router_may_be_asked(group):
    follower = next(name for name in "abc" if name != group.leader())
    group.start(25)
    shared = [{key: router.status()[key] for key in ("stable", "epoch")} for router in group.all()]
    assert shared[0] == shared[1] == shared[2]
    asked = serin("rollout", "set-weight", "digits", "40", "--admin", group.routers[follower].admin)
    assert asked.returncode == 0, asked.stderr  # follows the redirection to who leads
    group.wait_for_weight(40)
    assert serin("rollout", "abort", "digits", "--reason", "enough", "--admin", group.routers[follower].admin).returncode == 0
    group.wait_for_phase("RolledBack")
    assert group.weights() == [0, 0, 0]
    for router in group.all():
        done = serin("rollout", "history", "digits", "--verify", "--admin", router.admin)
        assert done.returncode == 0, done.stdout
        assert [entry["event"] for entry in router.history()][-1] == "rolled_back"
    metrics = group.routers[group.leader()].metrics()
    for name in ("serin_route_leader 1", "serin_route_replicas 3", "serin_route_store_reachable 1", "serin_route_store_untold_verdicts 0"):
        assert name in metrics


def test_what_one_router_sees_rolls_back_all(group):
    stable, canary = group.backends
    group.start(25)
    canary.faults = Faults(error_rate=1)
    follower = next(name for name in "abc" if name != group.leader())
    with Traffic(group.routers[follower].url, clients=2) as traffic:
        group.wait_for_phase("RolledBack")
    assert group.weights() == [0, 0, 0] and set(traffic.statuses) == {200}
    seen = canary.inferences
    for router in group.all():
        ask(router.url, 50)
    assert canary.inferences == seen
    assert {router.rollout()["cause"] for router in group.all()} == {"err"}
    wait_until(lambda: json.loads(group.etcd.keys()["/serin/live/state/digits"])["rollout"]["phase"] == "RolledBack", 10, "in the store")
    for router in group.all():
        assert serin("rollout", "explain", "digits", "--admin", router.admin).returncode == 0


def test_several_canaries_at_once(tmp_path, backend, clusters):
    """Each has one weight at all routers and one verdict; a promotion reaches all, and a new leader goes on with it."""
    with contextlib.ExitStack() as stack:
        backends = [backend(version) for version in "123"]
        group = EtcdGroup(tmp_path, clusters(), backends, stack, rollouts=2)
        leader = group.settled()
        wait_until(lambda: all(router.healthy("3") == 1 for router in group.all()), 10, "health checked")
        for canary, weight in (("2", 10), ("3", 30)):
            asked = spec(canary=canary, steps=[{"setWeight": weight, **HOLD}])
            wait_until(lambda: group.routers[leader].post("/v1/rollouts", asked).status == 201, 15, f"version {canary} started")

        def weight(version):
            return {router.metric("serin_route_weight_ppm", service="digits", version=version) for router in group.all()}

        wait_until(lambda: weight("2") == {100_000} and weight("3") == {300_000}, 15, "both at all routers")
        backends[1].faults = Faults(error_rate=1)
        follower = next(name for name in "abc" if name != leader)
        with Traffic(group.routers[follower].url, clients=2) as traffic:
            group.wait_for_phase("RolledBack")
        assert set(traffic.statuses) == {200}
        assert weight("2") == {0} and weight("3") == {300_000}, "the other one goes on at all of them"
        wait_until(lambda: group.routers[leader].command("promote", name="digits~2").status == 200, 15, "promoted")
        wait_until(lambda: {router.status()["stable"] for router in group.all()} == {"3"}, 20, "stable at all of them")
        wait_until(lambda: weight("3") == {1_000_000}, 10, "with all traffic")
        wait_until(lambda: {router.rollout("digits~2")["phase"] for router in group.all()} == {"Succeeded"}, 10, "written down by the leader")
        group.routers[leader].kill()
        left = [name for name in "abc" if name != leader]
        assert group.leader(left) in left
        for name in left:
            router = group.routers[name]
            assert router.status()["stable"] == "3" and {headers["x-serin-version"] for _, headers, _ in ask(router.url, 20)} == {"3"}


def test_what_all_see_together_is_judged_together(group):
    """The leader's judge has the answers of all three, not only its own third."""
    _, canary = group.backends
    group.start(10)
    leader = group.leader()
    with contextlib.ExitStack() as stack:
        clients = {name: stack.enter_context(Traffic(group.routers[name].url, clients=1, pause=0.01)) for name in "abc"}
        wait_until(lambda: group.routers[leader].metric("serin_route_sightings_received_total") > 300, 15, "sightings")
        judged = group.routers[leader].rollout()["answers"]
        own = sum(clients[leader].statuses.values())
        assert judged["stable"] + judged["canary"] > 1.5 * own
        canary.faults = Faults(error_rate=0.6)
        group.wait_for_phase("RolledBack", seconds=30)
    assert group.routers[leader].rollout()["cause"] == "err"


def test_etcds_leader_killed(group):
    group.start(25)
    group.etcd.leader().kill()
    group.etcd.leader()  # the next one
    answers = []

    def changed():
        answers.append(group.set_weight(group.leader(), 30))
        return answers[-1].status == 200
    wait_until(changed, 30, f"a change by the next leader of etcd: {[answer.body for answer in answers[-3:]]}")
    group.wait_for_weight(30)
    assert group.routers[group.leader()].command("abort").status == 200
    group.wait_for_phase("RolledBack")


def test_etcds_leader_parted_from_the_other_two(group):
    """Routers reach all three members, but what the one alone knows is old, and it can agree to nothing."""
    group.start(25)
    alone = group.etcd.leader()
    group.etcd.part([alone])
    wait_until(lambda: group.set_weight(group.leader(), 30).status == 200, 30, "a change by the majority")
    group.wait_for_weight(30)
    old = json.loads(group.etcd.keys_known_to(alone)["/serin/live/state/digits"])
    assert old["rollout"]["weight_ppm"] == 250_000
    follower = next(name for name in "abc" if name != group.leader())
    group.routers[follower].kill()
    behind = group.launch(follower, endpoints=[alone.url])
    ask(behind.url, 50)
    assert group.weights(follower) <= [25] and not group.replicas(behind)["store_reachable"]
    assert group.set_weight(follower, 90).status in (307, 503)
    group.etcd.unite()
    group.wait_for_weight(30)
    group.settled()
    assert group.routers[group.leader()].command("abort").status == 200
    group.wait_for_phase("RolledBack")


def test_etcds_members_all_parted_from_each_other(group):
    """Nobody is down and every router reaches every member, and there is no majority: nothing rises, and a verdict is not lost."""
    _, canary = group.backends
    group.start(25)
    group.etcd.part(*([member] for member in group.etcd.members))
    wait_until(lambda: all(not group.replicas(router)["store_reachable"] for router in group.all()), 20, "noticed")
    for name in "abc":
        assert group.set_weight(name, 90).status in (307, 503)
    assert group.weights() == [25, 25, 25]
    canary.faults = Faults(error_rate=1)
    with Traffic(group.routers["b"].url, clients=2) as traffic:
        wait_until(lambda: group.weights() == [0, 0, 0], 15, "a verdict of one acts at all, past etcd")
    assert set(traffic.statuses) == {200}
    group.etcd.unite()
    group.settled()
    wait_until(lambda: json.loads(group.etcd.keys()["/serin/live/state/digits"])["rollout"]["phase"] == "RolledBack", 20, "in the store")
    assert group.weights() == [0, 0, 0]


def test_compacted_while_a_router_does_not_hear(group):
    group.start(25)
    deaf = next(name for name in "abc" if name != group.leader())
    others = "".join(name for name in "abc" if name != deaf)
    group.ways[deaf].cut()
    wait_until(lambda: group.set_weight(group.leader(others), 30).status == 200, 30, "once the deaf one is not counted any more")
    group.wait_for_weight(30, others)
    assert group.weights(deaf) == [25]
    member = group.etcd.leader()
    revision = member.call("/v3/kv/range", {"key": text64("/serin/live/leader")})["header"]["revision"]
    member.call("/v3/kv/compaction", {"revision": revision, "physical": True})
    group.ways[deaf].mend()
    group.wait_for_weight(30)
    group.settled()
    assert group.set_weight(group.leader(), 35).status == 200
    group.wait_for_weight(35)


def test_what_was_done_without_an_answer_is_not_done_twice(group):
    """etcd has written it, and the router cannot know: it asks again and again, and finds its own work."""
    group.start(25)
    leader = group.leader()
    way = group.ways[leader]
    way.lose_answers_about("/serin/live/state/digits")
    assert group.set_weight(leader, 30).status == 503
    assert json.loads(group.etcd.keys()["/serin/live/state/digits"])["rollout"]["weight_ppm"] == 300_000, "done, although nobody was told"
    assert group.weights(leader) == [25]
    way.mend()
    group.wait_for_weight(30)
    router = group.routers[leader]
    assert [entry["event"] for entry in router.history()] == ["started", "weight"]
    assert serin("rollout", "history", "digits", "--verify", "--admin", router.admin).returncode == 0


def test_a_leader_whose_lease_is_taken_away(group):
    """It lives, etcd lives, and it does not lead any more: it must notice before it writes."""
    group.start(25)
    old = group.leader()
    member = group.etcd.leader()
    held = member.call("/v3/kv/range", {"key": text64("/serin/live/leader")})["kvs"][0]["lease"]
    assert member.call("/v3/lease/revoke", {"ID": held})
    answer = group.set_weight(old, 30)
    assert answer.status in (200, 307, 503), answer.body  # whether it leads again by then is chance
    group.settled()
    assert group.weights() in ([25] * 3, [30] * 3)
    wait_until(lambda: group.set_weight(group.leader(), 35).status == 200, 15, "a change by who leads now")
    group.wait_for_weight(35)
    log = [entry["id"] for entry in group.routers[old].history()]
    assert log == list(range(1, len(log) + 1))


def test_configurations_read_again_one_router_after_the_other(group):
    """No request is lost, the rollout stays where it is, and who is read again is one of them again, with the evidence it had."""
    group.start(25)
    with contextlib.ExitStack() as stack:
        traffic = [stack.enter_context(Traffic(router.url, clients=1)) for router in group.all()]
        for name, router in group.routers.items():
            router.wait_for_answers(20)
            before = router.rollout()["answers"]["canary"]
            follows = group.leader() != name
            assert reload(router)
            group.settled()
            if follows and group.leader() != name:
                assert router.rollout()["answers"]["canary"] >= before
            assert group.weights() == [25, 25, 25]
        seen = [one.answers for one in traffic]
        wait_until(lambda: all(one.answers > count + 50 for one, count in zip(traffic, seen)), 20, "traffic goes on")
    assert [one.failures for one in traffic] == [[], [], []]
    wait_until(lambda: group.set_weight(group.leader(), 30).status == 200, 15, "a change by who leads")
    group.wait_for_weight(30)
    assert group.routers["b"].command("abort").status == 200
    group.wait_for_phase("RolledBack")


def test_the_leader_of_the_routers_cut_off_from_etcd_raises_nothing_and_another_leads(group):
    group.start(25)
    old = group.leader()
    others = "".join(name for name in "abc" if name != old)
    group.ways[old].cut()
    new = group.leader(among=others)
    assert new != old
    refused = group.set_weight(old, 90)
    assert refused.status in (307, 503), refused.body
    assert group.set_weight(new, 30).status == 200
    group.wait_for_weight(30, others)
    assert group.weights(old) == [25]  # as it was: it neither rises nor falls without a reason
    assert group.routers[new].command("abort").status == 200
    wait_until(lambda: group.weights() == [0, 0, 0], 5, "told directly, past etcd")
    group.ways[old].mend()
    group.settled()
    group.wait_for_phase("RolledBack")


def test_a_leader_that_was_stopped_for_longer_than_its_lease(group):
    group.start(25)
    old = group.leader()
    others = "".join(name for name in "abc" if name != old)
    group.routers[old].process.send_signal(signal.SIGSTOP)
    try:
        new = group.leader(among=others)
        assert group.set_weight(new, 20).status == 200
        group.wait_for_weight(20, others)
    finally:
        group.routers[old].process.send_signal(signal.SIGCONT)
    group.wait_for_weight(20)
    assert group.settled() == new
    assert group.set_weight(new, 30).status == 200
    group.wait_for_weight(30)


def test_without_a_majority_nothing_rises_and_a_verdict_is_not_lost(group):
    _, canary = group.backends
    group.start(25)
    for member in group.etcd.followers():
        member.freeze()
    wait_until(lambda: all(not group.replicas(router)["store_reachable"] for router in group.all()), 15, "noticed")
    for name in "abc":
        assert group.set_weight(name, 90).status in (307, 503)
    assert max(group.weights()) <= 25
    canary.faults = Faults(error_rate=1)
    follower = next(name for name in "abc" if name != group.replicas(group.routers["a"])["leader"])
    with Traffic(group.routers[follower].url, clients=2) as traffic:
        wait_until(lambda: group.weights() == [0, 0, 0], 15, "a verdict of one acts at all, past etcd")
    assert set(traffic.statuses) == {200}
    group.routers[follower].kill()  # before etcd has heard of it
    for member in group.etcd.members:
        member.thaw()
    group.launch(follower)
    group.settled()
    group.wait_for_phase("RolledBack")
    state = json.loads(group.etcd.keys()["/serin/live/state/digits"])
    assert state["rollout"]["phase"] == "RolledBack" and state["rollout"]["weight_ppm"] == 0


def test_without_etcd_each_router_still_acts_alone(group):
    _, canary = group.backends
    group.start(25)
    for way in group.ways.values():
        way.cut()
    group.routers["a"].kill()
    alone = group.launch("a")  # from what is on its disk
    assert alone.metric("serin_route_weight_ppm", version="2") <= 250_000
    canary.faults = Faults(error_rate=1)
    with Traffic(alone.url, clients=2) as traffic:
        wait_until(lambda: alone.rollout()["phase"] == "RolledBack", 20, "a verdict of its own")
    assert set(traffic.statuses) == {200}
    assert alone.status()["replicas"]["untold_verdicts"] == 1
    for way in group.ways.values():
        way.mend()
    group.settled()
    group.wait_for_phase("RolledBack")
    wait_until(lambda: alone.status()["replicas"]["untold_verdicts"] == 0, 10, "handed in")


def test_r14_the_shared_history_is_bounded(group):
    """Ten thousand entries are kept. Most are put there by hand: a real one takes its time."""
    group.start(25)
    member, state = group.etcd.leader(), json.loads(group.etcd.keys()["/serin/live/state/digits"])
    template = group.etcd.keys("/serin/audit/").popitem()[1]
    for first in range(2, 9_991, 100):
        member.put({f"/serin/audit/digits/{number:012}": template for number in range(first, min(first + 100, 9_991))})
    state["log"]["entries"] = 9_990
    del state["mark"]
    member.put({"/serin/live/state/digits": json.dumps(state)})
    for turn in range(20):
        wait_until(lambda weight=10 + turn: group.set_weight(group.leader(), weight).status == 200, 20, "changed")
    kept = sorted(int(key.rsplit("/", 1)[1]) for key in group.etcd.keys("/serin/audit/"))
    assert kept[-1] >= 10_010 and kept == list(range(kept[-1] - 9_999, kept[-1] + 1))


def test_users_and_a_group_that_is_full(group, tmp_path):
    member = group.etcd.leader()
    for path, body in (("/v3/auth/user/add", {"name": "root", "password": "secret"}), ("/v3/auth/role/add", {"name": "root"}),
                       ("/v3/auth/user/grant", {"user": "root", "role": "root"}), ("/v3/auth/enable", {})):
        member.call(path, body)
    wait_until(lambda: not group.replicas(group.routers["a"])["store_reachable"], 10, "etcd wants to know who asks")
    password = tmp_path / "password"
    token = member.call("/v3/auth/authenticate", {"name": "root", "password": "secret"})["token"]
    for said in ("wrong\n", "secret\n"):
        password.write_text(said)
        for name in "abc":
            group.routers[name].kill()
        # Otherwise those that are gone would count below until their leases end.
        everything = {"key": "AA==", "range_end": "AA==", "limit": 0}
        wait_until(lambda: not [each for each in member.call("/v3/kv/range", everything, token=token).get("kvs", ()) if "lease" in each], 20, "leases over")
        for name in "abc":
            group.launch(name, user="root", password_file=str(password))
        if said == "wrong\n":
            wait_until(lambda: "authentication failed" in group.routers["a"].log, 10, "the reason in the log")
            assert ask(group.routers["a"].url, 1)[0][0] == 200
    group.settled()
    group.start(25)

    home = tmp_path / "d"
    home.mkdir()
    config = json.loads((tmp_path / "a" / "router.yaml").read_text())
    config["store"]["file"], config["replicas"]["name"] = str(home / "router.db"), "d"
    (home / "router.yaml").write_text(json.dumps(config))
    done = serin("route", "--config", home / "router.yaml", timeout=20)
    assert done.returncode == 2 and "3 routers share this store already" in done.stderr


@pytest.mark.parametrize("stopped", [False, True], ids=["etcd-healthy", "etcd-stopped"])
def test_how_long_three_routers_take_to_agree_on_a_rollback(group, stopped):
    """Prints it; a bound on a busy machine would be a coin. Looks at the words that the data paths read, not at what the routers say."""
    pages = {name: AppliedWeight(group.folder / name / "router.db") for name in "abc"}
    apart, answered = [], []
    with concurrent.futures.ThreadPoolExecutor(1) as person:
        for turn in range(RUNS):
            group.start(25)
            wait_until(lambda: all(page.ppm() == 250_000 for page in pages.values()), 10, "in force everywhere")
            for member in group.etcd.members if stopped else []:
                member.freeze()
            begin = time.monotonic()
            asked = person.submit(group.routers["abc"[turn % 3]].command, "abort")
            fallen = {}
            while len(fallen) < 3 and time.monotonic() < begin + 20:
                now = time.monotonic()
                fallen.update((name, now) for name, page in pages.items() if name not in fallen and page.ppm() == 0)
                time.sleep(0.0002)
            assert len(fallen) == 3 and asked.result().status == 200
            answered.append(time.monotonic() - begin)
            apart.append(max(fallen.values()) - min(fallen.values()))
            for member in group.etcd.members if stopped else []:
                member.thaw()
            group.wait_for_phase("RolledBack")
    for what, took in (("from the first router's weight at 0 to the last one's", apart), ("from asking to the answer, which is on disk", answered)):
        took = sorted(1000 * seconds for seconds in took)
        print(f"{what}: p50 {took[RUNS // 2]:.1f} ms, p99 {took[RUNS * 99 // 100]:.1f} ms, longest of {RUNS} {took[-1]:.1f} ms")
