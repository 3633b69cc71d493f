"""Which tensors of an exported model become draws, and from where to where.

Kept as they are: integers, what is small, and what has structure (few different values, infinities: masks, bins, anchors); and the
statistics of BatchNormalization, which calibrate.py fits to the draws.
"""

import numpy as np
from onnx import numpy_helper

import recipe

SMALL = 64  # elements
FEW = 16  # different values


def batch_norms(graph):
    return [node for node in graph.node if node.op_type == "BatchNormalization"]


def spread(values):
    """A uniform distribution with the same mean and deviation, inside the tensor's own range, in few digits."""
    mean, half = float(values.mean()), float(values.std()) * 3**0.5
    low, high = max(float(values.min()), mean - half), min(float(values.max()), mean + half)
    return f"uniform {low:.4g} {high:.4g}"


def rescaled(values, drawn, axis):
    """(factors, offset) with values = drawn * factors + offset, a factor for each channel of the axis; None where it is not so."""
    offset = float(np.median(values)) if values.min() >= 0 else 0.0  # unsigned: around its zero point
    rest = tuple(i for i in range(values.ndim) if i != axis)
    factors = ((values - offset) * drawn).sum(rest, keepdims=True) / (drawn**2).sum(rest, keepdims=True)
    error = np.abs(drawn * factors + offset - values).max()
    return (factors.astype(np.float32), offset) if error <= max(2.0, 0.02 * np.abs(values).max()) else None


def strip_derived(model, base):
    """Weights that a quantiser or a fold made of those of another recipe stay tied to them. base: (name, recipe) of that."""
    name, stripped = base
    sources = {t.name: t for t in stripped.graph.initializer if t.doc_string.startswith("uniform")}
    for tensor in model.graph.initializer:
        named = [t for key, t in sources.items() if key in tensor.name and list(t.dims) == list(tensor.dims) and len(t.dims) > 1]
        if not named:
            continue
        source = max(named, key=lambda t: len(t.name))
        low, high = source.doc_string.split(" ")[1:]
        drawn = recipe.draw(f"{name}/{source.name}", list(source.dims), float(low), float(high)).astype(np.float64)
        values = numpy_helper.to_array(tensor).astype(np.float64)
        for axis in (0, 1):
            if found := rescaled(values, drawn, axis):
                factors, offset = found
                recipe.strip(tensor, f"channels {name}/{source.name} {low} {high} {offset:g} {axis}")
                tensor.raw_data = factors.tobytes()
                break


def strip_weights(model, least_rank=0):
    """In place."""
    statistics = {name for node in batch_norms(model.graph) for name in node.input[3:5]}
    for tensor in recipe.tensors(model.graph):
        if tensor.name in statistics or tensor.doc_string or len(tensor.dims) < least_rank:
            continue
        if tensor.data_type in recipe.FLOATS:
            values = numpy_helper.to_array(tensor).astype(np.float64)
            if values.size == 0 or not np.isfinite(values).all():
                continue
            if values.size >= SMALL and len(np.unique(values)) > FEW:
                recipe.strip(tensor, spread(values))
        elif tensor.data_type in recipe.BYTES:
            values = numpy_helper.to_array(tensor).astype(np.float64)
            if values.size >= SMALL and values.min() != values.max():
                recipe.strip(tensor, spread(values))
