"""A repository of models as PaddleOCR, PaddleDetection and PaddleNLP name their files: each is found, loaded and answers over HTTP as in Paddle."""

import json
import pathlib
import subprocess
import time
import urllib.request

import numpy as np
import pytest

import paddle_recipe
import stored

HERE = pathlib.Path(__file__).resolve().parent
DATATYPES = {"float32": "FP32", "int64": "INT64", "int32": "INT32"}
LAYOUTS = {  # folder: recipe, program, parameters
    "ocr": ("lenet.pir", "inference.json", "inference.pdiparams"),
    "other_name": ("lenet.pir", "rec.json", "rec.pdiparams"),
    "clas": ("lenet.desc", "inference.pdmodel", "inference.pdiparams"),
    "detection": ("lenet.desc", "__model__", "__params__"),
    "separate": ("lenet.desc", "__model__", ""),
    "nlp": ("bert.desc", "model.pdmodel", "model.pdiparams"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serving")
    for name, (recipe, program, parameters) in LAYOUTS.items():
        document = paddle_recipe.read(HERE / f"recipes/{recipe}.xz")
        document["program"]["file"], document["parameters"]["file"] = program, parameters
        paddle_recipe.write_model(document, recipe.split(".")[0], folder / f"models/{name}/1")
    (folder / "models/weights_only/1").mkdir(parents=True)
    (folder / "models/weights_only/1/model.pdparams").write_bytes(b"\x80\x04}q\x00.")
    ready = folder / "ready"
    command = [stored.SERIN, "serve", folder / "models", "--port", "0", "--grpc-port", "off", "--metrics-port", "off", "--ready-file", ready]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(600):
                if ready.exists() or process.poll() is not None:
                    break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{json.loads(ready.read_text())['http']}"
        finally:
            process.kill()


def ask(url, body=None):
    with urllib.request.urlopen(url, None if body is None else json.dumps(body).encode(), timeout=60) as answer:
        return json.load(answer)


@pytest.mark.parametrize("name", LAYOUTS)
def test_answers_over_http(name, server):
    recipe = LAYOUTS[name][0]
    inputs = paddle_recipe.inputs_of(paddle_recipe.read(HERE / f"recipes/{recipe}.xz"), recipe.split(".")[0])
    tensors = [{"name": key, "shape": list(x.shape), "datatype": DATATYPES[str(x.dtype)], "data": x.ravel().tolist()} for key, x in inputs.items()]
    assert ask(f"{server}/v2/models/{name}")["platform"] == "paddle_serin"
    outputs = {output["name"]: output for output in ask(f"{server}/v2/models/{name}/infer", {"inputs": tensors})["outputs"]}
    for key, expected in stored.read_answers(HERE / f"answers/{recipe}.xz").items():
        actual = np.array(outputs[key]["data"]).reshape(outputs[key]["shape"])
        assert np.all(np.abs(actual - expected) <= 1e-4 * np.abs(expected) + 1e-5 * np.abs(expected).max())


def test_pickled_weights_say_what_to_export(server):
    index = {model["name"]: model for model in ask(f"{server}/v2/repository/index", {})}
    assert index["weights_only"]["state"] == "UNAVAILABLE"
    assert "paddle.jit.save" in index["weights_only"]["reason"]
