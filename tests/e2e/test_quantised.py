"""Quantised operators against ONNX Runtime, one model each: those of ONNX that its own suite shows in one form only, and those of com.microsoft.

Scales are chosen so that no result lies on the border between two bytes: there the two may differ in the last bit of a float."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from conftest import serin

RANDOM = np.random.default_rng(3)


def u8(*shape):
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


def s8(*shape):
    return RANDOM.integers(-128, 128, shape).astype(np.int8)


def f32(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def scale(*values):
    return np.array(values if len(values) > 1 else values[0], np.float32)


def scales(count):
    return (0.01 + 0.02 * RANDOM.random(count)).astype(np.float32)


class Case:
    """The first operands are inputs of the model, `known` of them constants at the end; None is an absent one."""

    def __init__(self, op, inputs, known, outputs, domain="com.microsoft", **attributes):
        self.op, self.operands, self.inputs, self.outputs = op, [*inputs, *known], len(inputs), outputs
        self.domain, self.attributes = domain, attributes

    def model(self):
        names = ["" if x is None else f"x{i}" for i, x in enumerate(self.operands)]
        inputs = [
            helper.make_tensor_value_info(names[i], helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for i, x in enumerate(self.operands[: self.inputs])
        ]
        known = [
            numpy_helper.from_array(np.asarray(x), names[i])
            for i, x in enumerate(self.operands)
            if i >= self.inputs and x is not None
        ]
        results = [f"y{i}" for i in range(len(self.outputs))]
        outputs = [helper.make_tensor_value_info(name, dtype, None) for name, dtype in zip(results, self.outputs)]
        node = helper.make_node(self.op, names, results, name="node", domain=self.domain, **self.attributes)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(helper.make_graph([node], "graph", inputs, outputs, known), opset_imports=opsets)
        model.ir_version = 10
        return model


def quantised_cases(dtype):
    make, to, name = (u8, TensorProto.UINT8, "u8") if dtype == np.uint8 else (s8, TensorProto.INT8, "s8")
    zero = lambda z: np.array(z if dtype == np.uint8 else z - 128, dtype)
    x = lambda *shape: make(*shape)
    unary = [scale(0.0511), zero(128), scale(0.0391), zero(30)]
    cases = {}
    for op in ("QLinearAdd", "QLinearMul"):
        # The operands of a binary operator alternate with their scales: all but a are constants.
        cases[op] = Case(op, [x(2, 3, 5)], [scale(0.0211), zero(120), make(3, 1), scale(0.0307), zero(130), scale(0.0613), zero(100)], [to])
    cases["QLinearSigmoid"] = Case("QLinearSigmoid", [x(4, 7)], [scale(0.0511), zero(128), scale(1 / 256), zero(0)], [to])
    cases["QLinearLeakyRelu"] = Case("QLinearLeakyRelu", [x(4, 7)], unary, [to], alpha=0.1)
    for axis, opset in ((-1, 13), (1, 12)):
        known = [scale(0.0511), zero(128), scale(1 / 256), zero(0)]
        cases[f"QLinearSoftmax-{opset}"] = Case("QLinearSoftmax", [x(3, 4, 7)], known, [to], axis=axis, opset=opset)
    cases["QLinearAveragePool"] = Case(
        "QLinearAveragePool", [x(1, 3, 8, 8)], unary, [to], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]
    )
    cases["QLinearGlobalAveragePool"] = Case("QLinearGlobalAveragePool", [x(2, 3, 8, 8)], unary, [to])
    cases["QLinearGlobalAveragePool-last"] = Case("QLinearGlobalAveragePool", [x(2, 8, 8, 3)], unary, [to], channels_last=1)
    cases["QGemm"] = Case(
        "QGemm",
        [x(4, 8)],
        [scale(0.0511), zero(128), s8(6, 8), scale(0.0207), np.int8(0), RANDOM.integers(-999, 999, 6).astype(np.int32), scale(0.1103), zero(120)],
        [to],
        transB=1,
    )
    cases["QGemm-float"] = Case(
        "QGemm", [x(4, 8)], [scale(0.0511), zero(128), s8(8, 6), scales(6), np.zeros(6, np.int8)], [TensorProto.FLOAT]
    )
    cases["MatMulInteger"] = Case("MatMulInteger", [x(2, 4, 8), s8(8, 6)], [zero(128), np.int8(3)], [TensorProto.INT32], domain="")
    cases["MatMulIntegerToFloat"] = Case(
        "MatMulIntegerToFloat", [x(2, 4, 8)], [s8(8, 6), scale(0.0307), scales(6), zero(128), np.full(6, 3, np.int8), f32(6)], [TensorProto.FLOAT]
    )
    cases["QLinearMatMul"] = Case(
        "QLinearMatMul", [x(2, 4, 8)], [scale(0.0211), zero(128), s8(8, 6), scale(0.0307), np.int8(3), scale(0.2113), zero(127)], [to], domain=""
    )
    cases["QLinearConv"] = Case(
        "QLinearConv",
        [x(1, 4, 8, 8)],
        [scale(0.0211), zero(128), s8(6, 2, 3, 3), scales(6), np.zeros(6, np.int8), scale(0.2113), zero(127), RANDOM.integers(-99, 99, 6).astype(np.int32)],
        [to],
        domain="",
        group=2,
        pads=[1, 1, 1, 1],
        strides=[2, 2],
    )
    return {f"{key}-{name}": case for key, case in cases.items()}


def nbits_cases():
    k, n, block = 80, 6, 32
    blocks = (k + block - 1) // block
    cases = {}
    for bits in (4, 8):
        attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
        weight, size = u8(n, blocks, block * bits // 8), n * ((blocks * bits + 7) // 8)
        cases[f"MatMulNBits-{bits}"] = Case("MatMulNBits", [f32(3, k)], [weight, scales(n * blocks)], [TensorProto.FLOAT], **attributes)
        cases[f"MatMulNBits-{bits}-zeros"] = Case(
            "MatMulNBits", [f32(2, 3, k)], [weight, scales(n * blocks), u8(size)], [TensorProto.FLOAT], **attributes
        )
    return cases


CASES = {
    **quantised_cases(np.uint8),
    **quantised_cases(np.int8),
    **nbits_cases(),
    "ConvInteger": Case(
        "ConvInteger", [u8(1, 4, 8, 8)], [u8(6, 4, 3, 3), np.uint8(128), np.uint8(7)], [TensorProto.INT32], domain="", auto_pad="SAME_UPPER"
    ),
    "DynamicQuantizeMatMul": Case("DynamicQuantizeMatMul", [f32(4, 8)], [s8(8, 6), scales(6), None, f32(6)], [TensorProto.FLOAT]),
    "DynamicQuantizeMatMul-u8": Case("DynamicQuantizeMatMul", [f32(2, 4, 8)], [u8(8, 6), scale(0.0207), np.uint8(120)], [TensorProto.FLOAT]),
    "QuantizeLinear-microsoft": Case("QuantizeLinear", [f32(3, 4)], [scales(4), u8(4)], [TensorProto.UINT8], axis=1),
    "QuantizeLinear-u16": Case("QuantizeLinear", [f32(3, 4)], [scale(0.00103), np.uint16(32000)], [TensorProto.UINT16]),
    "DequantizeLinear-microsoft": Case("DequantizeLinear", [u8(3, 4)], [scales(4), u8(4)], [TensorProto.FLOAT], axis=1),
}


def write(path, case):
    model = case.model()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feed = {f"x{i}": x for i, x in enumerate(case.operands[: case.inputs])}
    folder = path / "test_data_set_0"
    folder.mkdir()
    onnx.save(model, path / "model.onnx")
    for i, x in enumerate(feed.values()):
        (folder / f"input_{i}.pb").write_bytes(numpy_helper.from_array(x, f"x{i}").SerializeToString())
    for i, y in enumerate(session.run(None, feed)):
        (folder / f"output_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(y), f"y{i}").SerializeToString())


@pytest.mark.parametrize("name", CASES)
def test_as_onnx_runtime(tmp_path, name):
    write(tmp_path, CASES[name])
    for isa in ("scalar", "avx2", None):
        done = serin("check", tmp_path / "model.onnx", tmp_path, *(["--isa", isa] if isa else []))
        assert done.returncode == 0, done.stdout + done.stderr
