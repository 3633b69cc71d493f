"""Whole models: Serin's CPU backend answers as ONNX Runtime does. README.md tells what the models are; tests/models.txt lists them."""

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

import checking
import weights
from checking import AGREE, DIFFER, ENTRIES, INERT, REFUSED, SERIN, UNBATCHED, prepared
from materialise import CACHE

LONG = os.environ.get("SERIN_LONG") == "1"
SAMPLED = 2  # weights that are zeroed in the normal run
SPREAD = (0.05, 50)


def in_long_run(entry):
    return pytest.mark.skipif(entry.long and not LONG, reason="only in the long run")


each_model = pytest.mark.parametrize("name", [pytest.param(name, marks=in_long_run(entry)) for name, entry in ENTRIES.items()])


def check(name, model, folder, *flags):
    return checking.check(name, model, folder, *flags, timeout=170 if not LONG else 1100)


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
    assert set(UNBATCHED) <= set(ENTRIES)
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


@each_model
def test_requests_may_share_a_run(name):
    """Exporters find new ways to write a mask; each must leave it provable that the rows of a batch are independent."""
    skip_if_refused(name)
    said = subprocess.run([SERIN, "inspect", prepared(name)[0]], capture_output=True, text=True, timeout=170, check=True).stdout
    proof = next(line for line in said.splitlines() if line.startswith("batchable:"))
    if name in UNBATCHED:
        assert proof.startswith("batchable: no"), f"{name} is provable now: take its line out of unbatched.txt"
        pytest.skip(UNBATCHED[name])
    assert proof.startswith("batchable: yes"), proof


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
