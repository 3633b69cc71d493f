"""Three routers that share their rollouts through the Kubernetes API, here one in memory that has faults on command (support/kube_api.py).

tests/kubernetes/test_store.py does the same with a real API server. The rules are those of test_several_routers.py: traffic goes on, no weight rises that is
not in the store, no verdict is lost.
"""

import contextlib
import json

import pytest

from backends import Faults
from conftest import call, serin, wait_until
from kube_api import Objects, Server
from rollout_objects import ObjectScenarios, rollout_object
from router_group import HOLD, Group
from routers import UNLIMITED_ADMIN, Router, service, spec
from traffic import Traffic, ask

RECORDS = ("serin.dev", "models", "routerrecords")
LEASES = ("coordination.k8s.io", "models", "leases")
ROLLOUTS = ("serin.dev", "models", "rollouts")


class EmulatedGroup(Group):
    def __init__(self, folder, backends, stack, **of_service):
        self.objects = Objects()
        self.ways = {name: stack.enter_context(Server(self.objects)) for name in "abc"}
        super().__init__(folder, backends, stack, **of_service)

    def shared(self, name, **options):
        return {"kubernetes": options}

    def besides(self, name):
        return {"kubernetes": {"server": self.ways[name].url, "namespace": "models", "timeout": "500ms"}}

    def records(self, kind):
        return [json.loads(each["spec"]["data"]) for each in self.objects.list(RECORDS, f"serin.dev/type={kind}")]

    def state(self):
        return self.records("state")[0]

    def apply(self, wanted):
        """As server-side apply does: what is not said stays."""
        name = wanted["metadata"]["name"]
        if any(each["metadata"]["name"] == name for each in self.objects.list(ROLLOUTS)):
            self.objects.patch(ROLLOUTS, name, wanted)
        else:
            self.objects.create(ROLLOUTS, wanted)

    def find(self, name):
        return self.objects.get(ROLLOUTS, name)

    def remove(self, name):
        self.objects.delete(ROLLOUTS, name)


@pytest.fixture
def group(tmp_path, backend):
    with contextlib.ExitStack() as stack:
        group = EmulatedGroup(tmp_path, [backend("1"), backend("2")], stack)
        group.settled()
        yield group


def test_a_rollout_of_all_three_and_a_new_leader(group):
    group.start(25)
    leader = group.leader()
    follower = next(name for name in "abc" if name != leader)
    asked = serin("rollout", "set-weight", "digits", "40", "--admin", group.routers[follower].admin)
    assert asked.returncode == 0, asked.stderr
    group.wait_for_weight(40)
    assert group.state()["rollout"]["weight_ppm"] == 400_000
    holder = group.objects.get(LEASES, "serin-router")["spec"]
    assert holder["holderIdentity"].split("/")[0] == leader and holder["leaseDurationSeconds"] == 5
    group.routers[leader].kill()
    left = "".join(name for name in "abc" if name != leader)
    new = group.leader(left)
    wait_until(lambda: group.set_weight(new, 45).status == 200, 20, "the killed one is not counted any more")
    group.wait_for_weight(45, left)
    assert group.objects.get(LEASES, "serin-router")["spec"]["leaseTransitions"] == 1
    assert serin("rollout", "abort", "digits", "--reason", "enough", "--admin", group.routers[left[0]].admin).returncode == 0
    group.wait_for_phase("RolledBack", left)
    for name in left:
        router = group.routers[name]
        events = ["started", "weight", "weight", "rolled_back"]
        wait_until(lambda router=router, events=events: [entry["event"] for entry in router.history()] == events, 10, "written by the leader")
        assert serin("rollout", "history", "digits", "--verify", "--admin", router.admin).returncode == 0
        assert serin("rollout", "explain", "digits", "--admin", router.admin).returncode == 0


def test_what_one_router_sees_rolls_back_all(group):
    group.start(25)
    group.backends[1].faults = Faults(error_rate=1)
    follower = next(name for name in "abc" if name != group.leader())
    with Traffic(group.routers[follower].url, clients=2) as traffic:
        group.wait_for_phase("RolledBack")
    assert group.weights() == [0, 0, 0] and set(traffic.statuses) == {200}
    assert {router.rollout()["cause"] for router in group.all()} == {"err"}
    wait_until(lambda: group.state()["rollout"]["phase"] == "RolledBack", 10, "in the store")
    assert group.start(30) is None  # the next rollout
    wait_until(lambda: group.records("trip") == [], 10, "trips of the earlier one are removed")


def test_the_api_is_away_for_longer_than_the_lease(group):
    """Nothing rises, a verdict acts at all routers at once and is in the store afterwards, and a router that starts meanwhile starts with its own file."""
    group.start(25)
    leader = group.leader()
    for way in group.ways.values():
        way.cut()
    wait_until(lambda: all(not group.replicas(router)["store_reachable"] for router in group.all()), 20, "noticed")
    for name in "abc":
        assert group.set_weight(name, 90).status in (307, 503)
    follower = next(name for name in "abc" if name != leader)
    group.routers[follower].kill()
    alone = group.launch(follower)
    assert alone.metric("serin_route_weight_ppm", version="2") <= 250_000
    group.backends[1].faults = Faults(error_rate=1)
    others = "".join(name for name in "abc" if name != follower)
    with Traffic(group.routers[leader].url, clients=2) as traffic:
        wait_until(lambda: group.weights(others) == [0, 0], 15, "a verdict of one acts at all, past the store")
    assert set(traffic.statuses) == {200}
    for way in group.ways.values():
        way.mend()
    group.settled()
    group.wait_for_phase("RolledBack")
    wait_until(lambda: group.state()["rollout"]["phase"] == "RolledBack", 10, "in the store")
    assert group.weights() == [0, 0, 0]


def test_a_leader_that_is_cut_off_raises_nothing_and_another_leads(group):
    group.start(25)
    old = group.leader()
    others = "".join(name for name in "abc" if name != old)
    group.ways[old].cut()
    new = group.leader(among=others)
    assert new != old and group.set_weight(old, 90).status in (307, 503)
    wait_until(lambda: group.set_weight(new, 30).status == 200, 20, "the other is not counted any more")
    group.wait_for_weight(30, others)
    assert group.weights(old) == [25]
    group.ways[old].mend()
    group.settled()
    group.wait_for_weight(30)


def test_what_was_done_without_an_answer_is_not_done_twice(group):
    group.start(25)
    leader = group.leader()
    group.ways[leader].lose_answers_of("PUT", "state")
    assert group.set_weight(leader, 30).status == 503
    assert group.state()["rollout"]["weight_ppm"] == 300_000, "done, although nobody was told"
    assert group.weights(leader) == [25]
    group.ways[leader].lose_answers_of(None)
    group.wait_for_weight(30)
    router = group.routers[leader]
    wait_until(lambda: [entry["event"] for entry in router.history()] == ["started", "weight"], 10, "said once")
    assert serin("rollout", "history", "digits", "--verify", "--admin", router.admin).returncode == 0


def test_a_lease_that_somebody_takes_away(group):
    """The leader lives and the API lives, and another name is in the lease: it must notice before it writes."""
    group.start(25)
    old = group.leader()
    group.objects.patch(LEASES, "serin-router", {"spec": {"holderIdentity": "somebody/else"}})
    answer = group.set_weight(old, 30)
    assert answer.status in (200, 307, 503), answer.body
    group.settled()
    wait_until(lambda: group.set_weight(group.leader(), 35).status == 200, 20, "a change by who leads now")
    group.wait_for_weight(35)
    log = [entry["id"] for entry in group.routers[old].history()]
    assert log == list(range(1, len(log) + 1))


@pytest.mark.parametrize("data", ["no JSON", "[]", '{"id": 7}'])
def test_a_damaged_record_of_a_router_stops_nobody_and_is_written_again(group, data):
    group.start(25)
    gone = next(name for name in "abc" if name != group.leader())
    left = [name for name in "abc" if name != gone]
    group.routers[gone].kill()
    damaged = next(each["metadata"]["name"] for each in group.objects.list(RECORDS, "serin.dev/type=member") if json.loads(each["spec"]["data"])["id"] == gone)
    group.objects.patch(RECORDS, damaged, {"spec": {"data": data}})
    wait_until(lambda: all("a record of a router is ignored" in group.routers[name].log for name in left), 20, "noticed")
    wait_until(lambda: group.set_weight(group.leader(left), 30).status == 200, 20, "changed all the same")
    group.wait_for_weight(30, left)
    assert all(group.routers[name].log.count("a record of a router is ignored") == 1 for name in left)
    group.launch(gone)
    group.settled()
    group.wait_for_weight(30)
    assert {each["id"] for each in group.records("member")} == {"a", "b", "c"}


def test_a_former_leader_with_a_delayed_write_changes_nothing(group):
    """Its lease is over, another one leads, and only then its write arrives."""
    group.start(25)
    name = group.objects.list(RECORDS, "serin.dev/type=state")[0]["metadata"]["name"]
    late = group.objects.get(RECORDS, name)
    group.routers[group.leader()].kill()
    left = [name for name in "abc" if group.routers[name].process.poll() is None]
    group.leader(left)
    written = call(f"{group.ways[left[0]].url}/apis/serin.dev/v1/namespaces/models/routerrecords/{name}", late, method="PUT")
    assert written.status == 409, "the new leader's mark has made it old"


def test_overload_expired_watches_and_expired_tokens(tmp_path, backend):
    with contextlib.ExitStack() as stack:
        objects = Objects()
        api = stack.enter_context(Server(objects, tokens={"first"}))
        token = tmp_path / "token"
        token.write_text("first\n")
        backends = [backend("1"), backend("2")]
        config = {"listen": "127.0.0.1:0", "admin": UNLIMITED_ADMIN, "services": [service(*backends)],
                  "store": {"file": str(tmp_path / "router.db"), "kubernetes": {}},
                  "kubernetes": {"server": api.url, "namespace": "models", "token_file": str(token)},
                  "replicas": {"max": 3, "listen": "127.0.0.1:0", "name": "a"}}
        (tmp_path / "router.yaml").write_text(json.dumps(config))
        router = stack.enter_context(Router(tmp_path, "route", "--drain-seconds", 0, "--config", tmp_path / "router.yaml"))

        def changed(weight):
            asked = router.command("set-weight", {"weight": weight})
            return asked.status == 200

        wait_until(lambda: router.post("/v1/rollouts", spec(steps=[{"setWeight": 5, **HOLD}])).status == 201, 20, "started")
        api.answer_next(429, times=5)
        wait_until(lambda: changed(10), 20, "changed after 429")
        objects.expire_watches()
        wait_until(lambda: changed(15), 20, "changed after 410")
        token.write_text("second\n")  # as the kubelet renews it
        api.tokens = {"second"}
        wait_until(lambda: changed(20), 20, "changed with the next token")
        assert router.metric("serin_route_store_reachable") == 1


def test_the_audit_log_is_longer_than_one_object(group):
    group.start(1)
    for turn in range(250):
        weight = 2 + turn % 30
        wait_until(lambda weight=weight: group.set_weight(group.leader(), weight).status == 200, 20, "changed")
    pages = group.objects.list(RECORDS, "serin.dev/type=audit")
    assert len(pages) == 1 and len(group.state()["log"]["latest"]) < 200
    for router in group.all():
        log = router.history()
        assert [entry["id"] for entry in log] == list(range(1, 252))
        assert serin("rollout", "history", "digits", "--verify", "--limit", "1000", "--admin", router.admin).returncode == 0


def test_a_group_that_is_full_and_a_name_that_is_taken(group, tmp_path):
    config = {"listen": "127.0.0.1:0", "admin": UNLIMITED_ADMIN, "services": [service(*group.backends)],
              "store": {"file": str(tmp_path / "other.db"), "kubernetes": {}}, "kubernetes": {"server": group.ways["a"].url, "namespace": "models"},
              "replicas": {"max": 3, "listen": "127.0.0.1:0", "name": "d"}}
    (tmp_path / "router.yaml").write_text(json.dumps(config))
    refused = serin("route", "--config", tmp_path / "router.yaml")
    assert refused.returncode != 0 and "3 routers share this store already" in refused.stderr
    ask(group.routers["a"].url, 5)


@pytest.mark.parametrize(("config", "says"), [
    ({"store": {"kubernetes": {}, "etcd": {"endpoints": ["http://127.0.0.1:1"]}}}, "etcd is given, too"),
    ({"store": {"kubernetes": {"group": "No_Name"}}}, "lower-case letters"),
    ({"store": {"kubernetes": {"server": "http://127.0.0.1:1"}}}, "unknown key 'server'"),
    ({"store": {"kubernetes": {}}, "replicas": None}, "say how many routers there may be"),
    ({"kubernetes": {"server": "http://127.0.0.1:1"}}, "needs namespace"),
    ({"kubernetes": {"server": "ftp://a", "namespace": "models"}}, "must be a url such as https://10.0.0.1:6443"),
    ({"kubernetes": {"token_file": "token"}}, "belongs to `server`"),
    ({"kubernetes": {"namespace": "No_Name"}}, "lower-case letters"),
    ({"kubernetes": {"zone": "a zone"}}, "must be the zone of a node"),
    ({"kubernetes": {"node_taints": "a"}}, "must be a list of keys of taints"),
    ({"kubernetes": {"node_taints": ["karpenter.sh/disrupted", "a taint"]}}, "'a taint' is no key of a taint"),
    ({"kubernetes": {"context": "a"}}, "unknown key 'context'"),
])
def test_c1_bad_keys_are_named(tmp_path, config, says):
    config = {"listen": "127.0.0.1:0", "replicas": {"max": 3, "listen": "127.0.0.1:0"}, **config,
              "services": [{"name": "digits", "versions": [{"name": "1", "endpoints": ["http://127.0.0.1:1"]}]}]}
    (tmp_path / "router.yaml").write_text(json.dumps(config))
    refused = serin("route", "--check", "--config", tmp_path / "router.yaml")
    assert refused.returncode != 0 and says in refused.stderr, refused.stderr


def test_the_store_may_be_named_by_a_flag(tmp_path, backend, start):
    config = {"listen": "127.0.0.1:0", "admin": UNLIMITED_ADMIN, "services": [service(backend("1"), backend("2"))], "store": str(tmp_path / "router.db")}
    path = tmp_path / "router.yaml"

    def said(changes, *store):
        path.write_text(json.dumps({**config, **changes}))
        return serin("route", "--check", "--config", path, *store)

    several = {"replicas": {"max": 3, "listen": "127.0.0.1:0", "name": "a"}}
    assert "say how many routers there may be" in said({}, "--store", "kubernetes").stderr
    assert "does not go with --store kubernetes" in said({**several, "store": {"etcd": {"endpoints": ["http://127.0.0.1:1"]}}}, "--store", "kubernetes").stderr
    assert said(several).returncode != 0, "a file is shared by nobody"
    objects = Objects()
    with Server(objects) as api:
        done = said({**several, "kubernetes": {"server": api.url, "namespace": "models"}}, "--store", "kubernetes")
        assert done.returncode == 0, done.stderr
        start("route", "--drain-seconds", 0, "--config", path, "--store", "kubernetes")
        wait_until(lambda: [each["metadata"]["name"] for each in objects.list(RECORDS, "serin.dev/type=member")], 10, "a member of the group")
    path.write_text(json.dumps(config))
    start("route", "--drain-seconds", 0, "--config", path, "--store", tmp_path / "another.db")
    assert (tmp_path / "another.db").exists()


def test_outside_of_a_pod_the_reason_is_given(tmp_path, backend):
    config = {"listen": "127.0.0.1:0", "admin": UNLIMITED_ADMIN, "services": [service(backend("1"), backend("2"))],
              "store": {"file": str(tmp_path / "router.db"), "kubernetes": {}}, "replicas": {"max": 3, "listen": "127.0.0.1:0"}}
    (tmp_path / "router.yaml").write_text(json.dumps(config))
    refused = serin("route", "--config", tmp_path / "router.yaml")
    assert refused.returncode != 0 and "KUBERNETES_SERVICE_HOST" in refused.stderr, refused.stderr


class TestObjects(ObjectScenarios):
    @pytest.fixture
    def group(self, tmp_path, backend):
        with contextlib.ExitStack() as stack:
            group = EmulatedGroup(tmp_path, [backend("1"), backend("2")], stack)
            group.settled()
            wait_until(lambda: all(router.healthy("2") == 1 for router in group.all()), 10, "health checked")
            yield group

    def test_a_new_leader_and_an_api_that_is_away(self, group):
        group.apply(rollout_object())
        first = self.wait_for(group, "under way", weight="25%")["id"]
        leader = group.leader()
        group.routers[leader].kill()
        left = [name for name in "abc" if name != leader]
        group.leader(left)
        for way in group.ways.values():
            way.cut()
        group.fail_canary()
        with Traffic(group.routers[left[0]].url, clients=2) as traffic:
            wait_until(lambda: group.weights(left) == [0, 0], 20, "rolled back past the API")
        assert set(traffic.statuses) == {200}
        for way in group.ways.values():
            way.mend()
        assert self.wait_for(group, "in the object afterwards", phase="RolledBack", seconds=30)["id"] == first
