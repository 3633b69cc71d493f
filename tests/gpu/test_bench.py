"""bench/gpu where there is no GPU: which rows there are, that what is known is not measured again, what the tables say; and its measuring,
on the emulated device with a model that this can bear."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EMULATED = ROOT / "build/tests/libserin_cuda_emulated.so"
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/gpu/driver"), str(ROOT / "tests/driver")]

import gpu  # noqa: E402
import gpu_rows  # noqa: E402
import table  # noqa: E402
import work  # noqa: E402

DIGITS = next(item for item in work.WORK if item.name == "digits convolutions")


def test_every_model_precision_and_batch_has_a_row():
    rows = gpu_rows.all_rows()
    assert len(gpu.matching(rows, ["speed"])) == 5 * 2 * 4
    assert gpu.matching(rows, ["speed/ViT*/fp16/1", "batching"]) == ["speed/ViT-B/16/fp16/1", "batching/ResNet-50/fp16"]
    assert gpu.matching(rows, ["nothing"]) == []


@pytest.fixture
def bench(tmp_path, monkeypatch, capsys):
    """bench(arguments): runs it on the emulated device with rows of its own; the exit code and what it says. bench.measured counts."""
    monkeypatch.setattr(os, "environ", dict(os.environ))

    def ratio(key, ours, peer):
        def measure(_):
            bench.measured.append(key)
            if ours is None:
                raise gpu_rows.engines.CannotRun("out of memory")
            return [table.Row(f"{key}, batch 1", "fp16 ms", ours, {"torch reduce-overhead": peer, "torch max-autotune": None})]

        return measure

    def run(*arguments):
        command = ["bench/gpu", "--programs", ROOT / "build", "--plugin", EMULATED, "--results", tmp_path / "bench.jsonl", *arguments]
        monkeypatch.setattr(sys, "argv", [str(part) for part in command])
        status = gpu.main()
        return status, capsys.readouterr().out

    rows = {"speed/a/fp16/1": ratio("a", 1.0, 2.0), "speed/b/fp16/1": ratio("b", 4.0, 2.0), "speed/c/fp16/1": ratio("c", None, 1.0)}
    monkeypatch.setattr(gpu_rows, "all_rows", lambda: rows)
    bench = run
    bench.measured = []
    return bench


def test_measures_what_is_not_known_and_prints_all(bench):
    assert bench("--rows", "speed/a/fp16/1")[0] == gpu.DONE
    status, said = bench()
    assert bench.measured == ["a", "b", "c"]
    assert "| a, batch 1 | fp16 ms | 1.00 | 2.00 | - | - | **2.00** |" in said
    assert "not measured: out of memory" in said
    assert "2 rows with a peer: geometric mean 1.000 (bar 1.3), least 0.50 (bar 1.0)" in said
    bench("--rows", "speed/b/fp16/1", "--again")
    assert bench.measured == ["a", "b", "c", "b"]


def test_what_could_not_be_measured_is_tried_again(bench):
    assert bench("--rows", "speed/c/fp16/1")[0] == gpu.UNFINISHED
    assert bench("--rows", "speed/c/fp16/1")[0] == gpu.UNFINISHED
    assert bench.measured == ["c", "c"]


def test_says_what_is_left_and_what_was_measured_with_other_programs(bench, monkeypatch):
    status, said = bench("--rows", "speed/a/fp16/1", "--minutes", "0")
    assert status == gpu.UNFINISHED and bench.measured == []
    bench("--rows", "speed/a/fp16/1")
    monkeypatch.setattr(gpu, "digest", lambda paths: "another")
    status, said = bench("--rows", "speed/a/fp16/1", "--minutes", "0")
    assert status == gpu.UNFINISHED and "other programs" in said
    assert "to be done  speed/b/fp16/1" in bench("--list")[1]


def test_an_unknown_row_is_refused(bench):
    status, said = bench("--rows", "sped")
    assert status == gpu.USAGE and "no row matches sped" in said


def test_without_a_device_nothing_is_measured(tmp_path):
    plugin, results = tmp_path / "libserin_cuda.so", tmp_path / "bench.jsonl"
    command = [ROOT / "bench/gpu", "--programs", ROOT / "build", "--plugin", plugin, "--results", results]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHON": sys.executable})
    assert done.returncode == gpu.NO_DEVICE
    assert "there is no device to measure on" in done.stdout and "libserin_cuda.so" in done.stdout
    assert not results.exists()


def test_what_decides_a_bar_is_measured_first():
    order = sorted(gpu_rows.all_rows(), key=gpu_rows.turn)
    assert order[0] == "batching/ResNet-50/fp16"
    assert order[1:6] == sorted(f"speed/{item.name}/fp16/1" for item in gpu_rows.MODELS)
    assert order[6].endswith("fp32/1") and order[11].endswith("fp16/8") and order[-1].startswith("roofline")
    assert gpu_rows.usual_seconds("speed/ViT-B/16/fp16/8") > gpu_rows.usual_seconds("speed/ViT-B/16/fp16/1")


def test_begins_no_row_that_may_not_end_in_time(bench, tmp_path, monkeypatch):
    assert bench("--rows", "speed/a/*", "--minutes", "1")[0] == gpu.UNFINISHED and bench.measured == []
    monkeypatch.setattr(gpu_rows, "usual_seconds", lambda key: 5)
    assert bench("--rows", "speed/a/*", "--minutes", "1", "--cache", tmp_path / "cache.tar.gz")[0] == gpu.DONE
    assert (tmp_path / "cache.tar.gz").exists()
    file = tmp_path / "bench.jsonl"
    file.write_text(re.sub('"seconds": [0-9.]+', '"seconds": 100', file.read_text()))
    bench("--rows", "speed/a/*", "--again", "--minutes", "1")
    assert bench.measured == ["a"], "it would take as long as the last time"


def test_what_a_process_holds_is_known_where_the_driver_does_not_name_it(setting, monkeypatch, tmp_path):
    """As in a container: then it is what the device has less."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '[Not Found], [N/A]'\n")
    tool.chmod(0o755)

    class Stand:
        def __init__(self, pid, taken):
            self.child = type("Child", (), {"pid": pid})
            self.ready = {"device_bytes": {"taken_by_all": taken}}

    assert gpu_rows.device_bytes(Stand(17, 900), Stand(16, 600)) == 300
    tool.write_text("#!/bin/sh\necho '16, 3'\necho '17, 5'\n")
    assert gpu_rows.device_bytes(Stand(17, 900), Stand(16, 600)) == 5 * 2**20
    with gpu_rows.engines.serin(work.job(DIGITS, 1), 0.001, setting.device_flags) as engine:
        assert engine.ready["device_bytes"]["taken_by_all"] >= gpu_rows.planned(engine)


@pytest.fixture
def setting(monkeypatch):
    serin = ROOT / "build/serin"
    monkeypatch.setattr(gpu_rows.engines, "SERIN", serin)
    made = gpu_rows.Setting(serin, ("--device", "cuda", "--cuda-plugin", str(EMULATED)), seconds=0.01, rounds=2)
    made.peaks = {"fp32_tflops": 1.0, "copy_gbps": 1e-9}
    return made


def test_a_row_has_serins_time_and_says_why_a_peer_has_none(setting):
    (row,) = gpu_rows.speed(DIGITS, "fp32", 2, setting)
    assert row.serin > 0 and "items/s" in row.note
    assert row.peers == {"torch reduce-overhead": None, "ONNX Runtime CUDA": None}
    assert "ONNX Runtime CUDA cannot: ONNX Runtime" in row.note


def test_the_roofline_takes_the_limit_that_is_nearer(setting):
    rows = gpu_rows.roofline(DIGITS, "fp32", 1, setting)
    assert rows and all(row.metric == "fp32 GB/s" for row in rows), "any kernel is past a nanobyte a second"
    setting.peaks = {"fp32_tflops": 1e-9, "copy_gbps": 1e9}
    conv = next(row for row in gpu_rows.roofline(DIGITS, "fp32", 1, setting) if ": Conv" in row.work or ": FusedConv" in row.work)
    assert conv.metric == "fp32 TFLOP/s" and conv.ratio == conv.serin / 1e-9


def test_steps_of_a_kernel_are_added():
    steps = [
        {"op": "Conv", "kernel": "cudnn", "ms": 1.0, "flops": 4, "bytes": 2},
        {"op": "Relu", "kernel": "unary", "ms": 5.0, "flops": 1, "bytes": 8},
        {"op": "Conv", "kernel": "cudnn", "ms": 2.0, "flops": 5, "bytes": 3},
    ]
    assert gpu_rows.by_kernel(steps) == {
        "Relu unary": {"ms": 5.0, "flops": 1, "bytes": 8, "steps": 1},
        "Conv cudnn": {"ms": 3.0, "flops": 9, "bytes": 5, "steps": 2},
    }


def test_serin_says_what_it_holds_on_the_device(setting):
    """What the rows of memory compare with the driver's word."""
    held = []
    for batch in (1, 32):
        with gpu_rows.engines.serin(work.job(DIGITS, batch), 0.001, setting.device_flags) as engine:
            held.append(engine.ready["device_bytes"])
            assert gpu_rows.planned(engine) == held[-1]["weights"] + held[-1]["arena"]
    assert 0 < held[0]["weights"] == held[1]["weights"]
    assert 0 < held[0]["arena"] < held[1]["arena"]
