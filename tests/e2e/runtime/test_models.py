"""The committed digits models are what models/README.md says they are, seen through ONNX Runtime."""

import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

MODELS = Path(__file__).resolve().parents[3] / "models"
VERSIONS = [1, 2, 3, 4, 5]
ROW_SHAPE = {5: [1, 8, 8]}  # all others: rows of 64


def claims():
    """{version: (accuracy, difference from version 1, bytes)} from the README's table."""
    row = re.compile(r"^\| (\d+) \|[^|]*\| ([\d.]+) % \| ([\d.]+) % \| (\d+) \|", re.MULTILINE)
    return {int(version): (float(accuracy) / 100, float(differs) / 100, int(size))
            for version, accuracy, differs, size in row.findall((MODELS / "README.md").read_text())}


def model_file(version):
    return MODELS / "digits" / str(version) / "model.onnx"


@pytest.fixture(scope="module")
def evaluation():
    data = np.load(MODELS / "digits/eval.npz")
    return data["pixels"], data["label"]


@pytest.fixture(scope="module")
def answers(evaluation):
    """{version: its answer to each held-out digit}. Scores are checked on the way."""
    found = {}
    for version in VERSIONS:
        session = onnxruntime.InferenceSession(str(model_file(version)), providers=["CPUExecutionProvider"])
        rows = evaluation[0].reshape(-1, *ROW_SHAPE.get(version, [64]))
        scores = session.run(["scores"], {"pixels": rows})[0]
        assert scores.shape == (len(rows), 10)
        np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-5)
        found[version] = scores.argmax(axis=1)
    return found


def test_the_table_has_every_version():
    assert sorted(claims()) == VERSIONS
    assert sorted(int(path.parent.name) for path in MODELS.glob("digits/*/model.onnx")) == VERSIONS


def test_the_evaluation_set_is_plain(evaluation):
    pixels, labels = evaluation
    assert pixels.dtype == np.float32 and pixels.shape == (len(labels), 64)
    assert labels.dtype == np.int64 and set(labels) == set(range(10))
    assert pixels.min() == 0 and pixels.max() == 16


@pytest.mark.parametrize("version", VERSIONS)
def test_file(version):
    file = model_file(version)
    assert file.stat().st_size == claims()[version][2] < 1 << 20
    model = onnx.load(file, load_external_data=False)
    onnx.checker.check_model(model, full_check=True)
    assert not any(tensor.external_data for tensor in model.graph.initializer)


@pytest.mark.parametrize("version", VERSIONS)
def test_contract(version):
    graph = onnx.load(model_file(version)).graph
    tensors = {value.name: value.type.tensor_type for value in [*graph.input, *graph.output]}
    shapes = {name: [dim.dim_param or dim.dim_value for dim in tensor.shape.dim] for name, tensor in tensors.items()}
    assert shapes == {"pixels": ["batch", *ROW_SHAPE.get(version, [64])], "scores": ["batch", 10]}
    assert {tensor.elem_type for tensor in tensors.values()} == {onnx.TensorProto.FLOAT}


@pytest.mark.parametrize("version", VERSIONS)
def test_accuracy(version, evaluation, answers):
    accuracy, differs, _ = claims()[version]
    one_digit = 1 / len(evaluation[1])  # a tie may fall the other way on another CPU
    assert np.mean(answers[version] == evaluation[1]) == pytest.approx(accuracy, abs=1.5 * one_digit)
    assert np.mean(answers[version] != answers[1]) == pytest.approx(differs, abs=1.5 * one_digit)


def test_the_story_holds(evaluation, answers):
    """What the quickstart's four rollouts rest on."""
    accuracy = {version: np.mean(answers[version] == evaluation[1]) for version in VERSIONS}
    assert accuracy[2] > accuracy[1] > 0.95 and accuracy[4] > 0.95
    assert 0 < np.mean(answers[2] != answers[1]) < 0.05
    assert accuracy[3] < 0.3
    kept = [node.op_type for node in onnx.load(model_file(2)).graph.node].count("BatchNormalization")
    assert kept == 3
