"""libserin_cuda.so as nvcc and NVIDIA's libraries make it, on a machine without a GPU: what it offers, what it needs, what code it holds,
and what it says where there is no driver. tests/run builds it in build-cuda before; what it computes, tests/gpu looks at."""

import ctypes.util
import os
import pathlib
import struct
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "build-cuda/libserin_cuda.so"
SERIN = pathlib.Path(os.environ.get("SERIN", ROOT / "build/serin"))
MODEL = ROOT / "models/digits/1/model.onnx"

FATBIN, PTX, MACHINE_CODE = 0xBA55ED50, 1, 2


def said(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout


def test_offers_its_entry_alone():
    assert [line.split()[-1] for line in said("nm", "-D", "--defined-only", PLUGIN).splitlines()] == ["serin_cuda_plugin"]


def test_every_symbol_it_needs_is_in_a_library_it_names():
    resolved = subprocess.run(["ldd", "-r", PLUGIN], capture_output=True, text=True, check=True)
    assert "undefined symbol" not in resolved.stdout + resolved.stderr
    assert "not found" not in resolved.stdout
    assert "libcublasLt.so.13 =>" in resolved.stdout and "libcudnn.so.9 =>" in resolved.stdout


def test_does_not_need_the_driver_to_be_loaded():
    """A library of the driver among its needs would keep it from saying that there is none."""
    needed = [line for line in said("readelf", "-d", PLUGIN).splitlines() if "(NEEDED)" in line]
    assert needed and not any("libcuda.so" in line for line in needed)


def code(path):
    """{(kind, architecture)} of all in the section where nvcc puts it: a header for each object file, then one for each program in it."""
    rows = [line.replace("[ ", "[").split() for line in said("readelf", "-SW", path).splitlines() if " .nv_fatbin " in line]
    offset, size = int(rows[0][4], 16), int(rows[0][5], 16)
    data, found, at = path.read_bytes()[offset : offset + size], set(), 0
    while at + 16 <= size:
        magic, _, header, length = struct.unpack_from("<IHHQ", data, at)
        if magic != FATBIN:
            at += 8  # padding
            continue
        entry, at = at + header, at + header + length
        while entry < at:
            kind, _, entry_header, payload = struct.unpack_from("<HHIQ", data, entry)
            found.add((kind, struct.unpack_from("<I", data, entry + 28)[0]))
            entry += entry_header + payload
    return found


def test_holds_machine_code_for_sm_90a():
    assert code(PLUGIN) == {(MACHINE_CODE, 90)}


without_driver = pytest.mark.skipif(ctypes.util.find_library("cuda") is not None, reason="there is a driver here")


@without_driver
def test_loads_without_a_driver_and_says_that_there_is_none():
    done = subprocess.run([SERIN, "bench", MODEL, "--device", "cuda", "--cuda-plugin", PLUGIN], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no NVIDIA driver; this build needs CUDA 13.0" in done.stderr


@without_driver
def test_auto_goes_on_without_it():
    command = [SERIN, "bench", MODEL, "--device", "auto", "--cuda-plugin", PLUGIN, "--seconds", "0.01"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "no cuda: " in done.stdout
