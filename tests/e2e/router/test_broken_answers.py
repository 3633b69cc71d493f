"""Answers that are none: cut off, reset, malformed, of another length than announced. Each is as strong as a 500, and no client sees one."""

import pytest
from backends import Faults
from conftest import wait_until
from grpc_clients import Calls
from h2_backend import FAULTS, INFER, H2Backend
from routers import hold, service
from traffic import Traffic

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

BROKEN = {
    "closed before the answer": Faults(closed=True),
    "reset before the answer": Faults(closed=True, then_reset=True),
    "cut off in the head": Faults(garbage=HEAD),
    "cut off after the head": Faults(garbage=HEAD + b"Content-Length: 5\r\n\r\n"),
    "cut off in the body": Faults(truncated=True),
    "reset in the body": Faults(garbage=HEAD + b'Content-Length: 50\r\n\r\n{"outputs"', then_reset=True),
    "cut off in a chunk": Faults(garbage=CHUNKED + b"9\r\n{}"),
    "cut off between chunks": Faults(garbage=CHUNKED + b"2\r\n{}\r\n"),
    "malformed head": Faults(garbage=b"HTTP/1.1 banana\r\n\r\n"),
    "malformed chunk": Faults(garbage=CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n"),
    "longer than announced": Faults(garbage=HEAD + b'Content-Length: 2\r\n\r\n{"outputs": []}'),
}


def id_of(value):
    return value.replace(" ", "-") if isinstance(value, str) else f"{value:.0%}"


def verdict(router, canary, traffic):
    """The rollout, and how many answers of the canary were bad until it was out."""
    with traffic:
        rollout = router.wait_for("RolledBack", 60)
    assert rollout["cause"] == "err" and traffic.failures == []
    return rollout, canary.bad


@pytest.mark.parametrize("rate", [1, 0.1], ids=id_of)
@pytest.mark.parametrize("fault", BROKEN, ids=id_of)
def test_a_broken_answer_is_as_strong_as_an_error(pair, fault, rate, capsys):
    router, _, canary = pair
    canary.faults = Faults(**{**vars(BROKEN[fault]), "garbage_rate": rate})
    router.start_rollout(steps=[hold(5)])
    rollout, bad = verdict(router, canary, Traffic(router.url, clients=2, pause=0.002))
    with capsys.disabled():
        print(f"\n  {fault}, {rate:.0%}: {bad} bad answers; {rollout['reason']}")
    if rate == 1:
        assert bad <= 8


def test_a_canary_that_is_killed_now_and_then_is_an_endpoint_that_fails(pair):
    """All that is in progress breaks at once: as errors of requests, half as many deaths would be enough for a verdict."""
    router, stable, canary = pair
    stable.faults = canary.faults = Faults(delay=0.02)
    router.start_rollout(steps=[hold(5)])
    with Traffic(router.url, clients=16) as traffic:
        for deaths in range(1, 9):
            router.wait_for_answers(20 * deaths)
            wait_until(lambda: canary.under_way > 0, 20, "a request in progress")
            canary.down()
            wait_until(lambda: router.healthy("2") == 0, 10, "seen to be down")
            canary.up()
            wait_until(lambda: router.healthy("2") == 1, 10, "back")
        rollout = router.rollout()
    errors = next(line for line in rollout["evidence"] if line["guard"] == "err")
    assert rollout["phase"] == "Progressing" and traffic.failures == []
    assert errors["canary_events"] <= 12 and errors["bits"] < 9


@pytest.fixture
def calls(route, channel):
    """(router, channel, canary)"""
    with H2Backend("1") as stable, H2Backend("2") as canary:
        router = route(service(stable, canary))
        wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
        yield router, channel(router), canary


@pytest.mark.parametrize("rate", [1, 0.1], ids=id_of)
@pytest.mark.parametrize("fault", FAULTS, ids=id_of)
def test_a_broken_answer_to_a_call_is_as_strong_as_an_error(calls, fault, rate, capsys):
    router, channel, canary = calls
    canary.fault, canary.rate = fault, rate
    router.start_rollout(steps=[hold(5)])
    rollout, bad = verdict(router, canary, Calls(channel, clients=2, message=INFER))
    with capsys.disabled():
        print(f"\n  {fault}, {rate:.0%}: {bad} bad answers; {rollout['reason']}")
    if rate == 1:
        assert bad <= 8 + (fault == "refused-stream") * 8, "a stream that is refused is tried once more"
