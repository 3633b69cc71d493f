"""`serin compare`: two versions of a model, node by node. The models are made here, so that it is known where they differ."""

import json

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from conftest import MODELS, serin

RANDOM = np.random.default_rng(3)
WEIGHTS = {"w1": RANDOM.normal(size=(8, 16)).astype(np.float32), "w2": RANDOM.normal(size=(16, 16)).astype(np.float32),
           "w3": RANDOM.normal(size=(16, 4)).astype(np.float32)}


def net(path, change=None, prefix="", alpha=0.1, extra=False, **weights):
    """Three products with activations. change: a new operator for the second activation."""
    name = lambda text: prefix + text  # noqa: E731
    nodes = [helper.make_node("MatMul", ["x", "w1"], [name("a")], name("product1")), helper.make_node("LeakyRelu", [name("a")], [name("b")], name("act1"), alpha=alpha),
             helper.make_node("MatMul", [name("b"), "w2"], [name("c")], name("product2")), helper.make_node(change or "Tanh", [name("c")], [name("d")], name("act2"))]
    last = name("d")
    if extra:
        nodes.append(helper.make_node("Neg", [last], [name("n")], name("negated")))
        last = name("n")
    nodes.append(helper.make_node("MatMul", [last, "w3"], ["y"], name("product3")))
    values = [numpy_helper.from_array(weights.get(key, value), key) for key, value in WEIGHTS.items()]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", 1, ["batch", 8])], [helper.make_tensor_value_info("y", 1, ["batch", 4])], values)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def stable(tmp_path):
    return net(tmp_path / "stable.onnx")


def compare(*args, code):
    done = serin("compare", *args, "--json")
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def origins(found):
    return [(origin["node"], [weight["name"] for weight in origin["weights"]], origin["attributes"]) for origin in found["data_sets"][0]["origins"]]


def test_equal_versions_are_equal(stable):
    found = compare(stable, stable, "--batch", 3, code=0)
    assert found["match"] and found["data_sets"][0]["different"] == 0 and found["data_sets"][0]["equal"] == 5 and origins(found) == []
    assert "0 of 5 results differ" in serin("compare", stable, stable).stdout


def test_a_changed_weight_is_found_at_its_node(stable, tmp_path):
    changed = WEIGHTS["w2"].copy()
    changed[3, 5] += 2
    canary = net(tmp_path / "canary.onnx", w2=changed)
    found = compare(stable, canary, code=1)
    assert origins(found) == [("product2", ["w2"], [])] and found["data_sets"][0]["different"] == 3
    weight = found["data_sets"][0]["weights"][0]
    assert weight["mismatches"] == 1 and abs(weight["max_absolute_error"] - 2) < 1e-6
    said = serin("compare", stable, canary).stdout
    assert "node 'product2' (MatMul)" in said and "weight 'w2': largest difference 2" in said and "output 'y': largest" in said


def test_a_changed_attribute_and_a_weight_that_does_not_matter(stable, tmp_path):
    unused = WEIGHTS["w3"] * np.float32(1 + 1e-6)
    found = compare(stable, net(tmp_path / "canary.onnx", alpha=0.3, w3=unused), code=1)
    assert origins(found) == [("act1", [], ["alpha"])]
    assert [weight["name"] for weight in found["data_sets"][0]["weights"]] == ["w3"], "far below the tolerance of results, and still another weight"


def test_another_operator_is_no_partner(stable, tmp_path):
    found = compare(stable, net(tmp_path / "canary.onnx", change="Sigmoid"), code=1)
    assert (found["only_reference"], found["only_candidate"]) == (1, 1) and found["data_sets"][0]["equal"] == 3
    assert [(origin["node"], origin["after_unpaired"]) for origin in found["data_sets"][0]["origins"]] == [("product3", True)]


def test_a_node_more_is_named_by_what_follows_it(stable, tmp_path):
    found = compare(stable, net(tmp_path / "canary.onnx", extra=True), code=1)
    assert (found["only_reference"], found["only_candidate"]) == (0, 1) and [origin["node"] for origin in found["data_sets"][0]["origins"]] == ["product3"]


def test_other_names_are_paired_by_place(stable, tmp_path):
    found = compare(stable, net(tmp_path / "canary.onnx", prefix="torch_export_", w1=WEIGHTS["w1"] + np.float32(0.5)), code=1)
    assert not found["by_name"] and origins(found) == [("product1", ["w1"], [])]


def test_the_case_of_a_request_decides(stable, tmp_path):
    """A weight that matters for one input only: generated inputs may miss it, the stored one does not."""
    cases = tmp_path / "cases"
    for number, row in enumerate((np.eye(8, dtype=np.float32)[:1], np.eye(8, dtype=np.float32)[5:6])):
        (cases / f"test_data_set_{number}").mkdir(parents=True)
        np.save(cases / f"test_data_set_{number}" / "input_0.npy", row)
    changed = WEIGHTS["w1"].copy()
    changed[5] *= -1
    found = compare(stable, net(tmp_path / "canary.onnx", w1=changed), "--data", cases, code=1)
    assert [one["match"] for one in found["data_sets"]] == [True, False]
    assert found["data_sets"][1]["origins"][0]["node"] == "product1" and len(found["data_sets"][0]["weights"]) == 1


def test_versions_of_a_real_model(tmp_path):
    """Two architectures: the little that they share."""
    first, second = MODELS / "digits/1/model.onnx", MODELS / "digits/2/model.onnx"
    found = compare(first, second, code=1)
    assert found["data_sets"][0]["origins"] and found["data_sets"][0]["outputs"][0]["name"] == "scores"


def test_what_cannot_be_compared_is_refused(stable, tmp_path):
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "other", [helper.make_tensor_value_info("x", 7, [1, 8])],
                              [helper.make_tensor_value_info("y", 7, [1, 8])])
    other = tmp_path / "other.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), other)
    refused = serin("compare", stable, other)
    assert refused.returncode == 2 and "input 'x' is f32 in the reference and i64 in the candidate" in refused.stderr
    for args, complaint in (((stable, tmp_path / "none.onnx"), "none.onnx"), ((stable, stable, "--data", tmp_path / "nowhere"), "nowhere"), ((stable,), "candidate is required"),
                            ((stable, stable, "--batch", 0), "--batch must be at least 1")):
        refused = serin("compare", *args)
        assert refused.returncode in (2, 3) and complaint in refused.stderr, refused.stderr
