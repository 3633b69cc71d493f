"""Whole models with the answers of the framework that wrote them.

Frameworks are too large for a test, so a script of each format (export.py) runs its framework once. It keeps the model without its weights, and the answers.
A test draws the same weights again, writes the model as its users have it, and compares the answers with those of `serin check`.
"""

import lzma
import os
import pathlib
import subprocess
import zipfile

import numpy as np

import listing

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERIN = pathlib.Path(os.environ.get("SERIN", ROOT / "build/serin"))
RTOL, ATOL = "1e-4", "1e-5"  # |a - b| <= 1e-4 |b| + 1e-5 max|b|
SPREAD = (0.05, 50)  # the deviation of an output that is worth comparing


def write_answers(path, outputs):
    """{output: array}, in the order of the model's outputs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wb", preset=9) as file, zipfile.ZipFile(file, "w") as archive:  # of equal bytes for equal answers
        for name, array in outputs.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                plain = np.asarray(array)
                np.lib.format.write_array(member, plain.astype("S") if plain.dtype == object else plain, allow_pickle=False)


def read_answers(path):
    with lzma.open(path) as file, np.load(file) as stored:
        return {name: stored[name].astype(object) if stored[name].dtype.kind == "S" else stored[name] for name in stored.files}


def write_data_set(folder, inputs, outputs):
    """The folder that `serin check` reads: arrays in the order of the model's inputs and outputs."""
    folder.mkdir(parents=True, exist_ok=True)
    listing.write_data_set(folder, inputs, outputs)
    return folder


def check(model, folder, *flags, timeout=170, rtol=RTOL, atol=ATOL):
    command = [SERIN, "check", model, folder, "--rtol", rtol, "--atol", atol, *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def assert_agrees(model, folder, *flags, **errors):
    done = check(model, folder, *flags, **errors)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]


def assert_spread(outputs):
    """A network that answers the same to everything would agree with any engine."""
    for name, value in outputs.items():
        if np.issubdtype(value.dtype, np.floating) and value.size > 1:
            assert SPREAD[0] <= value.std() <= SPREAD[1], name
