"""serin eval --training and --latency: distances of Kolmogorov and Smirnov are SciPy's, times of single rows are in order; gates on both."""

import json

import numpy as np
import onnx
import pytest
import scipy.special
import scipy.stats
from onnx import TensorProto, helper

from conftest import MODELS, serin

DIGITS = MODELS / "digits"


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def digits():
    with np.load(DIGITS / "eval.npz") as file:
        return {name: file[name] for name in file}


def evaluate(*arguments, exit_code=0):
    done = serin("eval", *arguments)
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done


def drift(*arguments, exit_code=0):
    return json.loads(evaluate(*arguments, "--json", exit_code=exit_code).stdout)["drift"]


def expected(now, then):
    """{distance, element, p} of the worst column."""
    distances = [scipy.stats.ks_2samp(now[:, i], then[:, i], method="asymp").statistic for i in range(now.shape[1])]
    worst = int(np.argmax(distances))
    n, m = len(now), len(then)
    return distances[worst], worst, min(1.0, scipy.special.kolmogorov(np.sqrt(n * m / (n + m)) * distances[worst]) * now.shape[1])


@pytest.mark.parametrize("change", ["same", "halves", "brighter", "one pixel"])
def test_distances_are_those_of_scipy(tmp_path, digits, change):
    pixels = digits["pixels"]
    now, then = pixels, pixels.copy()
    if change == "halves":
        now, then = pixels[:270], pixels[270:]
    elif change == "brighter":
        then = np.minimum(16, pixels * 1.3 + 0.5).astype(np.float32)
    elif change == "one pixel":
        then[::3, 36] = 16
    np.savez(tmp_path / "now.npz", pixels=now, label=digits["label"][: len(now)])
    np.savez(tmp_path / "then.npz", pixels=then)
    found = drift(DIGITS / "2", tmp_path / "now.npz", "--training", tmp_path / "then.npz")
    distance, worst, p = expected(now, then)
    [given] = found["inputs"]
    assert given["distance"] == pytest.approx(distance, abs=1e-12) == found["largest"] and given["p_value"] == pytest.approx(p, rel=1e-9, abs=1e-300)
    assert (given["input"], given["elements"], found["rows"], found["training_rows"]) == ("pixels", 64, len(now), len(then))
    if change != "same":
        assert given["worst_element"] == worst
    if change == "one pixel":
        assert worst == 36


def test_columns_of_a_table_each_have_their_distance(tmp_path):
    dice = np.random.default_rng(3)
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["y"])], "m", [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 1]) for name in ("a", "b")],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 1])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")

    def table(name, a, b):
        (tmp_path / name).write_text("a,b,label\n" + "".join(f"{x},{y},{x + y}\n" for x, y in zip(a, b)))
        return tmp_path / name
    a, b, then = dice.normal(size=200), dice.normal(size=200), dice.normal(0.8, 2, size=150)
    now, training = table("now.csv", a, b), table("then.csv", a[:150], then)
    found = {each["input"]: each for each in drift(tmp_path / "m.onnx", now, "--training", training)["inputs"]}
    for name, (first, second) in {"a": (a, a[:150]), "b": (b, then)}.items():
        theirs = scipy.stats.ks_2samp(first, second, method="asymp")
        assert found[name]["distance"] == pytest.approx(theirs.statistic, abs=1e-12)
        assert found[name]["p_value"] == pytest.approx(scipy.special.kolmogorov(np.sqrt(200 * 150 / 350) * theirs.statistic), rel=1e-9)
    assert found["b"]["p_value"] < 1e-4 < found["a"]["p_value"]


def test_it_is_a_gate(tmp_path, digits):
    np.savez(tmp_path / "then.npz", pixels=np.minimum(16, digits["pixels"] * 1.3 + 0.5).astype(np.float32))
    arguments = [DIGITS / "2", DIGITS / "eval.npz", "--training", tmp_path / "then.npz", "--require", "drift <= 0.1"]
    failed = evaluate(*arguments, exit_code=1)
    assert "FAIL drift <= 0.1" in failed.stdout and "input pixels: distance" in failed.stdout
    evaluate(DIGITS / "2", DIGITS / "eval.npz", "--training", DIGITS / "eval.npz", "--require", "drift <= 0.1")


@pytest.mark.parametrize("training, words", [("nothing.npz", "nothing.npz"), ("other.npz", "--training"), (None, "'drift'")])
def test_what_is_missing_is_named(tmp_path, digits, training, words):
    np.savez(tmp_path / "other.npz", picture=digits["pixels"])
    more = ["--training", tmp_path / training] if training else []
    done = serin("eval", DIGITS / "2", DIGITS / "eval.npz", *more, "--require", "drift <= 0.1")
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_single_rows_are_timed_and_times_are_a_gate(digits):
    """Version 4 applies a convolution 150 times; version 1 is two small products."""
    arguments = [DIGITS / "1", DIGITS / "eval.npz", "--latency"]
    report = json.loads(evaluate(*arguments, "--against", DIGITS / "4", "--json").stdout)
    fast, slow = report["latency"]["model"], report["latency"]["against"]
    for of in fast, slow:
        assert list(of) == ["latency_p50", "latency_p90", "latency_p99"] and 0 < of["latency_p50"] <= of["latency_p90"] <= of["latency_p99"]
    assert fast["latency_p50"] < slow["latency_p50"] and 1 <= report["latency"]["rows"] <= 540
    assert evaluate(*arguments, "--require", "latency_p50 <= 10000").stdout.count("one row takes") == 1
    assert "FAIL latency_p99 <= 0.000001" in evaluate(*arguments, "--require", "latency_p99 <= 0.000001", exit_code=1).stdout
    assert "'latency_p99'" in serin("eval", DIGITS / "1", DIGITS / "eval.npz", "--require", "latency_p99 <= 1").stderr
