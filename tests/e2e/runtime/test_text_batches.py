"""Models of texts share batches where their rows are proven independent: whoever rides along, the answer is the one that a request has alone."""

import concurrent.futures
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from conftest import ON_FREE_PORTS, ROOT, Process, call

sys.path += [str(ROOT / "tests/models"), str(ROOT / "tests/formats/keras")]
import keras_recipe  # noqa: E402

WORDS = [f"word {i}" for i in range(40)]
WIDTH = 512


def save(path, graph, *domains):
    path.parent.mkdir(parents=True)
    opsets = [helper.make_opsetid("", 20), *[helper.make_opsetid(name, version) for name, version in domains]]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)


def lookup(path):
    """A text is looked up, its row of a table goes through a layer that takes a while; an unknown text has no row."""
    values = np.random.default_rng(7)
    table = numpy_helper.from_array(values.normal(size=(len(WORDS), WIDTH)).astype(np.float32), "table")
    weights = numpy_helper.from_array((values.normal(size=(WIDTH, WIDTH)) / WIDTH**0.5).astype(np.float32), "weights")
    nodes = [
        helper.make_node("LabelEncoder", ["text"], ["id"], domain="ai.onnx.ml", keys_strings=WORDS, values_int64s=list(range(len(WORDS))), default_int64=999),
        helper.make_node("Gather", ["table", "id"], ["row"]),
        helper.make_node("MatMul", ["row", "weights"], ["layer"]),
        helper.make_node("Tanh", ["layer"], ["vector"]),
        helper.make_node("StringConcat", ["text", "mark"], ["label"]),
    ]
    graph = helper.make_graph(nodes, "lookup", [helper.make_tensor_value_info("text", TensorProto.STRING, ["n"])],
                              [helper.make_tensor_value_info("vector", TensorProto.FLOAT, ["n", WIDTH]), helper.make_tensor_value_info("label", TensorProto.STRING, ["n"])],
                              [table, weights, numpy_helper.from_array(np.array(["!"], object), "mark")])  # fmt: skip
    save(path, graph, ("ai.onnx.ml", 4))


def lengths(path):
    """Rows of words, whose number differs from request to request."""
    node = helper.make_node("StringConcat", ["words", "words"], ["twice"])
    graph = helper.make_graph([node], "lengths", [helper.make_tensor_value_info("words", TensorProto.STRING, ["n", "length"])],
                              [helper.make_tensor_value_info("twice", TensorProto.STRING, ["n", "length"])])  # fmt: skip
    save(path, graph)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    models = tmp_path_factory.mktemp("models")
    lookup(models / "lookup/1/model.onnx")
    lengths(models / "lengths/1/model.onnx")
    (models / "lookup/serin.yaml").write_text("max_batch: 16\n")
    keras_recipe.materialise("counted_words", models / "counted/1")
    (models / "counted/serin.yaml").write_text("max_batch: 16\nmax_queue_delay: 2ms\n")
    process = Process(tmp_path_factory.mktemp("logs"), "serve", "--models", models, "--threads", "1", *ON_FREE_PORTS)
    yield process
    assert process.end() == 0


def ask(server, model, name, texts, shape=None):
    body = {"inputs": [{"name": name, "datatype": "BYTES", "shape": shape or [len(texts)], "data": texts}]}
    return call(f"{server.url}/v2/models/{model}/infer", body)


def outputs(answer):
    assert answer.status == 200, answer.body
    return {output["name"]: (output["shape"], output["data"]) for output in answer.json["outputs"]}


def assert_same(got, wanted):
    assert got["label"] == wanted["label"]
    assert got["vector"][0] == wanted["vector"][0]
    np.testing.assert_allclose(got["vector"][1], wanted["vector"][1], rtol=1e-5, atol=1e-5)


def batches(server, model):
    return server.metric("nv_inference_exec_count", model=model), server.metric("nv_inference_count", model=model)


def test_metadata_says_that_requests_share_batches(server):
    assert call(f"{server.url}/v2/models/lookup").json["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": [-1]}]
    assert "batching_why" not in call(f"{server.url}/v2/models/lookup/config").body.decode()


def test_many_clients_are_answered_as_each_alone(server):
    requests = [WORDS[i % 40 : i % 40 + 1 + i % 3] for i in range(200)]
    alone = {tuple(texts): outputs(ask(server, "lookup", "text", texts)) for texts in requests}
    ran, rows = batches(server, "lookup")
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda texts: outputs(ask(server, "lookup", "text", texts)), requests))
    for texts, got in zip(requests, answers, strict=True):
        assert_same(got, alone[tuple(texts)])
    ran, rows = batches(server, "lookup")[0] - ran, batches(server, "lookup")[1] - rows
    assert rows == sum(len(texts) for texts in requests)
    assert ran < len(requests), "no two requests shared a run"


def test_p21_a_text_that_nobody_knows_fails_its_request_alone(server):
    requests = [[WORDS[i % 40]] if i % 4 else ["nobody knows this"] for i in range(120)]
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda texts: ask(server, "lookup", "text", texts), requests))
    for i, answer in enumerate(answers):
        if i % 4:
            assert outputs(answer)["label"] == ([1], [f"{requests[i][0]}!"])
        else:
            assert answer.status == 400 and "999" in answer.error, answer.body


def test_p8_more_rows_than_a_run_takes(server):
    texts = (WORDS * 3)[:101]
    whole = outputs(ask(server, "lookup", "text", texts))
    assert whole["label"] == ([101], [f"{text}!" for text in texts])
    for row in (0, 15, 16, 100):
        one = outputs(ask(server, "lookup", "text", [texts[row]]))
        np.testing.assert_allclose(whole["vector"][1][row * WIDTH : (row + 1) * WIDTH], one["vector"][1], rtol=1e-5, atol=1e-5)


def test_p7_rows_of_other_lengths_do_not_meet(server):
    requests = [[f"{i} {k}" for k in range(1 + i % 3)] for i in range(90)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda texts: outputs(ask(server, "lengths", "words", texts, [1, len(texts)])), requests))
    for texts, got in zip(requests, answers, strict=True):
        assert got["twice"] == ([1, len(texts)], [text + text for text in texts])


def test_p8_no_rows_at_all(server):
    answer = ask(server, "lookup", "text", [], [0])
    assert answer.status == 400 and "0 rows" in answer.error


def ask_counts(server, text, colours):
    inputs = [{"name": "x", "datatype": "BYTES", "shape": [1, 1], "data": [text]}, {"name": "word", "datatype": "BYTES", "shape": [1, 3], "data": colours}]
    return outputs(call(f"{server.url}/v2/models/counted/infer", {"inputs": inputs}))


def test_counts_and_multi_hot_vectors_of_many_clients_are_those_of_each_alone(server):
    """Texts of 0 to 12 words share runs, whose tensors are as wide as the longest of them: no text counts the words of another."""
    known = ["the", "food", "was", "great", "bad", "service", "unheard"]
    texts = [" ".join(known[(i + k * (1 + i % 3)) % len(known)] for k in range(i % 13)) for i in range(60)]
    requests = [(text, [("red", "blue", "", "grey")[(i + k) % 4] for k in range(3)]) for i, text in enumerate(texts)]
    alone = [ask_counts(server, *request) for request in requests]
    assert alone[7]["hot"][0] == [1, 12] and set(alone[7]["hot"][1]) == {0, 1} and sum(alone[12]["count"][1]) == 12 and sum(alone[0]["count"][1]) == 0
    ran, rows = batches(server, "counted")
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda request: ask_counts(server, *request), requests * 4))
    assert answers == alone * 4
    ran, rows = batches(server, "counted")[0] - ran, batches(server, "counted")[1] - rows
    assert rows == 4 * len(requests) and ran < rows, "no two requests shared a run"
