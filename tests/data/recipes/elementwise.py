"""One output for each function and dtype, so that a failure names what is wrong. A table here is a list of (output, expression)."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from .common import IR_VERSION, OPSET, write as write_fixture

UNARY = [
    ("abs", "Abs", {}), ("neg", "Neg", {}), ("sign", "Sign", {}), ("reciprocal", "Reciprocal", {}), ("exp", "Exp", {}),
    ("erf", "Erf", {}), ("sin", "Sin", {}), ("cos", "Cos", {}), ("tanh", "Tanh", {}), ("sigmoid", "Sigmoid", {}), ("relu", "Relu", {}),
    ("leaky_relu", "LeakyRelu", {"alpha": 0.1}), ("elu", "Elu", {"alpha": 1.5}), ("softplus", "Softplus", {}),
    ("hard_sigmoid", "HardSigmoid", {"alpha": 0.3, "beta": 0.4}), ("hard_swish", "HardSwish", {}), ("floor", "Floor", {}),
    ("ceil", "Ceil", {}), ("round", "Round", {}), ("identity", "Identity", {}),
]
POSITIVE_UNARY = [("sqrt", "Sqrt", {}), ("log", "Log", {})]
ARITHMETIC = [("add", "Add"), ("sub", "Sub"), ("mul", "Mul"), ("div", "Div")]
COMPARE = [("equal", "Equal"), ("less", "Less"), ("less_or_equal", "LessOrEqual"), ("greater", "Greater"),
           ("greater_or_equal", "GreaterOrEqual")]
LOGIC = [("and", "And"), ("or", "Or"), ("xor", "Xor")]
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, 3.4e38, -3.4e38, 0.5, 1.5, 2.5, -2.5], np.float32)


class Sweep:
    """Collects nodes; inputs keep the dtype and the symbolic shape they are declared with, outputs get theirs from shape inference."""

    def __init__(self):
        self.inputs, self.nodes, self.constants = [], [], []

    def input(self, name, dtype, shape):
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape))
        return name

    def constant(self, name, value):
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, output, op, *inputs, **attributes):
        self.nodes.append(helper.make_node(op, list(inputs), [output], name=output, **attributes))

    def model(self, name):
        untyped = [onnx.ValueInfoProto(name=node.output[0]) for node in self.nodes]
        graph = helper.make_graph(self.nodes, name, self.inputs, untyped, self.constants)
        model = helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)])
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def write(out):
    for name, recipe in [("unary", unary), ("binary", binary), ("special", special), ("integer", integer), ("logic", logic)]:
        sweep = Sweep()
        data_sets = recipe(sweep, np.random.default_rng(16))
        write_fixture(out / f"elementwise_{name}", sweep.model(f"elementwise_{name}"), data_sets)


def unary(sweep, rng):
    x = sweep.input("x", np.float32, ["batch", 3, 4])
    positive = sweep.input("positive", np.float32, ["batch", 5])
    double = sweep.input("double", np.float64, ["batch", 3])
    for name, op, attributes in UNARY:
        sweep.add(name, op, x, **attributes)
    for name, op, attributes in POSITIVE_UNARY:
        sweep.add(name, op, positive, **attributes)
    for name, op in [("abs", "Abs"), ("neg", "Neg"), ("exp", "Exp"), ("tanh", "Tanh"), ("floor", "Floor")]:
        sweep.add(f"{name}_double", op, double)
    low, high = sweep.constant("low", np.float32(-1)), sweep.constant("high", np.float32(0.5))
    sweep.add("clip", "Clip", x, low, high)
    sweep.add("clip_low", "Clip", x, low)
    sweep.add("clip_high", "Clip", x, "", high)
    return [{"x": rng.normal(0, 2, (n, 3, 4)).astype(np.float32), "positive": rng.uniform(0.01, 9, (n, 5)).astype(np.float32),
             "double": rng.normal(0, 2, (n, 3))} for n in (2, 1)]


def binary(sweep, rng):
    """Broadcasting on either side, a rank that grows, a scalar, and a dimension of one inside."""
    a = sweep.input("a", np.float32, ["batch", 3, 4])
    b = sweep.input("b", np.float32, [3, 1])
    c = sweep.input("c", np.float32, ["batch", 1, 4])
    scalar = sweep.input("scalar", np.float32, [])
    double = sweep.input("double", np.float64, [3, 4])
    for name, op in ARITHMETIC:
        sweep.add(f"{name}_rows", op, a, b)
        sweep.add(f"{name}_swapped", op, b, a)
        sweep.add(f"{name}_inner", op, a, c)
        sweep.add(f"{name}_outer", op, c, b)
        sweep.add(f"{name}_scalar", op, a, scalar)
        sweep.add(f"{name}_double", op, double, double)
    sweep.add("magnitude", "Abs", a)
    sweep.add("pow", "Pow", "magnitude", b)
    for exponent in (2, 3, 0.5, -1):
        sweep.add(f"pow_{exponent}".replace(".", "_").replace("-", "minus_"), "Pow", "magnitude",
                  sweep.constant(f"exponent_{exponent}", np.float32(exponent)))
    sweep.add("fmod", "Mod", a, b, fmod=1)
    for name, op in [("min", "Min"), ("max", "Max"), ("sum", "Sum"), ("mean", "Mean")]:
        sweep.add(f"{name}_of_two", op, a, b)
        sweep.add(f"{name}_of_three", op, a, b, c)
    return [{"a": rng.normal(0, 2, (n, 3, 4)).astype(np.float32), "b": rng.normal(0, 2, (3, 1)).astype(np.float32),
             "c": rng.normal(0, 2, (n, 1, 4)).astype(np.float32), "scalar": np.float32(-1.25), "double": rng.normal(0, 2, (3, 4))}
            for n in (2, 1)]


def special(sweep, _):
    """NaN, infinities, both zeros, a subnormal and the largest finite values, alone and against each other.

    Left out because ONNX does not say what they are: the sign of NaN, Sign of NaN, Mod by zero.
    """
    x = sweep.input("x", np.float32, ["n"])
    column = sweep.input("column", np.float32, ["n", 1])
    for name, op, attributes in UNARY + POSITIVE_UNARY:
        if name != "sign":
            sweep.add(name, op, x, **attributes)
    for name, op in ARITHMETIC + COMPARE + [("min", "Min"), ("max", "Max")]:
        sweep.add(name, op, x, column)
    sweep.add("clip", "Clip", x, sweep.constant("low", np.float32(-1)), sweep.constant("high", np.float32(1)))
    sweep.add("is_nan", "IsNaN", x)
    sweep.add("is_inf", "IsInf", x)
    sweep.add("is_positive_inf", "IsInf", x, detect_negative=0)
    sweep.add("is_negative_inf", "IsInf", x, detect_positive=0)
    sweep.add("where", "Where", "is_nan", column, x)
    sweep.add("to_double", "Cast", x, to=TensorProto.DOUBLE)
    sweep.add("to_half", "Cast", x, to=TensorProto.FLOAT16)
    sweep.add("to_bool", "Cast", x, to=TensorProto.BOOL)
    return [{"x": values, "column": values[:, None]} for values in (SPECIAL, SPECIAL[::-1][:7].copy())]


def integer(sweep, rng):
    """Division truncates toward zero, Mod has the divisor's sign, fmod the dividend's, and every sum wraps."""
    shapes = {"a": ["batch", 3], "b": [3]}
    for dtype in (np.int32, np.int64):
        kind = np.dtype(dtype).name
        a, b = (sweep.input(f"{name}_{kind}", dtype, shape) for name, shape in shapes.items())
        for name, op in ARITHMETIC + [("min", "Min"), ("max", "Max"), ("mod", "Mod")] + COMPARE:
            sweep.add(f"{name}_{kind}", op, a, b)
        sweep.add(f"fmod_{kind}", "Mod", a, b, fmod=1)
        for name, op in [("abs", "Abs"), ("neg", "Neg"), ("sign", "Sign")]:
            sweep.add(f"{name}_{kind}", op, a)
        sweep.add(f"clip_{kind}", "Clip", a, sweep.constant(f"low_{kind}", dtype(-3)), sweep.constant(f"high_{kind}", dtype(5)))
        sweep.add(f"to_float_{kind}", "Cast", a, to=TensorProto.FLOAT)
        sweep.add(f"to_bool_{kind}", "Cast", a, to=TensorProto.BOOL)
    small = sweep.input("small", np.uint8, ["batch", 4])
    sweep.add("small_to_float", "Cast", small, to=TensorProto.FLOAT)
    sweep.add("small_to_int32", "Cast", small, to=TensorProto.INT32)
    sweep.add("small_to_int8", "Cast", small, to=TensorProto.INT8)  # 200 becomes -56
    sweep.add("wide_to_narrow", "Cast", "a_int64", to=TensorProto.INT32)

    def data_set(n):
        values = {"small": rng.integers(0, 256, (n, 4), np.uint8)}
        for dtype in (np.int32, np.int64):
            kind = np.dtype(dtype).name
            edges = [[-7, 7, np.iinfo(np.int32).max]]
            values[f"a_{kind}"] = np.concatenate([rng.integers(-20, 20, (n - 1, 3)), edges]).astype(dtype)
            values[f"b_{kind}"] = np.array([3, -3, 5], dtype)
        return values

    return [data_set(3), data_set(1)]


def logic(sweep, rng):
    """Booleans, selection on several dtypes, and casts between floating types (exact, rounded, and to an integer by truncation)."""
    p, q = sweep.input("p", bool, ["batch", 3]), sweep.input("q", bool, [3])
    x, y = sweep.input("x", np.float32, ["batch", 3]), sweep.input("y", np.float32, [1])
    i = sweep.input("i", np.int64, ["batch", 1])
    for name, op in LOGIC:
        sweep.add(name, op, p, q)
    sweep.add("not", "Not", p)
    sweep.add("equal_bool", "Equal", p, q)
    for name, op in COMPARE:
        sweep.add(f"{name}_float", op, x, y)
    sweep.add("where_float", "Where", p, x, y)
    sweep.add("where_row", "Where", q, y, x)
    sweep.add("where_int", "Where", p, i, sweep.constant("minus_one", np.int64(-1)))
    sweep.add("half", "Cast", x, to=TensorProto.FLOAT16)
    sweep.add("half_and_back", "Cast", "half", to=TensorProto.FLOAT)
    sweep.add("truncated", "Cast", x, to=TensorProto.INT32)
    sweep.add("truncated_wide", "Cast", x, to=TensorProto.INT64)
    sweep.add("bool_to_float", "Cast", p, to=TensorProto.FLOAT)
    sweep.add("bool_to_int", "Cast", p, to=TensorProto.INT64)
    sweep.add("double", "Cast", x, to=TensorProto.DOUBLE)
    sweep.add("double_and_back", "Cast", "double", to=TensorProto.FLOAT)

    def data_set(n):
        x = rng.normal(0, 3, (n, 3)).astype(np.float32)
        x[0, :2] = 1.5, -1.5
        return {"p": rng.random((n, 3)) < 0.5, "q": np.array([True, False, True]), "x": x, "y": np.array([1.5], np.float32),
                "i": rng.integers(-9, 9, (n, 1))}

    return [data_set(4), data_set(1)]
