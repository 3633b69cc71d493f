"""The first command that anybody types."""

import os
import subprocess
import uuid

import pytest

from conftest import ROOT

pytestmark = pytest.mark.skipif(not os.environ.get("SERIN_LONG"), reason="takes a minute and a build; tests/run --long runs it")


def processes_with(mark):
    """{pid: program} of every running process that has it in its environment: others of this checkout may belong to tests that run at the same time."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environment:
                if mark.encode() in environment.read():
                    found[pid] = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue
    return found


@pytest.mark.timeout(1200)
def test_quickstart_ends_well_and_leaves_no_process_behind():
    mark = f"SERIN_TEST_MARK={uuid.uuid4().hex}"
    environment = {**os.environ, **dict([mark.split("=")])}
    done = subprocess.run([ROOT / "deploy/quickstart"], capture_output=True, text=True, check=False, cwd="/", stdin=subprocess.DEVNULL, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    table = done.stdout[done.stdout.index("version  outcome"):]
    assert [line.split()[:2] for line in table.splitlines()[2:6]] == [["2", "Succeeded"], ["3", "RolledBack"], ["4", "RolledBack"],
                                                                      ["5", "RolledBack"]]
    assert processes_with(mark) == {}
