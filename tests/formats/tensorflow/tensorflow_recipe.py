"""A recipe is a SavedModel without its weights: one line of JSON, then saved_model.pb; compressed with xz.

    {"tensors": {name: {"dtype", "shape", "uniform": [seed, low, high]} or {..., "values": [...]}},
     "inputs": {name: {"dtype", "shape", "low", "high"} or {"shape", "words"} or {"shape", "examples"}}, "assets": {file: text}}

Uniform tensors are drawn again with tests/models/recipe.py, so that they are the same everywhere.
"""

import json
import lzma
import pathlib
import struct

import numpy as np
import tensorflow_bundle

import recipe

HERE = pathlib.Path(__file__).resolve().parent


def path_of(name):
    return HERE / "recipes" / f"{name}.xz"


def answers_of(name):
    return HERE / "answers" / f"{name}.npz.xz"


def names():
    return sorted(path.stem for path in (HERE / "recipes").glob("*.xz"))


def write(name, head, program):
    path_of(name).parent.mkdir(exist_ok=True)
    path_of(name).write_bytes(lzma.compress(json.dumps(head, sort_keys=True).encode() + b"\n" + program, preset=9 | lzma.PRESET_EXTREME))


def read(name):
    head, program = lzma.decompress(path_of(name).read_bytes()).split(b"\n", 1)
    return json.loads(head), program


def tensor_of(entry):
    if "uniform" in entry:
        seed, low, high = entry["uniform"]
        return recipe.draw(seed, entry["shape"], low, high, np.dtype(entry["dtype"]))
    return np.array(entry["values"], entry["dtype"]).reshape(entry["shape"])


def example_of(features):
    """A serialized tf.Example of {name: [numbers or texts]}; an empty list is a feature without a kind."""
    entries = b""
    for key, values in features.items():
        body = b""
        if values and isinstance(values[0], str):
            body = tensorflow_bundle.message(1, b"".join(tensorflow_bundle.message(1, value.encode()) for value in values))
        elif values and isinstance(values[0], float):
            body = tensorflow_bundle.message(2, tensorflow_bundle.message(1, struct.pack(f"<{len(values)}f", *values)))
        elif values:
            body = tensorflow_bundle.message(3, tensorflow_bundle.message(1, b"".join(tensorflow_bundle.varint(value) for value in values)))
        entries += tensorflow_bundle.message(1, tensorflow_bundle.message(1, key.encode()) + tensorflow_bundle.message(2, body))
    return tensorflow_bundle.message(1, entries)


def inputs_of(head, name):
    """{input: array}, in the order of the model's inputs."""
    made = {}
    for key, spec in sorted(head["inputs"].items()):
        seed = f"{name}/{key}"
        if "examples" in spec:
            made[key] = np.array([example_of(features) for features in spec["examples"]], object).reshape(spec["shape"])
        elif "words" in spec:
            places = recipe.draw(seed, spec["shape"], 0, len(spec["words"]) - 0.5).astype(int).clip(0, len(spec["words"]) - 1)
            made[key] = np.array(spec["words"], object)[places]
        elif spec["dtype"] == "bool":
            made[key] = recipe.draw(seed, spec["shape"], 0, 1) < 0.5
        else:
            made[key] = recipe.draw(seed, spec["shape"], spec["low"], spec["high"], np.dtype(spec["dtype"]))
    return made


def materialise(name, folder):
    """Writes the model below a folder; returns saved_model.pb and the head of the recipe."""
    head, program = read(name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "saved_model.pb").write_bytes(program)
    tensorflow_bundle.write(folder, {key: tensor_of(entry) for key, entry in head["tensors"].items()})
    for file, text in head.get("assets", {}).items():
        (folder / "assets").mkdir(exist_ok=True)
        (folder / "assets" / file).write_text(text)
    return folder / "saved_model.pb", head
