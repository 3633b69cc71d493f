"""serin eval of the classes of pixels, against scikit-learn: scores in both layouts, classes, one score a pixel, ignored pixels, slices, gates."""

import json

import numpy as np
import onnx
import pytest
import sklearn.metrics as metrics
from onnx import TensorProto, helper, numpy_helper

from conftest import serin

ROWS, CLASSES, HEIGHT, WIDTH = 20, 4, 9, 7


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def pictures():
    rng = np.random.default_rng(11)
    scores = rng.normal(size=(ROWS, CLASSES, HEIGHT, WIDTH)).astype(np.float32)
    label = np.where(rng.random((ROWS, HEIGHT, WIDTH)) < 0.6, scores.argmax(1), rng.integers(0, CLASSES, (ROWS, HEIGHT, WIDTH))).astype(np.uint8)
    label[rng.random(label.shape) < 0.1] = 255
    label[3] = 255  # a picture that is ignored as a whole
    return {"scores": scores, "label": label, "place": np.array([i % 3 for i in range(ROWS)])}


def model(path, nodes, shape, dtype=TensorProto.FLOAT, initializers=()):
    graph = helper.make_graph(nodes, "pixels", [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["N", CLASSES, HEIGHT, WIDTH])],
                              [helper.make_tensor_value_info("y", dtype, ["N", *shape])], list(initializers))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


MODELS = {
    "channels first": ([helper.make_node("Identity", ["scores"], ["y"])], [CLASSES, HEIGHT, WIDTH], TensorProto.FLOAT),
    "channels last": ([helper.make_node("Transpose", ["scores"], ["y"], perm=[0, 2, 3, 1])], [HEIGHT, WIDTH, CLASSES], TensorProto.FLOAT),
    "classes": ([helper.make_node("ArgMax", ["scores"], ["y"], axis=1, keepdims=0)], [HEIGHT, WIDTH], TensorProto.INT64),
    "classes with an axis": ([helper.make_node("ArgMax", ["scores"], ["y"], axis=1, keepdims=1)], [1, HEIGHT, WIDTH], TensorProto.INT64),
}


def evaluate(*arguments, exit_code=0):
    done = serin("eval", *arguments, "--json")
    assert done.returncode == exit_code, done.stdout + done.stderr
    return json.loads(done.stdout)


def refused(*arguments):
    done = serin("eval", *arguments)
    assert done.returncode in (2, 3) and done.stderr.count("\n") == 1, done.stdout + done.stderr
    return done.stderr


def expected(label, predicted):
    counts = label != 255
    truth, answer = label[counts], predicted[counts]
    return {"miou": metrics.jaccard_score(truth, answer, average="macro"), "pixel_accuracy": metrics.accuracy_score(truth, answer),
            "dice": metrics.f1_score(truth, answer, average="macro")}


def values(report):
    return {name: one["value"] for name, one in report["metrics"].items()}


@pytest.mark.parametrize("kind", MODELS)
def test_metrics_are_those_of_scikit_learn(kind, pictures, tmp_path):
    nodes, shape, dtype = MODELS[kind]
    np.savez(tmp_path / "data.npz", **pictures)
    report = evaluate(model(tmp_path / "m.onnx", nodes, shape, dtype), tmp_path / "data.npz", "--slice", "place", "--html", tmp_path / "page.html")
    predicted = pictures["scores"].argmax(1)
    assert report["task"] == "segmentation" and values(report) == pytest.approx(expected(pictures["label"], predicted), rel=1e-9)
    for one in report["slices"]["values"]:
        chosen = pictures["place"] == int(one["name"])
        assert values(one) == pytest.approx(expected(pictures["label"][chosen], predicted[chosen]), rel=1e-9)
    assert (tmp_path / "page.html").read_text().count("miou") > 1


def test_each_class_has_its_iou_by_name_and_is_a_gate(pictures, tmp_path):
    np.savez(tmp_path / "data.npz", **pictures)
    (tmp_path / "names").write_text("road\nsky\ncar\ntree\n")
    counts = pictures["label"] != 255
    truth = metrics.jaccard_score(pictures["label"][counts], pictures["scores"].argmax(1)[counts], average=None)
    path = model(tmp_path / "m.onnx", *MODELS["channels first"])
    arguments = [path, tmp_path / "data.npz", "--labels", tmp_path / "names"]
    assert values(evaluate(*arguments, "--metric", "iou[car]")) == {"iou[car]": pytest.approx(truth[2], rel=1e-9)}
    evaluate(*arguments, "--require", f"iou[car] >= {truth[2] - 1e-6}")
    evaluate(*arguments, "--require", f"iou[car] >= {truth[2] + 1e-6}", exit_code=1)
    (tmp_path / "names").write_text("road\nsky\n")
    assert "--labels has 2 lines, the pixels have 4 classes" in refused(*arguments)


def test_one_score_of_a_pixel_is_a_class_from_a_half_on(pictures, tmp_path):
    half = numpy_helper.from_array(np.array([0], np.int64), "first")
    path = model(tmp_path / "m.onnx", [helper.make_node("Sigmoid", ["scores"], ["p"]), helper.make_node("Gather", ["p", "first"], ["y"], axis=1)],
                 [1, HEIGHT, WIDTH], initializers=[half])
    label = (pictures["label"] % 2).astype(np.int32)
    np.savez(tmp_path / "data.npz", scores=pictures["scores"], label=label)
    report = evaluate(path, tmp_path / "data.npz", "--task", "segmentation")
    assert values(report) == pytest.approx(expected(label, (pictures["scores"][:, 0] >= 0).astype(np.int32)), rel=1e-9)


def test_two_models_are_compared_on_the_same_pixels(pictures, tmp_path):
    np.savez(tmp_path / "data.npz", **pictures)
    good = model(tmp_path / "good.onnx", *MODELS["channels first"])
    bad = model(tmp_path / "bad.onnx", [helper.make_node("Neg", ["scores"], ["y"])], [CLASSES, HEIGHT, WIDTH])
    assert evaluate(good, tmp_path / "data.npz", "--against", bad, "--no-worse-by", "1pt")["comparison"]["verdict"] == "no worse"
    assert evaluate(bad, tmp_path / "data.npz", "--against", good, "--no-worse-by", "1pt", exit_code=1)["comparison"]["verdict"] == "worse"


def test_pixels_that_do_not_fit_are_named_with_their_row(pictures, tmp_path):
    path = model(tmp_path / "m.onnx", *MODELS["channels first"])
    for label, message in [(np.zeros((ROWS, 5, WIDTH), np.int64), "the label has 5x7 pixels, the answer is of shape [4,9,7]"),
                           (np.full((ROWS, HEIGHT, WIDTH), 70_000), "class 70000 is over 65535"),
                           (np.full((ROWS, HEIGHT, WIDTH), 0.5), "0.5 does not fit i64"),
                           (np.zeros(ROWS, np.int64), "a tensor [height, width] is needed")]:
        np.savez(tmp_path / "data.npz", scores=pictures["scores"], label=label)
        said = refused(path, tmp_path / "data.npz", "--task", "segmentation")
        assert "row 0: column 'label': " in said and message in said
    nan = np.full_like(pictures["scores"], np.nan)
    np.savez(tmp_path / "data.npz", scores=nan, label=pictures["label"])
    assert "the model's answer is not finite" in refused(path, tmp_path / "data.npz")
