"""The models of tests/models.txt on the device: made here out of their recipes, and compared with ONNX Runtime as tests/models does."""

import functools
import json
import subprocess

import numpy as np

import checking
import listing
import serving
from results import FAILED, PASSED, SKIPPED, Case, clip

LIMIT_S = 540  # a first load measures kernels
# The relative L2 error that is allowed where products may round what they multiply.
ROUNDED = {"fp16": 1e-2, "bf16": 5e-2, "tf32": 1e-2}
SERVED = ("resnet18", "mobilenet_v2", "bert_tiny", "vit_small", "gru_tagger")
ROWS = 64  # of each model's inputs
DIGITS = checking.weights.ROOT / "models/digits"
ROUNDED_MODELS = ("resnet50", "mobilenet_v3_large", "vit_b_16", "bert_base", "minilm")


def units(setting):
    checking.SERIN, checking.weights.drawn_will_do = setting.serin, True
    found = {f"models/{name}": functools.partial(unless_refused, exact, setting, name) for name in checking.ENTRIES}
    for name in ROUNDED_MODELS:
        for precision in ROUNDED:
            found[f"models/{name}-{precision}"] = functools.partial(unless_refused, rounded, setting, name, precision)
    return found


def unless_refused(run, setting, name, *more):
    """run(setting, name, path, *more): (what went wrong, notes). Skipped where the model is refused."""
    if name in checking.REFUSED:
        return [Case("", name, SKIPPED, detail=checking.REFUSED[name])], {}
    path, _ = checking.prepared(name)
    wrong, notes = run(setting, name, path, *more)
    return [Case("", " ".join([name, *more]), FAILED if wrong else PASSED, detail=clip(wrong))], notes


def exact(setting, name, path):
    done = checking.check(name, path, path.parent, *setting.device_flags, timeout=LIMIT_S)
    if done.returncode != checking.AGREE:
        return done.stdout + done.stderr or f"exit code {done.returncode}", {}
    return "", placed(setting, name, path)


def placed(setting, name, path):
    """How many of the plan's steps run on the device, as `serin inspect` tells it; nothing for a model without a plan."""
    dims = [part for key, size in checking.ENTRIES[name].dims.items() for part in ("--dim", f"{key}={size}")]
    command = [setting.serin, "inspect", path, "--explain", "--json", *dims, *setting.device_flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    plan = json.loads(done.stdout).get("device") if done.returncode == 0 else None
    return {"steps on the device": plan["steps_there"], "steps in all": plan["steps"]} if plan else {}


def rounded(setting, name, path, precision):
    command = [setting.serin, "check", path, path.parent / "test_data_set_0", "--json", "--precision", precision, *setting.device_flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode not in (checking.AGREE, checking.DIFFER):
        return done.stdout + done.stderr or f"exit code {done.returncode}", {}
    outputs = [output for data_set in json.loads(done.stdout)["data_sets"] for output in data_set["outputs"]]
    errors = {output["name"]: output["relative_l2_error"] for output in outputs}
    return "; ".join(f"{name}: relative L2 error {error:.2e}" for name, error in errors.items() if not error <= ROUNDED[precision]), {}


def serving_units(setting):
    digits = {f"digits_{version}": (DIGITS / f"{version}/model.onnx", DIGITS / "eval.npz") for version in (1, 2)}
    def mixed():
        return digits | {name: served(setting, name) for name in SERVED}

    def once(unit):
        return serving.second_start(setting, unit, {name: checking.materialise(name) for name in SERVED[:3]})

    return {
        "serve/digits": lambda: serving.mixed_requests(setting, "serve/digits", digits),
        "serve/mixed": lambda: serving.mixed_requests(setting, "serve/mixed", mixed()),
        "serve/fp16": lambda: serving.mixed_requests(setting, "serve/fp16", mixed(), "fp16"),
        "serve/second-start": lambda: once("serve/second-start"),
    }


def served(setting, name):
    """A model's file, and rows of its inputs."""
    path, data = checking.materialise(name), setting.folder / f"{name}.npz"
    session = listing.reference(path, optimised=False)
    np.savez(data, **listing.make_inputs(checking.ENTRIES[name], session, {"batch": ROWS}))
    return path, data
