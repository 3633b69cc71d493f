"""serin serve in a control group with too little memory: it refuses a model that cannot fit, as serin plan does, and never one that can."""

import contextlib
import json
import signal
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import control_group
from conftest import MODELS, ON_FREE_PORTS, SERIN, Process, call, infer_body, serin

MIB = 1 << 20
SIDE = 5120  # 100 MiB of weights


@pytest.fixture
def limited():
    """limited(bytes): what runs a program in a control group with that much memory."""
    with contextlib.ExitStack() as groups:
        try:
            groups.enter_context(control_group.limited(1 << 30))
        except OSError as why:
            pytest.skip(f"no control group with a limit of memory can be made here: {why}")
        yield lambda most: groups.enter_context(control_group.limited(most)).run_by


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    weights = np.random.default_rng(0).standard_normal((SIDE, SIDE), dtype=np.float32)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", SIDE]) for name in ("pixels", "y")]
    graph = helper.make_graph([helper.make_node("MatMul", ["pixels", "w"], ["y"])], "g", ends[:1], ends[1:], [numpy_helper.from_array(weights, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), folder / "model.onnx")
    return folder / "model.onnx"


def total(model):
    return json.loads(serin("plan", model, "--json", env={"XDG_CACHE_HOME": "/dev/null"}).stdout)["process"]["total_bytes"]


def advice(text):
    return text[text.index("the limit has"):].split(";")[0].split("\n")[0].split(":")[0]


def test_what_cannot_fit_is_refused_as_plan_refuses_it(limited, large):
    limit = 90 * MIB  # less than the weights alone
    planned = serin("plan", large, "--memory", limit)
    assert planned.returncode == 1
    done = subprocess.run([*limited(limit), SERIN, "serve", large, "--check"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    said = next(line for line in done.stdout.splitlines() if "FAILED" in line)
    assert "needs " in said and "--memory-check warn loads it all the same" in said
    assert advice(said) == advice(planned.stdout) == "the limit has 94.4 MB"


def test_without_the_check_it_is_killed(limited, large):
    """So the refusal is right."""
    for how in "warn", "off":
        done = subprocess.run([*limited(90 * MIB), SERIN, "serve", large, "--check", "--memory-check", how], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
        assert ("memory: it cannot fit: needs " in done.stderr) == (how == "warn")


def test_what_fits_by_its_plan_is_served_within_it(limited, large, tmp_path):
    with Process(tmp_path, "serve", large, *ON_FREE_PORTS, run_by=limited(total(large))) as server:
        assert "memory:" not in server.log
        answer = call(f"{server.url}/v2/models/model/infer", infer_body([[0.0] * SIDE]))
        assert answer.status == 200, answer.body


def test_between_the_certain_and_the_plan_it_warns_and_serves(limited, large, tmp_path):
    planned = total(large)
    limit = planned - 4 * MIB
    with Process(tmp_path, "serve", large, *ON_FREE_PORTS, run_by=limited(limit)) as server:
        assert "memory: it may not fit: needs " in server.log
        assert call(f"{server.url}/v2/models/model/ready").status == 200


def test_a_file_in_the_working_folder_is_measured_like_any_other(limited, large):
    """With more memory than small models need, so that the sizes of files decide whether a plan is made."""
    much = "serve", "--instances", 32, "--max-batch", 2048
    warned = []
    for place in (large.name, large):
        command = [*limited(1200 * MIB), SERIN, *map(str, much), place, "--check"]
        done = subprocess.run(command, cwd=large.parent, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        warned.append("memory: it may not fit: needs " in done.stderr)
    assert warned == [True, True]


def test_other_models_are_served_all_the_same(limited, large, repository, tmp_path):
    models = repository({"digits/1": MODELS / "digits/2/model.onnx", "large/1": large})
    with Process(tmp_path, "serve", "--models", models, *ON_FREE_PORTS, run_by=limited(90 * MIB)) as server:
        assert call(f"{server.url}/v2/models/digits/ready").status == 200
        assert call(f"{server.url}/v2/models/large/ready").status != 200
        assert "the limit has 94.4 MB" in server.log


def test_a_flag_that_is_no_word_is_named():
    done = serin("serve", MODELS, "--memory-check", "maybe")
    assert done.returncode == 2 and "--memory-check" in done.stderr
