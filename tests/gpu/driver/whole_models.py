"""The models of tests/models.txt on the device: made out of their recipes here, and compared with ONNX Runtime on the CPU as tests/models does."""

import functools
import json
import os
import re
import subprocess

import numpy as np

import checking
import listing
import serving
from results import FAILED, PASSED, SKIPPED, Case, clip

LIMIT_S = 600
# The relative L2 error that is allowed where products may round what they multiply.
ROUNDED = {"fp16": 1e-2, "bf16": 5e-2, "tf32": 1e-2}
SERVED = ("resnet18", "mobilenet_v2", "bert_tiny", "vit_small", "gru_tagger")
ROWS = 64  # of each model's inputs
DIGITS = checking.weights.ROOT / "models/digits"
ROUNDED_MODELS = ("resnet50", "mobilenet_v3_large", "vit_b_16", "bert_base", "minilm")


def units(setting):
    checking.SERIN = setting.serin
    os.environ.update(setting.environment)  # checking starts the program
    found = {f"models/{name}": functools.partial(exact, setting, name) for name in checking.ENTRIES}
    for name in ROUNDED_MODELS:
        for precision in ROUNDED:
            found[f"models/{name}-{precision}"] = functools.partial(rounded, setting, name, precision)
    return found


def exact(setting, name):
    """One case; how many of its steps run on the device."""
    if name in checking.REFUSED:
        return [Case("", name, SKIPPED, detail=checking.REFUSED[name])], {}
    try:
        path, _ = checking.prepared(name)
    except FileNotFoundError as error:
        return [Case("", name, SKIPPED, detail=str(error))], {}
    done = checking.check(name, path, path.parent, *setting.device_flags, timeout=LIMIT_S)
    if done.returncode == checking.AGREE:
        return [Case("", name, PASSED)], placed(setting, name, path)
    return [Case("", name, FAILED, detail=clip(done.stdout + done.stderr))], {}


def placed(setting, name, path):
    """How many of the plan's steps run on the device, as `serin inspect` tells it; nothing for a model without a plan."""
    dims = [part for key, size in checking.ENTRIES[name].dims.items() for part in ("--dim", f"{key}={size}")]
    done = subprocess.run([setting.serin, "inspect", path, "--explain", *dims, *setting.device_flags], capture_output=True, text=True, check=False)
    said = re.search(r"device \d+ bytes; (\d+) of (\d+) steps run there", done.stdout)
    return {"steps on the device": int(said[1]), "steps in all": int(said[2])} if said else {}


def rounded(setting, name, precision):
    try:
        path, _ = checking.prepared(name)
    except FileNotFoundError as error:
        return [Case("", name, SKIPPED, detail=str(error))], {}
    done = subprocess.run(
        [setting.serin, "check", path, path.parent / "test_data_set_0", "--json", "--precision", precision, *setting.device_flags],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode not in (checking.AGREE, checking.DIFFER):
        return [Case("", f"{name} {precision}", FAILED, detail=clip(done.stdout + done.stderr))], {}
    errors = [output["relative_l2_error"] for data_set in json.loads(done.stdout)["data_sets"] for output in data_set["outputs"]]
    if max(errors) <= ROUNDED[precision]:
        return [Case("", f"{name} {precision}", PASSED)], {}
    return [Case("", f"{name} {precision}", FAILED, detail=f"relative L2 error {max(errors):.2e}, {ROUNDED[precision]} is allowed")], {}


def serving_units(setting):
    digits = {f"digits_{version}": (DIGITS / f"{version}/model.onnx", DIGITS / "eval.npz") for version in (1, 2)}
    return {
        "serve/digits": lambda: serving.mixed_requests(setting, "serve/digits", digits),
        "serve/mixed": lambda: serving.mixed_requests(setting, "serve/mixed", digits | {name: served(setting, name) for name in SERVED}),
    }


def served(setting, name):
    """A model's file, and rows of its inputs."""
    path, data = checking.materialise(name), setting.folder / f"{name}.npz"
    session = listing.reference(path, optimised=False)
    np.savez(data, **listing.make_inputs(checking.ENTRIES[name], session, {"batch": ROWS}))
    return path, data
