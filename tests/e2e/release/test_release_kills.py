"""kill -9 at every stage of a release, and the same command again: it ends as if nothing had happened, and clients see nothing of it."""

import fcntl
import os
import random
import signal
import subprocess

import pytest

from conftest import wait_until
from release_loop import DIGITS, RULES
from routers import SOON

STAGES = ["check", "plan", "eval", "register", "load", "shadow", "canary", "100 %", "tag"]


def run_until(command, stage):
    """Kills it when it has printed a line of that stage; whether it came to that."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if f" s  {stage:<9} " in line:
            process.kill()
            process.wait()
            return True
    assert process.wait() in (0, 3)
    return False


def promoted_once(loop):
    assert loop.tags() == {"production": 2, "blue": 1, "green": 2} and loop.versions() == [1, 2]
    assert loop.router.status()["stable"] == "green" and loop.router.rollout()["id"] == "digits-1", "one rollout"
    assert [record["outcome"] for record in loop.records()] == ["promoted"]
    assert sorted(path.name for path in loop.journal().parent.iterdir()) == [".lock", "records.jsonl"]


def test_killed_at_every_stage(loop, clients):
    reached = [stage for stage in STAGES if run_until(loop.command(DIGITS / "2"), stage)]
    assert {"check", "eval", "register", "load"} <= set(reached) and len(reached) >= 6, reached
    loop.release(DIGITS / "2")
    promoted_once(loop)


def test_the_command_of_a_killed_release_ends_first(loop, clients):
    """It is killed, too, but a moment later: until then it has its locks."""
    assert run_until(loop.command(DIGITS / "2"), "check")
    with open(loop.journal().parent / "work/.running", "wb") as of_the_command:
        fcntl.flock(of_the_command, fcntl.LOCK_EX)
        process = subprocess.Popen(loop.command(DIGITS / "2"), stdout=subprocess.DEVNULL)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2)
    assert process.wait(120) == 0
    promoted_once(loop)


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_any_moment(loop, clients, seed):
    dice = random.Random(seed)
    for _ in range(12):
        process = subprocess.Popen(loop.command(DIGITS / "2"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(dice.uniform(0.01, 2.5))
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    loop.release(DIGITS / "2")
    promoted_once(loop)


def test_killed_while_everything_is_taken_back(loop, clients):
    """The router has given its verdict while the release was dead."""
    loop.policy(eval=None, check={"contract": "any"}, rollout={**RULES, "steps": [20]})
    assert run_until(loop.command(DIGITS / "5"), "canary")
    wait_until(lambda: loop.router.rollout()["phase"] == "RolledBack", 60, "the verdict")
    assert loop.tags()["green"] == 2
    process = subprocess.Popen(loop.command(DIGITS / "5"), stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.kill()
    process.wait()
    said = loop.outcome(DIGITS / "5", code=3)
    assert (said["outcome"], said["stage"]) == ("rolled_back", "canary")
    assert loop.tags() == {"production": 1, "blue": 1, "green": 1} and [record["outcome"] for record in loop.records()] == ["rolled_back"]


def test_another_model_ends_what_was_left(loop, clients):
    loop.policy(rollout={**RULES, "steps": [{"setWeight": 20, "until": {"duration": "1h"}}, 50]})
    assert run_until(loop.command(DIGITS / "2"), "canary")
    loop.policy(eval=None, check={"contract": "any"})
    said = loop.release(DIGITS / "1")
    assert "was not finished" in said.stdout and "nothing to do" in said.stdout
    [record] = loop.records()
    assert record["outcome"] == "superseded" and loop.router.rollout()["phase"] == "RolledBack"
    assert loop.tags() == {"production": 1, "blue": 1, "green": 1}
    loop.policy(rollout={**RULES, "certify": SOON})
    loop.release(DIGITS / "2")
    assert [record["outcome"] for record in loop.records()] == ["superseded", "promoted"], "it was not judged, so it is not refused"


def test_a_signal_leaves_it_to_the_next_run(loop, clients):
    process = subprocess.Popen(loop.command(DIGITS / "2"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: loop.tags()["green"] == 2, 60, "the slot")
    os.kill(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "the same command goes on" in err
    loop.release(DIGITS / "2")
    promoted_once(loop)


def test_the_policy_that_it_began_with_counts(loop, clients):
    assert run_until(loop.command(DIGITS / "2"), "load")
    loop.policy(rollout={**RULES, "steps": [1], "certify": {"margin": "0.01%", "maxStepDuration": "1s"}})
    loop.release(DIGITS / "2")
    promoted_once(loop)
