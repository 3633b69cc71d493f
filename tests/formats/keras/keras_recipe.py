"""A recipe is a .keras file without its weights: one line of JSON, then config.json; compressed with xz.

    {"tensors": {path: {"dtype", "shape", "uniform": [seed, low, high]} or {..., "values": [...]}},  those of bfloat16 as their bits
     "inputs": {name: {"dtype", "shape", "low", "high"} or {"shape", "words"}}, "assets": {path: text}, "metadata": {...},
     "bfloat16": [outputs of that type, which their answers are not]}

Uniform tensors are drawn again with tests/models/recipe.py. h5py writes them, in the layout of HDF5 1 or of HDF5 2.
"""

import io
import json
import lzma
import pathlib
import zipfile

import h5py
import numpy as np

import recipe

HERE = pathlib.Path(__file__).resolve().parent
LAYOUTS = {"tables": "earliest", "links": "latest"}


def path_of(name):
    return HERE / "recipes" / f"{name}.xz"


def answers_of(name):
    return HERE / "answers" / f"{name}.npz.xz"


def names():
    return sorted(path.stem for path in (HERE / "recipes").glob("*.xz"))


def write(name, head, config):
    path_of(name).parent.mkdir(exist_ok=True)
    path_of(name).write_bytes(lzma.compress(json.dumps(head).encode() + b"\n" + config, preset=9 | lzma.PRESET_EXTREME))


def read(name):
    head, config = lzma.decompress(path_of(name).read_bytes()).split(b"\n", 1)
    return json.loads(head), config


def tensor_of(entry):
    if "uniform" in entry:
        seed, low, high = entry["uniform"]
        return recipe.draw(seed, entry["shape"], low, high, np.dtype(entry["dtype"]))
    if entry["dtype"] == "bfloat16":
        return np.array(entry["values"], np.uint16).view("V2").reshape(entry["shape"])
    return np.array(entry["values"], entry["dtype"]).reshape(entry["shape"])


def weights_file(tensors, layout="tables"):
    """The bytes of model.weights.h5, of {path: array}."""
    stream = io.BytesIO()
    with h5py.File(stream, "w", libver=LAYOUTS[layout]) as file:
        for path, value in tensors.items():
            file.create_dataset(path, data=value).attrs.update({"dtype": "bfloat16"} if value.dtype.kind == "V" else {})
    return stream.getvalue()


def archive(head, config, weights):
    """The bytes of the file; `weights`: of model.weights.h5, or None."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("metadata.json", json.dumps(head["metadata"]))
        file.writestr("config.json", config)
        for path, text in head.get("assets", {}).items():
            file.writestr(path, text)
        if weights is not None:
            file.writestr("model.weights.h5", weights)
    return stream.getvalue()


def tensors_of(head):
    return {path: tensor_of(entry) for path, entry in head["tensors"].items()}


def materialise(name, folder, layout="tables"):
    """Writes the model below a folder; returns its path and the head of the recipe."""
    head, config = read(name)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.keras"
    path.write_bytes(archive(head, config, weights_file(tensors_of(head), layout)))
    return path, head


def inputs_of(head, name):
    """{input: array}, in the order of the model's inputs."""
    made = {}
    for key, spec in head["inputs"].items():
        seed = f"{name}/{key}"
        if "words" in spec:
            places = recipe.draw(seed, spec["shape"], 0, len(spec["words"]) - 0.5).astype(int).clip(0, len(spec["words"]) - 1)
            made[key] = np.array(spec["words"], object)[places]
        else:
            made[key] = recipe.draw(seed, spec["shape"], spec["low"], spec["high"], np.dtype(spec["dtype"]))
    return made
