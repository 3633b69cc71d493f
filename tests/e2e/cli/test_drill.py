"""`serin rollout drill`: stable against itself is let through, then each fault put into its answers is found, on live traffic and unseen by clients."""

import signal
import socket
import subprocess

import pytest

from conftest import SERIN, serin, wait_until
from routers import service
from traffic import Traffic


@pytest.fixture
def ground(route, backend):
    """(router, stable, options of the drill)"""
    stable = backend("1")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    versions = service(stable)
    versions["versions"].append({"name": "drill", "endpoints": [{"url": f"http://127.0.0.1:{port}/v2/models/digits/versions/1"}],
                                 "health": versions["versions"][0]["health"]})
    router = route(versions)
    options = ["digits", "--version", "drill", "--listen", f"127.0.0.1:{port}", "--forward", stable.origin, "--admin",
               f"127.0.0.1:{router.ports['admin']}", "--baseline", "200"]
    return router, stable, options


def test_the_guard_lets_stable_pass_and_finds_every_fault(ground):
    router, _, options = ground
    with Traffic(router.url, clients=3) as traffic:
        done = serin("rollout", "drill", *options, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 4 and "let through" in lines[0] and all("rolled back" in line for line in lines[1:]), done.stdout
    for line, cause in zip(lines[1:], (": err:", ": lat_", ": err:")):
        assert cause in line, done.stdout
    assert traffic.failures == [], "the shield has the budget for a drill"
    assert router.rollout()["phase"] == "RolledBack" and router.status()["stable"] == "1"


def test_without_traffic_it_says_so_and_leaves_nothing_behind(ground):
    router, _, options = ground
    done = serin("rollout", "drill", *options, "--patience", "1")
    assert done.returncode == 4 and "is there traffic?" in done.stderr
    assert router.rollout()["phase"] == "RolledBack" and "drill is over" in router.rollout()["reason"]


def test_ctrl_c_ends_the_drill_and_its_rollout(ground):
    router, _, options = ground
    process = subprocess.Popen([SERIN, "rollout", "drill", *options], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: router.rollout(), 20, "begun")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130 and "interrupted" in said and router.rollout()["phase"] == "RolledBack"


@pytest.mark.parametrize("change, code, words", [
    (["--version", "nope"], 2, ["no version 'nope'"]), (["--listen", "nonsense"], 2, ["ADDRESS:PORT"]), (["--forward", "127.0.0.1"], 2, ["--forward"]),
    (["--errors", "0"], 2, ["--errors"]), (["--faults", "nan,blue"], 2, ["'blue'", "slow"]), (["--admin", "127.0.0.1:1"], 5, ["127.0.0.1:1"]),
])
def test_c5_mistakes_are_named(ground, change, code, words):
    options = list(ground[2])
    if change[0] in options:
        options[options.index(change[0]) + 1] = change[1]
    else:
        options += change
    done = serin("rollout", "drill", *options)
    assert done.returncode == code and all(word in done.stderr for word in words), done.stderr
