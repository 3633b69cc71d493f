"""serin tune: what it chooses is what it has measured, the folder that it writes serves, and nothing of it stays behind."""

import json
import os
import shutil
import signal
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from conftest import MODELS, SERIN, call, serin, wait_until

DIGITS = MODELS / "digits"
EVAL = DIGITS / "eval.npz"
QUICK = ["--max-batch", "4", "--instances", "1", "--seconds", "0.2"]


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    yield
    assert list((tmp_path / "tmp").iterdir()) == [], "something was left behind"


def tune(*arguments, exit_code=0):
    done = serin("tune", *arguments, "--json")
    assert done.returncode == exit_code, done.stdout + done.stderr
    return json.loads(done.stdout)


def refused(*arguments):
    done = serin("tune", *arguments)
    assert done.returncode == 2 and done.stdout == "", done.stdout + done.stderr
    assert done.stderr.count("\n") == 1
    return done.stderr


def commented(folder):
    """The digits of version 2 with settings that a person has written."""
    model = folder / "digits"
    shutil.copytree(DIGITS / "2", model / "2")
    (model / "serin.yaml").write_text("# we know why\nmax_batch: 3\nlabels:\n  best: 2\nprecision: bf16\n")
    return model


def samples_of(folder):
    pixels = np.load(EVAL)["pixels"][:8]
    for i, row in enumerate(pixels):
        (folder / f"test_data_set_{i}").mkdir(parents=True)
        np.save(folder / f"test_data_set_{i}/input_0.npy", row[None])
    return folder


def test_the_cheapest_is_written_and_served(tmp_path, serve):
    out = tmp_path / "models/tuned"
    samples = samples_of(tmp_path / "calibration")
    report = tune(commented(tmp_path), "--data", EVAL, "--goal", "accuracy >= 90 %, p99 <= 10 s", "--precision", "fp32,int8", "--max-batch", "1,4", "--instances", 1,
                  "--seconds", 0.2, "--samples", samples, "--out", out)
    assert report["schema"] == "serin.tune/1"
    assert [(one["precision"], one["holds"]) for one in report["precisions"]] == [("fp32", True), ("int8", True)]
    for one in report["precisions"]:
        (measured,) = one["requirements"]
        told = serin("eval", tmp_path / "digits", EVAL, "--precision", one["precision"], "--metric", "top1", "--json",
                     *(["--samples", samples] if one["precision"] == "int8" else []))
        assert measured["metric"] == "top1" and measured["value"] == json.loads(told.stdout)["metrics"]["top1"]["value"]
    trials = report["trials"]
    assert [(t["precision"], t["max_batch"], t["instances"]) for t in trials] == [("fp32", 1, 1), ("fp32", 4, 1), ("int8", 1, 1), ("int8", 4, 1)]
    for trial in trials:
        assert trial["holds"] and trial["failed"] == 0 and trial["requests"] > 10 and trial["answers_per_s"] > 10
        assert trial["clients"] >= 1 and trial["cpu_ms_per_answer"] > 0 and trial["memory_bytes"] > 1 << 20
        assert 0 < trial["latency_ms"]["p50"] <= trial["latency_ms"]["p99"] <= trial["latency_ms"]["p999"]
    best = max(trial["answers_per_s"] for trial in trials)
    (chosen,) = [t for t in trials if all(t[key] == value for key, value in report["chosen"].items())]
    assert chosen["answers_per_s"] >= best / 1.1 - 1e-6

    assert json.loads((out / "tuned.json").read_text()) == report
    settings = (out / "serin.yaml").read_text()
    assert settings.startswith("# we know why\nlabels:\n  best: 2\n") and f"precision: {chosen['precision']}\n" in settings
    assert settings.count("max_batch") == settings.count("precision:") == 1 and f"max_batch: {chosen['max_batch']}\n" in settings
    assert (out / "samples/test_data_set_7/input_0.npy").exists() == (chosen["precision"] == "int8")
    assert not any(path.is_symlink() for path in out.rglob("*"))
    shutil.rmtree(tmp_path / "digits")  # the new folder stands alone
    shutil.rmtree(samples)
    server = serve(out.parent)
    assert call(f"{server.url}/v2/models/tuned").json["versions"] == ["2"]


def test_requests_come_at_the_rate_that_is_wanted():
    report = tune(DIGITS, "--goal", "p90 <= 10 s", "--precision", "fp32", "--rps", 50, "--max-batch", 4, "--instances", 1, "--seconds", 1)
    (trial,) = report["trials"]
    assert report["rate"] == 50 and trial["requests"] == 50 and "clients" not in trial
    assert report["precisions"] == [{"precision": "fp32", "holds": True, "requirements": []}] and "data" not in report


@pytest.mark.parametrize("goal", ["top1 >= 0.9999", "top1 >= 90 %, p99 <= 1 us"])
def test_nothing_is_chosen_or_written_where_the_goal_does_not_hold(goal, tmp_path):
    out = tmp_path / "out"
    arguments = [DIGITS, "--data", EVAL, "--goal", goal, "--precision", "fp32,int8", "--out", out, *QUICK]
    report = tune(*arguments, exit_code=1)
    assert report["chosen"] is None and not out.exists()
    if "p99" in goal:
        assert all(trial["why"].startswith("p99 is ") and trial["why"].endswith("ms, wanted p99 <= 1 us") for trial in report["trials"]) and len(report["trials"]) == 2
    else:
        assert report["trials"] == [] and all(one["why"].endswith("wanted top1 >= 0.9999") for one in report["precisions"])
    text = serin("tune", *arguments)
    assert text.returncode == 1 and text.stdout.endswith("no setting that was tried meets the goal\n") and "out: " in text.stdout


def test_a_setting_that_does_not_load_is_named_and_others_are_tried(tmp_path):
    of_two = helper.make_graph([helper.make_node("Sigmoid", ["x"], ["y"])], "of two", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
                               [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])])
    onnx.save(helper.make_model(of_two, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "fixed.onnx")
    report = tune(tmp_path / "fixed.onnx", "--goal", "p50 <= 10 s", "--precision", "fp32", "--max-batch", "1,8", "--instances", "1,2", "--seconds", 0.2)
    held = [(trial["max_batch"], trial["instances"]) for trial in report["trials"] if trial["holds"]]
    lost = [trial for trial in report["trials"] if not trial["holds"]]
    assert held == [(1, 1), (1, 2)] and report["chosen"]["max_batch"] == 1
    (only,) = lost
    assert only["max_batch"] == 8 and only["why"] == "the model takes no batches" and "latency_ms" not in only
    of_two.node[0].op_type = "NobodyKnowsThis"
    onnx.save(helper.make_model(of_two, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "unknown.onnx")
    (lost,) = tune(tmp_path / "unknown.onnx", "--goal", "p50 <= 10 s", "--precision", "fp32", *QUICK, exit_code=1)["trials"]
    assert lost["why"].startswith("does not load: ") and "NobodyKnowsThis" in lost["why"]


def test_what_cannot_be_tried_is_refused_by_name(tmp_path):
    assert "no such model" in refused(tmp_path / "none.onnx", "--goal", "p99 <= 1 s", "--precision", "fp32")
    assert "--goal: 'p99 >= 5 ms'" in refused(DIGITS, "--goal", "p99 >= 5 ms")
    assert "needs rows with the truth" in refused(DIGITS, "--goal", "top1 >= 0.9")
    assert "name a metric, or one --precision" in refused(DIGITS, "--goal", "p99 <= 1 s")
    assert "none.npz" in refused(DIGITS, "--goal", "top1 >= 0.9", "--data", tmp_path / "none.npz")
    assert "nothing_of_this" in refused(DIGITS, "--goal", "nothing_of_this >= 0.9", "--data", EVAL)
    assert "--seconds 3: p99 needs 100 requests, which take 20 seconds at --rps 5" in refused(DIGITS, "--goal", "p99 <= 1 s", "--precision", "fp32", "--rps", 5)
    assert "exists already" in refused(DIGITS, "--goal", "top1 >= 0.9", "--data", EVAL, "--out", tmp_path)
    assert "(400): name requests with --load-data" in refused(DIGITS, "--goal", "p99 <= 1 s", "--precision", "fp32", "--load-data", DIGITS / "train.py", *QUICK)
    model = commented(tmp_path)
    (model / "serin.yaml").write_text("{max_batch: 3}\n")
    assert "one key on each line" in refused(model, "--goal", "p99 <= 1 s", "--precision", "fp32")
    (model / "serin.yaml").write_text("max_queue_delay: soon\n")
    assert "serin.yaml:1:18: max_queue_delay" in refused(model, "--goal", "p99 <= 1 s", "--precision", "fp32")
    (model / "serin.yaml").unlink()
    (model / "config.pbtxt").write_text('name: "digits"\nmax_batch_size: 4\n')
    assert "config.pbtxt" in refused(model, "--goal", "p99 <= 1 s", "--precision", "fp32")


def children_of(process):
    return [int(line) for line in subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True).stdout.split()]


def test_ctrl_c_ends_the_server_too(tmp_path):
    process = subprocess.Popen([SERIN, "tune", DIGITS, "--goal", "p99 <= 10 s", "--precision", "fp32", "--seconds", "60"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: len(children_of(process.pid)) == 2)  # the server and the load
    children = children_of(process.pid)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    wait_until(lambda: not any(os.path.exists(f"/proc/{child}") for child in children))
