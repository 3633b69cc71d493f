"""Webhooks against a real receiver that fails first: events told at least once and in order, signed; gates that wait for a yes."""

import base64
import hashlib
import hmac
import json
import socket

import pytest

from conftest import serin, wait_until
from routers import service, write_config
from traffic import Traffic

KEY = bytes(range(24))
HOLD = {"setWeight": 25, "until": {"duration": "1h"}}


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "hook.secret"
    path.write_text("whsec_" + base64.b64encode(KEY).decode() + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def routed(route, backend):
    """routed(webhook, ...): a router with these webhooks, both versions healthy."""
    backends = [backend("1"), backend("2")]

    def begin(*webhooks):
        router = route(service(*backends), webhooks=list(webhooks))
        wait_until(lambda: router.healthy("1") == router.healthy("2") == 1, 10, "health checked")
        return router
    return begin


def test_events_are_told_in_order_signed_and_again_where_the_receiver_fails(routed, receiver, secret):
    receiver.answers.extend([500, 503])
    router = routed({"name": "chat", "type": "event", "url": receiver.url, "secret": str(secret)})
    router.start_rollout(steps=[HOLD])
    router.command("abort", {"reason": "lunch"})
    wait_until(lambda: receiver.events == ["started", "started", "started", "rolled_back"], 20, "told after two failures")
    path, headers, body = receiver.requests[-1]
    event = json.loads(body)
    assert path == "/serin?from=tests" and headers["content-type"] == "application/cloudevents+json"
    assert (event["specversion"], event["type"], event["source"]) == ("1.0", "serin.rollout.rolled_back", "/serin/services/digits")
    assert "lunch" in event["data"]["detail"] and event["subject"] == event["data"]["rollout"]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    assert headers["webhook-signature"] == "v1," + base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    ids = [headers["webhook-id"] for _, headers, _ in receiver.requests]
    assert ids[0] == ids[1] == ids[2] != ids[3], "who has seen an id before may drop it"
    assert router.metric("serin_webhook_events_total", webhook="chat", result="failed") == 2
    assert router.metric("serin_webhook_events_total", webhook="chat", result="told") == 2


def test_an_event_that_was_not_told_is_told_after_a_restart(routed, receiver):
    webhook = {"name": "chat", "type": "event", "url": receiver.url}
    receiver.usual = 503
    router = routed(webhook)
    router.start_rollout(steps=[HOLD])
    wait_until(lambda: receiver.events, 10, "tried")
    router.command("abort")
    router.kill()
    receiver.usual = 204
    receiver.requests.clear()
    routed(webhook)
    wait_until(lambda: receiver.events == ["started", "rolled_back"], 20, "told by the next one")


def test_a_receiver_hears_of_what_it_asked_for(routed, receiver):
    router = routed({"name": "pager", "type": "event", "url": receiver.url, "events": ["rolled_back"]})
    router.start_rollout(steps=[HOLD])
    router.command("pause")
    router.command("abort")
    wait_until(lambda: receiver.events, 10, "told")
    assert receiver.events == ["rolled_back"]


def test_a_receiver_that_does_not_answer_holds_nobody_up(routed):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        router = routed({"name": "silent", "type": "event", "url": url}, {"name": "mute", "type": "rollback", "url": url, "interval": "100ms"})
        router.start_rollout(steps=[50])
        with Traffic(router.url, clients=2):
            assert router.wait_for("Succeeded")["weight"] == 100


@pytest.mark.parametrize("gate, before, after", [("confirm-rollout", 0, 50), ("confirm-promotion", 50, 100)])
def test_a_gate_waits_for_a_yes(routed, receiver, gate, before, after):
    receiver.usual = 409
    router = routed({"name": "board", "type": gate, "url": receiver.url, "interval": "50ms"})
    router.start_rollout(steps=[50])
    with Traffic(router.url, clients=2):
        waiting = router.wait_for("Paused")
        assert waiting["weight"] == before and waiting["cause"] == gate and gate in waiting["reason"]
        asked = json.loads(wait_until(lambda: receiver.requests and receiver.requests[-1][2], 10, "asked"))
        assert (asked["type"], asked["service"], asked["canary"], asked["weight"]) == (gate, "digits", "2", before)
        assert router.rollout()["phase"] == "Paused"
        receiver.usual = 200
        wait_until(lambda: router.rollout()["weight"] >= after, 20, "passed")
    assert "webhook board" in [entry["actor"] for entry in router.history() if entry["event"] == "confirmed"]


def test_every_further_weight_waits_for_its_own_yes_and_a_person_may_give_it(routed, receiver):
    receiver.usual = 409
    router = routed({"name": "board", "type": "confirm-traffic-increase", "url": receiver.url, "interval": "50ms"})
    router.start_rollout(steps=[20, 50, 100])
    with Traffic(router.url, clients=3):
        assert router.wait_for("Paused")["weight"] == 20
        assert router.command("resume").status == 200
        wait_until(lambda: router.rollout()["phase"] == "Paused" and router.rollout()["weight"] == 50, 20, "waits again")
        receiver.usual = 200
        router.wait_for("Succeeded")


def test_a_gate_still_waits_after_a_restart(routed, receiver):
    receiver.usual = 409
    webhook = {"name": "board", "type": "confirm-rollout", "url": receiver.url, "interval": "50ms"}
    router = routed(webhook)
    router.start_rollout(steps=[50])
    router.kill()
    router = routed(webhook)
    assert router.rollout()["phase"] == "Paused" and router.rollout()["weight"] == 0
    receiver.usual = 200
    wait_until(lambda: router.rollout()["weight"] == 50, 20, "passed")


def test_somebody_outside_may_ask_for_a_rollback(routed, receiver):
    receiver.usual = 404
    router = routed({"name": "pager", "type": "rollback", "url": receiver.url, "interval": "50ms"})
    router.start_rollout(steps=[HOLD])
    wait_until(lambda: receiver.requests, 10, "asked")
    assert router.rollout()["phase"] == "Progressing"
    receiver.usual = 200
    assert "webhook pager" in router.wait_for("RolledBack")["reason"]


@pytest.mark.parametrize("webhook, words", [
    ({"name": "x", "type": "event", "url": "ftp://h/"}, ["webhooks[0].url", "https"]),
    ({"name": "x", "type": "event"}, ["'url' is missing"]),
    ({"name": "x", "type": "load-test", "url": "http://h/"}, ["webhooks[0].type", "confirm-rollout"]),
    ({"name": "x", "type": "rollback", "url": "http://h/", "events": ["started"]}, ["belongs to the type event"]),
    ({"name": "x", "type": "event", "url": "http://h/", "services": ["nope"]}, ["no service 'nope'"]),
    ({"name": "x", "type": "event", "url": "http://h/", "secret": "/nowhere"}, ["/nowhere"]),
    ({"name": "x", "type": "event", "url": "http://h/", "timeout": "0s"}, ["10ms to 1h"]),
])
def test_c1_a_mistake_in_a_webhook_is_named(tmp_path, backend, webhook, words):
    done = serin("route", "--check", "--config", write_config(tmp_path, service(backend("1")), webhooks=[webhook]))
    assert done.returncode == 2 and all(word in done.stderr for word in words), done.stderr
