"""Graphs whose work or whose shapes depend on values: If, and NonZero."""

import numpy as np

from .common import build, normal, write as write_fixture

# Both branches read the outer graph's values; they compute different things of one shape.
IF_TEXT = """control_flow (bool flag, float[batch, 4] x) => (float[batch, 3] y, bool large) {
    y = If (flag) <
        then_branch = project () => (float[batch, 3] projected) {
            product = MatMul(x, w)
            projected = Relu(product)
        },
        else_branch = spread () => (float[batch, 3] spread_out) {
            mean = ReduceMean(x, last_axis)
            spread_out = Add(mean, offsets)
        }>
    largest = ReduceMax<keepdims: int = 0>(x)
    large = Greater(largest, limit)
}"""

# Of n boxes, those whose score is above the threshold: k of them, known only once it has run, and never more than n.
NONZERO_TEXT = """nonzero (float[n] scores, float[n, 4] boxes, float threshold) => (int64[k] kept, float[k, 4] kept_boxes) {
    above = Greater(scores, threshold)
    coordinates = NonZero(above)
    kept = Squeeze(coordinates, first_axis)
    kept_boxes = Gather<axis: int = 0>(boxes, kept)
}"""


def write_if(out):
    rng = np.random.default_rng(13)
    model = build(IF_TEXT, {
        "w": normal(rng, 4, 3), "last_axis": np.array([-1]), "offsets": np.array([-1, 0, 1], np.float32), "limit": np.float32(1)})
    write_fixture(out / "control_flow", model, [
        {"flag": np.array(True), "x": normal(rng, 2, 4)},
        {"flag": np.array(False), "x": normal(rng, 5, 4)},
    ])


def write_nonzero(out):
    rng = np.random.default_rng(14)
    model = build(NONZERO_TEXT, {"first_axis": np.array([0])})

    def data_set(boxes, threshold):
        scores = rng.uniform(0.1, 0.9, boxes).astype(np.float32)
        return {"scores": scores, "boxes": normal(rng, boxes, 4), "threshold": np.float32(threshold)}

    some, none, all_of_them = 0.5, 1, 0
    write_fixture(out / "nonzero", model, [data_set(9, some), data_set(9, none), data_set(4, all_of_them)])
