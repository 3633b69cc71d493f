"""A router that goes on: router.yaml read again on SIGHUP, and successors that take over from it, both under load and without a lost request."""

import array
import contextlib
import json
import os
import socket
import subprocess

import pytest

from conftest import SERIN, call, wait_until
from routers import Router, reload, service, write_config
from traffic import Traffic, ask

TIMES = 100 if os.environ.get("SERIN_LONG") else 10
HOLD = {"setWeight": 25, "until": {"duration": "1h"}}


@pytest.fixture
def successor(tmp_path):
    """successor(): another router that takes over from the one that runs."""
    with contextlib.ExitStack() as stack:
        def begin():
            return stack.enter_context(Router(tmp_path, "route", "--take-over", "--drain-seconds", 0, "--config", tmp_path / "router.yaml"))
        yield begin


# --- SIGHUP -------------------------------------------------------------------------------------------------------------------------


def test_a_service_comes_changes_and_goes(route, backend, tmp_path):
    first, second, other = backend("1"), backend("1"), backend("1", service="letters")
    router = route(service(first))
    assert [status for status, _, _ in ask(router.url, 1, service="letters")] == [404]
    write_config(tmp_path, service(second), service(other, name="letters"), limits={"body_bytes": 1000})
    assert reload(router)
    assert ask(router.url, 1, service="letters")[0][0] == 200 and other.inferences == 1
    seen = first.inferences
    assert {status for status, _, _ in ask(router.url, 20)} == {200} and first.inferences == seen and second.inferences == 20
    assert ask(router.url, 1, body=b"x" * 1001)[0][0] == 413
    write_config(tmp_path, service(second))
    assert reload(router)
    assert ask(router.url, 1, service="letters")[0][0] == 404 and ask(router.url, 1)[0][0] == 200


@pytest.mark.parametrize("change, words", [
    (lambda config: config["services"][0].pop("initial_stable"), ["initial_stable"]),
    (lambda config: config["services"][0].update(treshold=1), ["treshold"]),
    (lambda config: config.update(store="elsewhere.db"), ["'store'", "restart"]),
    (lambda config: config.update(io_threads=2), ["'io_threads'", "restart"]),
    (lambda config: config.update(services=[]), ["services"]),
    (lambda config: config["services"][0]["versions"].pop(1), ["'2'", "canary", "digits-1"]),
    (lambda config: config["services"][0].update(initial_stable="2", versions=config["services"][0]["versions"][1:]), ["'1'", "stable"]),
    (lambda config: config.update(listen="192.0.2.1:80"), ["listen", "192.0.2.1"]),
], ids=lambda value: "-".join(value) if isinstance(value, list) else "")
def test_c7_a_bad_one_is_refused_whole_and_the_old_one_stays(pair, tmp_path, change, words):
    router, stable, canary = pair
    router.start_rollout(steps=[HOLD])
    config = json.loads((tmp_path / "router.yaml").read_text())
    config["limits"] = {"body_bytes": 10}  # would be noticed if half of it counted
    change(config)
    (tmp_path / "router.yaml").write_text(json.dumps(config))
    with Traffic(router.url, clients=3) as traffic:
        wait_until(lambda: traffic.answers > 20, 10, "traffic")
        assert not reload(router)
        before = traffic.answers
        wait_until(lambda: traffic.answers > before + 50, 10, "traffic goes on")
    assert traffic.failures == []
    line = next(line for line in router.log.splitlines() if "is refused" in line)
    assert "error" in line and all(word in line for word in words), line
    rollout = router.rollout()
    assert rollout["phase"] == "Progressing" and rollout["weight"] == 25
    assert router.command("abort").status == 200


def test_f9_reloads_under_load_lose_no_request_and_leave_the_rollout_as_it_is(pair, backend, tmp_path):
    router, stable, canary = pair
    another, letters = backend("1"), backend("1", service="letters")
    router.start_rollout(steps=[HOLD])
    before = router.rollout()
    judged = 0
    with Traffic(router.url, clients=3) as traffic:
        for turn in range(TIMES):
            services = [service(stable, another, canary) if turn % 2 else service(stable, canary)]
            if turn % 3:
                services.append(service(letters, name="letters"))
            write_config(tmp_path, *services, limits={"header_count": 50 + turn})
            assert reload(router)
            wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
            seen = traffic.answers
            wait_until(lambda: traffic.answers > seen + 20, 20, "traffic goes on")
            judged, had = router.rollout()["answers"]["stable"], judged
            assert judged > had, "its evidence goes on"
    assert traffic.failures == [] and traffic.versions["2"] > 0
    rollout = router.rollout()
    assert [rollout[key] for key in ("id", "phase", "step", "weight")] == [before[key] for key in ("id", "phase", "step", "weight")]
    assert another.inferences > 0 and [entry["event"] for entry in router.history()] == ["started"] + ["reloaded"] * TIMES
    assert router.metric("serin_route_reloads_total", result="applied") == TIMES


# --- successors ---------------------------------------------------------------------------------------------------------------------


def test_f9_hot_restarts_under_load_lose_no_request_and_go_on_with_the_rollout(pair, successor):
    router, stable, canary = pair
    router.start_rollout(steps=[HOLD])
    before = router.rollout()
    with Traffic(router.url, clients=3) as traffic:
        for _ in range(TIMES):
            old, router = router, successor()
            assert router.ports["http"] == old.ports["http"] and router.ports["admin"] == old.ports["admin"]
            assert old.process.wait(40) == 0
            seen = traffic.answers
            wait_until(lambda: traffic.answers > seen + 20, 20, "traffic goes on")
    assert traffic.failures == [] and traffic.versions["2"] > 0
    rollout = router.rollout()
    assert [rollout[key] for key in ("id", "phase", "step", "weight")] == [before[key] for key in ("id", "phase", "step", "weight")]
    assert router.command("abort").status == 200 and "a successor has taken over" in old.log


def test_without_a_predecessor_it_is_an_ordinary_start(route, backend, successor, tmp_path):
    write_config(tmp_path, service(backend("1")))
    router = successor()
    assert ask(router.url, 1)[0][0] == 200


def test_a_successor_that_fails_leaves_everything_as_it_was(pair, tmp_path):
    router, stable, canary = pair
    router.start_rollout(steps=[HOLD])
    with Traffic(router.url, clients=3) as traffic:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as failing:
            failing.settimeout(20)
            failing.connect(str(tmp_path / "router.db.handover"))
            word, control, _, _ = failing.recvmsg(32, socket.CMSG_SPACE(8))
            assert word == b"sockets"
            for descriptor in array.array("i", control[0][2]):
                os.close(descriptor)
            failing.send(b"store")
            assert failing.recv(32) == b"store"
        wait_until(lambda: "the successor failed" in router.log, 20, "noticed")
        assert router.command("set-weight", {"weight": 50}).status == 200
        seen = traffic.answers
        wait_until(lambda: traffic.answers > seen + 50, 20, "traffic goes on")
    assert traffic.failures == [] and router.rollout()["weight"] == 50


def test_nobody_else_may_ask_for_the_sockets(pair, tmp_path):
    assert (tmp_path / "router.db.handover").stat().st_mode & 0o777 == 0o600


def test_sockets_may_come_from_systemd(backend, tmp_path):
    write_config(tmp_path, service(backend("1")))
    with socket.create_server(("127.0.0.1", 0)) as data, socket.create_server(("127.0.0.1", 0)) as admin:
        script = (f'exec 3<&{data.fileno()} 4<&{admin.fileno()}; LISTEN_PID=$$ LISTEN_FDS=2 exec "$0" route --drain-seconds 0 '
                  f'--config "{tmp_path}/router.yaml" --ready-file "{tmp_path}/ready"')
        process = subprocess.Popen(["bash", "-c", script, SERIN], pass_fds=(data.fileno(), admin.fileno()))
        try:
            wait_until((tmp_path / "ready").exists, 20, "ready")
            ports = json.loads((tmp_path / "ready").read_text())
            assert (ports["http"], ports["admin"]) == (data.getsockname()[1], admin.getsockname()[1])
            assert call(f"http://127.0.0.1:{ports['http']}/v2/health/live").json == {"live": True}
            assert call(f"http://127.0.0.1:{ports['admin']}/health/live").json == {"live": True}
        finally:
            process.terminate()
            assert process.wait(20) == 0
