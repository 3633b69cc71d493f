"""What of NVIDIA's this machine has, found without asking anybody: libraries, tools, the device; and the programs to run on it."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from ledger import digest

LIBRARIES = ("libcublasLt.so.13", "libcudnn.so.9", "libnvrtc.so.13")
SANITIZER = ("/usr/local/cuda/bin/compute-sanitizer", "/usr/local/cuda/compute-sanitizer/compute-sanitizer")


def library_folders(root):
    """Where NVIDIA's libraries lie: in the packages of this Python, in .deps/cuda, in a toolkit."""
    places = [Path(entry) / "nvidia" for entry in sys.path if entry] + [root / ".deps/cuda/nvidia"]
    folders = [folder for place in places for folder in sorted(place.glob("*/lib"))]
    folders += [Path("/usr/local/cuda/lib64"), Path("/usr/lib/x86_64-linux-gnu")]
    return [folder for folder in folders if any((folder / name).exists() for name in LIBRARIES)]


def environment(root):
    """What to add to the environment of a program that opens the plugin."""
    found = [str(folder) for folder in library_folders(root)]
    before = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": ":".join([*found, *([before] if before else [])])} if found else {}


def sanitizer():
    return shutil.which("compute-sanitizer") or next((path for path in SANITIZER if os.access(path, os.X_OK)), None)


def why_not_sanitized(tool, program, environment):
    """What the tool says of this device where it cannot watch it, as in a container whose kernel stands between; nothing where it can."""
    command = [tool, program, "--gtest_filter=DeviceKernels.Attends"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment}, timeout=300)
    refused = [line for line in (done.stdout + done.stderr).splitlines() if "not supported" in line]
    return f"compute-sanitizer: {refused[0].strip('= ')}" if refused else ""


def describe():
    """The driver's own words, or that there is none."""
    tool = shutil.which("nvidia-smi")
    if not tool:
        return "no nvidia-smi"
    asked = [tool, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return (done.stdout.strip() or done.stderr.strip() or f"nvidia-smi ended with {done.returncode}").replace("\n", "; ")


CACHES = {"CUDA_CACHE_PATH": "driver", "TORCHINDUCTOR_CACHE_DIR": "torch", "TRITON_CACHE_DIR": "triton"}


def unpack_cache(archive, folder):
    """What was found out and compiled before, on a device of the same kind: for serin's --cuda-cache folder/serin, and in the environment for others."""
    if archive and archive.exists() and not folder.exists():
        with tarfile.open(archive) as tar:
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(folder)
    for variable, name in CACHES.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        os.environ.setdefault(variable, str(folder / name))
    return ("--cuda-cache", str(folder / "serin"))


def pack_cache(archive, folder):
    """One file, whole or the one before."""
    if archive:
        archive.parent.mkdir(parents=True, exist_ok=True)
        fresh = archive.with_name(archive.name + ".new")
        with tarfile.open(fresh, "w:gz", compresslevel=3) as tar:
            tar.add(folder, arcname=".")
        fresh.replace(archive)


def programs(folder):
    """The folder that tests/gpu/pack made: unpacked from the archive beside it, where that is newer or alone."""
    archive, stamp = folder.with_name(folder.name + ".tar.xz"), folder / ".stamp"
    if not archive.exists() or (stamp.exists() and stamp.read_text() == digest([archive])):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)  # it is our own; newer Pythons ask
        tar.extractall(folder)
    stamp.write_text(digest([archive]))
    return folder


def find(folder, *names):
    """The first of these files in the folder, in bin, lib or tests below it."""
    for name in names:
        for place in ("", "bin", "lib", "tests"):
            if (found := folder / place / name).exists():
                return found.resolve()
    raise FileNotFoundError(f"{folder} holds no {names[0]}; tests/gpu/pack makes it, where there is a compiler")


def opened(serin, model, device_flags):
    """What serin says of the device, or nothing and why there is none."""
    command = [serin, "inspect", model, "--explain", "--json", *device_flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (json.loads(done.stdout)["backend"], "") if done.returncode == 0 else ("", done.stderr.strip())
