"""A recipe is a model of Paddle without its weights: an xz-compressed JSON document.

    {"program": {"file": "inference.json", "text": "..."},                            the program as Paddle wrote it (bytes as latin-1)
     "parameters": {"file": "inference.pdiparams", "tensors": [[name, dtype, dims, low, high], ...]}      "file": "" for one file each
     "inputs": [[name, dtype, dims, kind], ...]}                                      kinds as in tests/models/listing.py, and those of looks_like

Weights are drawn by tests/models/recipe.py, between `low` and `high`; or `low` is the list of their elements.
"""

import json
import lzma
import struct

import numpy as np

import listing
import recipe

NUMBERS = {"bool": 0, "int16": 1, "int32": 2, "int64": 3, "float16": 4, "float32": 5, "float64": 6, "uint8": 20, "int8": 21}


def read(path):
    return json.loads(lzma.decompress(path.read_bytes()))


def write(document, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(json.dumps(document, separators=(",", ":")).encode(), preset=9 | lzma.PRESET_EXTREME))


def drawn(model, name, dtype, dims, low, high):
    if isinstance(low, list):
        return np.array(low, dtype).reshape(dims)
    return recipe.draw(f"{model}/{name}", dims, low, high, np.dtype(dtype))


def varint(value):
    out = bytearray()
    value &= 2**64 - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def tensor_bytes(array):
    """As Paddle stores a tensor: versions, no levels, a TensorDesc, the elements."""
    desc = b"\x08" + varint(NUMBERS[str(array.dtype)]) + b"".join(b"\x10" + varint(dim) for dim in array.shape)
    return struct.pack("<IQIi", 0, 0, 0, len(desc)) + desc + np.ascontiguousarray(array).tobytes()


def write_model(document, model, folder):
    """Writes the model as its users have it; returns the path of the program."""
    folder.mkdir(parents=True, exist_ok=True)
    program, parameters = document["program"], document["parameters"]
    path = folder / program["file"]
    path.write_bytes(program["text"].encode("latin-1"))
    tensors = sorted(parameters["tensors"], key=lambda tensor: tensor[0].encode())
    if parameters["file"] and tensors:
        with open(folder / parameters["file"], "wb") as file:
            for tensor in tensors:
                file.write(tensor_bytes(drawn(model, *tensor)))
    elif tensors:
        for tensor in tensors:
            (folder / tensor[0]).write_bytes(tensor_bytes(drawn(model, *tensor)))
    return path


def looks_like(seed, kind, dims, dtype):
    if kind == "sizes":  # of images before they were scaled
        return recipe.draw(seed, dims, 40, 90, np.dtype(dtype))
    if kind.startswith("whole"):
        return np.full(dims, float(kind[5:]), dtype)
    if kind == "factors":
        return recipe.draw(seed, dims, 0.5, 1.5, np.dtype(dtype))
    if kind == "counts":  # of regions: 3 of the first image, 4 of the second
        return np.array([3, 4], dtype)
    return listing.looks_like(seed, kind, dims, np.dtype(dtype))


def inputs_of(document, model, seed="inputs"):
    return {name: looks_like(f"{model}/{seed}/{name}", kind, dims, dtype) for name, dtype, dims, kind in document["inputs"]}
