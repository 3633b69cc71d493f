"""What the router still knows after it was killed, restarted, reconfigured, or given back a damaged store."""

import contextlib
import os
import pathlib
import random
import signal
import socket
import time

import pytest

from backends import Faults
from conftest import free_port, serin, wait_until
from routers import Router, hold, reload, service, write_config
from traffic import Traffic, ask

KILLS = 1000 if os.environ.get("SERIN_LONG") else 100
OVER = ("Succeeded", "RolledBack")
HOLD_25 = {"setWeight": 25, "until": {"duration": "1h"}}


@pytest.fixture
def launch(tmp_path):
    """launch(config): a Router started from that file; ended after the test."""
    with contextlib.ExitStack() as stack:
        def begin(config):
            return stack.enter_context(Router(tmp_path, "route", "--drain-seconds", 0, "--config", config))
        yield begin


def is_prefix(earlier, later):
    return later[: len(earlier)] == earlier


def test_s3_killed_at_any_moment_it_goes_on_with_the_same_history_and_never_with_more_canary(launch, backend, tmp_path):
    """Good and bad canaries by turns, killed at random: a weight that rose was written down first, one that fell stays down."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")  # shown where the test fails
    dice = random.Random(seed)
    versions = {"1": backend("1"), "2": backend("2")}
    config = write_config(tmp_path, service(*versions.values()), listen=f"127.0.0.1:{free_port()}")
    router = launch(config)
    with Traffic(router.url, clients=3) as traffic:
        for _ in range(KILLS):
            before = router.status()
            if before["rollout"] is None or before["rollout"]["phase"] in OVER:
                stable, canary = ("1", "2") if before["stable"] == "1" else ("2", "1")
                versions[stable].faults = Faults()
                versions[canary].faults = Faults(error_rate=dice.choice([0, 0, 1]))
                wait_until(lambda: router.healthy(canary) == 1, 10, "health checked")
                router.start_rollout(canary=canary, steps=[5, 25, 50])
            end = time.monotonic() + dice.uniform(0, 0.6)
            while time.monotonic() < end:
                before, history = router.status(), router.history()
            before, history = router.status(), router.history()
            router.kill()

            router = launch(config)
            after, kept = router.status(), router.history()
            assert is_prefix(history, kept) and [entry["id"] for entry in kept] == sorted({entry["id"] for entry in kept})
            assert after["epoch"] >= before["epoch"]
            now, was = after["rollout"], before["rollout"]
            if was["phase"] in OVER:
                assert (now["id"], now["phase"], now["cause"]) == (was["id"], was["phase"], was["cause"])
            written = [entry["weight"] for entry in kept if entry["rollout"] == now["id"] and entry["actor"] != "restart"]
            assert now["weight"] <= max(was["weight"], written[-1])
            answered = traffic.statuses[200]
            wait_until(lambda: traffic.statuses[200] > answered + 20, 10, "traffic goes on")
    assert set(traffic.statuses) <= {200}, traffic.failures


def test_f1_interrupted_system_calls_cost_nothing(pair):
    """A process that is stopped and goes on finds every call that was waiting interrupted."""
    router = pair[0]
    router.start_rollout(steps=[HOLD_25])
    with Traffic(router.url, clients=3) as traffic:
        for turn in range(100):
            router.process.send_signal(signal.SIGSTOP)
            router.process.send_signal(signal.SIGCONT)
            if turn % 20 == 0:
                assert router.command("pause").status == 200 and router.command("resume").status == 200
        seen = traffic.answers
        wait_until(lambda: traffic.answers > seen + 100, 20, "traffic goes on")
    assert traffic.failures == [] and router.rollout()["weight"] == 25


def test_a_verdict_outlives_a_kill_right_after_it(launch, backend, tmp_path):
    stable, canary = backend("1"), backend("2", error_rate=1)
    config = write_config(tmp_path, service(stable, canary))
    for _ in range(5):
        router = launch(config)
        wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
        router.start_rollout(steps=[HOLD_25])
        with Traffic(router.url, clients=3):
            wait_until(lambda: router.metric("serin_route_weight_ppm", version="2") == 0, 20, "the fall")
            router.kill()
        seen = canary.inferences
        router = launch(config)
        assert router.rollout()["phase"] == "RolledBack" and router.rollout()["cause"] == "err"
        ask(router.url, 50)
        assert canary.inferences == seen
        assert router.end() == 0


def test_a_rollout_goes_on_after_a_restart(launch, backend, tmp_path):
    config = write_config(tmp_path, service(backend("1"), backend("2")))
    router = launch(config)
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    started = router.start_rollout(steps=[HOLD_25, 50])
    assert router.end() == 0
    router = launch(config)
    rollout = router.rollout()
    assert (rollout["id"], rollout["weight"], rollout["phase"]) == (started["rollout"]["id"], 25, "Progressing")
    assert {headers["x-serin-version"] for _, headers, _ in ask(router.url, 200)} == {"1", "2"}


def test_a_refused_address_leaves_no_trace_in_the_history(launch, backend, tmp_path):
    """Its port is another process's. The rollout was not taken apart for it, so the audit log has nothing to tell."""
    services = service(backend("1"), backend("2"))
    router = launch(write_config(tmp_path, services))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    router.start_rollout(steps=[hold(30)])
    assert router.command("pause").status == 200
    before = router.history()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for more in {"listen": f"127.0.0.1:{port}"}, {"admin": {"listen": f"127.0.0.1:{port}", "rate": 0}}:
            write_config(tmp_path, services, **more)
            assert not reload(router)
            wait_until(lambda key=next(iter(more)): f"is refused, what was read before stays in force: {key}: cannot listen on 127.0.0.1:{port}" in router.log,
                       10, "why")
    assert router.history() == before and router.rollout()["phase"] == "Paused" and ask(router.url, 1)[0][0] == 200


def test_two_routers_on_one_store(launch, backend, tmp_path):
    config = write_config(tmp_path, service(backend("1"), backend("2")))
    first = launch(config)
    second = serin("route", "--config", config, timeout=20)
    assert second.returncode == 2 and f"pid {first.process.pid}" in second.stderr and "router.db" in second.stderr
    assert ask(first.url, 1)[0][0] == 200
    first.kill()
    assert ask(launch(config).url, 1)[0][0] == 200  # the lock ended with its process


def test_the_store_owns_stable_after_the_first_start(launch, backend, tmp_path):
    first, second = backend("1"), backend("2")
    router = launch(write_config(tmp_path, service(first, second)))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    router.start_rollout(steps=[HOLD_25])
    assert router.command("promote").status == 200
    router.wait_for("Succeeded")
    assert router.end() == 0
    for stable in (first, second):  # whatever the file says now
        other = second if stable is first else first
        router = launch(write_config(tmp_path, {**service(first, second), "initial_stable": stable.version}))
        assert router.status()["stable"] == "2", other.version
        assert {headers["x-serin-version"] for _, headers, _ in ask(router.url, 20)} == {"2"}
        assert router.end() == 0


def test_a_canary_that_left_the_configuration_gets_nothing_and_that_is_said(launch, backend, tmp_path):
    stable, canary = backend("1"), backend("2")
    router = launch(write_config(tmp_path, service(stable, canary)))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    router.start_rollout(steps=[HOLD_25])
    assert router.end() == 0
    router = launch(write_config(tmp_path, service(stable)))
    assert {headers["x-serin-version"] for _, headers, _ in ask(router.url, 100)} == {"1"} and canary.inferences == 0
    assert "version '2'" in router.log
    assert router.rollout()["weight"] == 0


# --- S1: what may have become of the store ------------------------------------------------------------------------------------------


def truncate(path):
    os.truncate(path, path.stat().st_size // 2)


def flip_bytes(path):
    content = bytearray(path.read_bytes())
    for at in range(100, len(content), 257):
        content[at] ^= 0xFF
    path.write_bytes(content)


DAMAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": truncate,
    "cut-to-a-byte": lambda path: os.truncate(path, 1),
    "not-a-database": lambda path: path.write_text("listen: 127.0.0.1:8080\n" * 200),
    "flipped": flip_bytes,
    "missing": pathlib.Path.unlink,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_s1_a_damaged_store_is_set_aside_and_stable_serves_alone(launch, backend, tmp_path, damage):
    stable, canary = backend("1"), backend("2")
    config = write_config(tmp_path, service(stable, canary))
    router = launch(config)
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    router.start_rollout(steps=[HOLD_25])
    router.kill()
    for rest in tmp_path.glob("router.db-*"):  # what SQLite keeps beside the file while it is open
        rest.unlink()
    DAMAGES[damage](tmp_path / "router.db")
    router = launch(config)
    assert {headers["x-serin-version"] for _, headers, _ in ask(router.url, 100)} == {"1"} and canary.inferences == 0
    assert router.metric("serin_route_weight_ppm", version="2") == 0
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    router.start_rollout(steps=[HOLD_25])  # and everything works again
    if damage not in ("empty", "missing"):
        assert router.metric("serin_route_store_corrupt") == 1
        assert list(tmp_path.glob("router.db*corrupt*")) and "router.db" in router.log and "damaged" in router.log
        set_aside = [path for path in tmp_path.glob("router.db*corrupt*")]
        assert set_aside, "what it was is kept for whoever wants to look"


@pytest.mark.parametrize("damage", ["empty", "truncated", "rubbish", "missing"])
def test_s1_a_damaged_page_of_weights_never_raises_one(launch, backend, tmp_path, damage):
    config = write_config(tmp_path, service(backend("1"), backend("2")))
    router = launch(config)
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    router.start_rollout(steps=[HOLD_25])
    router.kill()
    page = tmp_path / "router.db.weights"
    {"empty": lambda: page.write_bytes(b""), "truncated": lambda: truncate(page), "rubbish": lambda: page.write_bytes(b"\xff" * 4096),
     "missing": page.unlink}[damage]()
    router = launch(config)
    assert router.metric("serin_route_weight_ppm", version="2") <= 250_000
    assert ask(router.url, 1)[0][0] == 200


def test_s1_a_directory_in_its_place_is_a_clear_refusal(backend, tmp_path):
    (tmp_path / "router.db").mkdir()
    done = serin("route", "--config", write_config(tmp_path, service(backend("1"))), timeout=20)
    assert done.returncode == 2 and "router.db" in done.stderr


def test_s1_a_folder_that_does_not_exist_is_a_clear_refusal(backend, tmp_path):
    config = write_config(tmp_path, service(backend("1")), store="nowhere/router.db")
    done = serin("route", "--config", config, timeout=20)
    assert done.returncode == 2 and "nowhere" in done.stderr


def test_s1_a_store_of_a_newer_router_is_refused_not_misread(backend, tmp_path, launch):
    import sqlite3

    config = write_config(tmp_path, service(backend("1")))
    assert launch(config).end() == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "router.db")) as database:
        version = database.execute("PRAGMA user_version").fetchone()[0]
        database.execute(f"PRAGMA user_version = {version + 1}")
        database.commit()
    done = serin("route", "--config", config, timeout=20)
    assert done.returncode == 2 and "newer" in done.stderr and "router.db" in done.stderr




# --- the audit log shows tampering --------------------------------------------------------------------------------------------------


def test_a_changed_history_is_found_at_its_first_bad_entry(launch, backend, tmp_path):
    import sqlite3

    config = write_config(tmp_path, service(backend("1"), backend("2")))
    router = launch(config)
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    router.start_rollout(steps=[HOLD_25])
    assert router.command("pause", {"reason": "lunch"}).status == 200
    noted = router.history()[-1]["digest"]
    assert router.command("abort").status == 200
    verify = ("rollout", "history", "digits", "--verify", "--admin", router.admin)
    done = serin(*verify, "--noted", noted)
    assert done.returncode == 0 and "3 entries, none changed" in done.stdout and router.history()[-1]["digest"] in done.stdout
    assert router.end() == 0

    with contextlib.closing(sqlite3.connect(tmp_path / "router.db")) as database:
        database.execute("UPDATE history SET actor = 'nobody' WHERE event = 'paused'")
        database.commit()
    router = launch(config)
    done = serin("rollout", "history", "digits", "--verify", "--admin", router.admin)
    assert done.returncode == 1 and "entry 2: was changed after it was written" in done.stdout
    assert router.end() == 0

    with contextlib.closing(sqlite3.connect(tmp_path / "router.db")) as database:  # the whole end taken out: only who noted a digest can tell
        database.execute("DELETE FROM history WHERE id >= 2")
        database.commit()
    router = launch(config)
    assert serin("rollout", "history", "digits", "--verify", "--admin", router.admin).returncode == 0
    done = serin("rollout", "history", "digits", "--verify", "--noted", noted, "--admin", router.admin)
    assert done.returncode == 1 and noted in done.stdout
