"""Models that Keras 3 saved, with the answers of Keras.

The weights are drawn again, and h5py writes them as its users have them. Requests run in batches, all of them.
"""

import collections
import io
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.request
import zipfile

import h5py
import keras_recipe
import ml_dtypes
import numpy as np
import pytest
import stored
import structure

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tensorflow"))
import tensorflow_recipe  # noqa: E402

LONG = os.environ.get("SERIN_LONG") == "1"
LARGE = {"vgg16", "resnet50", "resnet50v2", "inception_v3", "inception_resnet_v2", "xception", "densenet121", "nasnet_mobile", "efficientnet_v2_b0",
         "convnext_tiny", "mobilenet_v3_large"}
NARROW = {"mixed_float16": 4e-3, "only_float16": 4e-3, "mixed_bfloat16": 3e-2, "only_bfloat16": 3e-2}  # some steps of their 11 and 8 bits: Keras rounds after each layer
NAMES = keras_recipe.names()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("keras")


def chosen(names):
    return [pytest.param(name, marks=pytest.mark.skipif(name in LARGE and not LONG, reason="large: SERIN_LONG=1")) for name in names]


def inspect(path):
    done = subprocess.run([stored.SERIN, "inspect", path, "--json"], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refusal(path):
    done = subprocess.run([stored.SERIN, "inspect", path], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode not in (0, 139, 134) and done.returncode > 0, done.stderr[-500:]
    return done.stderr


def expected(head, name):
    """{output: array}, in the types that Keras gives them."""
    answers = stored.read_answers(keras_recipe.answers_of(name))
    return {key: value.astype(ml_dtypes.bfloat16) if key in head.get("bfloat16", []) else value for key, value in answers.items()}


@pytest.mark.parametrize("name", chosen(NAMES))
def test_answers_like_keras(name, folder):
    path, head = keras_recipe.materialise(name, folder / name)
    answers = expected(head, name)
    inputs = keras_recipe.inputs_of(head, name)
    error = str(NARROW.get(name, ""))
    errors = {"rtol": error, "atol": error} if error else {}
    stored.assert_agrees(path, stored.write_data_set(folder / name / "data", list(inputs.values()), list(answers.values())), **errors)
    floats = [value for value in stored.read_answers(keras_recipe.answers_of(name)).values() if np.issubdtype(value.dtype, np.floating) and value.size > 1]
    assert not floats or any(stored.SPREAD[0] <= value.std() <= stored.SPREAD[1] for value in floats)


@pytest.mark.parametrize("name", chosen(NAMES))
def test_rows_are_independent(name, folder):
    path, _ = keras_recipe.materialise(name, folder / name)
    report = inspect(path)
    assert report["batchable"], report["why_not"]


@pytest.mark.parametrize("name", ["nested", "mobilenet_v2", "bidirectional"])
def test_weights_in_the_layout_of_hdf5_2(name, folder):
    """Names of large groups lie in heaps then, and not in tables."""
    path, head = keras_recipe.materialise(name, folder / f"{name}_links", "links")
    answers, inputs = stored.read_answers(keras_recipe.answers_of(name)), keras_recipe.inputs_of(head, name)
    stored.assert_agrees(path, stored.write_data_set(folder / f"{name}_links/data", list(inputs.values()), list(answers.values())))


def test_a_server_answers_like_keras(folder):
    """Numbers and texts, over HTTP."""
    head, _ = keras_recipe.read("lookups")
    keras_recipe.materialise("lookups", folder / "served/lookups/1")
    ready = folder / "ready"
    command = [stored.SERIN, "serve", folder / "served", "--port", "0", "--grpc-port", "off", "--metrics-port", "off", "--ready-file", ready]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(600):
                if ready.exists() or process.poll() is not None:
                    break
                time.sleep(0.1)
            url = f"http://127.0.0.1:{json.loads(ready.read_text())['http']}/v2/models/lookups"
            with urllib.request.urlopen(url, timeout=60) as answer:
                assert json.load(answer)["platform"] == "keras_serin"
            tensors = [{"name": key, "shape": list(x.shape), "datatype": "BYTES" if x.dtype == object else "INT64", "data": x.ravel().tolist()}
                       for key, x in keras_recipe.inputs_of(head, "lookups").items()]  # fmt: skip
            with urllib.request.urlopen(f"{url}/infer", json.dumps({"inputs": tensors}).encode(), timeout=60) as answer:
                got = np.array(json.load(answer)["outputs"][0]["data"])
            wanted = next(iter(stored.read_answers(keras_recipe.answers_of("lookups")).values()))
            np.testing.assert_allclose(got, wanted.ravel(), rtol=1e-4, atol=1e-5)
        finally:
            process.kill()


def operators(path):
    done = subprocess.run([stored.SERIN, "inspect", path], capture_output=True, text=True, timeout=100, check=True)
    return collections.Counter(found[2] for line, _ in structure.last_graph(done.stdout) if (found := structure.NODE.match(line)))


@pytest.mark.parametrize("name", chosen(["small_cnn", "mobilenet_v2", "autoencoder", "resnet50"]))
def test_the_graph_of_its_saved_model(name, folder):
    """The same model as a SavedModel ends in the same operators."""
    saved, _ = tensorflow_recipe.materialise(name, folder / f"{name}_saved")
    path, _ = keras_recipe.materialise(name, folder / name)
    assert operators(path) == operators(saved)


def changed(folder, name, change, **weights):
    """A model whose config.json, or whose weights, a function has changed."""
    head, config = keras_recipe.read("sequential")
    document, tensors = json.loads(config), keras_recipe.tensors_of(head)
    change(document, tensors)
    path = folder / name / "model.keras"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(keras_recipe.archive(head, json.dumps(document).encode(), weights.get("file") or keras_recipe.weights_file(tensors)))
    return path


def layer_named(document, class_name):
    return next(layer for layer in document["config"]["layers"] if layer["class_name"] == class_name)


def set_class(document, old, **values):
    layer_named(document, old).update(values)


@pytest.mark.parametrize(("what", "change", "words"), [
    ("lambda", lambda document, _: set_class(document, "Flatten", class_name="Lambda"), "layer 'flatten' (Lambda): is a Lambda, which is Python code"),
    ("custom", lambda document, _: set_class(document, "Flatten", module=None, registered_name="mine>Flatten"), "'flatten' (Flatten, a class that is not of Keras)"),
    ("unknown", lambda document, _: set_class(document, "Flatten", class_name="ConvLSTM2D"), "1 layer is not supported: 'flatten' (ConvLSTM2D)"),
    ("subclass", lambda document, _: document.update(class_name="MyModel"), "is a model of class 'MyModel', which is Python code"),
    ("activation", lambda document, _: layer_named(document, "Dense")["config"].update(activation="fancy"), "layer 'dense' (Dense): activation 'fancy'"),
    ("missing", lambda _, tensors: tensors.pop("layers/dense/vars/1"), "layer 'dense' (Dense): the bias: weight 'layers/dense/vars/1' is missing"),
    ("shape", lambda _, tensors: tensors.update({"layers/dense/vars/1": np.zeros(3, np.float32)}), "weight 'layers/dense/vars/1' is [3], [9] is needed"),
    ("units", lambda document, _: layer_named(document, "Dense")["config"].update(units="many"), "'units' is no integer"),
    ("kernel", lambda document, _: layer_named(document, "Conv2D")["config"].update(kernel_size=[3, 1]), "layer 'conv2d' (Conv2D): the filter: weight"),
    ("pairs", lambda document, _: layer_named(document, "Conv2D")["config"].update(kernel_size=[3]), "'kernel_size' has 1 integers, 2 are needed"),
    ("policy", lambda document, _: layer_named(document, "Dense")["config"].update(
        dtype={"module": "keras", "class_name": "QuantizedDTypePolicy", "config": {"mode": "int8", "source_name": "mixed_bfloat16"}}),
     "layer 'dense' (Dense): dtype policy"),
    ("stride", lambda document, _: layer_named(document, "Conv2D")["config"].update(strides=[0, 0]), "a stride or dilation below 1"),
])  # fmt: skip
def test_what_is_refused_is_named(what, change, words, folder):
    assert words in refusal(changed(folder, f"refused_{what}", change))


@pytest.mark.parametrize(("name", "types"), [
    ("mixed_float16", {"logits": "f16", "shares": "f32", "sums": "f32"}), ("mixed_bfloat16", {"logits": "bf16", "shares": "f32", "sums": "f32"}),
    ("only_float16", {"dense": "f16"}), ("only_bfloat16", {"dense": "bf16"}),
])  # fmt: skip
def test_outputs_have_the_types_of_their_policies(name, types, folder):
    path, _ = keras_recipe.materialise(name, folder / f"{name}_types")
    assert {output["name"]: output["type"].split("[")[0] for output in inspect(path)["outputs"]} == types


def masked(folder, name, *layers):
    """A model of numbers of words with a mask, then these layers."""
    embedding = {"module": "keras.layers", "class_name": "Embedding", "config": {"name": "words", "input_dim": 9, "output_dim": 4, "mask_zero": True}}

    def change(document, tensors):
        document["config"]["layers"] = [document["config"]["layers"][0], embedding, *layers]
        document["config"]["layers"][0]["config"].update(batch_shape=[None, 5], dtype="int32")
        tensors["layers/embedding/vars/0"] = np.zeros((9, 4), np.float32)

    return changed(folder, name, change)


SOFTMAX = {"module": "keras.layers", "class_name": "Softmax", "config": {"name": "shares"}}


@pytest.mark.parametrize(("what", "layer", "words"), [
    ("softmax", SOFTMAX, "layer 'shares' (Softmax): a mask"),
    ("each", {"module": "keras.layers", "class_name": "TimeDistributed", "config": {"name": "each", "layer": SOFTMAX}}, "a mask before a layer 'Softmax' in it"),
    ("stateful", {"module": "keras.layers", "class_name": "LSTM", "config": {"name": "lstm", "units": 3, "stateful": True}}, "layer 'lstm' (LSTM): stateful"),
])  # fmt: skip
def test_masks_that_are_refused_are_named(what, layer, words, folder):
    assert words in refusal(masked(folder, f"masked_{what}", layer))


def test_a_masked_row_has_the_answer_of_its_words_alone(folder):
    """Words with gaps between them are the same sequence, so an LSTM gives the same for both, and exactly zero for none."""
    path, _ = keras_recipe.materialise("masked_reviews", folder / "gaps")
    rows = np.array([[5, 7, 2, 0, 0, 0], [0, 5, 0, 7, 0, 2], [0, 0, 0, 5, 7, 2], [0, 0, 0, 0, 0, 0]], np.int32)
    bias = keras_recipe.tensors_of(keras_recipe.read("masked_reviews")[0])["layers/dense/vars/1"]
    np.savez(folder / "gaps/x.npz", x=rows)
    done = subprocess.run([stored.SERIN, "predict", path, folder / "gaps/x.npz", folder / "gaps/y.npz"], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    with np.load(folder / "gaps/y.npz") as file:
        answers = next(file[name] for name in file.files if np.issubdtype(file[name].dtype, np.floating)).ravel()
    np.testing.assert_array_equal(answers[:2], answers[1:3])
    assert answers[3] == bias and answers[0] != bias


@pytest.mark.parametrize(("what", "options", "words"), [
    ("chunks", {"chunks": True}, "is stored in chunks"),
    ("compressed", {"compression": "gzip"}, "is stored in chunks"),
    ("big_endian", {"dtype": ">f4"}, "has a type that is no number of a little-endian machine"),
])  # fmt: skip
def test_m9_weights_that_keras_does_not_write(what, options, words, folder):
    head, _ = keras_recipe.read("sequential")
    tensors, stream = keras_recipe.tensors_of(head), io.BytesIO()
    with h5py.File(stream, "w") as file:
        for path, value in tensors.items():
            file.create_dataset(path, data=value, **(options if value.ndim > 1 else {}))
    assert words in refusal(changed(folder, f"weights_{what}", lambda *_: None, file=stream.getvalue()))


def test_m2_a_file_that_is_cut_off_anywhere(folder):
    path, _ = keras_recipe.materialise("sequential_built_later", folder / "cut")
    whole = path.read_bytes()
    for size in [0, 1, 4, 30, 100, *range(200, len(whole), max(1, len(whole) // 40)), len(whole) - 1]:
        path.write_bytes(whole[:size])
        assert "model.keras" in refusal(path)


def test_m3_other_archives(folder):
    path = folder / "other.keras"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("readme.txt", "no model")
    assert "is a zip archive, but not of Keras" in refusal(path)
    head, config = keras_recipe.read("sequential_built_later")
    path.write_bytes(keras_recipe.archive(head, config, None))
    assert "has no 'model.weights.h5'" in refusal(path)
    path.write_bytes(keras_recipe.archive({**head, "metadata": {"keras_version": "2.15.0"}}, config, b""))
    assert "was saved by Keras 2.15.0: load and save it with Keras 3" in refusal(path)
    path.write_bytes(keras_recipe.archive(head, config, b"\x89HDF\r\n\x1a\n"))
    assert "model.weights.h5: HDF5" in refusal(path)
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    assert "Keras model (HDF5)" in refusal(path)
