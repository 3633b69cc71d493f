"""serin plan --observe: figures of a real server next to those of its plan."""

import json

import onnx
import pytest
from onnx import TensorProto, helper

from conftest import MODELS, ON_FREE_PORTS, call, free_port, infer_body, serin

DIGIT = MODELS / "digits/2/model.onnx"


@pytest.fixture
def plan(tmp_path):
    def ask(*arguments, code=0):
        done = serin("plan", DIGIT, *arguments, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
        assert done.returncode == code, done.stdout + done.stderr
        return done
    return ask


def lines(observed):
    return {line["what"]: line for line in observed["lines"]}


def test_memory_and_times_stand_next_to_the_plan(start, plan):
    server = start("serve", DIGIT, *ON_FREE_PORTS)
    page = f"http://127.0.0.1:{server.ports['metrics']}"
    observed = json.loads(plan("--observe", page, "--json").stdout)["observed"]
    assert observed["url"] == page.removeprefix("http://") + "/metrics"
    found = lines(observed)
    assert set(found) == {"memory of the process", "model:1 weights", "model:1 arenas of an instance"} and not any(line["too_low"] for line in found.values())
    assert found["model:1 weights"]["planned_bytes"] == found["model:1 weights"]["measured_bytes"] == server.metric("serin_model_weight_bytes", model="model") > 1000
    assert 0 < found["model:1 arenas of an instance"]["measured_bytes"] <= found["model:1 arenas of an instance"]["planned_bytes"]
    assert observed["notes"] == ["model:1: has not run, so its time is not compared"]
    for _ in range(3):
        assert call(f"{server.url}/v2/models/model/infer", infer_body([[0.5] * 64] * 4)).status == 200
    assert json.loads(plan("--observe", page, "--json").stdout)["observed"]["notes"] == ["model:1: the plan has no time for it: serin plan --calibrate learns this machine's"]
    text = plan("--observe", f"{page}/metrics", "--calibrate", 0.3, "--steps", 0).stdout
    assert "model:1 run, 4 rows on average" in text and " % of the plan" in text and "too low" not in text
    timed = lines(json.loads(plan("--observe", page, "--json").stdout)["observed"])["model:1 run, 4 rows on average"]
    assert timed["planned_seconds"] > 0 and timed["measured_seconds"] > 0 and timed["at_most"] is False


def test_a_plan_that_was_too_low_is_named(start, tmp_path):
    """The server has another model of that name, which takes more."""
    server = start("serve", DIGIT, *ON_FREE_PORTS)
    graph = helper.make_graph([helper.make_node("Sigmoid", ["x"], ["y"])], "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "model.onnx")
    asked = ["plan", tmp_path / "model.onnx", "--observe", f"http://127.0.0.1:{server.ports['metrics']}"]
    observed = lines(json.loads(serin(*asked, "--json").stdout)["observed"])
    assert observed["model:1 weights"]["too_low"] and "which is too low" in serin(*asked).stdout


def test_what_cannot_be_observed_is_said(serve, plan, receiver):
    assert "is no URL" in plan("--observe", "ftp://x", code=2).stderr
    port = free_port()
    assert f"--observe http://127.0.0.1:{port}: " in plan("--observe", f"http://127.0.0.1:{port}", code=5).stderr
    server = serve(MODELS)
    assert "it answers 404" in plan("--observe", server.url, code=5).stderr
    assert "is no page of metrics" in plan("--observe", f"{server.url}/v2/health/ready", code=5).stderr
    assert "model:1: the server does not have it" in plan("--observe", f"127.0.0.1:{server.ports['metrics']}", code=5).stderr
