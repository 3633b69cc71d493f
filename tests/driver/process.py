"""Runs a command with its output in a log file and a limit on its time, and leaves none of its descendants behind."""

import contextlib
import os
import select
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

_live = set()  # process groups


@dataclass
class Ended:
    status: int | None  # exit code, negative for a signal, None when the limit passed
    cpu_s: float  # of the command and of all descendants that were waited for


def run(command, log: Path, limit_s: float, cwd, env=None, nice=0):
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*(["nice", "-n", str(nice)] if nice else []), *map(str, command)], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            cwd=cwd, env={**os.environ, **(env or {})}, start_new_session=True,
        )
    _live.add(process.pid)
    with contextlib.suppress(OSError):  # a kernel that shares the cores between sessions first looks at the niceness of each
        Path(f"/proc/{process.pid}/autogroup").write_text(str(nice))
    try:
        ended = _await(process.pid, limit_s)
    finally:
        _kill_group(process.pid)
        _, status, usage = os.wait4(process.pid, 0)  # not before: until then nobody else gets this id
        process.returncode = os.waitstatus_to_exitcode(status)
        _live.discard(process.pid)
    return Ended(process.returncode if ended else None, usage.ru_utime + usage.ru_stime)


def _await(pid, limit_s):
    """Whether it ended within the limit."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(limit_s * 1000))
    finally:
        os.close(descriptor)


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
