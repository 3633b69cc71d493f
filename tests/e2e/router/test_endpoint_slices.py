"""Endpoints from EndpointSlices of the Kubernetes API, here one in memory that has faults on command (support/kube_api.py).

tests/kubernetes/test_discovery.py asks a real API server.
"""

import json

import pytest

from certificates import Authority
from conftest import call, serin, wait_until
from grpc_clients import Calls
from kube_api import Objects, Server
from routers import QUICK_HEALTH, hold, reload, service
from slices import NODES, SLICES, Pods, endpoint, slice_of
from test_endpoint_sources import counts, left_alone
from traffic import Traffic, ask


@pytest.fixture
def api():
    with Server(Objects()) as server:
        yield server


@pytest.fixture
def pods(api):
    return Pods(api.objects)


def from_slices(backend, name="serin-v1", **more):
    """The endpoints of a version like this backend's."""
    return {"kubernetes": {"service": name, "port": "http", "path": f"/v2/models/{backend.service}/versions/{backend.version}", **more}}


def version_of(backend, endpoints, **more):
    return {"name": backend.version, "endpoints": endpoints, "health": QUICK_HEALTH, **more}


@pytest.fixture
def discover(route, api):
    """discover([version, ...]): a router that finds the endpoints of these versions in the API."""
    def begin(versions, kubernetes=None, env=None, **more):
        made = {"name": "digits", "initial_stable": versions[0]["name"], "versions": versions}
        return route(made, kubernetes={"server": api.url, "namespace": "models", "timeout": "2s", **(kubernetes or {})}, env=env, **more)
    return begin


def serves(backend, more=20):
    seen = backend.inferences
    wait_until(lambda: backend.inferences > seen + more, 30, "it serves")


def asked(api, **query):
    """The requests to the API so far whose query has all of this; None: without that key."""
    return [each for each in list(api.asked) if all(each[3].get(key) == value for key, value in query.items())]


def test_pods_come_and_go_under_load_and_no_request_fails(discover, backend, api, pods):
    """A rolling restart, three times over: the new pod becomes ready, the old one terminates and is drained, is gone, and its process is killed."""
    running = [backend("1") for _ in range(2)]
    for each in running:
        pods.set(each)
    router = discover([version_of(running[0], from_slices(running[0]))], io_threads=2)
    wait_until(lambda: counts(router, "1") == (2, 2), 10, "found")
    with Traffic(router.url) as traffic:
        for _ in range(6):
            old, new = running.pop(0), backend("1")
            running.append(new)
            pods.set(new, ready=False, serving=False)
            serves(old)
            assert new.inferences == 0, "not ready"
            pods.set(new)
            serves(new)
            pods.set(old, ready=False, terminating=True)
            wait_until(lambda old=old: left_alone(traffic, {old}), 30, "drained")
            pods.remove(old)
            wait_until(lambda: counts(router, "1") == (2, 2), 10, "gone")
            old.down()
    assert traffic.failures == []
    assert len(asked(api, watch=None)) == 1, "one list, and then only watches"


def test_a_request_in_flight_to_a_pod_that_vanishes_is_answered(discover, backend, pods):
    slow, other = backend("1", delay=1.0), backend("1")
    pods.set(slow)
    router = discover([version_of(slow, from_slices(slow))])
    wait_until(lambda: counts(router, "1") == (1, 1), 10, "found")
    with Traffic(router.url, clients=3) as traffic:
        wait_until(lambda: slow.inferences == 3, 10, "in flight")
        pods.set(other)
        pods.remove(slow)
        serves(other, 50)
    assert traffic.failures == [] and slow.inferences == 3


def test_one_that_terminates_serves_while_it_is_the_last_and_nobody_is_a_503(discover, backend, pods):
    only, next_one = backend("1"), backend("1")
    pods.set(only)
    router = discover([version_of(only, from_slices(only))])
    wait_until(lambda: counts(router, "1") == (1, 1), 10, "found")
    pods.set(next_one, ready=False, serving=False)
    with Traffic(router.url) as traffic:
        serves(only)
        pods.set(only, ready=False, terminating=True)
        serves(only, 100)
        pods.set(next_one)
        serves(next_one)
        wait_until(lambda: left_alone(traffic, {only}), 30, "drained")
    assert traffic.failures == []
    pods.remove(only)
    pods.remove(next_one)
    wait_until(lambda: counts(router, "1") == (0, 0), 10, "a real end of all endpoints")
    assert ask(router.url, 1)[0][0] == 503
    pods.set(next_one)
    wait_until(lambda: ask(router.url, 1)[0][0] == 200, 10, "back")


def test_the_api_server_goes_away_and_comes_back(discover, backend, api, pods):
    first, second = backend("1"), backend("1")
    pods.set(first)
    router = discover([version_of(first, from_slices(first))])
    wait_until(lambda: counts(router, "1") == (1, 1), 10, "found")
    with Traffic(router.url) as traffic:
        for turn in range(2):
            there, new = (first, second) if turn == 0 else (second, first)
            seen = new.inferences
            api.cut()
            wait_until(lambda turn=turn: router.log.count("what is known stays") >= turn + 1, 10, "said")
            pods.set(new)
            pods.remove(there)  # while nobody can tell
            serves(there, 100)
            assert counts(router, "1") == (1, 1) and new.inferences == seen
            api.mend()
            serves(new)
            wait_until(lambda there=there: left_alone(traffic, {there}), 30, "gone in the meantime")
    assert traffic.failures == []


def test_a_configuration_that_is_read_again_while_the_api_is_away_keeps_the_endpoints(discover, backend, api, pods):
    behind = backend("1")
    pods.set(behind)
    router = discover([version_of(behind, from_slices(behind))])
    wait_until(lambda: counts(router, "1") == (1, 1), 10, "found")
    api.cut()
    with Traffic(router.url) as traffic:
        assert reload(router)
        serves(behind, 100)
        assert counts(router, "1") == (1, 1)
    assert traffic.failures == []


def test_a_version_that_is_too_old_is_listed_again(discover, backend, api, pods):
    first, second = backend("1"), backend("1")
    pods.set(first)
    router = discover([version_of(first, from_slices(first))])
    wait_until(lambda: counts(router, "1") == (1, 1), 10, "found")
    api.objects.expire_watches()
    wait_until(lambda: len(asked(api, watch=None)) == 2, 10, "listed again after 410")
    pods.set(second)
    wait_until(lambda: counts(router, "1") == (2, 2), 10, "the change after it")
    assert "it is listed again" in router.log and "what is known stays" not in router.log


def test_a_server_that_asks_for_a_pause_gets_it(discover, backend, api, pods):
    behind = backend("1")
    pods.set(behind)
    api.answer_next(429, times=2, retry_after=2)
    router = discover([version_of(behind, from_slices(behind))])
    wait_until(lambda: counts(router, "1") == (1, 1), 20, "found after two refusals")
    times = [each[0] for each in asked(api, watch=None)]
    assert len(times) == 3 and all(later - earlier >= 2 for earlier, later in zip(times, times[1:])), times
    api.answer_next(503, times=3)  # without a word about when; and the watch that goes on is cut
    api.cut()
    api.mend()
    other = backend("1")
    pods.set(other)
    wait_until(lambda: counts(router, "1") == (2, 2), 20, "found after it came back")


def test_a_token_that_expires_is_read_again(discover, backend, api, pods, tmp_path):
    token, behind, other = tmp_path / "token", backend("1"), backend("1")
    token.write_text("first\n")
    api.tokens = {"first"}
    pods.set(behind)
    router = discover([version_of(behind, from_slices(behind))], {"token_file": str(token)})
    wait_until(lambda: counts(router, "1") == (1, 1), 10, "found")
    token.write_text("second\n")  # as the kubelet renews it
    api.tokens = {"second"}
    api.cut()
    api.mend()
    pods.set(other)
    wait_until(lambda: counts(router, "1") == (2, 2), 20, "found with the next token")


def test_an_account_without_the_right_is_said_once(discover, backend, api, tmp_path):
    token, behind = tmp_path / "token", backend("1")
    token.write_text("nobody")
    api.tokens = {"somebody"}
    router = discover([version_of(behind, from_slices(behind))], {"token_file": str(token)})
    wait_until(lambda: len(asked(api)) > 6, 20, "asked several times")
    assert router.log.count("401") == 1 and counts(router, "1") == (0, 0)
    assert ask(router.url, 1)[0][0] == 503


@pytest.mark.parametrize("how", ["key", "variable"])
def test_the_own_zone_is_preferred_where_all_have_hints(discover, backend, pods, how):
    near, far = backend("1"), backend("1")
    pods.set(near, zones=["a"])
    pods.set(far, zones=["b"])
    router = discover([version_of(near, from_slices(near))], {"zone": "a"} if how == "key" else None, env={"NODE_ZONE": "a" if how == "variable" else "b"})
    wait_until(lambda: counts(router, "1") == (1, 1), 10, "found")
    with Traffic(router.url) as traffic:
        serves(near, 50)
        assert far.inferences == 0
        pods.set(near, ready=False, terminating=True, zones=["a"])
        serves(far)
        pods.set(near, zones=["a"])
        wait_until(lambda: left_alone(traffic, {far}), 30, "back in the own zone")
        pods.set(far)
        serves(far)
        serves(near)
    assert traffic.failures == []


def taint(api, node, *keys):
    api.objects.patch(NODES, node, {"spec": {"taints": [{"key": key, "effect": "NoSchedule"} for key in keys]}})


def test_pods_of_a_node_that_is_about_to_end_are_drained(discover, backend, api, pods):
    leaving, staying = backend("1"), backend("1")
    for behind, node in [(leaving, "spot-1"), (staying, "spot-2")]:
        api.objects.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "spec": {}})
        pods.set(behind, node=node)
    router = discover([version_of(leaving, from_slices(leaving))], {"node_taints": ["spot.example/ends", "karpenter.sh/disrupted"]})
    wait_until(lambda: counts(router, "1") == (2, 2), 10, "found")
    with Traffic(router.url) as traffic:
        serves(leaving)
        taint(api, "spot-1", "dedicated", "spot.example/ends")
        wait_until(lambda: counts(router, "1") == (1, 1) and left_alone(traffic, {leaving}), 30, "drained")
        taint(api, "spot-1", "dedicated")
        serves(leaving)
        for node in ("spot-1", "spot-2"):
            taint(api, node, "karpenter.sh/disrupted")
        wait_until(lambda: router.log.count("its endpoints are drained") == 3, 10, "all of them")
        serves(leaving)
        serves(staying)
        taint(api, "spot-2")
        wait_until(lambda: left_alone(traffic, {leaving}), 30, "there is another one again")
        api.objects.delete(NODES, "spot-1")
        api.objects.expire_watches()  # and the nodes are listed again
        wait_until(lambda: len([each for each in asked(api, watch=None) if each[2] == "/api/v1/nodes"]) == 2, 10, "listed again")
        wait_until(lambda: left_alone(traffic, {leaving}), 30, "its pod is listed for a while, and gets nothing")
    assert traffic.failures == []


def test_lists_come_in_pages(discover, backend, api, pods):
    api.page = 2
    many = [backend("1") for _ in range(5)]
    for behind in many:
        pods.set(behind)
    router = discover([version_of(many[0], from_slices(many[0]))])
    wait_until(lambda: counts(router, "1") == (5, 5), 10, "found")
    assert [each[3].get("continue") for each in asked(api, watch=None)] == [None, "2", "4"]


def test_nodes_that_may_not_be_read_change_nothing(discover, backend, api, pods):
    behind = backend("1")
    pods.set(behind, node="spot-1")
    api.hidden = {"nodes"}
    router = discover([version_of(behind, from_slices(behind))], {"node_taints": ["spot.example/ends"]})
    wait_until(lambda: counts(router, "1") == (1, 1), 10, "found")
    wait_until(lambda: "/api/v1/nodes" in router.log, 10, "said")
    assert {status for status, _, _ in ask(router.url, 20)} == {200}
    assert router.log.count(": 403 ") == 1, router.log


def test_a_selector_finds_each_deployment_as_a_version_and_its_canary_keeps_its_weight(discover, backend, api):
    stable, canary = backend("1"), backend("2")
    ones, twos = (Pods(api.objects, f"serin-v{each}", app="digits", version=each) for each in "12")
    ones.set(stable)

    def selected(each):
        return {"kubernetes": {"selector": {"app": "digits", "version": each.version}, "port": "http",
                               "path": f"/v2/models/digits/versions/{each.version}"}}
    router = discover([version_of(stable, selected(stable)), version_of(canary, selected(canary))])
    wait_until(lambda: counts(router, "1") == (1, 1) and counts(router, "2") == (0, 0), 10, "the first one found")
    refused = router.post("/v1/rollouts", {"kind": "Rollout", "service": "digits", "canary": "2", "steps": [50]})
    assert refused.status == 400 and "no endpoint of version '2'" in refused.error
    wait_until(lambda: "no EndpointSlice has the labels app=digits,version=2" in router.log, 10, "the log says why")
    twos.set(canary)
    wait_until(lambda: counts(router, "2") == (1, 1), 10, "a new Deployment")
    router.start_rollout(steps=[hold(50)])
    with Traffic(router.url) as traffic:
        wait_until(lambda: traffic.versions["2"] > 20, 10, "it serves")
        twos.remove(canary)
        wait_until(lambda: counts(router, "2") == (0, 0), 10, "nobody left")
        serves(stable, 100)
        assert router.rollout()["weight"] == 0, "as much as no endpoint carries (capacity: auto)"
        twos.set(canary)
        serves(canary)
        wait_until(lambda: router.rollout()["weight"] == 50, 10, "the weight is back")
    assert traffic.failures == []
    assert router.rollout()["phase"] == "Progressing"


def test_all_versions_share_one_watch(route, backend, api):
    behind = backend("1")
    api.objects.create(SLICES, slice_of("all", [endpoint()], behind.port))

    def many(name):
        versions = [{"name": str(number), "endpoints": from_slices(behind), "health": {"interval": "1m"}} for number in range(52)]
        return {"name": name, "initial_stable": "0", "versions": versions}
    router = route(*map(many, "abcde"), kubernetes={"server": api.url, "namespace": "models"})
    listed = call(router.admin + "/v1/services").json["services"]
    assert sum(len(each["versions"]) for each in listed) == 260
    wait_until(lambda: all(version["healthy"] == 1 for each in call(router.admin + "/v1/services").json["services"] for version in each["versions"]),
               30, "found for all")
    assert len(asked(api, watch=None)) == len(asked(api, watch="true")) == 1
    assert asked(api, watch=None)[0][3]["labelSelector"] == "kubernetes.io/service-name in (serin-v1)"
    seen = asked(api, watch="true")[0][3]
    assert seen["resourceVersion"] == "2" and seen["allowWatchBookmarks"] == "true"


def test_the_port_of_grpc_is_found_by_its_name(discover, backend, grpc_backend, channel, api):
    http, other = backend("1"), grpc_backend("1")
    api.objects.create(SLICES, slice_of("both", [endpoint()], http.port, grpc=other.port))
    router = discover([version_of(http, {**from_slices(http), "grpc_port": "grpc"})])
    wait_until(lambda: counts(router, "1") == (1, 1), 10, "found")
    assert {status for status, _, _ in ask(router.url, 5)} == {200} and http.inferences == 5
    with Calls(channel(router)) as calls:
        wait_until(lambda: calls.versions["1"] > 20, 10, "calls answered")
    assert calls.failures == [] and other.inferences > 20 and http.inferences == 5


def test_a_version_that_speaks_grpc_alone(discover, grpc_backend, channel, api):
    behind = grpc_backend("1")
    api.objects.create(SLICES, slice_of("grpc", [endpoint()], 1, grpc=behind.port))
    router = discover([{"name": "1", "health": QUICK_HEALTH, "endpoints": {
        "kubernetes": {"service": "serin-v1", "port": "grpc", "scheme": "grpc", "path": "/v2/models/digits/versions/1"}}}])
    wait_until(lambda: counts(router, "1") == (1, 1), 10, "healthy by grpc.health.v1")
    with Calls(channel(router)) as calls:
        wait_until(lambda: calls.versions["1"] > 20, 10, "calls answered")
    assert calls.failures == []


def test_certificates_carry_the_name_of_the_service(discover, backend, api, tmp_path):
    authority = Authority(tmp_path)
    context = authority.server(authority.issue("pod", names="DNS:serin-v1.models.svc"))
    good = backend("1", tls=context)
    Pods(api.objects).set(good)
    router = discover([version_of(good, from_slices(good, scheme="https"), tls={"ca": authority.ca})])
    wait_until(lambda: counts(router, "1") == (1, 1), 10, "healthy over TLS")
    assert {status for status, _, _ in ask(router.url, 20)} == {200}


def test_the_file_is_accepted_outside_of_a_cluster_and_the_router_says_why_it_does_not_start(tmp_path, backend):
    behind = backend("1")
    made = {**service(behind), "versions": [version_of(behind, from_slices(behind))]}
    path = tmp_path / "router.yaml"
    path.write_text(json.dumps({"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "store": str(tmp_path / "router.db"), "services": [made]}))
    checked = serin("route", "--check", "--config", path)
    assert checked.returncode == 0 and "no problems found" in checked.stdout
    refused = serin("route", "--config", path)
    assert refused.returncode != 0 and "KUBERNETES_SERVICE_HOST is not set" in refused.stderr


@pytest.mark.parametrize(("endpoints", "says"), [
    ({"kubernetes": {"port": "http"}}, "must have one of service"),
    ({"kubernetes": {"service": "a", "selector": {"a": "b"}, "port": "http"}}, "must have one of service"),
    ({"kubernetes": {"service": "a"}}, "port"),
    ({"kubernetes": {"service": "No_Name", "port": "http"}}, "kubernetes.service: must be 1 to 63 lower-case letters"),
    ({"kubernetes": {"service": "a", "port": 0}}, "kubernetes.port: must be the name of a port"),
    ({"kubernetes": {"service": "a", "port": 65536}}, "kubernetes.port: must be the name of a port"),
    ({"kubernetes": {"service": "a", "port": "a_name"}}, "kubernetes.port: must be the name of a port"),
    ({"kubernetes": {"service": "a", "port": "http", "scheme": "ftp"}}, "kubernetes.scheme"),
    ({"kubernetes": {"service": "a", "port": "http", "path": "v2"}}, "kubernetes.path: must begin with '/'"),
    ({"kubernetes": {"service": "a", "port": "http", "path": "/v2?x"}}, "kubernetes.path: must begin with '/'"),
    ({"kubernetes": {"service": "a", "port": "http", "namespace": ""}}, "kubernetes.namespace"),
    ({"kubernetes": {"service": "a", "port": "http", "zone": "a"}}, "unknown key 'zone'"),
    ({"kubernetes": {"service": "a", "port": "http", "node_taints": []}}, "unknown key 'node_taints'"),
    ({"kubernetes": {"selector": {}, "port": "http"}}, "kubernetes.selector: must be a map of labels"),
    ({"kubernetes": {"selector": {"a b": "c"}, "port": "http"}}, "'a b: c' is no label"),
    ({"kubernetes": {"selector": {"a": "-"}, "port": "http"}}, "'a: -' is no label"),
    ({"kubernetes": {"service": "a", "port": "http"}, "interval": "1s"}, "endpoints.interval: belongs to file or dns"),
    ({"kubernetes": {"service": "a", "port": "http", "scheme": "grpc"}, "grpc_port": "grpc"}, "grpc_port: belongs to an http scheme"),
    ({"kubernetes": {"service": "a", "port": "http"}, "grpc_port": 70000}, "grpc_port: must be the name of a port"),
    ({"kubernetes": {"service": "a", "port": "http"}, "dns": "http://a"}, "must be a list, or have one of file"),
])
def test_c1_bad_keys_are_named(tmp_path, endpoints, says):
    path = tmp_path / "router.yaml"
    path.write_text(json.dumps({"services": [{"name": "digits", "initial_stable": "1", "versions": [{"name": "1", "endpoints": endpoints}]}]}))
    refused = serin("route", "--check", "--config", path)
    assert refused.returncode != 0 and says in refused.stderr, refused.stderr


def test_a_router_that_ends_does_not_wait_for_the_api(discover, backend, api, pods):
    behind = backend("1")
    pods.set(behind)
    router = discover([version_of(behind, from_slices(behind))])
    wait_until(lambda: len(asked(api, watch="true")) == 1, 10, "a watch is under way")
    assert router.end() == 0 and "what is known stays" not in router.log
