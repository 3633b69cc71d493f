"""Single operators of ONNX beside ONNX Runtime, to find those that have no fast kernel: see bench/operators --help."""

import datetime
import pathlib
import tempfile

import engines
import numpy as np
import onnx
import onnxruntime
import table
import work
from onnx import TensorProto, helper, numpy_helper

EPILOGUE = """
One thread. Each engine is a process of its own (engines.py); in every round they measure in turn, and the medians are divided. A model is one node, so that nothing is fused. The
operators that models spend their time in are in bench/engine; this one looks for operators that are many times slower than they need be.
"""
PEER = engines.PEERS["onnxruntime"]
F, H, D, I, I32, U8, I8, B = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8,
                              TensorProto.INT8, TensorProto.BOOL)
X, IMAGE = [64, 64, 256], [1, 64, 56, 56]
WINDOW = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
DRAWN = np.random.default_rng(7)


def weight(*shape):
    return (DRAWN.standard_normal(shape) * 0.1).astype(np.float32)


def of_bytes(dtype, *shape):
    limits = np.iinfo(dtype)
    return DRAWN.integers(limits.min, limits.max, shape).astype(dtype)


def scales(*zeros):
    """Operands of quantised operators: a scale and a zero point for each."""
    return [each for zero in zeros for each in (np.float32(0.02), zero)]


ONE = np.int64
UNARY = "Abs Ceil Exp Log Sqrt Sin Tanh Sigmoid Erf Relu Elu Softplus HardSwish Mish Gelu Neg".split()
BINARY = "Add Sub Mul Div Pow Max".split()
REDUCTIONS = "ReduceSum ReduceMean ReduceMax ReduceL2 ReduceLogSumExp".split()


def cases():
    """(name, operator, inputs as (type, shape) or a constant, attributes, outputs, opset)."""
    for op in UNARY:
        yield op, op, [(F, X)], {}, 1, 20
    for op in BINARY:
        yield op, op, [(F, X), (F, X)], {}, 1, 20
        yield f"{op}, broadcast", op, [(F, X), (F, [64, 1, 256])], {}, 1, 20
    for name, dtype in ("i64", I), ("u8", U8), ("f16", H), ("f64", D):
        for op in ("Add", "Mul", "Less"):
            yield f"{op} {name}", op, [(dtype, X), (dtype, X)], {}, 1, 20
        yield f"Where {name}", "Where", [(B, X), (dtype, X), (dtype, X)], {}, 1, 20
        yield f"ReduceMax {name}", "ReduceMax", [(dtype, X), np.array([2])], {}, 1, 20
        yield f"ArgMax {name}", "ArgMax", [(dtype, X)], {"axis": 2}, 1, 20
        yield f"Cast {name} to f32", "Cast", [(dtype, X)], {"to": F}, 1, 20
        yield f"Cast f32 to {name}", "Cast", [(F, X)], {"to": dtype}, 1, 20
    for op in REDUCTIONS:
        for axis in (0, 1, 2):
            yield f"{op}, axis {axis}", op, [(F, X), np.array([axis])], {}, 1, 20
    for axis in (0, 1, 2):
        for op in ("Softmax", "ArgMax"):
            yield f"{op}, axis {axis}", op, [(F, X)], {"axis": axis}, 1, 20
        yield f"CumSum, axis {axis}", "CumSum", [(F, X), ONE(axis)], {}, 1, 20
        yield f"TopK, axis {axis}", "TopK", [(F, X), np.array([5])], {"axis": axis}, 2, 20
    for order in (0, 2, 1), (1, 0, 2), (2, 1, 0):
        yield f"Transpose {order}", "Transpose", [(F, X)], {"perm": order}, 1, 20
    yield "Gather", "Gather", [(F, [30000, 256]), (I, [2048])], {}, 1, 20
    yield "GatherElements", "GatherElements", [(F, X), (I, X)], {"axis": 2}, 1, 20
    yield "GatherND", "GatherND", [(F, X), (I, [20000, 2])], {}, 1, 20
    yield "ScatterND", "ScatterND", [(F, X), (I, [2000, 2]), (F, [2000, 256])], {}, 1, 20
    yield "Slice, step 2", "Slice", [(F, X), np.array([0]), np.array([256]), np.array([2]), np.array([2])], {}, 1, 20
    yield "Tile", "Tile", [(F, [64, 64, 16]), np.array([1, 2, 8])], {}, 1, 20
    yield "Expand", "Expand", [(F, [64, 1, 256]), np.array(X)], {}, 1, 20
    yield "Concat", "Concat", [(F, X), (F, X)], {"axis": 2}, 1, 20
    yield "OneHot", "OneHot", [(I, [4096]), np.array([256]), np.array([0, 1], np.float32)], {}, 1, 20
    for mode in ("constant", "reflect", "edge"):
        yield f"Pad, {mode}", "Pad", [(F, IMAGE), np.array([0, 0, 3, 3, 0, 0, 3, 3])], {"mode": mode}, 1, 20
    for op in ("MaxPool", "AveragePool", "LpPool"):
        yield op, op, [(F, IMAGE)], WINDOW, 1, 20
    yield "MaxPool u8", "MaxPool", [(U8, IMAGE)], WINDOW, 1, 20
    yield "MaxPool, 3 axes", "MaxPool", [(F, [1, 16, 16, 56, 56])], {"kernel_shape": [3, 3, 3], "strides": [2, 2, 2]}, 1, 20
    yield "Conv", "Conv", [(F, IMAGE), weight(64, 64, 3, 3)], {"pads": [1, 1, 1, 1]}, 1, 20
    yield "Conv, one axis", "Conv", [(F, [1, 64, 2048]), weight(64, 64, 3)], {}, 1, 20
    yield "ConvTranspose", "ConvTranspose", [(F, [1, 64, 28, 28]), weight(64, 32, 4, 4)], {"strides": [2, 2]}, 1, 20
    yield "DeformConv", "DeformConv", [(F, [1, 64, 28, 28]), (F, [64, 64, 3, 3]), (F, [1, 18, 26, 26])], {}, 1, 19
    yield "Col2Im", "Col2Im", [(F, [1, 576, 2916]), np.array([56, 56]), np.array([3, 3])], {}, 1, 20
    for mode in ("nearest", "linear", "cubic"):
        yield f"Resize, {mode}", "Resize", [(F, IMAGE), None, np.array([1, 1, 2, 2], np.float32)], {"mode": mode}, 1, 20
    yield "Resize, channels last", "Resize", [(F, [1, 112, 112, 16]), None, np.array([1, 2, 2, 1], np.float32)], {"mode": "linear"}, 1, 20
    yield "Resize u8", "Resize", [(U8, [1, 3, 224, 224]), None, np.array([1, 1, 2, 2], np.float32)], {"mode": "linear"}, 1, 20
    yield "GridSample", "GridSample", [(F, IMAGE), (F, [1, 56, 56, 2])], {"mode": "linear"}, 1, 20
    yield "LayerNormalization", "LayerNormalization", [(F, X), weight(256), weight(256)], {}, 1, 20
    yield "InstanceNormalization", "InstanceNormalization", [(F, IMAGE), weight(64), weight(64)], {}, 1, 20
    yield "LRN", "LRN", [(F, IMAGE)], {"size": 5}, 1, 20
    yield "MatMul", "MatMul", [(F, [256, 512]), weight(512, 512)], {}, 1, 20
    yield "MatMul f64", "MatMul", [(D, [128, 256]), (D, [256, 128])], {}, 1, 20
    yield "Einsum", "Einsum", [(F, [8, 128, 4, 64]), (F, [8, 128, 4, 64])], {"equation": "bqhd,bkhd->bhqk"}, 1, 20
    yield "MatMulInteger", "MatMulInteger", [(U8, [128, 512]), (U8, [512, 256])], {}, 1, 20
    quantised = [(U8, IMAGE), *scales(np.uint8(120)), of_bytes(np.int8, 64, 64, 3, 3), *scales(np.int8(0), np.uint8(120))]
    yield "QLinearConv", "QLinearConv", quantised, {"pads": [1, 1, 1, 1]}, 1, 20
    quantised = [(U8, [1, 64, 2048]), *scales(np.uint8(120)), of_bytes(np.int8, 64, 64, 3), *scales(np.int8(0), np.uint8(120))]
    yield "QLinearConv, one axis", "QLinearConv", quantised, {}, 1, 20
    yield "QuantizeLinear", "QuantizeLinear", [(F, X), *scales(np.uint8(3))], {}, 1, 20
    yield "DequantizeLinear", "DequantizeLinear", [(U8, X), *scales(np.uint8(3))], {}, 1, 20
    yield "DequantizeLinear, an axis", "DequantizeLinear", [(I8, X), np.full(256, 0.02, np.float32)], {"axis": 2}, 1, 20
    yield "DFT", "DFT", [(F, [64, 1024, 1]), ONE(1024), ONE(1)], {}, 1, 20
    yield "STFT", "STFT", [(F, [1, 16000, 1]), ONE(160), np.hanning(400).astype(np.float32)], {}, 1, 20
    recurrent = [(F, [64, 4, 128]), weight(1, 512, 128), weight(1, 512, 128)]
    yield "LSTM", "LSTM", recurrent, {"hidden_size": 128}, 1, 20
    yield "RoiAlign", "RoiAlign", [(F, IMAGE), (F, [50, 4]), np.zeros(50, np.int64)], {"output_height": 7, "output_width": 7, "sampling_ratio": 2}, 1, 20


def model_of(op, operands, attributes, outputs, opset):
    names, inputs, constants = [], [], []
    for i, operand in enumerate(operands):
        names.append("" if operand is None else f"x{i}")
        if isinstance(operand, tuple):
            inputs.append(helper.make_tensor_value_info(names[-1], *operand))
        elif operand is not None:
            constants.append(numpy_helper.from_array(np.asarray(operand), names[-1]))
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], **attributes)
    graph = helper.make_graph([node], op, inputs, [onnx.ValueInfoProto(name=name) for name in node.output], constants)
    return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9), data_prop=True)


def drawn(model):
    """Indices are small, so that they fit every axis here."""
    feeds = {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        real = np.issubdtype(dtype, np.floating)
        feeds[value.name] = DRAWN.standard_normal(shape).astype(dtype) if real else DRAWN.integers(0, 2, shape).astype(dtype)
    return feeds


def measure(name, model, folder, options):
    job = work.Job(folder / "model.onnx", {}, folder / "inputs.npz")
    onnx.save(model, job.model)
    np.savez(job.inputs, **drawn(model))
    starters = {"serin": lambda: engines.serin(job, options.seconds), PEER: lambda: engines.peer("onnxruntime", job, options.seconds)}
    times, why = engines.in_turn(starters, options.rounds)
    return table.Row(name, "ms", times.pop("serin"), times, note=why)


def main():
    parser = table.parser_for("operators", "Single operators of ONNX beside ONNX Runtime.", EPILOGUE)
    parser.add_argument("names", nargs="*", metavar="OPERATOR", help="only rows whose name contains one of these")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1, help="of one measurement")
    options = parser.parse_args()
    heading = f"{datetime.date.today()}, {table.machine()}, ONNX Runtime {onnxruntime.__version__}; {options.rounds} rounds, one thread"
    rows = table.Table([PEER], heading)
    with tempfile.TemporaryDirectory() as folder:
        for name, *case in cases():
            if not options.names or any(word.lower() in name.lower() for word in options.names):
                rows.add(measure(name, model_of(*case), pathlib.Path(folder), options))
    rows.geometric_mean("operators", lambda row: True)
    rows.losers()
    if options.json:
        rows.save(options.json, table.machine())


if __name__ == "__main__":
    main()
