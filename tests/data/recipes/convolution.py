"""Every way a convolution or a pool can be windowed, on an odd-sized image, so that rounding and padding show at each border."""

import numpy as np

from .common import build, normal, write as write_fixture

# Heights and widths after each line stand in comments; h x w of the input is 17 x 15.
TEXT = """conv_bn (float[batch, 3, 17, 15] image) => (float[batch, 24, 9, 8] features, float[batch, 10] scores) {
    # 9 x 8: strided, explicit pads, BatchNormalization and Relu
    stem_conv = Conv<kernel_shape: ints = [3, 3], strides: ints = [2, 2], pads: ints = [1, 1, 1, 1]>(image, stem_w)
    stem_norm = BatchNormalization<epsilon: float = 1e-3>(stem_conv, stem_gain, stem_shift, stem_mean, stem_variance)
    stem = Relu(stem_norm)

    # 9 x 8: depthwise, SAME_UPPER, BatchNormalization and Clip to 0..6; then grouped 1 x 1 and a residual
    depth_conv = Conv<kernel_shape: ints = [3, 3], group: int = 8, auto_pad: string = "SAME_UPPER">(stem, depth_w, depth_b)
    depth_norm = BatchNormalization(depth_conv, depth_gain, depth_shift, depth_mean, depth_variance)
    depth = Clip(depth_norm, zero, six)
    point = Conv<group: int = 2>(depth, point_w, point_b)
    residual_sum = Add(point, stem)
    residual = Relu(residual_sum)

    # 9 x 8: an even kernel with different pads on each side, and a dilated one
    uneven = Conv<kernel_shape: ints = [3, 2], pads: ints = [0, 1, 2, 0]>(residual, uneven_w)
    dilated = Conv<kernel_shape: ints = [3, 3], dilations: ints = [2, 2], pads: ints = [2, 2, 2, 2]>(residual, dilated_w, dilated_b)
    features = Concat<axis: int = 1>(uneven, dilated, residual)

    # 5 x 4: strided SAME_UPPER, where the larger half of the padding comes last
    halved = Conv<kernel_shape: ints = [3, 3], strides: ints = [2, 2], auto_pad: string = "SAME_UPPER">(features, halved_w)

    # 5 x 4 by ceil_mode: the last window hangs over the border; then 3 x 2, padding counted and not counted
    maximum = MaxPool<kernel_shape: ints = [2, 3], strides: ints = [2, 2], pads: ints = [0, 1, 0, 0], ceil_mode: int = 1>(features)
    wide = Concat<axis: int = 1>(maximum, halved)
    counted = AveragePool<kernel_shape: ints = [3, 3], strides: ints = [2, 2], pads: ints = [1, 1, 1, 1], count_include_pad: int = 1>(wide)
    real = AveragePool<kernel_shape: ints = [3, 3], strides: ints = [2, 2], pads: ints = [1, 1, 1, 1]>(wide)

    flat = Flatten(counted)
    mean = GlobalAveragePool(real)
    mean_flat = Flatten<axis: int = 1>(mean)
    both = Concat<axis: int = -1>(flat, mean_flat)
    scores = Gemm<transB: int = 1, alpha: float = 0.5>(both, head_w, head_b)
}"""


def weights(rng):
    values = {"zero": np.float32(0), "six": np.float32(6)}
    kernels = {"stem": (8, 3, 3, 3), "depth": (8, 1, 3, 3), "point": (8, 4, 1, 1), "uneven": (8, 8, 3, 2), "dilated": (8, 8, 3, 3),
               "halved": (8, 24, 3, 3)}
    for name, shape in kernels.items():
        values[f"{name}_w"] = normal(rng, *shape, scale=np.prod(shape[1:]) ** -0.5)
    for name in ("depth", "point", "dilated"):
        values[f"{name}_b"] = normal(rng, 8, scale=0.2)
    for name in ("stem", "depth"):
        values[f"{name}_gain"] = 1 + normal(rng, 8, scale=0.3)
        values[f"{name}_shift"] = 1 + normal(rng, 8)
        values[f"{name}_mean"] = normal(rng, 8, scale=0.3)
        values[f"{name}_variance"] = rng.uniform(0.2, 2, 8).astype(np.float32)
    inputs = 32 * 3 * 2 + 32
    values["head_w"] = normal(rng, 10, inputs, scale=inputs ** -0.5)
    values["head_b"] = normal(rng, 10)
    return values


def write(out):
    rng = np.random.default_rng(12)
    text = "\n".join(line for line in TEXT.splitlines() if not line.strip().startswith("#"))  # ONNX's text has no comments
    model = build(text, weights(rng))
    write_fixture(out / "conv_bn", model, [{"image": normal(rng, batch, 3, 17, 15)} for batch in (1, 3)])
