"""What cuDNN offers for the graphs that kernels/cuda/nvidia makes of convolutions, on a machine without a GPU (dnn_plans.cc says how)."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = [ROOT / ".deps/cuda/nvidia/cudnn/lib", ROOT / ".deps/cuda/nvidia/cu13/lib"]  # the library looks for its parts there


@pytest.fixture(scope="module")
def offered():
    """{(layer, layout, type): (plans, how many at the beginning of the list are left out)}; a reason instead where it is refused."""
    path = os.pathsep.join(str(folder) for folder in LIBRARIES)
    done = subprocess.run([ROOT / "build-cuda/dnn_plans"], capture_output=True, text=True, check=False, timeout=300,
                          env=dict(os.environ, LD_LIBRARY_PATH=path))
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return {tuple(row[:3]): tuple(map(int, row[3:])) if len(row) == 5 else row[3] for row in rows}


def test_every_layer_has_a_plan(offered):
    assert len(offered) == 20
    refused = {layer: said for layer, said in offered.items() if isinstance(said, str)}
    assert refused == {}


def test_f32_has_plans_that_keep_its_precision(offered):
    """And they come after the others, so who looks at the first few alone finds none."""
    rows = {layer[0]: said for layer, said in offered.items() if layer[2] == "f32"}
    assert all(left_out < plans for plans, left_out in rows.values()), rows
    assert rows["resnet 3x3"][1] > 16


def test_f16_leaves_nothing_out(offered):
    assert all(left_out == 0 for layer, (_, left_out) in offered.items() if layer[2] == "f16")


def test_a_residual_before_the_bias_meets_kernels_that_fuse_it(offered):
    """The other way round f32 is refused, and f16 has a handful that must be compiled first."""
    assert offered["resnet 1x1 with residual", "channels first", "f32"][0] > 20
    assert offered["resnet 1x1 with residual", "channels last", "f16"][0] > 20
