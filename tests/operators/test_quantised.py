"""Quantised operators against ONNX Runtime, one model each: those of ONNX that its own suite shows in one form only, and those of com.microsoft.

Scales are chosen so that no result lies on the border between two bytes: there the two may differ in the last bit of a float."""

import pathlib

import ml_dtypes
import numpy as np
import pytest

from one_node import OneNode, expect_match

VNNI = "vnni" in pathlib.Path("/proc/cpuinfo").read_text()
RANDOM = np.random.default_rng(3)


def u8(*shape):
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


def s8(*shape):
    """On a processor without VNNI ONNX Runtime adds two products of u8 and s8 in 16 bits, which hold them if a byte has 7 bits."""
    least, end = (-128, 128) if VNNI else (-63, 64)
    return RANDOM.integers(least, end, shape).astype(np.int8)


def f32(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def scale(*values):
    return np.array(values if len(values) > 1 else values[0], np.float32)


def scales(count):
    return (0.01 + 0.02 * RANDOM.random(count)).astype(np.float32)


def case(op, inputs, known, domain="com.microsoft", **attributes):
    """The first operands are inputs of the model, `known` of them constants at the end; None is an absent one."""
    constants = {len(inputs) + i: x for i, x in enumerate(known)}
    return OneNode(op, inputs, domain=domain, version=21, constants=constants, **attributes)


def test_attention_whose_projection_is_a_product_of_bytes(tmp_path):
    """QAttention as quantize_dynamic writes it: x, weight, bias, their scales, mask, their zero points."""
    weight, bias, mask = s8(16, 48), f32(48), np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    for mask_index in (mask, np.array([3, 5], np.int32), None):
        for weight_scale in (scale(0.01), scales(48)):
            zero = np.zeros(weight_scale.shape, np.int8)
            known = [weight, bias, scale(0.02), weight_scale, mask_index, np.uint8(120), zero]
            node = case("QAttention", [u8(2, 5, 16)], known, num_heads=4)
            folder = tmp_path / f"{0 if mask_index is None else mask_index.ndim}_{weight_scale.size}"
            folder.mkdir()
            node.check(folder, node.by_onnxruntime())


def test_embeddings_of_bytes(tmp_path):
    ids, segments = RANDOM.integers(0, 20, (2, 5)).astype(np.int32), RANDOM.integers(0, 2, (2, 5)).astype(np.int32)
    tables = [u8(20, 16), u8(8, 16), u8(2, 16), u8(16), u8(16)]
    known = [*tables, np.ones((2, 5), np.int32), *[scale(s) for s in (0.02, 0.01, 0.03, 0.01, 0.02)], *[np.uint8(z) for z in (128, 120, 130, 7, 100)]]
    node = case("QEmbedLayerNormalization", [ids, segments], known)
    node.node.output.append("mask_index")
    node.names.append("mask_index")
    node.check(tmp_path, node.by_onnxruntime())


def test_embeddings_without_segments(tmp_path):
    """As the optimiser writes them for a model that has none: an absent input between others."""
    ids = RANDOM.integers(0, 20, (2, 5)).astype(np.int32)
    known = [None, f32(20, 16), f32(8, 16), None, f32(16), f32(16)]
    node = case("EmbedLayerNormalization", [ids], known)
    node.node.output.append("mask_index")
    node.names.append("mask_index")
    node.check(tmp_path, node.by_onnxruntime())


def quantised_cases(dtype):
    make, name = (u8, "u8") if dtype == np.uint8 else (s8, "s8")
    zero = lambda z: np.array(z if dtype == np.uint8 else z - 128, dtype)
    x = lambda *shape: make(*shape)
    unary = [scale(0.0511), zero(128), scale(0.0391), zero(30)]
    cases = {}
    for op in ("QLinearAdd", "QLinearMul"):
        # The operands of a binary operator alternate with their scales: all but a are constants.
        cases[op] = case(op, [x(2, 3, 5)], [scale(0.0211), zero(120), make(3, 1), scale(0.0307), zero(130), scale(0.0613), zero(100)])
    cases["QLinearSigmoid"] = case("QLinearSigmoid", [x(4, 7)], [scale(0.0511), zero(128), scale(1 / 256), zero(0)])
    cases["QLinearLeakyRelu"] = case("QLinearLeakyRelu", [x(4, 7)], unary, alpha=0.1)
    for axis, opset in ((-1, 13), (1, 12)):
        known = [scale(0.0511), zero(128), scale(1 / 256), zero(0)]
        cases[f"QLinearSoftmax-{opset}"] = case("QLinearSoftmax", [x(3, 4, 7)], known, axis=axis, opset=opset)
    cases["QLinearAveragePool"] = case(
        "QLinearAveragePool", [x(1, 3, 8, 8)], unary, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]
    )
    cases["QLinearGlobalAveragePool"] = case("QLinearGlobalAveragePool", [x(2, 3, 8, 8)], unary)
    cases["QLinearGlobalAveragePool-last"] = case("QLinearGlobalAveragePool", [x(2, 8, 8, 3)], unary, channels_last=1)
    cases["QGemm"] = case(
        "QGemm",
        [x(4, 8)],
        [scale(0.0511), zero(128), s8(6, 8), scale(0.0207), np.int8(0), RANDOM.integers(-999, 999, 6).astype(np.int32), scale(0.1103), zero(120)],
        transB=1,
    )
    cases["QGemm-float"] = case("QGemm", [x(4, 8)], [scale(0.0511), zero(128), s8(8, 6), scales(6), np.zeros(6, np.int8)])
    cases["MatMulInteger"] = case("MatMulInteger", [x(2, 4, 8), s8(8, 6)], [zero(128), np.int8(3)], domain="")
    cases["MatMulIntegerToFloat"] = case(
        "MatMulIntegerToFloat", [x(2, 4, 8)], [s8(8, 6), scale(0.0307), scales(6), zero(128), np.full(6, 3, np.int8), f32(6)]
    )
    cases["QLinearMatMul"] = case(
        "QLinearMatMul", [x(2, 4, 8)], [scale(0.0211), zero(128), s8(8, 6), scale(0.0307), np.int8(3), scale(0.2113), zero(127)], domain=""
    )
    cases["QLinearConv"] = case(
        "QLinearConv",
        [x(1, 4, 8, 8)],
        [scale(0.0211), zero(128), s8(6, 2, 3, 3), scales(6), np.zeros(6, np.int8), scale(0.2113), zero(127), RANDOM.integers(-99, 99, 6).astype(np.int32)],
        domain="",
        group=2,
        pads=[1, 1, 1, 1],
        strides=[2, 2],
    )
    return {f"{key}-{name}": made for key, made in cases.items()}


def nbits_cases():
    k, n, block = 80, 6, 32
    blocks = (k + block - 1) // block
    cases = {}
    for bits in (4, 8):
        attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
        weight, size = u8(n, blocks, block * bits // 8), n * ((blocks * bits + 7) // 8)
        cases[f"MatMulNBits-{bits}"] = case("MatMulNBits", [f32(3, k)], [weight, scales(n * blocks)], **attributes)
        cases[f"MatMulNBits-{bits}-zeros"] = case("MatMulNBits", [f32(2, 3, k)], [weight, scales(n * blocks), u8(size)], **attributes)
    return cases


def bnb4_cases():
    cases = {}
    for name, quant_type in (("fp4", 0), ("nf4", 1)):
        for n, k in ((6, 80), (3, 5)):
            known = [u8((n * k + 1) // 2), np.abs(f32((n * k + 15) // 16))]
            cases[f"MatMulBnb4-{name}-{k}"] = case("MatMulBnb4", [f32(2, 3, k)], known, K=k, N=n, block_size=16, quant_type=quant_type)
    return cases


def gathered(data, indices, row_scales, zeros=None, **attributes):
    constants = {0: data, 2: row_scales} | ({} if zeros is None else {3: zeros})
    return OneNode("GatherBlockQuantized", [indices], domain="com.microsoft", version=21, constants=constants, block_size=16, **attributes)


def gathered_block_cases():
    ids, row_scales = RANDOM.integers(-12, 12, (2, 3)), np.abs(f32(12, 4))
    return {
        "GatherBlockQuantized-packed": gathered(u8(12, 32), ids, row_scales, bits=4),
        "GatherBlockQuantized-packed-zeros": gathered(u8(12, 32), ids, row_scales, u8(12, 2), bits=4),
        "GatherBlockQuantized-bytes": gathered(u8(12, 64), ids, row_scales, bits=8),
        "GatherBlockQuantized-bytes-zeros": gathered(u8(12, 64), ids, row_scales, u8(12, 4), bits=8),
        "GatherBlockQuantized-i4": gathered((s8(12, 64) >> 4).astype(ml_dtypes.int4), ids, row_scales),
        "GatherBlockQuantized-u4-columns": gathered((u8(64, 3, 5) >> 4).astype(ml_dtypes.uint4), ids % 3, np.abs(f32(4, 3, 5)), gather_axis=1, quantize_axis=0),
    }


CASES = {
    **quantised_cases(np.uint8),
    **quantised_cases(np.int8),
    **nbits_cases(),
    **bnb4_cases(),
    **gathered_block_cases(),
    "ConvInteger": case("ConvInteger", [u8(1, 4, 8, 8)], [u8(6, 4, 3, 3), np.uint8(128), np.uint8(7)], domain="", auto_pad="SAME_UPPER"),
    "DynamicQuantizeMatMul": case("DynamicQuantizeMatMul", [f32(4, 8)], [s8(8, 6), scales(6), None, f32(6)]),
    "QLinearMatMul-u8": case(
        "QLinearMatMul", [u8(5, 40)], [scale(0.0211), np.uint8(128), u8(40, 6), scales(6), u8(6), scale(0.2113), np.uint8(127)], domain=""
    ),
    "DynamicQuantizeMatMul-u8": case("DynamicQuantizeMatMul", [f32(2, 4, 8)], [u8(8, 6), scale(0.0207), np.uint8(120)]),
    "QuantizeLinear-microsoft": case("QuantizeLinear", [f32(3, 4)], [scales(4), u8(4)], axis=1),
    "QuantizeLinear-u16": case("QuantizeLinear", [f32(3, 4)], [scale(0.00103), np.uint16(32000)]),
    "DequantizeLinear-microsoft": case("DequantizeLinear", [u8(3, 4)], [scales(4), u8(4)], axis=1),
}


@pytest.mark.parametrize("name", CASES)
def test_as_onnx_runtime(tmp_path, name):
    CASES[name].write(tmp_path, CASES[name].by_onnxruntime())
    for isa in ("scalar", "avx2", None):
        expect_match(tmp_path, *(["--isa", isa] if isa else []))
