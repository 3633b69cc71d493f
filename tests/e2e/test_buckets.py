"""Lengths between two `buckets` of a real sentence encoder: MiniLM with its own weights, its mask written as exporters of several years have."""

import sys

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from conftest import ROOT, call

sys.path.append(str(ROOT / "tests/models"))
from materialise import materialise  # noqa: E402

NAMES = ("input_ids", "attention_mask", "token_type_ids")


def classic(path, low, target):
    """The model as exporters wrote it before there were masks of bool: scores + (1 - mask) * low, and no guard of rows that see nothing."""
    model = onnx.load(path)
    graph, makers = model.graph, {output: node for node in model.graph.node for output in node.output}
    tensors = {"classic/axes": np.array([1, 2]), "classic/one": np.float32(1), "classic/low": np.float32(low)}
    graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in tensors.items())
    bias = [helper.make_node("Unsqueeze", ["attention_mask", "classic/axes"], ["classic/wide"]),
            helper.make_node("Cast", ["classic/wide"], ["classic/seen"], to=1),
            helper.make_node("Sub", ["classic/one", "classic/seen"], ["classic/hidden"]),
            helper.make_node("Mul", ["classic/hidden", "classic/low"], ["classic/bias"])]
    masked = 0
    for softmax in [node for node in graph.node if node.op_type == "Softmax"]:
        add = makers[softmax.input[0]]
        assert add.op_type == "Add" and makers[add.input[1]].op_type == "Where"
        add.input[1] = "classic/bias"
        for reader in graph.node:
            if reader.op_type == "MatMul" and makers.get(reader.input[0], softmax).op_type == "Where":
                reader.input[0] = makers[reader.input[0]].input[2]
        masked += 1
    assert masked == 6
    nodes = [*bias, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(model, target)
    return target


def request(random, rows, length, names=NAMES, words=30522):
    """Sentences of different lengths, one of them with a hole."""
    ids, types = random.integers(0, words, (rows, length)), random.integers(0, 2, (rows, length))
    mask = (np.arange(length) < random.integers(1, length + 1, (rows, 1))).astype(int)
    mask[0] = 1
    mask[0, length // 2] = 0 if length > 1 else 1
    return {"inputs": [{"name": name, "datatype": "INT64", "shape": [rows, length], "data": data.ravel().tolist()}
                       for name, data in zip(names, (ids, mask, types))]}


def answers(runtime, body, model):
    answer = call(f"{runtime.url}/v2/models/{model}/infer", body)
    assert answer.status == 200, answer.body
    return [np.array(output["data"], np.float32).reshape(output["shape"]) for output in answer.json["outputs"]]


def embeddings(runtime, body):
    return answers(runtime, body, "minilm")[0]


@pytest.mark.parametrize("low", [None, -10000], ids=["bool", "classic"])
def test_minilm_answers_as_the_next_bucket_what_it_answers_alone(serve, repository, tmp_path, low):
    path = materialise("minilm")
    models = repository({"minilm/1": classic(path, low, tmp_path / "classic.onnx") if low else path})
    exact = serve(models)
    (models / "minilm/serin.yaml").write_text("max_batch: 2\nbuckets: {seq: [16, 40]}\ninstances: 1\n")
    runtime = serve(models)
    assert "sizes of 'seq' are rounded up" in runtime.log
    random = np.random.default_rng(1)
    for length in (1, 7, 15, 16, 17, 33, 40, 41):
        for rows in (1, 2):
            body = request(random, rows, length)
            np.testing.assert_allclose(embeddings(runtime, body), embeddings(exact, body), rtol=1e-4, atol=1e-6)


def test_a_mask_that_minilms_scores_may_reach_leaves_each_length_its_own_plan(serve, repository, tmp_path):
    models = repository({"minilm/1": classic(materialise("minilm"), -2000, tmp_path / "classic.onnx")})
    (models / "minilm/serin.yaml").write_text("buckets: {seq: [16]}\ninstances: 1\n")
    runtime = serve(models)
    assert "sizes of 'seq' are not rounded up, each has a plan of its own: node" in runtime.log
    assert "scores may reach 1" in runtime.log and ", the mask is -2000" in runtime.log
    assert embeddings(runtime, request(np.random.default_rng(1), 1, 9)).size == 384


@pytest.mark.parametrize("name", ["bert_tiny", "bert_tiny_sdpa", "bert_tiny_dynamo", "distilbert"])
def test_the_same_of_what_other_exporters_write(serve, repository, name):
    models = repository({f"{name}/1": materialise(name)})
    exact = serve(models)
    (models / f"{name}/serin.yaml").write_text("max_batch: 2\nbuckets: {seq: [8, 24]}\ninstances: 1\n")
    runtime = serve(models)
    assert "sizes of 'seq' are rounded up" in runtime.log
    random = np.random.default_rng(1)
    for length in (1, 7, 9, 24, 30):
        body = request(random, 2, length, NAMES[:2] if name == "distilbert" else NAMES, 512)
        for bucketed, alone in zip(answers(runtime, body, name), answers(exact, body, name), strict=True):
            np.testing.assert_allclose(bucketed, alone, rtol=1e-4, atol=1e-5)
