#!/usr/bin/env python3
"""Makes the recipes and answers with Keras: export.py [NAME...]

python3.11 -m venv venv && venv/bin/pip install -r deploy/requirements-tensorflow-export.txt
venv/bin/python tests/formats/keras/export.py
"""

import hashlib
import importlib.util
import io
import json
import pathlib
import shutil
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tensorflow"), str(HERE.parent.parent / "models")]
spec = importlib.util.spec_from_file_location("tensorflow_export", HERE.parent / "tensorflow/export.py")
tensorflow_export = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tensorflow_export)

import h5py
import keras
import keras_recipe
import keras_zoo
import numpy as np
import tensorflow as tf

import stored


def tensors_of(archive, drawn):
    entries = {}

    def visit(path, item):
        if not isinstance(item, h5py.Dataset) or path.startswith("optimizer/") or "seed_generator" in path:
            return
        value = item[()]
        if item.attrs.get("dtype") == "bfloat16":  # which h5py keeps as two bytes of any kind
            entries[path] = {"dtype": "bfloat16", "shape": list(value.shape), "values": value.view(np.uint16).reshape(-1).tolist()}
            return
        entry = {"dtype": value.dtype.name, "shape": list(value.shape)}
        how = drawn.get(hashlib.sha256(value.tobytes()).hexdigest())
        if how:
            entry["uniform"] = how
        else:
            assert value.size <= 4096, (path, value.shape)
            entry["values"] = value.reshape(-1).tolist()
        entries[path] = entry

    with h5py.File(io.BytesIO(archive.read("model.weights.h5"))) as file:
        file.visititems(visit)
    return entries


def slim(value):
    """What says how to train is no part of a model that serves."""
    if isinstance(value, dict):
        unused = ("compile_config", "build_config", "kernel_initializer", "bias_initializer", "recurrent_initializer", "kernel_regularizer", "bias_regularizer",
                  "recurrent_regularizer", "activity_regularizer", "kernel_constraint", "bias_constraint", "recurrent_constraint", "beta_initializer",
                  "gamma_initializer", "moving_mean_initializer", "moving_variance_initializer", "beta_regularizer", "gamma_regularizer", "beta_constraint",
                  "gamma_constraint", "embeddings_initializer", "embeddings_regularizer", "embeddings_constraint", "depthwise_initializer", "pointwise_initializer",
                  "depthwise_regularizer", "pointwise_regularizer", "depthwise_constraint", "pointwise_constraint")  # fmt: skip
        return {key: slim(each) for key, each in value.items() if key not in unused}
    return [slim(each) for each in value] if isinstance(value, list) else value


def export(name):
    keras.utils.clear_session()
    tf.random.set_seed(1)
    built, inputs = keras_zoo.MODELS[name]()
    if "*" in inputs:
        inputs = {names_of_inputs(built)[0]: inputs["*"]}
    order = names_of_inputs(built)
    inputs = {key: inputs[key] for key in sorted(inputs, key=order.index)}
    for spec in inputs.values():
        if "words" not in spec:
            spec.setdefault("dtype", "float32")
    values = keras_recipe.inputs_of({"inputs": inputs}, name)
    feed = {key: tf.constant(value) for key, value in values.items()} if any(value.dtype == object for value in values.values()) else values
    drawn = tensorflow_export.fill(name, built, feed)
    for layer in built._flatten_layers():
        if isinstance(layer, keras.layers.Normalization) and hasattr(layer, "adapt_variance"):
            layer.adapt_variance.assign(np.abs(layer.adapt_variance.numpy()) + 6.0)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.keras"
        built.save(path)
        built = keras.models.load_model(path)  # some layers read their statistics when they are loaded
        answer = tf.function(lambda given: built(given))(feed if len(feed) > 1 else feed[order[0]])  # as model.export runs it
        if isinstance(answer, dict):
            answers = {key: np.asarray(answer[key]) for key in keras_order(built, answer)}
        else:
            answers = {f"output_{i}": np.asarray(value) for i, value in enumerate(answer if isinstance(answer, (list, tuple)) else [answer])}
        with zipfile.ZipFile(path) as archive:
            config = json.dumps(slim(json.loads(archive.read("config.json"))), separators=(",", ":")).encode()
            assets = {entry: archive.read(entry).decode() for entry in archive.namelist() if entry.startswith("assets/") and not entry.endswith("/")}
            metadata = {"keras_version": json.loads(archive.read("metadata.json"))["keras_version"]}
            head = {"tensors": tensors_of(archive, drawn), "inputs": inputs, "assets": assets, "metadata": metadata}
    bfloats = [key for key, value in answers.items() if value.dtype.name == "bfloat16"]
    if bfloats:
        head["bfloat16"] = bfloats
        answers.update({key: answers[key].astype(np.float32) for key in bfloats})
    for key, value in answers.items():
        if np.issubdtype(value.dtype, np.floating) and value.size > 1:
            print(f"  {key} {value.shape} deviation {value.std():.3g}")
    keras_recipe.write(name, head, config)
    stored.write_answers(keras_recipe.answers_of(name), answers)
    print(f"{name}: {keras_recipe.path_of(name).stat().st_size} bytes, answers {keras_recipe.answers_of(name).stat().st_size}", flush=True)


def names_of_inputs(built):
    """In the order of config.json."""
    config = built.get_config()
    if "input_layers" not in config:
        return [tensor.name for tensor in built.inputs]
    found = config["input_layers"]
    if isinstance(found, dict):
        return [place[0] for place in found.values()]
    return [found[0]] if isinstance(found[0], str) else [place[0] for place in found]


def keras_order(built, answer):
    """Keys in the order in which config.json lists the outputs."""
    return list(built.get_config()["output_layers"]) if isinstance(built.get_config()["output_layers"], dict) else list(answer)


def main():
    failed = []
    for name in sys.argv[1:] or keras_zoo.MODELS:
        try:
            export(name)
        except Exception as error:
            failed.append(name)
            print(f"{name}: FAILED {type(error).__name__}: {str(error)[:300]}", flush=True)
    shutil.rmtree(HERE / "__pycache__", ignore_errors=True)
    if failed:
        sys.exit(f"failed: {' '.join(failed)}")


if __name__ == "__main__":
    main()
