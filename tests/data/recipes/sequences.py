"""Models of sequences: one that shows the controls it is given, one that adds up what it is given in a state."""

import numpy as np

from .common import build, write as write_fixture

CONTROLS_TEXT = """controls (int32[n, 1] INPUT, int32[n, 1] START, bool[n, 1] READY, float[n, 1] END, int64[n, 1] CORRID)
    => (int32[n, 1] OUTPUT, int64[n, 1] SEQUENCE) {
    start = Mul(START, ten)
    end_number = Cast<to: int = 6>(END)
    end = Mul(end_number, hundred)
    ready_number = Cast<to: int = 6>(READY)
    ready = Mul(ready_number, thousand)
    first = Add(INPUT, start)
    last = Add(end, ready)
    OUTPUT = Add(first, last)
    SEQUENCE = Identity(CORRID)
}"""

STATE_TEXT = """state (int32[n, 1] INPUT, int32[n, 1] PAST) => (int32[n, 1] OUTPUT, int32[n, 1] PRESENT) {
    PRESENT = Add(INPUT, PAST)
    OUTPUT = Identity(PRESENT)
}"""


def column(*values, dtype=np.int32):
    return np.array(values, dtype).reshape(-1, 1)


def write(out):
    weights = {"ten": np.int32(10), "hundred": np.int32(100), "thousand": np.int32(1000)}
    write_fixture(out / "sequence_controls", build(CONTROLS_TEXT, weights), [
        {"INPUT": column(1, 2), "START": column(1, 0), "READY": column(1, 1, dtype=bool), "END": column(0, 1, dtype=np.float32),
         "CORRID": column(7, 8, dtype=np.int64)},
    ])
    write_fixture(out / "sequence_state", build(STATE_TEXT), [{"INPUT": column(1, 2, 3), "PAST": column(10, 0, -3)}])
