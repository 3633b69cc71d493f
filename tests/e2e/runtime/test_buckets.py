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


def bucketed(serve, repository, name, settings, path=None):
    """(the model as it is, the model with these settings), the latter's lengths rounded up."""
    models = repository({f"{name}/1": path or materialise(name)})
    exact = serve(models)
    (models / f"{name}/serin.yaml").write_text(settings + "instances: 1\n")
    runtime = serve(models)
    assert "sizes of 'seq' are rounded up" in runtime.log
    return exact, runtime


@pytest.mark.parametrize("low", [None, -10000], ids=["bool", "classic"])
def test_minilm_answers_as_the_next_bucket_what_it_answers_alone(serve, repository, tmp_path, low):
    path = classic(materialise("minilm"), low, tmp_path / "classic.onnx") if low else None
    exact, runtime = bucketed(serve, repository, "minilm", "max_batch: 2\nbuckets: {seq: [16, 40]}\n", path)
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


def check_as_alone(runtime, exact, name, lengths, names=NAMES[:2], more=()):
    random = np.random.default_rng(1)
    for length in lengths:
        body = request(random, 2, length, names, 512)
        body["inputs"] += more
        for bucketed, alone in zip(answers(runtime, body, name), answers(exact, body, name), strict=True):
            np.testing.assert_allclose(bucketed, alone, rtol=1e-4, atol=1e-5)


BERTS = ["bert_tiny", "bert_tiny_sdpa", "bert_tiny_dynamo"]
ENCODERS = ["distilbert", "roberta", "xlm_roberta", "camembert", "mpnet", "albert", "electra", "t5_encoder"]


@pytest.mark.parametrize("name", BERTS + ENCODERS)
def test_the_same_of_what_other_exporters_write(serve, repository, name):
    exact, runtime = bucketed(serve, repository, name, "max_batch: 2\nbuckets: {seq: [8, 24]}\n")
    check_as_alone(runtime, exact, name, (1, 7, 9, 24, 30), NAMES if name in BERTS else NAMES[:2])
    assert "rounded up failed" not in runtime.log


def test_what_a_decoder_reads_of_an_encoder(serve, repository):
    exact, runtime = bucketed(serve, repository, "bart", "max_batch: 2\nbuckets: {seq: [8, 24], step: [5]}\n")
    decoded = [{"name": "decoder_input_ids", "datatype": "INT64", "shape": [2, 5], "data": list(range(10))}]
    check_as_alone(runtime, exact, "bart", (1, 7, 9, 24, 30), more=decoded)
    assert "rounded up failed" not in runtime.log


def test_what_looks_beyond_a_table_of_positions_runs_as_it_is(serve, repository):
    """RoBERTa counts its positions from 2 on, and the table has 64: 62 tokens fit, and those behind the end do not."""
    exact, runtime = bucketed(serve, repository, "roberta", "max_batch: 2\nbuckets: {seq: [24, 64]}\nwarmup: false\n")
    check_as_alone(runtime, exact, "roberta", (20,))
    assert "rounded up failed" not in runtime.log
    check_as_alone(runtime, exact, "roberta", (40, 62, 61))
    assert runtime.log.count("rounded up failed, and runs as it is") == 1
    body = request(np.random.default_rng(1), 1, 63, NAMES[:2], 512)
    assert call(f"{runtime.url}/v2/models/roberta/infer", body).status == call(f"{exact.url}/v2/models/roberta/infer", body).status == 400
