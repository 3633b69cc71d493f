"""Whole models: Serin's CPU backend answers as ONNX Runtime does. README.md tells what the models are; tests/models.txt lists them.

ONNX Runtime runs without rewriting the graph: that is the nearest to what the file says. Every model is run at the listed sizes and, where
it has a symbolic batch, at a batch of 2.
"""

import fnmatch
import functools
import os
import pathlib
import random
import shutil
import subprocess

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import listing
import weights
from materialise import CACHE, materialise

SERIN = pathlib.Path(os.environ.get("SERIN", weights.ROOT / "build/serin"))
LONG = os.environ.get("SERIN_LONG") == "1"
SAMPLED = 2  # weights that are zeroed in the normal run
AGREE, DIFFER, CANNOT = 0, 1, 3  # exit codes of serin check
SPREAD = (0.05, 50)
QUANTISED_ATOL = 0.01  # a step or so of what an s8 tensor can tell apart
ENTRIES = listing.entries()


def table(file):
    """{first column: second} of a file beside this one."""
    lines = (pathlib.Path(__file__).parent / file).read_text().splitlines()
    return {key.strip(): value.strip() for key, value in (line.split("|", 1) for line in lines if line and not line.startswith("#"))}


REFUSED, INERT = table("refused.txt"), table("inert.txt")


def in_long_run(entry):
    return pytest.mark.skipif(entry.long and not LONG, reason="only in the long run")


each_model = pytest.mark.parametrize("name", [pytest.param(name, marks=in_long_run(entry)) for name, entry in ENTRIES.items()])


def batches(entry):
    return [{}, {"batch": 2}] if entry.dims.get("batch", 2) != 2 else [{}]


@functools.cache
def prepared(name):
    """The model's file, with data sets of seeded inputs and ONNX Runtime's outputs beside it; and its first outputs."""
    path, entry = materialise(name), ENTRIES[name]
    session = listing.reference(path, optimised=False)
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


def check(name, model, folder, *flags):
    return subprocess.run(
        [SERIN, "check", model, folder, "--rtol", str(weights.RTOL), "--atol", str(tolerance(name)), *flags],
        capture_output=True,
        text=True,
        timeout=170 if not LONG else 1100,
        check=False,
    )


@functools.cache
def tolerance(name):
    """The share of the largest element that an error may have, beside its share of the element itself."""
    if not ENTRIES[name].quantised:
        return weights.ATOL
    path, expected = prepared(name)
    differ = [QUANTISED_ATOL]
    for optimised in (True, False):
        session = listing.reference(path, optimised)
        inputs = listing.make_inputs(ENTRIES[name], session)
        for factor in (1, np.float32(1 + 1e-6)):
            nudged = {key: value * factor if value.dtype == np.float32 else value for key, value in inputs.items()}
            answers = zip(session.run(None, nudged), expected.values())
            differ += [2 * np.abs(a - b).max() / np.abs(b).max() for a, b in answers if np.issubdtype(b.dtype, np.floating)]
    return max(differ)


@functools.cache
def pass_names():
    """Asked of the program, which lists them when one is unknown."""
    said = subprocess.run([SERIN, "check", "x", "x", "--disable-pass", "?"], capture_output=True, text=True, check=False).stderr
    return sorted({name.strip() for name in said.split("passes are", 1)[1].split(",")})


def skip_if_refused(name):
    if name in REFUSED:
        pytest.skip(REFUSED[name])


def test_every_model_has_a_recipe_and_every_recipe_a_model():
    recipes = {path.name.removesuffix(".onnx.xz") for path in (pathlib.Path(__file__).parent / "recipes").iterdir()}
    assert recipes == set(ENTRIES)
    assert {name.removesuffix(" without passes") for name in REFUSED} <= set(ENTRIES)
    assert len(ENTRIES) >= 60


@each_model
def test_outputs_are_spread(name):
    """A network that answers zero whatever it is asked would agree with any engine."""
    for output, value in prepared(name)[1].items():
        if np.issubdtype(value.dtype, np.floating) and value.size > 1 and not name.startswith("sk_"):
            assert SPREAD[0] <= value.std() <= SPREAD[1], output


def expect(done, listed):
    """The run agreed, or it is listed as one that does not."""
    if listed in REFUSED:
        assert done.returncode != AGREE, f"{listed} has become right: take its line out of refused.txt"
        pytest.skip(REFUSED[listed])
    assert done.returncode == AGREE, (done.stdout + done.stderr)[-2000:]


@each_model
def test_answers_as_onnx_runtime_does(name):
    path, _ = prepared(name)
    expect(check(name, path, path.parent), name)


@each_model
def test_answers_the_same_without_passes(name):
    skip_if_refused(name)
    path, _ = prepared(name)
    disabled = [part for one in pass_names() for part in ("--disable-pass", one)]
    expect(check(name, path, path.parent, *disabled), f"{name} without passes")


def split(path):
    """The same model with its weights in a file of their own, so that one with other weights costs little."""
    folder = CACHE / "split" / path.parent.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model = onnx.load(path)
    onnx.save_model(model, folder / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=1024)
    return onnx.load(folder / "model.onnx", load_external_data=False), folder


def zeroed(model, name, folder):
    """A copy in which one tensor holds zeros."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    tensor = next(t for t in copy.graph.initializer if t.name == name)
    tensor.CopyFrom(numpy_helper.from_array(np.zeros(list(tensor.dims), onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)), name))
    path = folder / "zeroed.onnx"
    path.write_bytes(copy.SerializeToString())
    return path


@each_model
def test_a_weight_set_to_zero_shows(name):
    """The comparison sees every weight: each one set to zero makes it fail, but for those that cannot matter."""
    skip_if_refused(name)
    path, _ = prepared(name)
    tensors = weights.names(onnx.load(path))
    chosen = tensors if LONG else random.Random(name).sample(tensors, min(SAMPLED, len(tensors)))
    if not chosen:
        pytest.skip("its weights are attributes of its nodes")
    model, folder = split(path)
    wrong = []
    for tensor in chosen:
        inert = any(fnmatch.fnmatchcase(text, pattern) for text in (tensor, f"{name}/{tensor}") for pattern in INERT)
        done = check(name, zeroed(model, tensor, folder), path.parent / "test_data_set_0")
        if done.returncode != (AGREE if inert else DIFFER):
            wrong.append(f"{tensor}: {done.stdout}{done.stderr}"[:400])
    shutil.rmtree(folder)
    assert not wrong
