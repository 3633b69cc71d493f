"""SavedModels of TensorFlow and Keras, with the answers of TensorFlow.

The weights are drawn again, and the model is written as its users have it. Requests run in batches, except for the models that are listed
below with the reason.
"""

import collections
import json
import os
import re
import subprocess

import numpy as np
import pytest
import stored
import structure
import tensorflow_recipe
from materialise import materialise

LONG = os.environ.get("SERIN_LONG") == "1"
# Models of many weights, which take seconds each.
LARGE = {"vgg16", "resnet50", "resnet50v2", "inception_v3", "inception_resnet_v2", "xception", "densenet121", "nasnet_mobile", "efficientnet_v2_b0",
         "convnext_tiny", "mobilenet_v3_large"}
LOOP, TEXT = "a Loop, whose rows no proof covers", "words, whose number depends on the data"
ALONE = {
    "bag_of_words": TEXT,
    "branches": "its condition is the mean of the batch",
    "conv_lstm": LOOP,
    "detection": "its batch is one image",
    "examples": "lists, whose lengths depend on the data",
    "feature_columns": "lists, whose lengths depend on the data",
    "gru_bidirectional": LOOP,
    "loops": LOOP,
    "movements": "its sizes are fixed",
    "single_example": "it has no batch",
}
NAMES = tensorflow_recipe.names()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tensorflow")


def chosen(names):
    return [pytest.param(name, marks=pytest.mark.skipif(name in LARGE and not LONG, reason="large: SERIN_LONG=1")) for name in names]


def prepared(name, folder):
    path, head = tensorflow_recipe.materialise(name, folder / name)
    answers = stored.read_answers(tensorflow_recipe.answers_of(name))
    inputs = tensorflow_recipe.inputs_of(head, name)
    return path, inputs, answers, stored.write_data_set(folder / name / "data", list(inputs.values()), list(answers.values()))


@pytest.mark.parametrize("name", chosen(NAMES))
def test_answers_like_tensorflow(name, folder):
    path, _, answers, data = prepared(name, folder)
    stored.assert_agrees(path, data)
    for value in answers.values():
        assert value.dtype == object or np.isfinite(np.asarray(value, np.float64)).all()
    floats = [value for value in answers.values() if np.issubdtype(value.dtype, np.floating) and value.size > 1]
    assert not floats or any(stored.SPREAD[0] <= value.std() <= stored.SPREAD[1] for value in floats)


@pytest.mark.parametrize("name", chosen(NAMES))
def test_rows_are_independent(name, folder):
    path, _ = tensorflow_recipe.materialise(name, folder / name)
    done = subprocess.run([stored.SERIN, "inspect", path, "--json"], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    batchable = json.loads(done.stdout)["batchable"]
    assert batchable == (name not in ALONE), ALONE.get(name, "its rows are not proven independent")


def optimised(path):
    done = subprocess.run([stored.SERIN, "inspect", path, "--json"], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["after"]


@pytest.mark.parametrize(("name", "operator", "count"), [
    ("lstm", "LSTM", 2), ("lstm", "Loop", 0), ("rnn_with_states", "GRU", 1), ("gru_bidirectional", "Loop", 4),
    ("bert", "Attention", 2), ("bert", "LayerNormalization", 5), ("bert", "Einsum", 0), ("vision_transformer", "Attention", 2),
    ("mobilenet_v2", "Transpose", 1), ("mobilenet_v2", "Pad", 0), ("efficientnet_b0", "Transpose", 1), ("tcn", "Transpose", 2)])
def test_operators_of_other_exporters(name, operator, count, folder):
    """Layers become the operators of which passes and kernels know the most."""
    path, _ = tensorflow_recipe.materialise(name, folder / name)
    assert len(re.findall(rf"= {operator}\(", optimised(path))) == count


def nameless(text):
    """Operators, attributes and shapes of constants, with values numbered as they come."""
    names, lines = {}, []
    for line in text.splitlines():
        found = re.fullmatch(r"(\S+) = (\w+)\((.*)\)(  #.*)?", line)
        if not found or found[2] == "Transpose":
            continue
        operands = re.split(r", (?![^\[]*\])", found[3])
        values = [re.sub(r".*(\[.*\])$", r"\1", each) if each.endswith("]") and "=" not in each else each if "=" in each else names.get(each, "x") for each in operands]
        names[found[1]] = f"v{len(lines)}"
        lines.append((found[2], values))
    return lines


def test_one_architecture_of_two_frameworks(folder):
    """torch's exporter writes this network as below, but for the order in which w3 is stored; both end as the same graph."""
    onnx, helper = pytest.importorskip("onnx"), pytest.importorskip("onnx").helper
    path, _ = tensorflow_recipe.materialise("small_cnn", folder / "small_cnn")
    weights = {"w1": (8, 3, 3, 3), "gamma": (8,), "beta": (8,), "mean": (8,), "variance": (8,), "w2": (12, 8, 3, 3), "b2": (12,), "w3": (12, 5), "b3": (5,)}
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [1, 1], "dilations": [1, 1], "group": 1}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], **window),
        helper.make_node("BatchNormalization", ["a", "gamma", "beta", "mean", "variance"], ["b"], epsilon=1e-3),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("MaxPool", ["c"], ["d"], kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 0, 0]),
        helper.make_node("Conv", ["d", "w2", "b2"], ["e"], **window),
        helper.make_node("Relu", ["e"], ["f"]),
        helper.make_node("GlobalAveragePool", ["f"], ["g"]),
        helper.make_node("Flatten", ["g"], ["h"], axis=1),
        helper.make_node("Gemm", ["h", "w3", "b3"], ["y"]),
    ]
    constants = [onnx.numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in weights.items()]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 3, 16, 16])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", 5])
    model = helper.make_model(helper.make_graph(nodes, "torch", [x], [y], constants), opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, folder / "small_cnn.onnx")
    assert nameless(optimised(path)) == nameless(optimised(folder / "small_cnn.onnx"))


def operators(path):
    """How often each operator is in the optimised graph."""
    done = subprocess.run([stored.SERIN, "inspect", path], capture_output=True, text=True, timeout=100, check=True)
    return collections.Counter(found[2] for line, _ in structure.last_graph(done.stdout) if (found := structure.NODE.match(line)))


@pytest.mark.skipif(not LONG, reason="large: SERIN_LONG=1")
def test_resnet50_has_the_operators_of_torchs_export(folder):
    """Keras' strides are at other convolutions, its images have channels last, and it ends in probabilities."""
    path, *_ = prepared("resnet50", folder)
    assert operators(path) == operators(materialise("resnet50")) + collections.Counter(["Transpose", "Softmax"])


def test_bert_has_the_layers_of_torchs_export(folder):
    """Embeddings and masks differ with the exporter; what each layer costs does not."""
    mine, its = operators(prepared("bert", folder)[0]), operators(materialise("bert_tiny_dynamo"))
    costly = ("Attention", "LayerNormalization", "Reshape", "Transpose", "MatMul", "Softmax")
    assert {name: mine[name] for name in costly} == {name: its[name] for name in costly}
    assert mine["FusedMatMul"] == its["FusedMatMul"] + 2, "a pooler and a classifier"


def test_repositories_of_other_servers(folder, tmp_path):
    """As TensorFlow Serving lays a model out, as Triton does, and with the platform that Triton's configuration names."""
    for number, (place, config) in enumerate([("1", ""), ("1/model.savedmodel", ""), ("1/model.savedmodel", "platform: 'tensorflow_savedmodel'")]):
        tensorflow_recipe.materialise("mlp", tmp_path / f"model-{number}" / place)
        if config:
            (tmp_path / f"model-{number}" / "config.pbtxt").write_text(config)
    done = subprocess.run([stored.SERIN, "serve", "--check", tmp_path], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    path, _, _, data = prepared("mlp", folder)
    stored.assert_agrees(path.parent, data)  # the folder stands for the model
