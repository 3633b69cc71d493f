"""SavedModels as TensorFlow Serving serves them: with examples that the model parses, for classify, regress and predict, and with several signatures."""

import base64
import json
import sys

import numpy as np
import pytest

from conftest import ON_FREE_PORTS, ROOT, Process, call, run_client, serin

sys.path += [str(ROOT / folder) for folder in ("tests/formats", "tests/formats/tensorflow", "tests/models")]

import stored
import tensorflow_recipe

PEOPLE = tensorflow_recipe.read("feature_columns")[0]["inputs"]["inputs"]["examples"]
DENSE = [{key: row[key] for key in ("age", "city", "vector") if key in row} for row in PEOPLE]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for model, recipe in {"columns": "feature_columns", "dense": "dense_examples", "several": "several_signatures", "chosen": "several_signatures"}.items():
        tensorflow_recipe.materialise(recipe, folder / model / "1")
    (folder / "chosen/serin.yaml").write_text("signatures: [embed, serving_default]\n")
    process = Process(tmp_path_factory.mktemp("logs"), "serve", "--models", folder, *ON_FREE_PORTS)
    yield process
    assert process.end() == 0


def test_tools_choose_a_signature(tmp_path):
    tensorflow_recipe.materialise("several_signatures", tmp_path / "1")
    standard = json.loads(serin("inspect", tmp_path / "1", "--json").stdout)
    assert standard["signature"] == "serving_default" and "embed" in standard["other_signatures"]
    embed = json.loads(serin("inspect", tmp_path / "1", "--json", "--signature", "embed").stdout)
    assert embed["signature"] == "embed" and embed["outputs"] != standard["outputs"]
    assert "signature embed; --signature " in serin("inspect", tmp_path / "1", "--signature", "embed").stdout
    assert serin("bench", tmp_path / "1", "--signature", "embed", "--seconds", "0.1").returncode == 0
    refused = serin("inspect", tmp_path / "1", "--signature", "embedding")
    assert refused.returncode == 3 and "has no signature 'embedding'; it has " in refused.stderr
    refused = serin("inspect", ROOT / "models/digits/1/model.onnx", "--signature", "embed")
    assert refused.returncode == 3 and "signature 'embed': only a SavedModel has signatures" in refused.stderr


@pytest.fixture(scope="module")
def results(server):
    return run_client("tfserving_examples.py", f"127.0.0.1:{server.ports['grpc']}", json.dumps(PEOPLE))


def answers_of(name):
    return stored.read_answers(tensorflow_recipe.answers_of(name))


SCORES = answers_of("feature_columns")["scores"]  # of TensorFlow


def classes(result):
    return [[(each["label"], each["score"]) for each in row["classes"]] for row in result["classifications"]]


def assert_classified(result, scores):
    for row, expected in zip(classes(result), scores, strict=True):
        assert [label for label, _ in row] == ["0", "1"]
        np.testing.assert_allclose([score for _, score in row], expected, rtol=1e-4, atol=1e-5)


def assert_regressed(result, values):
    np.testing.assert_allclose([row["value"] for row in result["regressions"]], values, rtol=1e-4, atol=1e-5)


def test_classify_feeds_serialized_examples(results):
    assert_classified(results["classify"]["result"], SCORES)
    assert results["classify"]["modelSpec"] == {"name": "columns", "version": "1", "signatureName": "serving_default"}
    assert results["classify_by_method"] == results["classify"]
    assert results["context"] == results["without_context"]


def test_regress_takes_its_own_signature(results):
    assert_regressed(results["regress"]["result"], SCORES[:, 1])
    assert results["regress"]["modelSpec"]["signatureName"] == "regression"


def test_several_tasks_have_a_signature_each(results):
    first, second, third = results["several"]["results"]
    assert_classified(first["classificationResult"], SCORES)
    assert_regressed(second["regressionResult"], SCORES[:, 1])
    assert second["modelSpec"]["signatureName"] == "regression" and first == third


def test_predict_takes_serialized_examples(results):
    assert results["predict"]["signature"] == "predict"
    np.testing.assert_allclose(results["predict"]["outputs"]["logistic"], SCORES[:, 1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(results["predict_classes"]["outputs"]["scores"], SCORES.ravel(), rtol=1e-4, atol=1e-5)


def test_metadata_lists_the_signatures_that_are_served(results):
    assert results["metadata"] == {
        "serving_default": ["tensorflow/serving/classify", ["inputs"], ["classes", "scores"]],
        "regression": ["tensorflow/serving/regress", ["inputs"], ["outputs"]],
        "predict": ["tensorflow/serving/predict", ["examples"], ["logistic", "logits"]]}  # fmt: skip
    predict = "tensorflow/serving/predict"
    standard, embed = [predict, ["x"], ["scores"]], [predict, ["x"], ["embedding"]]
    assert results["several_metadata"] == {"serving_default": standard, "again": standard, "embed": embed}
    assert results["chosen_metadata"] == {"serving_default": standard, "embed": embed}


def test_a_request_chooses_a_signature(results):
    assert results["standard"]["outputs"] == results["again"]["outputs"] == results["chosen_other"]["outputs"]
    assert results["embed"]["outputs"] == results["chosen"]["outputs"] and results["chosen"]["signature"] == "embed"
    assert len(results["embed"]["outputs"]["embedding"]) == 24 and len(results["standard"]["outputs"]["scores"]) == 9


@pytest.mark.parametrize("what, words", [
    ("wrong_method", "Expected regression signature method_name to be tensorflow/serving/regress. Was: tensorflow/serving/classify"),
    ("wrong_method_in_several", "Expected regression signature method_name"),
    ("no_signature", 'Serving signature name: "nothing" not found in signature def; there is "serving_default, predict, regression"'),
    ("left_out", '"reads_files" not found'),
    ("not_chosen", '"again" not found in signature def; there is "embed, serving_default"'),
    ("empty", "Input is empty"),
    ("kind", "element 1 has feature 'age' with integers, the model takes floats"),
    ("several_kind", "element 0 has feature 'vector' with 1 values, the model takes 3"),
    ("damaged", "element 1 is no tf.Example, or a damaged one"),
])  # fmt: skip
def test_errors_say_what_is_wrong(results, what, words):
    assert results[what][0] == "INVALID_ARGUMENT" and words in results[what][1], results[what]


def ask(server, path, body):
    return call(f"{server.url}/v1/models/{path}", body)


def test_rest_writes_examples_of_json(server):
    answer = ask(server, "columns:classify", {"examples": PEOPLE})
    assert answer.status == 200, answer.body
    np.testing.assert_allclose([[score for _, score in row] for row in answer.json["results"]], SCORES, rtol=1e-4, atol=1e-5)
    assert [label for label, _ in answer.json["results"][0]] == ["0", "1"]
    regress = ask(server, "columns:regress", {"signature_name": "regression", "context": {"city": ["Xi'an"]}, "examples": PEOPLE[1:2]})
    np.testing.assert_allclose(regress.json["results"], SCORES[1:2, 1], rtol=1e-4, atol=1e-5)
    dense = ask(server, "dense:classify", {"examples": DENSE})
    np.testing.assert_allclose([[score for _, score in row] for row in dense.json["results"]], answers_of("dense_examples")["scores"], rtol=1e-4, atol=1e-5)


def test_rest_takes_serialized_examples(server):
    rows = [base64.b64encode(tensorflow_recipe.example_of(row)).decode() for row in PEOPLE]
    answer = ask(server, "columns:predict", {"signature_name": "predict", "instances": [{"b64": row} for row in rows]})
    assert answer.status == 200, answer.body
    np.testing.assert_allclose([row["logistic"] for row in answer.json["predictions"]], SCORES[:, 1:], rtol=1e-4, atol=1e-5)


def test_rest_chooses_a_signature(server):
    rows = [[0.1] * 6]
    embed = ask(server, "several:predict", {"signature_name": "embed", "inputs": {"x": rows}}).json["outputs"]
    assert np.shape(embed) == (1, 8) and ask(server, "chosen:predict", {"inputs": {"x": rows}}).json["outputs"] == embed
    assert np.shape(ask(server, "several:predict", {"instances": rows}).json["predictions"]) == (1, 3)
    refused = ask(server, "several:predict", {"signature_name": "none", "inputs": {"x": rows}})
    assert refused.status == 400 and '"none" not found in signature def; there is "serving_default, again, embed"' in refused.error


def test_a_signature_that_cannot_be_served_is_left_out_with_a_warning(server):
    assert "signature 'reads_files' is not served" in server.log


def test_a_signature_with_two_names_is_loaded_once(server):
    assert "model 'several' version 1: signature 'again' is another name of 'serving_default'" in server.log
