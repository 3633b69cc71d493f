"""Three real routers that share their rollouts through a real API server, each with an account that may do what deploy/kubernetes/crds/router-role.yaml says.

tests/e2e/router/test_kubernetes_store.py asks the same of an API in memory, which has faults on command.
"""

import contextlib
import itertools
import json
import os
import random
import subprocess
import sys

import pytest
import yaml
from conftest import ROOT, serin, wait_until

from backends import Faults
from rollout_objects import ObjectScenarios, rollout_object
from router_group import Group
from traffic import Traffic

CRDS = ROOT / "deploy/kubernetes/crds"
KILLS = 100 if os.environ.get("SERIN_LONG") else 10


class RealGroup(Group):
    def __init__(self, folder, cluster, namespace, backends, stack, **of_service):
        self.cluster, self.namespace = cluster, namespace
        rules = yaml.safe_load((CRDS / "router-role.yaml").read_text())["rules"]
        self.tokens = folder / "token"
        self.tokens.write_text(cluster.service_account(namespace, "serin-router", rules))
        super().__init__(folder, backends, stack, **of_service)

    def shared(self, name, **options):
        return {"kubernetes": options}

    def besides(self, name):
        return {"kubernetes": {"server": self.cluster.url, "namespace": self.namespace, "token_file": str(self.tokens), "tls": {"ca": str(self.cluster.ca)}}}

    def apply(self, wanted):
        self.cluster.kubectl("-n", self.namespace, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(wanted))

    def find(self, name):
        return self.cluster.get("-n", self.namespace, "rollouts.serin.dev", name)

    def remove(self, name):
        self.cluster.kubectl("-n", self.namespace, "delete", "rollouts.serin.dev", name)

    def state(self):
        records = self.cluster.get("-n", self.namespace, "routerrecords", "-l", "serin.dev/type=state")["items"]
        return json.loads(records[0]["spec"]["data"])


@pytest.fixture(scope="module")
def definitions(cluster):
    cluster.kubectl("apply", "--server-side", "-f", CRDS / "rollouts.serin.dev.yaml", "-f", CRDS / "routerrecords.serin.dev.yaml")
    cluster.kubectl("wait", "--for=condition=Established", "crd/rollouts.serin.dev", "crd/routerrecords.serin.dev", "--timeout=60s")
    return cluster


@pytest.fixture
def group(tmp_path, backend, definitions, namespace):
    with contextlib.ExitStack() as stack:
        group = RealGroup(tmp_path, definitions, namespace, [backend("1"), backend("2")], stack)
        group.settled()
        yield group


def test_the_definitions_are_made_from_the_schema():
    done = subprocess.run([sys.executable, CRDS / "render", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_rollout_of_all_three_and_a_new_leader(group):
    group.start(25)
    leader = group.leader()
    assert group.set_weight(leader, 40).status == 200
    group.wait_for_weight(40)
    lease = group.cluster.get("-n", group.namespace, "lease", "serin-router")["spec"]
    assert lease["holderIdentity"].split("/")[0] == leader
    group.routers[leader].kill()
    left = "".join(name for name in "abc" if name != leader)
    new = group.leader(left)
    wait_until(lambda: group.set_weight(new, 45).status == 200, 20, "the killed one is not counted any more")
    group.backends[1].faults = Faults(error_rate=1)
    with Traffic(group.routers[left[0]].url, clients=2) as traffic:
        group.wait_for_phase("RolledBack", left)
    assert set(traffic.statuses) == {200}
    wait_until(lambda: group.state()["rollout"]["phase"] == "RolledBack", 10, "in the store")
    for name in left:
        assert serin("rollout", "history", "digits", "--verify", "--admin", group.routers[name].admin).returncode == 0
        assert serin("rollout", "explain", "digits", "--admin", group.routers[name].admin).returncode == 0


def test_the_api_server_is_killed_in_the_middle(group):
    """For longer than the lease. Traffic goes on, nothing rises, a verdict acts at once, and is in the store afterwards."""
    group.start(25)
    stable, canary = group.backends
    with Traffic(group.routers["a"].url, clients=2) as traffic:
        group.cluster.kill_api_server()
        try:
            wait_until(lambda: all(not group.replicas(router)["store_reachable"] for router in group.all()), 20, "noticed")
            for name in "abc":
                assert group.set_weight(name, 90).status in (307, 503)
            assert max(group.weights()) <= 25
            canary.faults = Faults(error_rate=1)
            wait_until(lambda: group.weights() == [0, 0, 0], 20, "a verdict of one acts at all, past the store")
        finally:
            group.cluster.start_api_server()
        group.settled()
        group.wait_for_phase("RolledBack", seconds=30)
    assert set(traffic.statuses) == {200}
    wait_until(lambda: group.state()["rollout"]["phase"] == "RolledBack", 20, "in the store")
    assert stable.inferences > 0


@pytest.mark.timeout(3600)
def test_kills_of_routers_and_of_the_api_server(group):
    """In any order. Whatever is killed, no weight is higher than the last that a leader has written, and the log is whole."""
    dice = random.Random(26)
    group.start(5)
    written, wanted_ones = 5, []
    with Traffic(group.routers["a"].url, clients=1, pause=0.01):
        for turn in range(KILLS):
            victim = dice.choice("abc" + "k")
            if victim == "k":
                group.cluster.kill_api_server()
                group.cluster.start_api_server()
            else:
                group.routers[victim].kill()
                group.launch(victim)
            assert max(group.weights()) <= written, f"turn {turn}"
            group.settled()
            wanted = written + 1 if written < 50 else 5
            wanted_ones.append(wanted)
            wait_until(lambda wanted=wanted: group.set_weight(group.leader(), wanted).status == 200, 30, "changed")
            written = wanted
            group.wait_for_weight(written)
    # A command whose answer was lost is given again, and written twice.
    weights = [entry["weight"] for entry in group.routers["a"].history() if entry["event"] == "weight"]
    assert [weight for weight, _ in itertools.groupby(weights)] == wanted_ones
    assert serin("rollout", "history", "digits", "--verify", "--admin", group.routers["b"].admin).returncode == 0


class TestObjects(ObjectScenarios):
    @pytest.fixture
    def group(self, tmp_path, backend, definitions, namespace):
        with contextlib.ExitStack() as stack:
            group = RealGroup(tmp_path, definitions, namespace, [backend("1"), backend("2")], stack)
            group.settled()
            wait_until(lambda: all(router.healthy("2") == 1 for router in group.all()), 10, "health checked")
            yield group

    def test_the_table_that_kubectl_prints(self, group):
        group.apply(rollout_object())
        self.wait_for(group, "under way", weight="25%")
        lines = group.cluster.kubectl("-n", group.namespace, "get", "rollouts.serin.dev").splitlines()
        assert lines[0].split() == ["NAME", "SERVICE", "CANARY", "PHASE", "WEIGHT", "STEP", "CAUSE", "AGE"]
        assert lines[1].split()[:6] == ["digits", "digits", "2", "Progressing", "25%", "1/1"]
        waited = group.cluster.run_kubectl("-n", group.namespace, "wait", "--for=condition=Ready", "rollouts.serin.dev/digits", "--timeout=1s")
        assert waited.returncode != 0

    def test_a_wrong_key_is_refused_by_the_api_server(self, group):
        refused = group.cluster.run_kubectl("-n", group.namespace, "create", "--validate=strict", "-f", "-", stdin=json.dumps(rollout_object(canray="2")))
        assert refused.returncode != 0 and "canray" in refused.stderr
