"""Classifiers of sixteen numbers into ten labels: one, the same model wrong for some inputs, and another one of the same data."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

INPUTS, LABELS = 16, 10
WEIGHTS = np.random.default_rng(7).normal(0, 1, (INPUTS, LABELS)).astype(np.float32)


def save_classifier(folder, wrong_for=0.0, retrained=0.0):
    """A version of a model in that folder. `wrong_for`: the share of inputs for which the scores are those of other labels. `retrained`: the
    size of a change of all weights."""
    weights = WEIGHTS + retrained * np.random.default_rng(8).normal(0, 1, WEIGHTS.shape).astype(np.float32)
    constants = {"weights": weights, "threshold": np.float32([wrong_for]), "others": np.int64([*range(3, LABELS), 0, 1, 2]), "first": np.int64([0])}
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "weights"], ["logits"]), helper.make_node("Softmax", ["logits"], ["right"]),
         helper.make_node("Gather", ["right", "others"], ["wrong"], axis=1), helper.make_node("Gather", ["x", "first"], ["key"], axis=1),
         helper.make_node("Less", ["key", "threshold"], ["is_wrong"]), helper.make_node("Where", ["is_wrong", "wrong", "right"], ["scores"])],
        "classifier", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", INPUTS])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", LABELS])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()])  # fmt: skip
    folder.mkdir(parents=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")


def bodies(count, seed=1):
    """Requests with inputs drawn at random; the first number is uniform from 0 to 1, and decides who gets a wrong answer."""
    rows = np.random.default_rng(seed).normal(0, 0.4, (count, INPUTS)).astype(np.float32)
    rows[:, 0] = np.random.default_rng(seed + 1).uniform(0, 1, count)
    return [json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, INPUTS], "data": row.tolist()}]}).encode() for row in rows]
