"""Runs a command with its output in a log file and a limit on its time, and leaves none of its descendants behind."""

import os
import signal
import subprocess
from pathlib import Path

_live = set()  # process groups


def run(command, log: Path, limit_s: float, cwd, env=None):
    """Exit status, negative for a signal, or None when the limit passed."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(c) for c in command], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            cwd=cwd, env={**os.environ, **(env or {})}, start_new_session=True,
        )
    _live.add(process.pid)
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _kill_group(process.pid)
        process.wait()
        _live.discard(process.pid)


def kill_all():
    for group in list(_live):
        _kill_group(group)


def _kill_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass  # nothing of it is left, as it should be


def describe(status):
    if status is None:
        return "ran past its time limit"
    if status < 0:
        return f"died of {signal.Signals(-status).name}"
    return f"exit code {status}"
