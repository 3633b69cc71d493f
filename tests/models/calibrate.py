"""Gives a model with drawn weights the statistics that training would have given it.

A network of random weights is degenerate: without fitting statistics a fresh MobileNetV3 answers 4e-10 whatever the image. So a copy of
the model is run in which every BatchNormalization computes the statistics of what it sees, as in training; they go into the recipe.
Where none follows, the copy divides the result of each convolution and linear layer by its deviation, which is then taken out
of the weights; and where the layer has a bias, centres each channel first, or the network would forget its input: what is the same for all
inputs grows from layer to layer. (Not after global pooling: its results differ so little that their rounding would grow.) One run does for
the whole network, since each layer already sees its predecessors normalised.
"""

import numpy as np
import onnx
from onnx import helper, numpy_helper

import listing

LAYERS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
MANY = 32  # values of a channel that make a mean


def in_order(session_model, inputs, names):
    for name in names:
        session_model.graph.output.append(helper.make_empty_tensor_value_info(name))
    session = listing.reference(session_model.SerializeToString(), optimised=False)
    return dict(zip(names, session.run(names, inputs)))


def reduce_mean(opset, x, y, axes):
    if opset < 18:
        return [helper.make_node("ReduceMean", [x], [y], axes=axes, keepdims=1)]
    constant = helper.make_node("Constant", [], [y + ".axes"], value_ints=axes)
    return [constant, helper.make_node("ReduceMean", [x, y + ".axes"], [y], keepdims=1)]


def training_mode(node, rank, opset):
    """BatchNormalization spelled out with the statistics of its own input, which NAME.mean and NAME.var then are."""
    x, gamma, beta, y = node.input[0], node.input[1], node.input[2], node.output[0]
    epsilon = next((a.f for a in node.attribute if a.name == "epsilon"), 1e-5)
    axes, shape = [0, *range(2, rank)], [1, -1, *[1] * (rank - 2)]
    constants = [
        helper.make_node("Constant", [], [y + ".shape"], value=numpy_helper.from_array(np.array(shape, np.int64))),
        helper.make_node("Constant", [], [y + ".eps"], value=numpy_helper.from_array(np.float32(epsilon))),
    ]
    steps = [
        helper.make_node(op, ins, [out])
        for op, ins, out in (("Sub", [x, y + ".mean"], y + ".centred"), ("Mul", [y + ".centred"] * 2, y + ".square"))
    ]
    after = [
        helper.make_node(op, ins, [out])
        for op, ins, out in (
            ("Add", [y + ".var", y + ".eps"], y + ".safe"),
            ("Sqrt", [y + ".safe"], y + ".sigma"),
            ("Div", [y + ".centred", y + ".sigma"], y + ".unit"),
            ("Reshape", [gamma, y + ".shape"], y + ".gamma"),
            ("Reshape", [beta, y + ".shape"], y + ".beta"),
            ("Mul", [y + ".unit", y + ".gamma"], y + ".scaled"),
            ("Add", [y + ".scaled", y + ".beta"], y),
        )
    ]
    return constants + reduce_mean(opset, x, y + ".mean", axes) + steps + reduce_mean(opset, y + ".square", y + ".var", axes) + after


def unit_spread(node, rank, opset, centred):
    """The layer, divided by the deviation of its result, NAME.sigma; centred: with each channel's mean, NAME.mean, replaced by its bias."""
    y, steps = node.output[0], []
    raw = onnx.NodeProto()
    raw.CopyFrom(node)
    raw.output[0] = y + ".raw"
    signal = y + ".raw"
    if centred:
        steps += reduce_mean(opset, y + ".raw", y + ".mean", [0, *range(2, rank)])
        steps.append(helper.make_node("Sub", [y + ".raw", y + ".mean"], [y + ".centred"]))
        signal = y + ".centred"
    steps += [
        helper.make_node("Mul", [signal] * 2, [y + ".square"]),
        *reduce_mean(opset, y + ".square", y + ".var", list(range(rank))),
        helper.make_node("Sqrt", [y + ".var"], [y + ".sigma"]),
        helper.make_node("Div", [signal, y + ".sigma"], [y + ".unit" if centred else y]),
    ]
    if centred:
        shape = np.array([1, -1, *[1] * (rank - 2)], np.int64)
        steps += [
            helper.make_node("Constant", [], [y + ".shape"], value=numpy_helper.from_array(shape)),
            helper.make_node("Reshape", [node.input[2], y + ".shape"], [y + ".bias"]),
            helper.make_node("Add", [y + ".unit", y + ".bias"], [y]),
        ]
    return [raw, *steps]


def few_bits(value, step):
    """Rounded to multiples of step, a power of two: such numbers compress to about a byte."""
    step = 2.0 ** np.floor(np.log2(step))
    return (np.rint(value / step) * step).astype(np.float32)


def shapes(model, inputs):
    """{first operand of a layer: its shape}."""
    names = [name for node in model.graph.node if node.op_type in (*LAYERS, "BatchNormalization") for name in node.input[:1]]
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    return {name: value.shape for name, value in in_order(probe, inputs, list(dict.fromkeys(names))).items()}


def settle(stripped, model, inputs):
    """Writes the statistics of `model` (the filled recipe) into `stripped` (the recipe)."""
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    norms = [node for node in model.graph.node if node.op_type == "BatchNormalization"]
    drawn = {tensor.name: tensor for tensor in stripped.graph.initializer}
    normalised = {node.input[0] for node in norms}
    scaled = [node for node in model.graph.node if node.op_type in LAYERS and drawn_layer(node, drawn) and node.output[0] not in normalised]
    if not norms and not scaled:
        return
    shape = shapes(model, inputs)
    biased = [node for node in scaled if has_bias(node, drawn) and values_per_channel(shape[node.input[0]]) >= MANY]
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    for node in model.graph.node:
        if node in norms:
            copy.graph.node.extend(training_mode(node, len(shape[node.input[0]]), opset))
        elif node in scaled:
            copy.graph.node.extend(unit_spread(node, max(len(shape[node.input[0]]), 2), opset, node in biased))
        else:
            copy.graph.node.append(node)
    wanted = [node.output[0] + part for node in norms for part in (".mean", ".var")]
    wanted += [node.output[0] + ".sigma" for node in scaled] + [node.output[0] + ".mean" for node in biased]
    seen = {name: value.reshape(-1).astype(np.float64) for name, value in in_order(copy, inputs, wanted).items()}
    for node in norms:
        write_statistics(node, drawn, seen)
    done = set()
    for node in scaled:
        if node.input[1] not in done:
            done.add(node.input[1])
            sigma = seen[node.output[0] + ".sigma"][0]
            scale_draw(drawn[node.input[1]], 1 / sigma)
            if node in biased:
                bias = next(numpy_helper.to_array(t).astype(np.float64) for t in model.graph.initializer if t.name == node.input[2])
                value = few_bits((bias - seen[node.output[0] + ".mean"]) / sigma + bias, 1 / 64)
                drawn[node.input[2]].CopyFrom(numpy_helper.from_array(value, node.input[2]))


def has_bias(node, drawn):
    return len(node.input) > 2 and len(drawn[node.input[2]].dims) == 1


def values_per_channel(shape):
    return np.prod(shape) / shape[1]


def write_statistics(node, drawn, seen):
    mean, var = seen[node.output[0] + ".mean"], seen[node.output[0] + ".var"]
    var = np.maximum(var, np.maximum(1e-3 * var.max() + 1e-12, 1e-2 * mean**2))  # few samples: global pooling leaves one an image
    for name, value in ((node.input[3], few_bits(mean, np.sqrt(var) / 16)), (node.input[4], few_bits(var, var / 16))):
        drawn[name].CopyFrom(numpy_helper.from_array(value, name))


def drawn_layer(node, drawn):
    return node.input[1] in drawn and drawn[node.input[1]].doc_string.startswith("uniform")


def scale_draw(tensor, factor):
    low, high = map(float, tensor.doc_string.split(" ")[1:])
    tensor.doc_string = f"uniform {low * factor:.4g} {high * factor:.4g}"
