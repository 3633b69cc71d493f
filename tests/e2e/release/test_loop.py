"""deploy/loop: four releases that a newcomer watches, from a folder of models to verified records."""

import os
import subprocess
import sys

from conftest import ROOT, SERIN


def test_the_loop_ends_as_it_says(tmp_path):
    """Without the slow model, whose evaluation takes half of the time; with it in a long run."""
    versions = "2,3,4,5" if os.environ.get("SERIN_LONG") == "1" else "2,3,4"
    done = subprocess.run([sys.executable, ROOT / "deploy/loop_releases.py", "--only", versions], capture_output=True, text=True, check=False, timeout=500,
                          env={**os.environ, "SERIN": str(SERIN), "XDG_CACHE_HOME": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": as expected") == versions.count(",") + 1 and ", 0 errors" in done.stdout and done.stdout.count(": verified") == versions.count(",") + 1
    for words in ("promoted at tag", "refused at eval", "rolled_back at shadow"):
        assert words in done.stdout
