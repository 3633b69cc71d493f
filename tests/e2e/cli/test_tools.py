"""bench, check, inspect and load as engineers and pipelines use them."""

import json
import re
import shutil
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from backends import Faults
from conftest import DATA, MODELS, SERIN, serin

DIGIT = MODELS / "digits/1/model.onnx"
FIXTURES = sorted(path.name for path in DATA.iterdir() if (path / "model.onnx").exists())


def output_of(*arguments, exit_code=0):
    done = serin(*arguments, "--json")
    assert done.returncode == exit_code, done.stderr
    return json.loads(done.stdout)


# --- check --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIXTURES)
def test_check_accepts_every_fixture(name):
    done = serin("check", DATA / name / "model.onnx", DATA / name)
    assert done.returncode == 0, done.stdout + done.stderr


def test_version_says_what_a_bug_report_needs():
    found = output_of("version")
    assert found["version"] == serin("--version").stdout.split()[1]
    assert re.fullmatch("[0-9a-f]{12}|unknown", found["commit"]) and found["compiler"].startswith("GCC ")
    assert found["instruction_sets"][0] == "scalar" and {"onednn", "cuda"} <= set(found)
    lines = serin("version").stdout.splitlines()
    assert lines[:2] == [f"serin {found['version']}", f"commit: {found['commit']}"]


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_check_accepts_every_version_of_digits(version):
    done = serin("check", MODELS / f"digits/{version}/model.onnx", DATA / f"digits_{version}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("isa", ["scalar", "avx2"])
def test_check_accepts_with_older_instruction_sets(isa):
    if isa not in open("/proc/cpuinfo").read() and isa != "scalar":
        pytest.skip(f"no {isa} here")
    for name in ("attention", "conv_bn"):
        assert serin("check", DATA / name / "model.onnx", DATA / name, "--isa", isa).returncode == 0


def tampered(tmp_path, change):
    """A copy of digits' data with its first expected output changed."""
    folder = tmp_path / "data"
    shutil.copytree(DATA / "digits_1", folder)
    path = sorted(folder.glob("test_data_set_*/output_0.pb"))[0]
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    changed = numpy_helper.from_array(change(numpy_helper.to_array(tensor).copy()), tensor.name)
    path.write_bytes(changed.SerializeToString())
    return folder


def add_a_hundredth(values):
    values.flat[7] += 0.01
    return values


def make_nan(values):
    values.flat[7] = np.nan
    return values


@pytest.mark.parametrize("change", [add_a_hundredth, make_nan, lambda values: values[:, :9]], ids=["value", "nan", "shape"])
def test_check_names_the_output_that_differs(tmp_path, change):
    done = serin("check", DIGIT, tampered(tmp_path, change))
    assert done.returncode == 1 and "FAIL" in done.stdout and "scores" in done.stdout


def test_check_says_where_and_how_much(tmp_path):
    done = serin("check", DIGIT, tampered(tmp_path, add_a_hundredth), "--json")
    assert done.returncode == 1
    worst = [output for data_set in json.loads(done.stdout)["data_sets"] for output in data_set["outputs"] if not output["match"]]
    assert [output["name"] for output in worst] == ["scores"]
    assert worst[0]["mismatches"] == 1 and worst[0]["max_absolute_at"] == [0, 7] and abs(worst[0]["max_absolute_error"] - 0.01) < 1e-4


def test_check_reads_npy_too(tmp_path):
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()
    for source in (DATA / "digits_1/test_data_set_0").glob("*.pb"):
        tensor = onnx.TensorProto()
        tensor.ParseFromString(source.read_bytes())
        np.save(folder / source.with_suffix(".npy").name, numpy_helper.to_array(tensor))
    assert serin("check", DIGIT, tmp_path).returncode == 0


def test_check_allows_what_it_is_told_to(tmp_path):
    assert serin("check", DIGIT, tampered(tmp_path, add_a_hundredth), "--atol", "0.1").returncode == 0


# --- bench --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["inspect", MODELS / "digits/1/model.onnx"], ["eval", MODELS / "digits/1", MODELS / "digits/eval.npz", "--json"]])
def test_a_full_disk_behind_standard_output_is_no_success(command):
    with open("/dev/full", "w") as full:
        done = subprocess.run([SERIN, *command], stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == 3 and done.stderr.startswith("serin: standard output was not written as a whole"), done.stderr


def test_a_reader_that_has_seen_enough_is_no_error():
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {SERIN} inspect {MODELS}/digits/1/model.onnx | head -1"], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.count("\n") == 1 and done.stderr == "" and done.returncode in (0, 141)


def test_bench_measures():
    found = output_of("bench", MODELS / "digits/2/model.onnx", "--batch", 4, "--seconds", 0.2)
    assert {"median_ms", "p95_ms", "min_ms", "items_per_s", "arena_bytes", "weight_bytes", "peak_rss_bytes", "load_ms"} <= found.keys()
    assert 0 < found["min_ms"] <= found["median_ms"] <= found["p95_ms"] and found["items_per_s"] > 0
    assert found["arena_bytes"] > 0 and found["weight_bytes"] > 50_000 and found["peak_rss_bytes"] > 1_000_000
    assert found["batch"] == 4 and output_of("bench", MODELS / "digits/2/model.onnx", "--dim", "batch=3", "--seconds", 0.1)["batch"] == 3


def test_bench_takes_sizes_for_symbolic_dimensions():
    short, long = (output_of("bench", DATA / "attention/model.onnx", "--dim", f"seq={seq}", "--seconds", 0.1) for seq in (4, 32))
    assert long["arena_bytes"] > short["arena_bytes"]


def test_bench_measures_again_on_request():
    done = serin("bench", DIGIT, "--seconds", 0.05, "--json", "--on-request", stdin="\n\n")
    assert done.returncode == 0 and len([json.loads(line) for line in done.stdout.splitlines()]) == 3


def test_bench_says_where_the_time_goes():
    found = output_of("bench", MODELS / "digits/2/model.onnx", "--seconds", 0.1, "--profile")
    assert len(found["profile"]) > 2 and {"node", "op", "kernel", "ms", "flops", "bytes"} == found["profile"][0].keys()
    assert sum(step["flops"] for step in found["profile"]) > 0 and all(step["ms"] >= 0 for step in found["profile"])
    done = serin("bench", DIGIT, "--seconds", 0.1, "--profile")
    assert done.returncode == 0 and "GFLOP/s" in done.stdout and "the slowest steps" in done.stdout


def test_bench_says_for_people_what_it_says_for_machines():
    done = serin("bench", DIGIT, "--seconds", 0.1)
    assert done.returncode == 0 and "median" in done.stdout and not done.stdout.lstrip().startswith("{")


# --- inspect ------------------------------------------------------------------------------------------------------------------------


def test_inspect_shows_what_the_passes_did():
    done = serin("inspect", DATA / "conv_bn/model.onnx")
    assert done.returncode == 0
    before, after = done.stdout.split("after", 1)
    assert "BatchNormalization(" in before and "FusedConv(" in after and "BatchNormalization(" not in after


@pytest.mark.parametrize("command", ["bench", "check"])
@pytest.mark.parametrize("name, says", [
    ("net.pt", "'net.pt' is a PyTorch model: torch.onnx.export("),
    ("net.tflite", "--tflite FILE --output model.onnx"),
    ("folder/net.graphdef", "'net.graphdef' is a frozen TensorFlow graph: python -m tf2onnx.convert"),
])
def test_other_formats_say_how_they_become_onnx(tmp_path, command, name, says):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"model")
    model = path.parent if "/" in name else path
    result = serin(command, model, *([DATA / "conv_bn"] if command == "check" else []))
    assert result.returncode != 0 and says in result.stderr, result.stderr


def test_inspect_shows_inputs_outputs_and_parameters():
    done = serin("inspect", DIGIT)
    assert all(word in done.stdout for word in ("pixels", "scores", "64", "parameters"))
    found = output_of("inspect", DIGIT)
    assert found["inputs"][0]["name"] == "pixels" and found["outputs"][0]["name"] == "scores"
    initializers = onnx.load(DIGIT).graph.initializer
    assert found["parameters"]["count"] == sum(int(np.prod(tensor.dims)) for tensor in initializers) > 64 * 32


def test_inspect_explains_which_kernel_runs_and_why():
    done = serin("inspect", MODELS / "digits/2/model.onnx", "--explain")
    assert done.returncode == 0 and "onednn" in done.stdout.lower()


# --- int8 ---------------------------------------------------------------------------------------------------------------------------

CALIBRATED = ("--precision", "int8", "--samples", DATA / "digits_2")


def test_int8_runs_on_bytes_and_says_how_far_it_is_from_fp32():
    done = serin("check", MODELS / "digits/2/model.onnx", DATA / "digits_2", *CALIBRATED, "--rtol", 0.1, "--atol", 0.1, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "precision: int8: " in done.stderr and " convolutions and " in done.stderr and "relative L2, the worst of" in done.stderr
    errors = [output["relative_l2_error"] for each in json.loads(done.stdout)["data_sets"] for output in each["outputs"]]
    assert 0 < max(errors) < 0.05
    timed = serin("bench", MODELS / "digits/2/model.onnx", *CALIBRATED, "--seconds", 0.1, "--json")
    assert json.loads(timed.stdout)["precision"] == "int8" and "warning" not in timed.stderr


def test_int8_without_samples_keeps_convolutions_in_floats():
    model = MODELS / "digits/2/model.onnx"
    done = serin("bench", model, "--precision", "int8", "--seconds", 0.1)
    assert done.returncode == 0 and "precision: int8: 0 of 3 convolutions and " in done.stderr
    assert "warning: int8: 3 convolutions compute in fp32: the ranges of what they read are seen on samples" in done.stderr
    kept = output_of("inspect", model, "--precision", "int8")["kept_in_float"]
    assert len(kept) == 3 and all("there are none" in node["why"] for node in kept)


def test_inspect_explains_int8():
    done = serin("inspect", MODELS / "digits/2/model.onnx", *CALIBRATED, "--explain")
    assert done.returncode == 0 and "QLinearConv" in done.stdout and "quant_" in done.stdout
    found = output_of("inspect", MODELS / "digits/2/model.onnx", *CALIBRATED)
    assert found["kept_in_float"] == [] and all(node["op"] in ("QuantizeLinear", "DequantizeLinear") for node in found["left_over"])


def test_int8_refuses_samples_that_are_not_finite(tmp_path):
    folder = tmp_path / "samples/test_data_set_0"
    folder.mkdir(parents=True)
    np.save(folder / "input_0.npy", np.full((1, 64), np.nan, np.float32))
    done = serin("bench", DIGIT, "--precision", "int8", "--samples", tmp_path / "samples", "--seconds", 0.1)
    assert done.returncode == 2 and "input 'pixels' of sample 0 holds nan at element 0" in done.stderr
    assert serin("bench", DIGIT, "--precision", "int8", "--samples", tmp_path / "nowhere", "--seconds", 0.1).returncode != 0


# --- load ---------------------------------------------------------------------------------------------------------------------------


def test_load_at_a_fixed_rate(shared_runtime):
    digits = ["--model", "digits", "--version", 1, "--data", MODELS / "digits/eval.npz"]
    found = output_of("load", shared_runtime.url, *digits, "--rate", 200, "--seconds", 1)
    assert found["sent"] == found["ok"] == 200 and found["errors"] == 0 and found["errors_by"] == {}
    assert 0 < found["p50_ms"] <= found["p90_ms"] <= found["p99_ms"] <= found["p999_ms"]
    assert found["versions"] == {"1": 200}


def test_load_with_clients_that_wait(shared_runtime):
    found = output_of("load", shared_runtime.url, "--model", "digits", "--version", 2, "--concurrency", 4, "--seconds", 0.5)
    assert found["ok"] == found["sent"] > 50 and found["versions"] == {"2": found["ok"]}


def test_load_makes_inputs_from_the_metadata_in_batches(shared_runtime):
    found = output_of("load", shared_runtime.url, "--model", "digits", "--version", 5, "--batch", 3, "--rate", 50, "--seconds", 0.5)
    assert found["ok"] == 25


def test_load_counts_latency_from_the_intended_start(backend):
    """A server that answers one at a time, 20 ms each, is asked 100 times a second: requests wait, and the waiting counts."""
    slow = backend("1", delay=0.02)
    found = output_of("load", slow.origin, "--model", "digits", "--rate", 100, "--seconds", 1)
    assert found["sent"] == 100 and found["p50_ms"] >= 20


def test_load_tells_errors_by_status(backend):
    server = backend("1", error_rate=0.5)
    found = output_of("load", server.origin, "--model", "digits", "--rate", 400, "--seconds", 0.5, exit_code=1)
    assert found["errors_by"] == {"500": found["errors"]} and found["ok"] + found["errors"] == found["sent"] == 200
    assert 50 < found["errors"] < 150
    server.faults = Faults(status=429)
    assert output_of("load", server.origin, "--model", "digits", "--rate", 100, "--seconds", 0.2, exit_code=1)["errors_by"] == {"429": 20}


def test_load_speaks_to_people_too(shared_runtime):
    done = serin("load", shared_runtime.url, "--model", "digits", "--rate", 50, "--seconds", 0.2)
    assert done.returncode == 0 and "p99" in done.stdout


def test_load_without_a_server_is_exit_code_5(backend):
    gone = backend("1")
    gone.down()
    done = serin("load", gone.origin, "--model", "digits", "--seconds", 1)
    assert done.returncode == 5 and str(gone.port) in done.stderr


def test_load_of_an_unknown_model_says_so(shared_runtime):
    done = serin("load", shared_runtime.url, "--model", "nope", "--seconds", 1)
    assert done.returncode != 0 and "nope" in done.stderr


# --- what is asked wrongly ----------------------------------------------------------------------------------------------------------

URL = "http://127.0.0.1:9"
USAGE = [
    (), ("frobnicate",), ("bench",), ("inspect",), ("check", DIGIT), ("load", URL),
    ("load", URL, "--model", "m", "--rate", "5", "--concurrency", "2"), ("load", URL, "--model", "m", "--rate", "0"),
    ("load", URL, "--model", "m", "--rate", "nan"), ("load", URL, "--model", "m", "--seconds", "-1"), ("load", "ftp://x", "--model", "m"),
    ("load", URL, "--model", "m", "--batch", "0"), ("load", URL, "--model", "m", "--data", "/nowhere.npz"),
    ("bench", DIGIT, "--batch", "0"), ("bench", DIGIT, "--precision", "fp17"), ("bench", DIGIT, "--threads", "0"),
    ("bench", DIGIT, "--dim", "seq"), ("bench", DIGIT, "--dim", "seq=-1"), ("bench", DIGIT, "--seconds", "nan"),
    ("bench", DIGIT, "--profile", "--on-request"),
    ("check", DIGIT, DATA / "digits_1", "--rtol", "-1"), ("check", DIGIT, DATA / "digits_1", "--isa", "mmx"),
    ("check", DIGIT, "/nowhere"), ("inspect", DIGIT, "--nope"),
]


@pytest.mark.parametrize("arguments", USAGE, ids=lambda arguments: "-".join(str(a).rsplit("/", 1)[-1] for a in arguments) or "nothing")
def test_c5_usage_mistakes_are_one_line_and_exit_code_2(arguments):
    done = serin(*arguments, timeout=20)
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert done.stdout == "" and len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize("command", ["bench", "check", "inspect"])
def test_a_model_that_is_not_there_is_exit_code_3(command):
    done = serin(command, "/nowhere/model.onnx", *([DATA / "digits_1"] if command == "check" else []))
    assert done.returncode == 3 and "/nowhere/model.onnx" in done.stderr


def test_a_dimension_that_the_model_does_not_have_is_named():
    done = serin("bench", DIGIT, "--dim", "seq=8", "--seconds", 0.1)
    assert done.returncode in (2, 3) and "seq" in done.stderr


def test_help_lists_every_command():
    done = serin("--help")
    assert done.returncode == 0
    assert all(command in done.stdout for command in ("serve", "route", "rollout", "load", "check", "bench", "inspect"))


