"""A whole model beside ONNX Runtime: its inputs, what ONNX Runtime answers to them, and `serin check` on both.

ONNX Runtime runs without rewriting the graph: that is the nearest to what the file says. Every model is run at the listed sizes and, where
it has a symbolic batch, at a batch of 2.
"""

import functools
import os
import pathlib
import shutil
import subprocess

import numpy as np

import listing
import weights
from materialise import materialise

SERIN = pathlib.Path(os.environ.get("SERIN", weights.ROOT / "build/serin"))
AGREE, DIFFER, CANNOT = 0, 1, 3  # exit codes of serin check
QUANTISED_ATOL = 0.01  # a step or so of what an s8 tensor can tell apart
ENTRIES = listing.entries()


def table(file):
    """{first column: second} of a file beside this one."""
    lines = (pathlib.Path(__file__).parent / file).read_text().splitlines()
    return {key.strip(): value.strip() for key, value in (line.split("|", 1) for line in lines if line and not line.startswith("#"))}


REFUSED, INERT, UNBATCHED = table("refused.txt"), table("inert.txt"), table("unbatched.txt")


def batches(entry):
    return [{}, {"batch": 2}] if entry.dims.get("batch", 2) != 2 else [{}]


@functools.cache
def prepared(name):
    """The model's file, with data sets of seeded inputs and ONNX Runtime's outputs beside it; and its first outputs."""
    path, entry = materialise(name), ENTRIES[name]
    session = listing.reference(path, optimised=listing.SATURATES and entry.quantised)
    names, first = [output.name for output in session.get_outputs()], None
    for number, dims in enumerate(batches(entry)):
        folder = path.parent / f"test_data_set_{number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        inputs = listing.make_inputs(entry, session, dims)
        outputs = session.run(None, inputs)
        listing.write_data_set(folder, inputs.values(), outputs)
        first = first if first is not None else dict(zip(names, outputs))
    return path, first


def check(name, model, folder, *flags, timeout=170):
    return subprocess.run(
        [SERIN, "check", model, folder, "--rtol", str(weights.RTOL), "--atol", str(weights.ATOL), *tolerances(name), *flags],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@functools.cache
def tolerances(name):
    """Flags: the share of its largest element that an output of a quantised model may be off by."""
    if not ENTRIES[name].quantised:
        return []
    path, expected = prepared(name)
    differ = dict.fromkeys((output for output, b in expected.items() if np.issubdtype(b.dtype, np.floating)), QUANTISED_ATOL)
    for optimised in (True,) if listing.SATURATES else (True, False):
        session = listing.reference(path, optimised)
        inputs = listing.make_inputs(ENTRIES[name], session)
        for factor in (1, np.float32(1 + 1e-6)):
            nudged = {key: value * factor if value.dtype == np.float32 else value for key, value in inputs.items()}
            answers = dict(zip(expected, session.run(list(expected), nudged)))
            for output, allowed in differ.items():
                b = expected[output]
                differ[output] = max(allowed, 2 * np.abs(answers[output] - b).max() / np.abs(b).max())
    return [part for output, allowed in differ.items() for part in ("--output-atol", output, str(allowed))]
