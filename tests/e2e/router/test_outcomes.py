"""A version is chosen by outcomes that are reported later: `outcomes:` of router.yaml, the header x-serin-assigned, and the admin API."""

import contextlib
import json
import random
import signal
import sqlite3
import time

import pytest

from backends import Faults
from conftest import call, infer_body, serin, wait_until
from grpc_backends import OIP
from grpc_clients import infer
from routers import NO_SECOND_TRY, hold, reload, service, write_config

CONVERSION = [{"name": "conversion"}]
PATH = "/v1/services/digits/outcomes"


@pytest.fixture
def versions(route, backend):
    stable, canary = backend("1"), backend("2")
    router = route(service(stable, canary, outcomes=CONVERSION, force_header=True))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    return router, stable, canary


def ask(router, **headers):
    return call(f"{router.url}/v2/models/digits/infer", infer_body([[0.0]]), headers)


def assigned(router, **headers):
    return ask(router, **headers).headers.get("x-serin-assigned")


def without_time(text):
    return text.rpartition(";")[0]


def begin(router, weight=50, **more):
    more = {"shield": NO_SECOND_TRY, **more}
    router.start_rollout(steps=[hold(weight)], **more)


def reports(outcomes):
    return [{"metric": "conversion", "assigned": text, "value": value} for text, value in outcomes]


def summary(router):
    answer = call(router.admin + PATH)
    assert answer.status == 200, answer.body
    return answer.json["metrics"][0]


def drawn_at_random(count, rates, seed=1, lost=0.0):
    """What a service with such rates of conversion reports of requests that were drawn 50 : 50; some reports of version 2 get lost."""
    draw = random.Random(seed)
    for _ in range(count):
        version, identity = draw.choice("12"), draw.getrandbits(64)
        if version == "2" and draw.random() < lost:
            continue
        yield f"{version};1=500000,2=500000;{identity:016x}", int(draw.random() < rates[version])


def send(router, outcomes):
    outcomes = list(outcomes)
    for first in range(0, len(outcomes), 1000):
        answer = router.post(PATH, reports(outcomes[first : first + 1000]))
        assert answer.status == 200 and not answer.json["refused"], answer.body


def noted(database):
    """What the store has of the metric; empty: nothing yet."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        found = connection.execute("SELECT text FROM notes WHERE name = 'outcomes/digits/conversion'").fetchone()
        return found[0] if found else ""


def test_the_better_version_wins_by_delayed_outcomes_of_real_requests(versions):
    router, *_ = versions
    begin(router)
    answers = [ask(router) for _ in range(300)]
    texts = [answer.headers["x-serin-assigned"] for answer in answers]
    assert len(set(texts)) == 300
    for text, answer in zip(texts, answers):
        version, shares, identity, at = text.split(";")
        assert abs(int(at) / 1000 - time.time()) < 60
        assert version == answer.headers["x-serin-version"] and shares == "1=500000,2=500000" and len(identity) == 16
    assert summary(router)["verdict"] == "no_reports"
    draw = random.Random(7)
    rates = {"1": 0.2, "2": 0.7}
    later = [(text, int(draw.random() < rates[text[0]])) for text in texts]
    draw.shuffle(later)
    router.command("abort")  # outcomes come when the rollout is long over
    for part in (later[:100], later[100:]):
        assert router.post(PATH, reports(part)).json == {"accepted": len(part), "duplicates": 0, "refused": []}
    metric = summary(router)
    assert metric["verdict"] == "winner" and metric["winner"] == metric["leading"] == "2"
    (comparison,) = metric["comparisons"]
    assert comparison["version"] == "2" and comparison["than"] == "1" and 0 < comparison["low"] < 0.5 < comparison["high"] < 1
    assert sum(version["reports"] for version in metric["versions"]) == 300
    assert sum(router.metric("serin_route_outcomes_total", metric="conversion", version=version) for version in "12") == 300
    printed = serin("rollout", "outcomes", "digits", "--admin", router.admin)
    assert printed.returncode == 0 and "2 is best" in printed.stdout and "2 minus 1" in printed.stdout, printed
    assert json.loads(serin("rollout", "outcomes", "digits", "--json", "--admin", router.admin).stdout)["metrics"][0] == metric


def test_only_drawn_requests_are_assigned(versions):
    router, *_ = versions
    assert assigned(router) is None, "nothing was drawn"
    begin(router)
    assert assigned(router) is not None
    assert assigned(router, **{"x-serin-force-version": "2"}) is None
    assert call(f"{router.url}/v2/models/digits").headers.get("x-serin-assigned") is None


def test_a_request_that_stable_answered_for_the_canary_stays_the_canarys(versions):
    router, _, canary = versions
    begin(router, shield={"retryStable": True, "hedge": "off"}, guard={"falseRollback": 1e-9})
    canary.faults = Faults(error_rate=1)
    shielded = wait_until(lambda: [answer for answer in [ask(router)] if answer.headers["x-serin-assigned"][0] == "2"], 10, "drawn for the canary")
    assert shielded[0].status == 200 and shielded[0].headers["x-serin-version"] == "1"


def test_a_failure_says_what_was_drawn_as_well(versions):
    router, _, canary = versions
    begin(router, guard={"falseRollback": 1e-9})
    canary.faults = Faults(closed=True)
    failed = wait_until(lambda: [answer for answer in [ask(router)] if answer.status >= 500], 10, "drawn for the canary")
    assert failed[0].headers["x-serin-assigned"][0] == "2"


def test_a_user_has_one_id_while_users_are_sticky(versions):
    router, *_ = versions
    begin(router, canary={"version": "2", "sticky": {"header": "x-user"}})
    ann = {without_time(assigned(router, **{"x-user": "ann"})) for _ in range(5)}
    others = {without_time(assigned(router, **{"x-user": f"user {i}"})) for i in range(20)}
    assert len(ann) == 1 and len(others) == 20
    assert {text[0] for text in others} == {"1", "2"}
    text = ann.pop()
    assert router.post(PATH, reports([(text, 1), (text, 0)])).json["duplicates"] == 1


def test_a_service_without_outcomes_says_nothing(pair):
    router, *_ = pair
    begin(router)
    assert assigned(router) is None
    assert call(router.admin + PATH).status == 404
    assert serin("rollout", "outcomes", "digits", "--admin", router.admin).returncode == 1


def test_a_plain_split_is_compared_as_well(route, backend):
    first, second, third = backend("1"), backend("2"), backend("3")
    router = route(service(first, second, third, outcomes=CONVERSION, split={"weights": {"1": 50, "2": 30, "3": 20}}))
    wait_until(lambda: all(router.healthy(version) == 1 for version in "123"), 10, "health checked")
    texts = [assigned(router) for _ in range(60)]
    assert {text.split(";")[1] for text in texts} == {"1=500000,2=300000,3=200000"} and {text[0] for text in texts} == {"1", "2", "3"}
    send(router, [(text, int(text[0] == "3")) for text in texts])
    assert len(summary(router)["comparisons"]) == 3 and summary(router)["leading"] == "3"


def test_canaries_that_run_at_once_are_compared(route, backend):
    backends = [backend(version) for version in "123"]
    router = route(service(*backends, outcomes=CONVERSION, rollouts=2))
    wait_until(lambda: all(router.healthy(version) == 1 for version in "123"), 10, "health checked")
    begin(router, 30, canary="2")
    assert {assigned(router).split(";")[1] for _ in range(5)} == {"1=700000,2=300000"}
    begin(router, 40, canary="3")
    texts = [assigned(router) for _ in range(60)]
    assert {tuple(sorted(text.split(";")[1].split(","))) for text in texts} == {("1=300000", "2=300000", "3=400000")}
    assert {text[0] for text in texts} == {"1", "2", "3"}
    send(router, [(text, int(text[0] == "2")) for text in texts])
    assert len(summary(router)["comparisons"]) == 3 and summary(router)["leading"] == "2"


def test_calls_are_assigned_in_their_metadata(route, grpc_backend, channel):
    stable, canary = grpc_backend("1"), grpc_backend("2")
    router = route(service(stable, canary, outcomes=CONVERSION))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    begin(router)
    for _ in range(4):
        _, ended = channel(router).unary_unary(OIP + "ModelInfer").with_call(infer())
        metadata = dict(ended.initial_metadata())
        assert metadata["x-serin-assigned"].split(";")[:2] == [metadata["x-serin-version"], "1=500000,2=500000"]


def test_a_restart_a_kill_and_a_reload_keep_the_sums(route, backend, tmp_path):
    def config():
        return service(stable, canary, outcomes=CONVERSION)

    stable, canary = backend("1"), backend("2")
    router = route(config())
    outcomes = list(drawn_at_random(1500, {"1": 0.3, "2": 0.4}))
    send(router, outcomes)
    before = summary(router)
    assert reload(router) and summary(router) == before
    router.process.send_signal(signal.SIGTERM)
    router.process.wait(10)
    router = route(config())
    assert summary(router) == before
    again = router.post(PATH, reports(outcomes[:1000]))
    assert again.json == {"accepted": 0, "duplicates": 1000, "refused": []}
    more = list(drawn_at_random(10, {"1": 0, "2": 1}, seed=2))
    send(router, more)
    after = summary(router)
    wait_until(lambda: '"ids":1510' in noted(tmp_path / "router.db"), 10, "written within two seconds")
    router.process.kill()
    router.process.wait(10)
    router = route(config())
    assert summary(router) == after and router.post(PATH, reports(more)).json["duplicates"] == 10
    assert call(router.admin + PATH, method="DELETE").json["metrics"][0]["verdict"] == "no_reports"
    router.process.kill()
    router.process.wait(10)
    assert summary(route(config()))["reports"] == 0, "a reset is on disk when it is answered"


def test_reports_that_get_lost_for_one_version_name_no_winner(versions):
    router, *_ = versions
    send(router, drawn_at_random(6000, {"1": 0.1, "2": 0.3}, lost=0.2))
    metric = summary(router)
    assert metric["verdict"] == "unbalanced" and metric["winner"] is None and not metric["comparisons"][0]["balanced"]
    assert "missing more often" in metric["text"]


def test_bad_reports_are_refused_one_by_one(versions):
    router, *_ = versions
    good = "2;1=500000,2=500000;00000000000000aa"
    answer = router.post(PATH, [*reports([(good, 1), (good, 2), ("nonsense", 1), ("9;1=500000,9=500000;00000000000000ab", 1)]),
                                {"metric": "clicks", "assigned": good, "value": 1}, {"metric": "conversion"}, "text"])
    assert answer.status == 200 and answer.json["accepted"] == 1
    errors = {entry["index"]: entry["error"] for entry in answer.json["refused"]}
    assert sorted(errors) == [1, 2, 3, 4, 5, 6]
    assert "from 0 to 1" in errors[1] and "x-serin-assigned" in errors[2] and "no version '9'" in errors[3] and "'clicks'" in errors[4]
    assert "assigned" in errors[5]
    for body in ("", "[]", "7", "{", json.dumps(reports([(good, 1)]) * 1001)):
        assert router.post(PATH, body).status == 400
    assert call(router.admin + PATH, method="PUT").status == 405
    assert router.post("/v1/services/other/outcomes", reports([(good, 1)])).status == 404
    assert summary(router)["reports"] == 1


# --- as a guard of a rollout -----------------------------------------------------------------------------------------------------------

ACCURACY = {"outcomes": [{"metric": "conversion", "margin": 0.05}]}


def evidence(router):
    return next(entry for entry in router.rollout()["evidence"] if entry["guard"] == "outcome:conversion")


def labelled(texts, rates, seed=3):
    """Whether each answer turned out to be right: a conversion of 1 or 0."""
    draw = random.Random(seed)
    return [(text, int(draw.random() < rates[text[0]])) for text in texts]


def test_a_canary_whose_labels_turn_out_wrong_is_rolled_back(versions):
    router, *_ = versions
    begin(router, guard=ACCURACY)
    texts = [assigned(router) for _ in range(400)]
    send(router, labelled(texts[:40], {"1": 0.95, "2": 0.95}))
    assert evidence(router)["canary_events"] == 40 and router.rollout()["phase"] == "Progressing"
    send(router, labelled(texts[40:], {"1": 0.95, "2": 0.3}))
    ended = wait_until(lambda: router.rollout() if router.rollout()["phase"] == "RolledBack" else None, 10, "worse by its labels")
    assert ended["cause"] == "outcome:conversion" and "in 400 reports, 0.05 allowed" in ended["reason"]
    assert {ask(router).headers["x-serin-version"] for _ in range(50)} == {"1"}
    explained = serin("rollout", "explain", "digits", "--admin", router.admin)
    assert explained.returncode == 0 and "outcome:conversion" in explained.stdout
    record = json.loads(serin("rollout", "explain", "digits", "--json", "--admin", router.admin).stdout)["record"]
    assert record["question"] == "outcomes" and record["events"][-1]["bits"] >= 13.15


def test_labels_of_before_a_kill_count_and_those_of_an_earlier_rollout_do_not(route, backend, tmp_path):
    def config():
        return service(stable, canary, outcomes=CONVERSION)

    stable, canary = backend("1"), backend("2")
    router = route(config())
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    begin(router, guard=ACCURACY)
    earlier = [assigned(router) for _ in range(300)]
    router.command("abort")
    time.sleep(2.5)  # a rollout is known within two seconds of its start
    begin(router, guard=ACCURACY)
    texts = [assigned(router) for _ in range(300)]
    send(router, labelled(earlier, {"1": 1, "2": 0}))
    assert evidence(router)["canary_events"] == 0 and summary(router)["reports"] == 300, "they are outcomes of another rollout"
    send(router, labelled(texts[:30], {"1": 1, "2": 0.5}))
    before = evidence(router)
    assert before["canary_events"] == 30
    wait_until(lambda: '"ids":330' in noted(tmp_path / "router.db"), 10, "written within two seconds")
    router.process.kill()
    router.process.wait(10)
    router = route(config())
    wait_until(lambda: evidence(router) == before, 10, "read back")
    send(router, labelled(texts[30:], {"1": 1, "2": 0}))
    wait_until(lambda: router.rollout()["phase"] == "RolledBack", 10, "worse by its labels")


def test_a_guard_of_outcomes_may_only_report_and_lower_may_be_better(route, backend):
    router = route(service(backend("1"), backend("2"), outcomes=[{"name": "conversion", "better": "lower", "range": [0, 60]}]))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    begin(router, guard={"outcomes": {"metric": "conversion"}}, dryRun=["outcomes"])
    texts = [assigned(router) for _ in range(200)]
    send(router, [(text, 20 + 20 * (text[0] == "2") + index % 7) for index, text in enumerate(texts)])
    shown = wait_until(lambda: router.rollout()["dry_run"], 10, "what it would have done")
    assert shown[0]["guard"] == "outcome:conversion" and router.rollout()["phase"] == "Progressing"
    assert 10 < float(shown[0]["reason"].split("differs by ")[1].split()[0]) < 30, "worse is larger"


def test_missing_labels_hold_the_steps_and_decide_nothing(versions):
    router, *_ = versions
    begin(router, guard=ACCURACY)
    texts = [assigned(router) for _ in range(300)]
    send(router, [(text, 0) for text in texts if text[0] == "2"])
    assert router.rollout()["note"].startswith("held: outcome:conversion") and router.rollout()["phase"] == "Progressing"


def test_a_guard_names_a_metric_of_the_service(versions):
    router, *_ = versions
    for guard, complaint in (({"metric": "clicks"}, "no outcome 'clicks' in router.yaml; it has conversion"), ({"metric": "conversion", "margin": 1}, "below its range")):
        refused = router.post("/v1/rollouts", {"service": "digits", "canary": "2", "steps": [hold(50)], "guard": {"outcomes": [guard]}})
        assert refused.status == 400 and complaint in refused.json["error"], refused.body


@pytest.mark.parametrize("outcomes, complaint", [
    ([{"name": "a b"}], "letters, digits"), ([{"name": "a"}, {"name": "a"}], "given twice"), ([{"name": "a", "range": [1, 1]}], "in this order"),
    ([{"name": "a", "better": "more"}], "better"), ([{"name": "a", "confidence": "10%"}], "confidence"), ([{"name": "a", "margin": 3}], "margin"),
    ([], "outcomes"), ([{"name": "a", "unit": "s"}], "unknown key 'unit'")])
def test_a_bad_metric_is_refused_by_name(tmp_path, backend, outcomes, complaint):
    config = write_config(tmp_path, service(backend("1"), backend("2"), outcomes=outcomes))
    done = serin("route", "--config", config, "--check")
    assert done.returncode != 0 and complaint in done.stderr, done.stderr
