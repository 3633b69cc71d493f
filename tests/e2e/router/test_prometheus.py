"""Custom guards against Debian's Prometheus: a query of the user's own rolls back where its answer is above the limit, and holds where there is none."""

import pytest

import prometheus_server
from conftest import call, free_port, wait_until
from prometheus_server import Exporter, program
from routers import service

pytestmark = pytest.mark.skipif(program("prometheus") is None, reason="no prometheus here; deploy/install-deps --tests gets it")


@pytest.fixture(scope="module")
def scraping(tmp_path_factory):
    """(Prometheus, the port of the one target that it scrapes). It takes five seconds to begin."""
    port = free_port()
    target = Exporter(port)
    with prometheus_server.prometheus(tmp_path_factory.mktemp("prometheus"), f"127.0.0.1:{port}") as server:
        target.end()
        yield server, port


@pytest.fixture
def exporter(scraping):
    """The target, once Prometheus has its answer."""
    server, port = scraping
    wait_until(lambda: not server.query("queue"), 20, "nothing is left of the target of another test")
    target = Exporter(port)
    wait_until(lambda: [series["value"][1] for series in server.query("queue")] == ["5"], 20, "a scrape")
    yield target
    target.end()


@pytest.fixture
def prometheus(scraping):
    return scraping[0].url


@pytest.fixture
def rollout(route, backend, exporter, prometheus):
    """start(query, max): a router with a rollout under way that asks for it."""
    router = route(service(backend("1"), backend("2")))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")

    def begin(query="max(queue)", limit=100, **more):
        guard = {"prometheus": [{"name": "queue", "address": prometheus, "query": query, "max": limit, "interval": "300ms", **more}]}
        router.start_rollout(steps=[{"setWeight": 25, "until": {"duration": "1h"}}], guard=guard)
        return router
    return begin


def note(router):
    return router.rollout()["note"]


def test_a_query_above_its_limit_rolls_back(rollout, exporter):
    router = rollout()
    wait_until(lambda: "prometheus" not in note(router), 10, "a fresh answer below the limit")
    exporter.text = "queue 500\n"
    verdict = router.wait_for("RolledBack", 20)
    assert verdict["cause"] == "prometheus:queue" and "500 is above 100, 3 times in a row" in verdict["reason"]
    record = call(f"{router.admin}/v1/verdicts/digits").json["record"]
    assert [event["share"] for event in record["events"]][-3:] == [500, 500, 500]


@pytest.mark.parametrize("text", ["", "queue NaN\n", "queue{a=\"1\"} 500\nqueue{a=\"2\"} 600\n"], ids=["absent", "NaN", "several-series"])
def test_r9_without_one_fresh_number_the_steps_hold(rollout, exporter, text):
    router = rollout(query="queue")
    wait_until(lambda: "prometheus" not in note(router), 10, "a fresh answer")
    exporter.text = text
    wait_until(lambda: "no fresh answer" in note(router), 20, "the hold")
    assert router.rollout()["phase"] == "Progressing" and router.rollout()["weight"] == 25
    exporter.text = "queue 5\n"
    wait_until(lambda: "prometheus" not in note(router), 20, "fresh again")


def test_r9_a_target_that_is_gone_is_stale_at_once(rollout, exporter):
    router = rollout()
    wait_until(lambda: "prometheus" not in note(router), 10, "a fresh answer")
    exporter.text = "queue 500\n# then nothing that is metrics: {"
    exporter.end()
    wait_until(lambda: "no fresh answer" in note(router), 20, "the hold")
    assert router.rollout()["phase"] == "Progressing"


def test_r9_a_counter_that_is_reset_is_no_breach(rollout, exporter, prometheus):
    exporter.text = "queue 5\nfailures_total 1000\n"
    router = rollout(query="sum(rate(failures_total[2s]))", limit=50)
    for value in (1001, 1002, 0, 1, 2, 3):  # the process restarted
        exporter.text = f"queue 5\nfailures_total {value}\n"

        def seen(value=value):
            result = call(f"{prometheus}/api/v1/query?query=failures_total").json["data"]["result"]
            return result and result[0]["value"][1] == str(value)
        wait_until(seen, 20, "a scrape")
        assert router.rollout()["phase"] == "Progressing"
    wait_until(lambda: "prometheus" not in note(router), 20, "a rate within the limit")
    assert router.rollout()["phase"] == "Progressing"


def test_a_server_that_refuses_the_query_says_why_in_the_log(rollout, exporter):
    router = rollout(query="max(queue", limit=1)
    wait_until(lambda: "parse error" in router.log, 10, "the reason in the log")
    assert router.rollout()["phase"] == "Progressing" and "has no answer yet" in note(router)
    assert router.log.count("parse error") == 1, "said once, not at every interval"
