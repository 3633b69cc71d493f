"""Where measurements of kernels are kept: what `serin` tells its plugin."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TELLING = ROOT / "build/tests/libserin_cuda_telling.so"
SERIN = Path(os.environ.get("SERIN", ROOT / "build/serin"))
BENCH = ("bench", ROOT / "models/digits/1/model.onnx")
SERVE = ("serve", "--models", ROOT / "models", "--port", 0, "--grpc-port", 0, "--metrics-port", 0)


@pytest.mark.parametrize("command", [BENCH, SERVE], ids=["bench", "serve"])
@pytest.mark.parametrize("variables, flags, folder", [
    ({"HOME": "/nowhere"}, (), "/nowhere/.cache/serin"),
    ({"HOME": "/nowhere", "XDG_CACHE_HOME": "/var/cache"}, (), "/var/cache/serin"),
    ({"HOME": "/nowhere", "XDG_CACHE_HOME": "relative"}, (), "/nowhere/.cache/serin"),
    ({}, (), ""),
    ({"HOME": "/nowhere"}, ("--cuda-cache", "/srv/tactics"), "/srv/tactics"),
    ({"HOME": "/nowhere"}, ("--cuda-cache", "none"), ""),
])
def test_measurements_are_kept_where_caches_are(command, variables, flags, folder):
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")} | variables
    arguments = [str(part) for part in (SERIN, *command, "--device", "cuda", "--cuda-plugin", TELLING, *flags)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60, env=environment)
    assert done.returncode == 2
    assert f"tactics are kept in '{folder}'" in done.stderr.splitlines()[-1]
