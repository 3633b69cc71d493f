"""A two-layer encoder in the operators that exporters write: shapes computed at run time by Shape and Concat, a mask from Where and Equal,
GELU from Erf. The first layer normalises with LayerNormalization, the second with the same formula written out."""

import numpy as np

from .common import build, normal, write as write_fixture

VOCABULARY, POSITIONS, WIDTH, HEADS, HIDDEN = 48, 32, 32, 4, 64
HEAD_WIDTH = WIDTH // HEADS

EMBEDDING = """
    shape = Shape(ids)
    batch_size = Slice(shape, zero, one)
    length = Slice(shape, one, two)
    words = Gather(word_table, ids)
    places = Slice(place_table, zero, length, zero)
    h0 = Add(words, places)
    split_shape = Concat<axis: int = 0>(batch_size, length, heads_and_width)
    join_shape = Concat<axis: int = 0>(batch_size, length, width)
    mask_row = Unsqueeze(mask, one_two)
    hidden_from = Equal(mask_row, zero_scalar)
    penalty = Where(hidden_from, minus_large, zero_float)
"""


def attention_text(i, x, y):
    return "".join(f"""
    {p}{i}_product = MatMul({x}, {p}{i}_w)
    {p}{i}_sum = Add({p}{i}_product, {p}{i}_b)
    {p}{i}_split = Reshape({p}{i}_sum, split_shape)
    {p}{i} = Transpose<perm: ints = {"[0, 2, 3, 1]" if p == "k" else "[0, 2, 1, 3]"}>({p}{i}_split)""" for p in "qkv") + f"""
    raw{i} = MatMul(q{i}, k{i})
    scaled{i} = Div(raw{i}, root_of_width)
    masked{i} = Add(scaled{i}, penalty)
    weights{i} = Softmax<axis: int = -1>(masked{i})
    mixed{i} = MatMul(weights{i}, v{i})
    mixed{i}_rows = Transpose<perm: ints = [0, 2, 1, 3]>(mixed{i})
    joined{i} = Reshape(mixed{i}_rows, join_shape)
    o{i}_product = MatMul(joined{i}, o{i}_w)
    o{i}_sum = Add(o{i}_product, o{i}_b)
    {y} = Add(o{i}_sum, {x})
"""


def feed_forward_text(i, x, y):
    return f"""
    up{i}_product = MatMul({x}, up{i}_w)
    up{i} = Add(up{i}_product, up{i}_b)
    up{i}_scaled = Div(up{i}, root_of_two)
    up{i}_erf = Erf(up{i}_scaled)
    up{i}_erf1 = Add(up{i}_erf, one_float)
    up{i}_gated = Mul(up{i}, up{i}_erf1)
    gelu{i} = Mul(up{i}_gated, half)
    down{i}_product = MatMul(gelu{i}, down{i}_w)
    down{i} = Add(down{i}_product, down{i}_b)
    {y} = Add(down{i}, {x})
"""


def norm_operator(name, x, y):
    return f"    {y} = LayerNormalization<axis: int = -1, epsilon: float = 1e-5>({x}, {name}_gain, {name}_bias)\n"


def norm_decomposed(name, x, y):
    return f"""
    {name}_mean = ReduceMean({x}, last_axis)
    {name}_centred = Sub({x}, {name}_mean)
    {name}_square = Pow({name}_centred, two_float)
    {name}_variance = ReduceMean({name}_square, last_axis)
    {name}_shifted = Add({name}_variance, epsilon)
    {name}_deviation = Sqrt({name}_shifted)
    {name}_unit = Div({name}_centred, {name}_deviation)
    {name}_scaled = Mul({name}_unit, {name}_gain)
    {y} = Add({name}_scaled, {name}_bias)
"""


POOLER = """
    first = Gather<axis: int = 1>(hidden, zero_scalar)
    pooled_sum = Gemm<transB: int = 1>(first, pool_w, pool_b)
    pooled = Tanh(pooled_sum)
"""


def text():
    body = EMBEDDING
    for i, norm in enumerate([norm_operator, norm_decomposed]):
        body += attention_text(i, f"h{i}", f"attended{i}")
        body += norm(f"norm{i}a", f"attended{i}", f"normed{i}")
        body += feed_forward_text(i, f"normed{i}", f"fed{i}")
        body += norm(f"norm{i}b", f"fed{i}", "hidden" if i == 1 else f"h{i + 1}")
    inputs = "int64[batch, seq] ids, int64[batch, seq] mask"
    outputs = f"float[batch, seq, {WIDTH}] hidden, float[batch, {WIDTH}] pooled"
    return f"attention ({inputs}) => ({outputs}) {{{body}{POOLER}}}"


def weights(rng):
    values = {
        "zero": [0], "one": [1], "two": [2], "one_two": [1, 2], "zero_scalar": 0, "last_axis": [-1],
        "heads_and_width": [HEADS, HEAD_WIDTH], "width": [WIDTH],
        "minus_large": -1e9, "zero_float": 0.0, "one_float": 1.0, "two_float": 2.0, "half": 0.5, "epsilon": 1e-5,
        "root_of_two": np.sqrt(2), "root_of_width": np.sqrt(HEAD_WIDTH),
    }
    floats = {"minus_large", "zero_float", "one_float", "two_float", "half", "epsilon", "root_of_two", "root_of_width"}
    values = {name: np.array(value, np.float32 if name in floats else np.int64) for name, value in values.items()}
    values["word_table"] = normal(rng, VOCABULARY, WIDTH)
    values["place_table"] = normal(rng, POSITIONS, WIDTH, scale=0.3)
    for i in range(2):
        sizes = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "o": (WIDTH, WIDTH), "up": (WIDTH, HIDDEN),
                 "down": (HIDDEN, WIDTH)}
        for name, (rows, columns) in sizes.items():
            values[f"{name}{i}_w"] = normal(rng, rows, columns, scale=rows ** -0.5)
            values[f"{name}{i}_b"] = normal(rng, columns, scale=0.1)
        for name in (f"norm{i}a", f"norm{i}b"):
            values[f"{name}_gain"] = 1 + normal(rng, WIDTH, scale=0.1)
            values[f"{name}_bias"] = normal(rng, WIDTH, scale=0.1)
    values["pool_w"] = normal(rng, WIDTH, WIDTH, scale=WIDTH ** -0.5)
    values["pool_b"] = normal(rng, WIDTH, scale=0.1)
    return values


def write(out):
    rng = np.random.default_rng(11)
    model = build(text(), weights(rng))
    data_sets = []
    for batch, seq, lengths in [(1, 8, [8]), (3, 13, [13, 5, 9]), (2, 1, [1, 1])]:
        mask = (np.arange(seq) < np.array(lengths)[:, None]).astype(np.int64)
        data_sets.append({"ids": rng.integers(0, VOCABULARY, (batch, seq)), "mask": mask})
    write_fixture(out / "attention", model, data_sets)
