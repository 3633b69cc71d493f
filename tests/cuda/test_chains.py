"""What NVRTC makes of kernels for single chains of functions, on a machine without a GPU (chain_codes.cu). What they compute: tests/gpu/chain_kernels_test.cc."""

import ctypes.util
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*arguments):
    """Without LD_LIBRARY_PATH: NVRTC's other half is found beside it."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    return subprocess.run([ROOT / "build-cuda/chain_codes", *arguments], capture_output=True, text=True, check=False, timeout=300, env=environment)


@pytest.fixture(scope="module")
def codes():
    """{(name, architecture): (bytes, registers of both kernels, stack of both, spilled by both)}."""
    done = run()
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert all(len(row) == 9 for row in rows), rows
    return {tuple(row[:2]): list(map(int, row[2:])) for row in rows}


def test_every_architecture_has_code(codes):
    assert len(codes) == 8
    assert {architecture for _, architecture in codes} == {"sm_75", "sm_80", "sm_90", "sm_100"}
    assert all(size > 2000 for size, *_ in codes.values())


def test_what_steps_keep_stays_in_registers(codes):
    """The program is a constant: no memory of the thread's own, and there is room for four blocks of 256 threads on a multiprocessor."""
    for name, (_, groups, singles, *memory) in codes.items():
        assert memory == [0, 0, 0, 0], name
        assert max(groups, singles) <= 64, name


def test_what_is_no_program_is_refused_with_the_compilers_words():
    done = run("broken")
    assert done.returncode == 0
    assert "NVRTC_ERROR_COMPILATION" in done.stdout and "no_such_thing" in done.stdout


@pytest.mark.skipif(ctypes.util.find_library("cuda") is not None, reason="there is a driver here")
def test_what_cannot_be_loaded_is_refused_each_time():
    done = run("load")
    assert done.returncode == 0
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["cudaErrorInsufficientDriver"] * 2
