"""The first command that anybody types."""

import os
import subprocess

import pytest

from conftest import ROOT

pytestmark = pytest.mark.skipif(not os.environ.get("SERIN_LONG"), reason="takes a minute and a build; tests/run --long runs it")


def processes_of_this_checkout():
    """{pid: command line} of every running build/serin."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            program = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue
        if program.startswith(str(ROOT / "build")):
            found[pid] = program
    return found


@pytest.mark.timeout(1200)
def test_quickstart_ends_well_and_leaves_no_process_behind():
    before = processes_of_this_checkout()
    done = subprocess.run([ROOT / "deploy/quickstart"], capture_output=True, text=True, check=False, cwd="/", stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    table = done.stdout[done.stdout.index("version  outcome"):]
    assert [line.split()[:2] for line in table.splitlines()[2:6]] == [["2", "Succeeded"], ["3", "RolledBack"], ["4", "RolledBack"],
                                                                      ["5", "RolledBack"]]
    assert processes_of_this_checkout().keys() <= before.keys()
