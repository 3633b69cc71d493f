"""bench/gpu where there is no GPU: which rows there are, that what is known is not measured again, what the tables say; and its measuring,
on the emulated device with a model that this can bear."""

import dataclasses
import functools
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


def said_of(said, pattern):
    """What the end of the output says of the bars on these rows."""
    lines = said.split("## bars")[1].splitlines()
    return [line.split(f"at least {bar.least}: ")[1] for bar in gpu_rows.BARS if bar.rows == pattern for line in lines if bar.what in line]


def test_measures_what_is_not_known_and_prints_all(bench):
    assert bench("--rows", "speed/a/fp16/1")[0] == gpu.DONE
    status, said = bench()
    assert bench.measured == ["a", "b", "c"]
    assert "| a, batch 1 | fp16 ms | 1.00 | 2.00 | - | - | **2.00** |" in said
    assert "not measured: out of memory" in said
    failed = "speed/c/fp16/1 failed"
    assert said_of(said, "speed/*") == [f"NOT met 0.500 (3 of 3 rows): speed/b/fp16/1, {failed}", f"NOT met 1.000 (3 of 3 rows): {failed}"]
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
    assert said_of(said, "speed/*") == ["not measured (0 of 3 rows)"] * 2
    assert "to be done  speed/b/fp16/1" in bench("--list")[1]


class Kept:
    """A ledger with these rows, measured with the programs that are there."""

    def __init__(self, rows):
        self.known = {key: {"rows": [dataclasses.asdict(row)]} for key, row in rows.items()}

    def has(self, key):
        return key in self.known


def verdicts(rows):
    """{(pattern, least): what is said of the bar on it}."""
    return {(bar.rows, bar.least): gpu.verdict(bar, gpu_rows.all_rows(), Kept(rows)) for bar in gpu_rows.BARS}


def speed_rows(ours):
    """Every row of speed, with 1 ms of the best peer."""
    keys = gpu.matching(gpu_rows.all_rows(), ["speed"])
    return {key: table.Row(key, "ms", ours, {"torch reduce-overhead": 1.0, "ONNX Runtime CUDA": 2.0}) for key in keys}


def test_each_bar_says_whether_it_is_met():
    assert set(verdicts({}).values()) == {f"not measured (0 of {n} rows)" for n in (40, 10, 5, 1)}
    said = verdicts(speed_rows(0.5))
    assert said["speed/*", 1.0] == said["speed/*", 1.3] == "met 2.000 (40 of 40 rows)" and said["speed/*/1", 1.25] == "met 2.000 (10 of 10 rows)"

    said = verdicts(speed_rows(0.9))
    assert said["speed/*", 1.0] == "met 1.111 (40 of 40 rows)" and said["speed/*", 1.3] == "NOT met 1.111 (40 of 40 rows)"
    assert said["speed/*/1", 1.25].startswith("NOT met 1.111 (10 of 10 rows): speed/ResNet-50/fp16/1, speed/ResNet-50/fp32/1, ")


def test_a_row_that_is_missing_or_failed_keeps_a_bar_from_being_met():
    rows, key = speed_rows(0.5), "speed/ViT-B/16/fp32/8"
    rows[key].peers["torch reduce-overhead"] = None
    assert verdicts(rows)["speed/*", 1.0] == "not measured 2.000 (39 of 40 rows)", "beside ONNX Runtime alone it does not count"
    rows[key].serin = None
    assert verdicts(rows)["speed/*", 1.0] == verdicts(rows)["speed/*", 1.3] == f"NOT met 2.000 (40 of 40 rows): {key} failed"
    assert verdicts({key: rows[key]})["speed/*", 1.0] == f"NOT met (1 of 40 rows): {key} failed"


def test_bars_of_memory_and_batching():
    keys = gpu.matching(gpu_rows.all_rows(), ["memory"])
    rows = {key: table.Row(key, "MB", 101.9, {"held": 101.9, "reported": 100.0}) for key in keys}
    rows["batching/ResNet-50/fp16"] = table.Row("", "requests/s", 90.0, {"max_batch 1": 10.0}, less_is_better=False)
    said = verdicts(rows)
    assert said["memory/*", 1.0] == "met 1.000 (5 of 5 rows)" and said["memory/*", 0.98] == "met 0.981 (5 of 5 rows)"
    assert said["batching/*", 10.0] == "NOT met 9.000 (1 of 1 rows): batching/ResNet-50/fp16"
    rows[keys[0]].peers.update(held=101.0, reported=104.4)
    said = verdicts(rows)
    assert said["memory/*", 1.0].endswith(f": {keys[0]}") and said["memory/*", 0.98] == f"NOT met 0.976 (5 of 5 rows): {keys[0]}"


def test_a_server_that_is_not_ready_fails_its_row(bench, monkeypatch):
    def measure(_):
        raise RuntimeError("serin serve on cuda is not ready")

    monkeypatch.setattr(gpu_rows, "all_rows", lambda: {"batching/a/fp16": measure})
    status, said = bench()
    assert status == gpu.UNFINISHED and said_of(said, "batching/*") == ["NOT met (1 of 1 rows): batching/a/fp16 failed"]


def test_an_unknown_row_or_peer_is_refused(bench):
    status, said = bench("--rows", "sped")
    assert status == gpu.USAGE and "no row matches sped" in said
    status, said = bench("--peers", "tourch")
    assert status == gpu.USAGE and "no peer is called tourch; there are torch-reduce-overhead" in said


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
        assert engine.ready["device_bytes"]["taken_by_all"] >= gpu_rows.held(engine)


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


def test_engines_of_several_rows_start_together_and_are_measured_alone(setting):
    rows = {f"speed/digits/fp32/{batch}": functools.partial(gpu_rows.speed, DIGITS, "fp32", batch) for batch in (1, 2)}
    ahead = gpu_rows.started(rows, setting)
    for key, row in rows.items():
        (measured,) = row(setting, starters=ahead[key])
        assert measured.serin > 0 and "torch-reduce-overhead cannot" not in measured.note and "torch reduce-overhead cannot" in measured.note
    setting.peers = ()
    (measured,) = gpu_rows.speed(DIGITS, "fp32", 1, setting)
    assert measured.serin > 0 and measured.peers == {}


def test_only_rows_of_speed_start_together():
    keys = ["speed/a/fp16/1", "speed/b/fp16/1", "speed/c/fp16/1", "memory/a/fp16"]
    assert gpu.next_group(keys, 2) == (keys[:2], keys[2:])
    assert gpu.next_group(keys[2:], 4) == (keys[2:3], keys[3:])
    assert gpu.next_group(keys, 1) == (keys[:1], keys[1:])


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
            assert gpu_rows.held(engine) == held[-1]["weights"] + held[-1]["arena"]
            assert gpu_rows.planned_arena(work.job(DIGITS, batch), setting) == held[-1]["arena"]
    assert 0 < held[0]["weights"] == held[1]["weights"]
    assert 0 < held[0]["arena"] < held[1]["arena"]


def test_the_context_of_a_memory_row_is_the_same_models_at_batch_1(setting, monkeypatch):
    """The driver reports 40 kB over what is held at batch 1 and, as if something else had been taken, 41 kB at batch 32."""
    started = []
    serin = gpu_rows.engines.serin

    def start(job, *arguments):
        started.append((job.dims["batch"], job.precision, job.model))
        return serin(job, *arguments)

    def reported(engine, before):
        return gpu_rows.held(engine) + (40_000 if engine.ready["device_bytes"]["arena"] < 20_000 else 41_000)

    monkeypatch.setattr(gpu_rows.engines, "serin", start)
    monkeypatch.setattr(gpu_rows, "device_bytes", reported)
    (row,) = gpu_rows.memory(DIGITS, "fp16", 32, setting)
    assert set(started) == {(1, "fp16", DIGITS.path), (32, "fp16", DIGITS.path)}
    assert row.serin == row.peers["held"] and round((row.peers["reported"] - row.serin) * 1e6) == 1000
    figures = [int(text) for text in re.findall(r"([0-9]+)(?: bytes)? (?:planned|held|reported)", row.note)]
    assert figures == [figures[0], figures[0], figures[0] + 1000] and round(row.serin * 1e6) == figures[0] + 40_000


def test_a_plan_that_is_not_held_shows(setting, monkeypatch):
    arena = gpu_rows.planned_arena
    monkeypatch.setattr(gpu_rows, "planned_arena", lambda job, made: arena(job, made) - 256)
    (row,) = gpu_rows.memory(DIGITS, "fp32", 32, setting)
    assert round((row.peers["held"] - row.serin) * 1e6) == 256


def test_batches_are_compared_with_none_under_the_same_clients(setting, monkeypatch):
    asked, settings = [], {}
    load, server = gpu_rows.load, gpu_rows.serving.server

    def served(setting, folder):
        settings.update({path.parent.name: path.read_text() for path in folder.glob("models/*/serin.yaml")})
        return server(setting, folder)

    def counted(setting, url, model, clients):
        asked.append((model, clients, load(setting, url, model, clients)))
        return asked[-1][-1]

    monkeypatch.setattr(gpu_rows, "load", counted)
    monkeypatch.setattr(gpu_rows.serving, "server", served)
    monkeypatch.setattr(gpu_rows, "ROUND_S", 0.5)
    (row,) = gpu_rows.batching(DIGITS, "fp32", setting)
    assert settings == {"batched": "max_batch: 64\nprecision: fp32\n", "one-by-one": "max_batch: 1\nprecision: fp32\n"}
    assert [each[:2] for each in asked] == [("batched", 64), ("one-by-one", 64), ("one-by-one", 1)]
    batched, one_by_one, alone = (each[2] for each in asked)
    assert (row.serin, row.peers) == (batched, {"max_batch 1": one_by_one}) and f"one client {alone:.0f} requests/s" in row.note
    assert row.ratio == batched / one_by_one > 0
