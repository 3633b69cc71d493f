"""Partitions, processes that stand still, signals: faults of machines and of who runs them, which are no fault of a version."""

import json
import os
import signal
import time

import pytest

from backends import Faults
from conftest import call, wait_until
from routers import hold, service
from traffic import Traffic

F4 = {
    "refused": lambda canary: canary.down(),
    "reset-30-percent": lambda canary: setattr(canary, "faults", Faults(reset_rate=0.3)),
    "a-second-late": lambda canary: setattr(canary, "faults", Faults(delay=1)),
    "half-open": lambda canary: setattr(canary, "faults", Faults(hang=True)),
}


@pytest.mark.parametrize("fault", F4)
def test_f4_a_partition_from_the_canary_costs_no_client_an_error(pair, fault):
    router, _, canary = pair
    router.start_rollout(steps=[hold(20)], guard={"latency": {"deadline": "300ms", "floor": "1h"}})
    with Traffic(router.url, clients=3) as traffic:
        router.wait_for_answers(20)
        F4[fault](canary)
        before = traffic.answers
        wait_until(lambda: traffic.answers > before + 500, 30, "traffic goes on")
    assert traffic.failures == []


def test_f5_a_canary_that_is_stopped_is_held_and_tried_again(route, serve):
    """SIGSTOP: connections are accepted by the kernel and nobody answers."""
    stable, canary = serve(), serve()
    versions_of = [{"name": name, "endpoints": [{"url": f"{runtime.url}/v2/models/digits/versions/{model}"}],
                    "health": {"interval": "1h", "timeout": "500ms"}} for name, runtime, model in (("1", stable, 1), ("2", canary, 2))]
    router = route({"name": "digits", "initial_stable": "1", "versions": versions_of})
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    router.start_rollout(steps=[hold(30)], guard={"latency": {"deadline": "300ms", "floor": "1h"}})
    body = json.dumps({"inputs": [{"name": "pixels", "datatype": "FP32", "shape": [1, 64], "data": [0] * 64}]}).encode()
    with Traffic(router.url, clients=3, body=body) as traffic:
        router.wait_for_answers(20)
        canary.process.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: router.rollout()["weight"] == 0, 30, "held, or found guilty of its deadlines")
        finally:
            canary.process.send_signal(signal.SIGCONT)
        if os.environ.get("SERIN_LONG") and router.rollout()["phase"] == "Progressing":
            wait_until(lambda: router.rollout()["weight"] == 30, 30, "tried again")
    assert traffic.failures == []


def test_f5_a_router_that_stood_still_blames_nobody(pair):
    """Every deadline has passed when it goes on, on both versions alike."""
    router, _, canary = pair
    router.start_rollout(steps=[hold(30)], guard={"latency": {"deadline": "200ms", "baseline": 200}})
    with Traffic(router.url, clients=3) as traffic:
        for _ in range(5):
            answers = router.rollout()["answers"]["canary"]
            router.wait_for_answers(answers + 50)
            router.process.send_signal(signal.SIGSTOP)
            time.sleep(0.5)  # more than the deadline
            router.process.send_signal(signal.SIGCONT)
        router.wait_for_answers(router.rollout()["answers"]["canary"] + 50)
    rollout = router.rollout()
    assert rollout["phase"] == "Progressing" and traffic.failures == [], rollout["reason"]


@pytest.mark.parametrize("stray", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE])
def test_f6_stray_signals_end_nothing(pair, stray):
    router, _, _ = pair
    with Traffic(router.url, clients=2) as traffic:
        for _ in range(5):
            router.process.send_signal(stray)
            before = traffic.answers
            wait_until(lambda seen=before: traffic.answers > seen + 20, 10, "traffic goes on")
    assert traffic.failures == []


def test_f6_a_second_sigterm_ends_the_drain(route, backend):
    router = route(service(backend("1"), backend("2")), drain_seconds=60)
    router.process.send_signal(signal.SIGTERM)
    wait_until(lambda: call(router.url + "/v2/health/ready").status == 503, 5, "not ready")
    router.process.send_signal(signal.SIGTERM)
    assert router.process.wait(20) == 0
