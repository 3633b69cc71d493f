"""Whole models on a device: every operator of a model has a kernel there, and `serin inspect` says so. The plan is the same on the emulated
device (tests/gpu) as on a real one; some of the models also answer there as ONNX Runtime does."""

import json
import os
import re
import subprocess

import onnx
import pytest

from checking import AGREE, ENTRIES, SERIN, check, prepared
from materialise import materialise
from weights import ROOT

PLUGIN = ROOT / "build/tests/libserin_cuda_emulated.so"
DEVICE = ("--device", "cuda", "--cuda-plugin", str(PLUGIN))

# Sizes computed from data: no plan holds these models, they are interpreted on the host.
INTERPRETED = {"mask_rcnn_heads", "suppression"}

# Some for each family of kernels; the others in the long run, and on a real device (tests/gpu/run).
ANSWERED = [
    "bert_tiny_dynamic",
    "bert_tiny_fused_dynamic",
    "bert_tiny_u8s8",
    "crnn",
    "deberta",
    "elman",
    "gpt2_four_bits",
    "gru_tagger",
    "mobilenet_v2_u8u8",
    "raft_small",
    "style_transfer",
    "unet",
    "upscaler",
    "yolo_suppressed",
    "yolo_u8s8",
]


# In 16 bits: one of each architecture, and the relative L2 error that roundings of its steps add up to (bf16 keeps three bits fewer).
IN_16_BITS = ["bert_tiny", "convnext_tiny", "gpt2", "minilm", "mobilenet_v3_small", "resnet18", "vit_small"]
ROUNDED = {"fp16": 3e-3, "bf16": 2.4e-2}

# Not the pipelines of scikit-learn, whose operators decide by tables of a few numbers: those are the host's.
ON_DEVICE = [name for name, entry in ENTRIES.items() if not entry.long and not name.startswith("sk_")]


# Layers of attention whose three products are one on a device. Not Llama, which turns q and k by their positions; not models with one product already.
PROJECTED = {"albert": 3, "bert_tiny": 2, "clip": 4, "distilbert": 2, "gpt2": 0, "llama": 0, "minilm": 6, "t5_encoder": 2, "vit_small": 0, "whisper_encoder": 2}


def sizes(name, path):
    """A size for each open dimension, as flags. One without a name is called after its input and axis."""
    dims, found = ENTRIES[name].dims, {}
    for tensor in onnx.load(path, load_external_data=False).graph.input:
        for axis, dim in enumerate(tensor.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value"):
                found[dim.dim_param or f"{tensor.name}_d{axis}"] = dims.get(dim.dim_param, dims.get("batch"))
    return [part for key, value in found.items() for part in ("--dim", f"{key}={value}")]


@pytest.mark.parametrize("name", ON_DEVICE)
def test_every_operator_runs_on_the_device(name):
    path = materialise(name)
    command = [SERIN, "inspect", path, "--explain", *sizes(name, path), *DEVICE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    said = re.search(r"device \d+ bytes; (\d+) of (\d+) steps run there, .*", done.stdout)
    assert bool(said) == (name not in INTERPRETED)
    assert not said or said[1] == said[2], said[0]


@pytest.mark.parametrize("name", PROJECTED)
def test_three_products_of_attention_are_one(name):
    path = materialise(name)

    def steps(*flags):
        command = [SERIN, "inspect", path, "--explain", *sizes(name, path), *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
        return re.findall(r"^  (\w+) +\S+ +[\d.]+\w* +[\d.]+\w+  \w+\[", done.split("\nplan on ")[1], re.MULTILINE)

    def products(found):
        return sum(op in ("MatMul", "FusedMatMul") for op in found)

    joined, apart, on_cpu = steps(*DEVICE), steps(*DEVICE, "--disable-pass", "fuse_projections"), steps()
    assert products(apart) - products(joined) == 2 * PROJECTED[name]
    assert products(on_cpu) == products(apart)
    assert set(joined) <= set(apart), "nothing is copied for it"
    assert len(apart) - len(joined) >= 2 * PROJECTED[name]


def test_suppression_leaves_the_device_as_a_count():
    """What is copied back of a detector: how many boxes it keeps, and these. Not the candidates, of which there are 189."""
    path = materialise("yolo_suppressed")
    command = [SERIN, "inspect", path, "--explain", *sizes("yolo_suppressed", path), *DEVICE]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert re.search(r"NonMaxSuppression +suppression_cuda ", said)
    copied = re.findall(r"copied to the host: (.*), (\d+) bytes", said)
    most = 20 * 8  # of each of 8 classes
    assert [(name.split()[-1], int(size)) for name, size in copied] == [
        ("sizes", 8),
        ("kept", most * 24),
        ("kept_boxes", most * 16),
        ("percent", most * 4),
    ]


@pytest.mark.parametrize("name", ON_DEVICE if os.environ.get("SERIN_LONG") == "1" else ANSWERED)
def test_answers_on_the_emulated_device(name):
    path, _ = prepared(name)
    done = check(name, path, path.parent, *DEVICE)
    assert done.returncode == AGREE, (done.stdout + done.stderr)[-2000:]


@pytest.mark.parametrize("precision", ROUNDED)
@pytest.mark.parametrize("name", IN_16_BITS)
def test_answers_in_16_bits(name, precision):
    path, _ = prepared(name)
    command = [SERIN, "check", path, path.parent, "--json", "--precision", precision, *DEVICE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    outputs = [output for data_set in json.loads(done.stdout)["data_sets"] for output in data_set["outputs"]]
    assert outputs
    for output in outputs:
        assert 0 < output["relative_l2_error"] <= ROUNDED[precision], output
