"""The router as clients and release engineers meet it, in front of fake runtimes that fail on command."""

import concurrent.futures
import math
import os
import signal

import pytest

from backends import Faults
from conftest import call, wait_until
from routers import NO_SECOND_TRY, hold, service
from traffic import BODY, Connection, Traffic, ask, infer_request

CLIENTS = 3  # at most as many as the shield may re-run at once however little goes on: no client ever sees the canary fail
SIGMAS = 5


def within(count, trials, share):
    return abs(count - trials * share) <= SIGMAS * math.sqrt(trials * share * (1 - share))


def traffic_to(router, **options):
    return Traffic(router.url, clients=CLIENTS, **options)


# --- who gets a request -------------------------------------------------------------------------------------------------------------


def test_without_a_rollout_stable_answers_everything(pair):
    router, stable, canary = pair
    assert {headers["x-serin-version"] for _, headers, _ in ask(router.url, 50)} == {"1"}
    assert stable.inferences == 50 and canary.inferences == 0


@pytest.mark.parametrize("weight", [1, 20, 50])
def test_requests_are_split_by_weight(pair, weight):
    router, _, canary = pair
    router.start_rollout(steps=[hold(weight)], shield=NO_SECOND_TRY)
    answers = ask(router.url, 3000)
    from_canary = sum(headers["x-serin-version"] == "2" for _, headers, _ in answers)
    assert {status for status, _, _ in answers} == {200}
    assert from_canary == canary.served and within(from_canary, 3000, weight / 100)
    assert router.metric("serin_route_weight_ppm", version="2") == weight * 10_000
    assert router.metric("serin_route_weight_ppm", version="1") == 1_000_000 - weight * 10_000


def test_every_draw_is_independent_of_the_one_before(pair):
    """A smooth round robin at 50 % would never choose the canary twice in a row, and the statistics would not hold."""
    router, _, _ = pair
    router.start_rollout(steps=[hold(50)], shield=NO_SECOND_TRY)
    versions = [headers["x-serin-version"] for _, headers, _ in ask(router.url, 3001)]
    twice = sum(a == b == "2" for a, b in zip(versions, versions[1:]))
    assert abs(twice - 3000 / 4) < SIGMAS * math.sqrt(3000 * (1 / 4 + 2 / 8 - 3 / 16))  # the variance of overlapping pairs


def test_a_client_may_name_its_version_where_that_is_enabled(route, backend):
    stable, canary = backend("1"), backend("2")
    router = route(service(stable, canary, force_header=True))
    answers = ask(router.url, 20, headers={"X-Serin-Force-Version": "2"})
    assert {headers["x-serin-version"] for _, headers, _ in answers} == {"2"} and canary.inferences == 20
    assert "x-serin-force-version" not in canary.last()
    status, _, body = ask(router.url, 1, headers={"x-serin-force-version": "9"})[0]
    assert status == 400 and b"no version '9'" in body


def test_a_client_may_not_name_its_version_where_that_is_not_enabled(pair):
    router, stable, canary = pair
    assert {headers["x-serin-version"] for _, headers, _ in ask(router.url, 20, headers={"x-serin-force-version": "2"})} == {"1"}
    assert canary.inferences == 0 and "x-serin-force-version" not in stable.last()


def test_forced_requests_are_no_evidence_and_are_not_shielded(route, backend):
    stable, canary = backend("1"), backend("2", error_rate=1)
    router = route(service(stable, canary, force_header=True))
    wait_until(lambda: router.healthy("2") == 1)
    router.start_rollout(steps=[hold(0.0001)])
    assert {status for status, _, _ in ask(router.url, 100, headers={"x-serin-force-version": "2"})} == {500}
    assert router.rollout()["phase"] == "Progressing" and router.metric("serin_route_retries_total") == 0


# --- what is passed on --------------------------------------------------------------------------------------------------------------


def test_headers_of_the_connection_and_of_the_router_end_at_the_router(pair):
    router, stable, _ = pair
    sent = {"Connection": "keep-alive, X-Private", "X-Private": "1", "Keep-Alive": "timeout=5", "TE": "trailers",
            "Proxy-Authorization": "secret", "X-Serin-Shadow": "1", "X-Request-Id": "abc", "X-Forwarded-For": "198.51.100.1"}
    assert ask(router.url, 1, headers=sent)[0][0] == 200
    received = stable.last()
    assert not {"keep-alive", "te", "proxy-authorization", "x-private", "x-serin-shadow"} & received.keys()
    assert received["x-request-id"] == "abc" and received["x-forwarded-for"] == "198.51.100.1, 127.0.0.1"
    assert received["host"] == f"127.0.0.1:{stable.port}" and int(received["content-length"]) == len(BODY)


def test_the_version_in_the_path_is_the_routers_to_choose(pair):
    router, stable, _ = pair
    assert call(router.url + "/v2/models/digits/versions/2/infer", BODY, method="POST").headers["x-serin-version"] == "1"
    assert stable.requests[-1][2] == "/v2/models/digits/versions/1/infer"
    assert call(router.url + "/v2/models/digits?verbose=1").json["path"] == "/v2/models/digits/versions/1?verbose=1"


def test_version_and_batch_reach_the_client(pair):
    router, stable, _ = pair
    _, headers, _ = ask(router.url, 1)[0]
    assert headers["x-serin-version"] == "1" and headers["x-serin-batch"] == f"{stable.boot}-0/0/1"


def test_the_clients_deadline_travels_along(pair):
    router, stable, _ = pair
    ask(router.url, 1, headers={"x-serin-timeout-ms": "700"})
    assert 0 < int(stable.last()["x-serin-timeout-ms"]) <= 700
    stable.faults = Faults(hang=True)
    status, _, body = ask(router.url, 1, headers={"x-serin-timeout-ms": "100"})[0]
    assert status == 504 and b"version '1'" in body
    assert ask(router.url, 1, headers={"x-serin-timeout-ms": "soon"})[0][0] == 400


def test_what_the_router_does_not_know_is_404(pair):
    router, _, _ = pair
    unknown = call(router.url + "/v2/models/nope/infer", BODY, method="POST")
    assert unknown.status == 404 and "'nope'" in unknown.error
    assert call(router.url + "/v3").status == 404 and call(router.url + "/metrics").status == 404
    assert call(router.url + "/v2").json["name"] == "serin-router"
    assert call(router.url + "/v2/health/live").json == {"live": True} and call(router.url + "/v2/health/ready").json == {"ready": True}


# --- endpoints that go away ---------------------------------------------------------------------------------------------------------


def test_an_endpoint_that_dies_is_replaced_by_the_others_without_an_error(route, backend):
    first, second = backend("1"), backend("1")
    router = route(service(first, second))
    with traffic_to(router) as traffic:
        wait_until(lambda: first.inferences > 100 and second.inferences > 100, 10, "both serve")
        first.down()
        wait_until(lambda: router.healthy("1") == 1, 10, "the dead one left out")
        seen = second.inferences
        wait_until(lambda: second.inferences > seen + 200, 10, "the other goes on")
        first.up()
        before = first.inferences
        wait_until(lambda: first.inferences > before + 100, 10, "it gets requests again")
    assert traffic.failures == []


def test_an_endpoint_that_says_it_is_not_ready_gets_nothing(route, backend):
    first, second = backend("1"), backend("1")
    first.healthy = False
    router = route(service(first, second))
    wait_until(lambda: router.healthy("1") == 1, 10, "left out")
    before = first.inferences
    assert {status for status, _, _ in ask(router.url, 100)} == {200} and first.inferences == before


def test_a_canary_that_is_down_leaves_its_share_to_stable_and_is_not_judged(pair):
    router, stable, canary = pair
    router.start_rollout(steps=[hold(50)])
    with traffic_to(router) as traffic:
        router.wait_for_answers(100)
        canary.down()
        wait_until(lambda: router.healthy("2") == 0, 10, "the canary left out")
        seen, weighed = stable.inferences, router.rollout()["answers"]["canary"]
        wait_until(lambda: stable.inferences > seen + 500, 20, "stable serves everything")
        rollout = router.rollout()
        assert rollout["phase"] == "Progressing" and rollout["answers"]["canary"] == weighed
        canary.up()
        before = canary.inferences
        wait_until(lambda: canary.inferences > before + 100, 20, "the canary gets its share again")
    assert traffic.failures == [] and router.rollout()["phase"] == "Progressing"


def test_stable_that_is_down_is_a_clear_503_and_not_the_canarys_fault(pair):
    router, stable, _ = pair
    router.start_rollout(steps=[hold(50)])
    with traffic_to(router) as traffic:
        router.wait_for_answers(100)
        stable.down()
        wait_until(lambda: router.healthy("1") == 0, 10, "stable left out")
        seen = traffic.versions["2"]
        wait_until(lambda: traffic.versions["2"] > seen + 200, 20, "the canary serves its share")
        assert router.rollout()["phase"] == "Progressing"
    assert set(traffic.statuses) == {200, 503} and traffic.broken == 0
    assert all("service 'digits' version '1'" in body for _, body in traffic.failures)
    assert call(router.url + "/v2/health/ready").status == 503
    assert router.metric("serin_rollout_verdicts_total") == 0


def test_everything_down_is_503_with_retry_after(pair):
    router, stable, canary = pair
    stable.down()
    canary.down()
    answer = call(router.url + "/v2/models/digits/infer", BODY, method="POST")
    assert answer.status == 503 and "version '1'" in answer.error and int(answer.headers["Retry-After"]) >= 1
    assert "127.0.0.1" not in answer.error, "where our machines are is none of the clients' business"


# --- bad canaries -------------------------------------------------------------------------------------------------------------------

BAD_CANARIES = {
    "every answer is an error": (Faults(error_rate=1), "err"),
    "half of the answers are errors": (Faults(error_rate=0.5), "err"),
    "half of the connections are reset": (Faults(reset_rate=0.5), "err"),
    "answers are not HTTP": (Faults(garbage=b"I am not a web server\r\n\r\n"), "err"),
    "answers contradict their length": (Faults(garbage=b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy"), "err"),
    "answers are NaN": (Faults(nan=True), "err"),
    "every request is refused": (Faults(status=400), "rej"),
    "the model is not there": (Faults(status=404), "rej"),
    "every request is sent elsewhere": (Faults(status=302), "rej"),
    "no token is good": (Faults(status=401), "rej"),
    "no client may ask": (Faults(status=403), "rej"),
    "no batch is named": (Faults(error_rate=1, batch=0), "err"),
    "whole batches fail": (Faults(error_rate=0.7, batch=8), "err"),
}


@pytest.mark.parametrize("fault", BAD_CANARIES, ids=lambda name: name.replace(" ", "-"))
def test_a_bad_canary_is_rolled_back_and_no_client_sees_it(pair, fault):
    router, _, canary = pair
    canary.faults, cause = BAD_CANARIES[fault]
    router.start_rollout(steps=[hold(20)])
    with traffic_to(router) as traffic:
        rollout = router.wait_for("RolledBack")
        reached = canary.inferences
        answered = traffic.answers
        wait_until(lambda: traffic.answers > answered + 500, 20, "traffic goes on")
    assert rollout["cause"] == cause and rollout["weight"] == 0 and cause in rollout["reason"]
    assert traffic.failures == []
    assert canary.inferences <= reached + CLIENTS  # what was under way
    assert router.metric("serin_route_retries_total") > 0
    assert router.metric("serin_rollout_verdicts_total", outcome="rolled_back", cause=cause) == 1
    assert router.metric("serin_route_weight_ppm", version="2") == 0
    wait_until(lambda: [entry["event"] for entry in router.history()] == ["started", "rolled_back"], what="the verdict on disk")


def test_every_attempt_that_failed_is_counted_and_run_again_once(pair):
    router, stable, canary = pair
    canary.faults = Faults(error_rate=1)
    router.start_rollout(steps=[hold(20)])
    with traffic_to(router) as traffic:
        router.wait_for("RolledBack")
    assert router.metric("serin_route_retries_total") == canary.served
    assert stable.inferences == traffic.answers and canary.inferences < 60


def test_without_the_shield_clients_see_errors_and_the_verdict_is_the_same(pair):
    router, _, canary = pair
    canary.faults = Faults(error_rate=1)
    router.start_rollout(steps=[hold(20)], shield={"retryStable": False})
    with traffic_to(router) as traffic:
        assert router.wait_for("RolledBack")["cause"] == "err"
    assert traffic.statuses[500] == canary.served and router.metric("serin_route_retries_total") == 0


def test_f10_the_shield_does_not_bury_stable_under_retries(pair):
    """The budget is a fifth of the requests in flight, and three: at 40 clients stable never works on more than 11 of them."""
    router, stable, canary = pair
    canary.faults, stable.faults = Faults(error_rate=1), Faults(delay=0.1)
    router.start_rollout(steps=[hold(100)])  # at 100 % there is nothing to compare with: no verdict ends this
    with Traffic(router.url, clients=40, pause=0.001) as traffic:
        wait_until(lambda: traffic.statuses[200] > 50 and traffic.statuses[500] > 50, 20, "some saved, some not")
    assert stable.busiest <= 40 // 5 + 3
    assert router.metric("serin_route_retries_denied_total") == traffic.statuses[500]


def test_a_slow_canary_is_rolled_back_by_comparison(pair):
    router, stable, canary = pair
    stable.faults, canary.faults = Faults(delay=0.002), Faults(delay=0.2)
    with traffic_to(router) as traffic:
        wait_until(lambda: traffic.answers > 300, 30, "stable's latencies known")
        router.start_rollout(steps=[hold(50)])
        rollout = router.wait_for("RolledBack", 60)
    assert rollout["cause"].startswith("lat") and traffic.failures == []


def test_a_canary_that_is_a_little_slower_is_not_rolled_back(pair):
    router, _, canary = pair
    canary.faults = Faults(delay=0.004)
    with traffic_to(router) as traffic:
        wait_until(lambda: traffic.answers > 300, 30, "stable's latencies known")
        router.start_rollout(steps=[50])
        router.wait_for("Succeeded", 60)
    assert traffic.failures == []


@pytest.mark.parametrize("weight, when_both", [(95, "rollback"), (100, "hold")], ids=["whatever-stable-does", "stable-has-no-traffic"])
def test_errors_above_a_threshold_of_the_user_roll_back(pair, weight, when_both):
    """At such weights comparison would take long: nearly all errors are the canary's whoever is at fault."""
    router, _, canary = pair
    canary.faults = Faults(error_rate=0.3)
    router.start_rollout(steps=[hold(weight)], guard={"errors": {"max": "1%"}, "whenStableBreachesToo": when_both})
    with traffic_to(router) as traffic:
        rollout = router.wait_for("RolledBack")
    assert rollout["cause"] == "threshold:errors" and "errors above 1 %" in rollout["reason"] and traffic.failures == []


def test_latency_above_a_threshold_of_the_user_rolls_back(pair):
    router, _, canary = pair
    canary.faults = Faults(delay=0.2)
    router.start_rollout(steps=[hold(50)], guard={"latency": {"p99": "100ms", "floor": "1h"}})
    with traffic_to(router):
        assert router.wait_for("RolledBack")["cause"] == "threshold:p99"


def test_below_the_thresholds_nothing_happens(pair):
    router, _, _ = pair
    router.start_rollout(steps=[50], guard={"errors": {"max": "1%"}, "latency": {"p99": "5s", "baseline": 200, "floor": "50ms"}})
    with traffic_to(router):
        router.wait_for("Succeeded")


def test_a_canary_that_hangs_is_held_and_its_clients_get_stables_answers(pair):
    router, _, canary = pair
    canary.faults = Faults(hang=True)
    router.start_rollout(steps=[hold(20)], guard={"latency": {"deadline": "300ms"}})
    with traffic_to(router) as traffic:
        held = wait_until(lambda: (now := router.rollout())["weight"] == 0 and now, 20, "held at weight 0")
        assert held["phase"] == "Progressing" and "held at 0" in held["reason"]
        reached = canary.inferences
        if os.environ.get("SERIN_LONG"):  # each hold lasts ten seconds, in case it only restarts
            assert router.wait_for("RolledBack", 60)["cause"] == "hang"
    assert traffic.failures == []
    assert reached <= CLIENTS * 6  # two deadlines long, each client waits for at most one at a time


# --- shadow traffic -----------------------------------------------------------------------------------------------------------------

SHADOW = [{"shadow": {"percent": 100, "until": "certified"}}, hold(50)]


@pytest.mark.parametrize("faults", [Faults(label=7), Faults(classes=7)], ids=["other-labels", "another-shape"])
def test_wrong_answers_are_found_in_the_shadow_and_nobody_sees_them(pair, faults):
    router, stable, canary = pair
    canary.faults = faults
    router.start_rollout(steps=SHADOW)
    with traffic_to(router) as traffic:
        assert router.wait_for("RolledBack")["cause"] == "shadow"
    assert set(traffic.versions) == {"1"} and traffic.failures == []
    assert canary.inferences == canary.shadows > 0 and stable.shadows == 0


def test_a_canary_that_fails_in_the_shadow_is_rolled_back_unseen(pair):
    router, _, canary = pair
    canary.faults = Faults(error_rate=1)
    router.start_rollout(steps=SHADOW)
    with traffic_to(router) as traffic:
        assert router.wait_for("RolledBack")["cause"] == "err"
    assert set(traffic.versions) == {"1"} and traffic.failures == []


def test_a_canary_that_agrees_leaves_the_shadow(pair):
    router, stable, canary = pair
    router.start_rollout(steps=SHADOW)
    with traffic_to(router):
        wait_until(lambda: router.rollout()["step"] == 1, 20, "the second step")
        router.wait_for_answers(50)
    assert canary.shadows > 0 and stable.shadows == 0 and canary.shadows < canary.inferences
    assert not any("x-serin-shadow" in headers for _, headers, _ in stable.requests)


def test_a_canary_that_hangs_in_the_shadow_costs_no_client_anything(pair):
    router, stable, canary = pair
    canary.faults = Faults(hang=True)
    router.start_rollout(steps=SHADOW)
    with traffic_to(router) as traffic:
        wait_until(lambda: traffic.answers > 1000, 20, "stable answers on")
    assert traffic.failures == [] and canary.busiest <= 64
    assert router.metric("serin_route_mirrors_dropped_total") >= stable.inferences - canary.inferences - CLIENTS


# --- no verdict where there is no evidence ------------------------------------------------------------------------------------------


def test_r8_without_traffic_a_rollout_holds_and_says_so(pair):
    router, _, _ = pair
    router.start_rollout(steps=[5], certify={"maxStepDuration": "1s"})
    rollout = router.wait_for("Inconclusive", 10)
    assert rollout["weight"] == 5 and "insufficient data" in rollout["reason"]
    assert router.metric("serin_rollout_verdicts_total") == 0
    wait_until(lambda: router.metric("serin_rollout_phase", phase="Inconclusive") == 1, what="the phase on the metrics page")


def test_r8_one_error_alone_moves_nobody(pair):
    router, _, canary = pair
    router.start_rollout(steps=[hold(100)])
    canary.faults = Faults(error_rate=1)
    assert ask(router.url, 1)[0][0] == 200
    canary.faults = Faults()
    ask(router.url, 20)
    assert router.rollout()["phase"] == "Progressing"


def test_r10_an_outage_of_both_versions_condemns_nobody(pair):
    router, stable, canary = pair
    stable.faults = canary.faults = Faults(error_rate=0.4)
    router.start_rollout(steps=[hold(50)])
    with traffic_to(router) as traffic:
        wait_until(lambda: traffic.answers > 3000, 30, "3000 answers")
    assert router.rollout()["phase"] == "Progressing" and traffic.statuses[500] > 300


def test_r10_a_threshold_that_both_breach_holds(pair):
    router, stable, canary = pair
    stable.faults = canary.faults = Faults(error_rate=0.4)
    router.start_rollout(steps=[50], guard={"errors": {"max": "1%"}})
    with traffic_to(router) as traffic:
        wait_until(lambda: traffic.answers > 2000, 30, "2000 answers")
    rollout = router.rollout()
    assert rollout["phase"] == "Progressing" and "threshold:errors" in rollout["note"]


def test_failures_of_whole_batches_on_both_arms_are_no_verdict(pair):
    """Counted by the request, batches of eight that fail as one would roll back a healthy canary in a few percent of all rollouts."""
    router, stable, canary = pair
    stable.faults = canary.faults = Faults(error_rate=0.3, batch=8)
    router.start_rollout(steps=[hold(50)])
    with traffic_to(router) as traffic:
        wait_until(lambda: traffic.answers > 4000, 30, "4000 answers")
    assert router.rollout()["phase"] == "Progressing"


# --- good canaries ------------------------------------------------------------------------------------------------------------------


def test_a_good_canary_is_promoted_and_becomes_stable(pair):
    router, stable, canary = pair
    router.start_rollout(steps=[5, 25, 50, 100])
    with traffic_to(router) as traffic:
        rollout = router.wait_for("Succeeded", 60)
        wait_until(lambda: router.metric("serin_route_weight_ppm", version="2") == 1_000_000, 5, "the new weight in force")
        seen = canary.inferences
        wait_until(lambda: canary.inferences > seen + 200, 20, "the new stable serves")
        before = stable.inferences
        wait_until(lambda: traffic.answers and canary.inferences > seen + 400, 20, "the new stable serves alone")
        assert stable.inferences == before
    assert rollout["cause"] == "promoted" and rollout["weight"] == 100 and traffic.failures == []
    assert router.status()["stable"] == "2"
    assert router.metric("serin_rollout_verdicts_total", outcome="promoted") == 1
    weights = [entry["weight"] for entry in router.history()]
    assert weights == sorted(weights) and weights[0] == 5 and weights[-1] == 100


def test_the_next_rollout_goes_on_from_the_new_stable(pair):
    router, _, _ = pair
    with traffic_to(router):
        router.start_rollout(steps=[50])
        router.wait_for("Succeeded", 30)
        router.start_rollout(canary="1", steps=[hold(10)])
        assert router.wait_for_answers(20)
    rollout = router.rollout()
    assert (rollout["stable"], rollout["canary"]) == ("2", "1")


def test_services_are_judged_apart(route, backend):
    bad = backend("2", error_rate=1)
    other_stable, other_canary = backend("1", service="letters"), backend("2", service="letters")
    router = route(service(backend("1"), bad), service(other_stable, other_canary, name="letters"))
    for name in ("digits", "letters"):
        wait_until(lambda name=name: router.healthy("2", name) == 1, 10, "health checked")
        router.start_rollout(name=name, steps=[hold(20)])
    with traffic_to(router), traffic_to(router, service="letters") as letters:
        router.wait_for("RolledBack")
        wait_until(lambda: letters.versions["2"] > 50, 20, "the other canary goes on")
    assert router.rollout("letters")["phase"] == "Progressing" and letters.failures == []


# --- operations ---------------------------------------------------------------------------------------------------------------------


def test_metrics_have_the_names_that_are_documented(pair):
    router, _, canary = pair
    canary.faults = Faults(error_rate=1)
    router.start_rollout(steps=[hold(20)])
    with traffic_to(router) as traffic:
        router.wait_for("RolledBack")
    counted = lambda: router.metric("serin_route_requests_total", service="digits", version="1", code="200")  # noqa: E731
    wait_until(lambda: counted() == traffic.answers, 5, "the last answer is counted: its client has it before")
    assert router.metric("serin_route_latency_seconds_count", service="digits", version="2") == canary.served
    assert router.metric("serin_route_latency_seconds_bucket", service="digits", le="+Inf") == traffic.answers + canary.served
    wait_until(lambda: router.metric("serin_route_evidence_bits", guard="err") > 10, 5, "the evidence in the metrics")
    wait_until(lambda: router.metric("serin_rollout_phase", phase="RolledBack") == 1, 5, "the phase in the metrics")


def test_sigterm_answers_what_is_under_way_and_ends_with_0(pair):
    router, stable, _ = pair
    stable.faults = Faults(delay=0.5)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(Connection(router.url).ask, infer_request()) for _ in range(8)]
        wait_until(lambda: stable.inferences == 8, 10, "eight requests under way")
        router.process.send_signal(signal.SIGTERM)
        assert [answer.result()[0] for answer in answers] == [200] * 8
    assert router.process.wait(20) == 0


def test_sigterm_routes_on_while_not_ready(route, backend):
    router = route(service(backend("1"), backend("2")), drain_seconds=2)
    router.process.send_signal(signal.SIGTERM)
    wait_until(lambda: call(router.url + "/v2/health/ready").status == 503, 2, "not ready")
    assert {status for status, _, _ in ask(router.url, 20)} == {200}
    assert call(router.url + "/v2/health/live").status == 200
    assert router.process.wait(20) == 0


def test_sigterm_under_steady_traffic_fails_nobody(pair):
    """Every connection's last answer says that it is the last: no client's next request meets a closed door unawares."""
    router, _, _ = pair
    with traffic_to(router) as traffic:
        wait_until(lambda: traffic.answers > 200, 10, "traffic")
        router.process.send_signal(signal.SIGTERM)
        assert router.process.wait(20) == 0
    assert set(traffic.statuses) <= {200, 503}
    assert all(status == 0 and "refused" in reason.lower() or status == 503 for status, reason in traffic.failures), traffic.failures
