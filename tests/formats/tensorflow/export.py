#!/usr/bin/env python3
"""Makes the recipes and answers with TensorFlow: export.py [NAME...]

python3.11 -m venv venv && venv/bin/pip install -r deploy/requirements-tensorflow-export.txt
venv/bin/python tests/formats/tensorflow/export.py
"""

import contextlib
import hashlib
import os
import pathlib
import shutil
import sys
import tempfile

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0")
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent / "models")]

import keras
import numpy as np
import tensorflow as tf
import tensorflow_recipe
import tensorflow_zoo
from tensorflow.core.protobuf import saved_model_pb2

import recipe
import stored

INLINE = 64  # elements; larger tensors are drawn


def bounds(name, variable):
    """Where the values of a weight lie, so that signals neither vanish nor grow, and rounding does not either."""
    shape, path = variable.shape, variable.path.split("/")[-1]
    if "kernel" in path and len(shape) > 1:
        fan = np.prod(shape[:-1]) if "depthwise" not in variable.path else np.prod(shape[:-2])
        spread = (3 * 1.6 / fan) ** 0.5
        return -spread, spread
    if path == "gamma" or "scale" in path:
        return (0.3, 0.9) if name.startswith("efficientnet") else (0.7, 1.3)
    if "embeddings" in path:
        return -1.0, 1.0
    return -0.2, 0.2


def draw(name, variable, low, high):
    seed = f"{name}/{variable.path}"
    variable.assign(recipe.draw(seed, list(variable.shape), low, high, np.dtype(variable.dtype)))
    return [seed, float(np.float32(low)), float(np.float32(high))]


def layers_of(model):
    return [layer for layer in model._flatten_layers() if layer is not model]


def fill(name, model, inputs):
    """Draws all weights, then fits the statistics of normalisations; returns {bytes: how they were drawn}."""
    drawn = {}
    floats = [variable for variable in model.variables if variable.dtype == "float32" and variable.shape]
    is_statistic = lambda variable: variable.path.split("/")[-1] in ("moving_mean", "moving_variance")
    statistics = [variable for variable in floats if is_statistic(variable)]
    for variable in floats:
        if not is_statistic(variable):
            drawn[variable.path] = draw(name, variable, *bounds(name, variable))
    if statistics:
        for layer in layers_of(model):
            if isinstance(layer, keras.layers.BatchNormalization):
                layer.momentum = 0.0
            if hasattr(layer, "rate"):
                layer.rate = 0.0
        batch = {key: np.concatenate([value, -value[:, ::-1] if value.ndim > 2 else -value] * 3) for key, value in inputs.items()}
        feed = batch if len(batch) > 1 else next(iter(batch.values()))
        model(feed, training=True)
        for variable in statistics:
            value = variable.numpy()
            mean, spread = float(value.mean()), float(value.std()) * 3**0.5
            low = max(mean - spread, 0.3 * mean) if "variance" in variable.path else mean - spread
            drawn[variable.path] = draw(name, variable, low, max(mean + spread, low + 1e-6))
    feed = inputs if len(inputs) > 1 else next(iter(inputs.values()))
    answer = model(feed)
    kernels = [variable for variable in floats if variable.path.endswith("kernel")]
    if not isinstance(answer, (dict, list)) and kernels:  # logits of a common size
        spread = float(np.std(answer))
        if not 0.1 < spread < 5:
            low, high = drawn[kernels[-1].path][1:]
            drawn[kernels[-1].path] = draw(name, kernels[-1], low / spread, high / spread)
    return {hashlib.sha256(variable.numpy().tobytes()).hexdigest(): drawn[variable.path] for variable in floats}


def stripped(path):
    """What serves: without the operators' definitions, the objects of Python and what saves."""
    model = saved_model_pb2.SavedModel.FromString((path / "saved_model.pb").read_bytes())
    graph = model.meta_graphs[0]
    graph.ClearField("object_graph_def")
    graph.meta_info_def.ClearField("stripped_op_list")
    graph.meta_info_def.ClearField("function_aliases")
    if "serving_default" in graph.signature_def:
        for key in [key for key in graph.signature_def if key == "serve"]:
            del graph.signature_def[key]
    nodes = {node.name: node for node in graph.graph_def.node}
    wanted = [info.name for signature in graph.signature_def.values() for side in (signature.inputs, signature.outputs) for info in side.values()]
    wanted += [graph.saver_def.restore_op_name, *(name for entry in graph.collection_def.values() for name in entry.node_list.value)]
    kept, functions = set(), set()
    while wanted:
        name = wanted.pop().lstrip("^").split(":")[0]
        if name in nodes and name not in kept:
            kept.add(name)
            wanted.extend(nodes[name].input)
    bodies = {function.signature.name: function for function in graph.graph_def.library.function}
    called = [attr for name in kept for attr in nodes[name].attr.values()]
    while called:
        attr = called.pop()
        for function in [attr.func.name] + [each.name for each in attr.list.func]:
            if function in bodies and function not in functions:
                functions.add(function)
                called.extend(each for node in bodies[function].node_def for each in node.attr.values())
    for container, keep in ((graph.graph_def.node, lambda node: node.name in kept), (graph.graph_def.library.function, lambda body: body.signature.name in functions)):
        rest = [each for each in container if keep(each)]
        del container[:]
        container.extend(rest)
    for node in [*graph.graph_def.node, *(node for body in graph.graph_def.library.function for node in body.node_def)]:
        node.ClearField("experimental_debug_info")
        for key in [key for key in node.attr if key.startswith("_") or key == "config_proto"]:
            del node.attr[key]
    for body in graph.graph_def.library.function:
        body.attr.clear()
        body.arg_attr.clear()
        for argument in body.signature.input_arg:
            argument.ClearField("handle_data")
    return model.SerializeToString(deterministic=True)


def tensors_of(path, drawn):
    reader, entries = tf.train.load_checkpoint(str(path / "variables" / "variables")), {}
    for key in reader.get_variable_to_shape_map():
        if key.startswith("_CHECKPOINTABLE") or "table-" in key:
            continue
        value = reader.get_tensor(key)
        entry = {"dtype": value.dtype.name, "shape": list(value.shape)}
        how = drawn.get(hashlib.sha256(value.tobytes()).hexdigest())
        if how:
            entry["uniform"] = how
        else:
            assert value.size <= 4096, (key, value.shape)
            entry["values"] = value.reshape(-1).tolist()
        entries[key] = entry
    return entries


def export(name):
    keras.utils.clear_session()
    tf.random.set_seed(1)
    built, inputs = tensorflow_zoo.MODELS[name]()
    if "*" in inputs:
        inputs = {built.inputs[0].name: inputs["*"]}
    for spec in inputs.values():
        if "words" not in spec and "examples" not in spec:
            spec.setdefault("dtype", "float32")
    values = tensorflow_recipe.inputs_of({"inputs": inputs}, name)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / name
        drawn = {}
        if isinstance(built, keras.Model):
            drawn = fill(name, built, values)
            with contextlib.redirect_stdout(None):
                built.export(str(path), verbose=False)
        elif isinstance(built, tf.Module):
            tf.saved_model.save(built, str(path), signatures=built.concrete)
        else:
            built(str(path))
        loaded = tf.saved_model.load(str(path))
        serve = loaded.signatures["serving_default"]
        answers = {key: value.numpy() for key, value in sorted(serve(**{key: tf.constant(value) for key, value in values.items()}).items())}
        assets = {file.name: file.read_text() for file in (path / "assets").glob("*")} if (path / "assets").exists() else {}
        head = {"tensors": tensors_of(path, drawn), "inputs": inputs, "assets": assets}
        program = stripped(path)
    for key, value in answers.items():
        if np.issubdtype(value.dtype, np.floating) and value.size > 1:
            print(f"  {key} {value.shape} deviation {value.std():.3g}")
    tensorflow_recipe.write(name, head, program)
    stored.write_answers(tensorflow_recipe.answers_of(name), answers)
    print(f"{name}: {tensorflow_recipe.path_of(name).stat().st_size} bytes, answers {tensorflow_recipe.answers_of(name).stat().st_size}", flush=True)


def main():
    failed = []
    for name in sys.argv[1:] or tensorflow_zoo.MODELS:
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
