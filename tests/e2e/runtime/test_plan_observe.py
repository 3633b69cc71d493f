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


# --- kept corrections ------------------------------------------------------------------------------------------------------------------


def ask(server, rows, times):
    for _ in range(times):
        assert call(f"{server.url}/v2/models/model/infer", infer_body([[0.5] * 64] * rows)).status == 200


def times(plan, *arguments):
    """{rows: (seconds, correction)}, and where the corrections come from."""
    model = json.loads(plan("--json", *arguments).stdout)["models"][0]
    return {bucket["sizes"]["batch"]: (bucket["calibrated"]["seconds"], bucket["calibrated"]["correction"]) for bucket in model["buckets"]}, model["corrected_by"]


def scaled(file, factor):
    """A calibration of a machine that is so much slower."""
    kept = json.loads(file.read_text())
    for sample in kept["samples"]:
        sample["ns"] *= factor
    file.write_text(json.dumps(kept))


def test_later_plans_are_multiplied_by_what_a_server_took(start, plan, tmp_path):
    file = tmp_path / "kept.json"
    server = start("serve", DIGIT, *ON_FREE_PORTS)
    page = f"127.0.0.1:{server.ports['metrics']}"
    asked = ["--calibration", file, "--observe", page, "--keep"]
    plan("--calibration", file, "--calibrate", 0.3, "--batch", "1,8")
    before, by = times(plan, "--calibration", file, "--batch", "1,8")
    assert by == "" and all(factor == 1 for _, factor in before.values())
    ask(server, 8, 5)
    assert "nothing is kept of 5 runs, fewer than 20" in plan(*asked).stdout
    ask(server, 8, 40)
    kept = json.loads(plan(*asked, "--json").stdout)["observed"]
    run = lines(kept)["model:1 run, 8 rows on average"]
    after, by = times(plan, "--calibration", file, "--batch", "1,8")
    factor = run["measured_seconds"] / run["planned_seconds"]
    assert by == kept["url"] and any("kept: 45 runs took" in note for note in kept["notes"])
    assert {rows: correction for rows, (_, correction) in after.items()} == {rows: pytest.approx(factor) for rows in before}
    assert all(after[rows][0] == pytest.approx(factor * before[rows][0]) for rows in before)
    text = plan("--calibration", file).stdout
    assert f"as runs at {kept['url']} took" in text
    # The same again is no correction of a correction, and it replaces the first one.
    plan(*asked)
    again, _ = times(plan, "--calibration", file, "--batch", "1,8")
    assert again[8][0] == pytest.approx(after[8][0]) and len(json.loads(file.read_text())["corrections"]) == 1


def test_a_correction_is_of_the_files_of_the_model_and_of_its_calibration(start, plan, tmp_path):
    file = tmp_path / "kept.json"
    server = start("serve", DIGIT, *ON_FREE_PORTS)
    asked = ["--calibration", file, "--observe", f"127.0.0.1:{server.ports['metrics']}", "--keep"]
    plan("--calibration", file, "--calibrate", 0.3, "--batch", 8)
    ask(server, 8, 30)
    plan(*asked)
    elsewhere, other = tmp_path / "copy.onnx", MODELS / "digits/1/model.onnx"
    elsewhere.write_bytes(DIGIT.read_bytes())
    for model, corrected in ((elsewhere, True), (other, False)):
        answer = json.loads(serin("plan", model, "--calibration", file, "--json").stdout)["models"][0]
        assert bool(answer["corrected_by"]) == corrected, model
    assert times(plan, "--calibration", file, "--calibrate", 0.3, "--batch", 8)[1] == ""  # a new calibration needs a new observation


def test_factors_that_are_no_error_of_a_prediction_are_not_kept(start, plan, tmp_path):
    file = tmp_path / "kept.json"
    server = start("serve", DIGIT, *ON_FREE_PORTS)
    plan("--calibration", file, "--calibrate", 0.3, "--batch", 8)
    ask(server, 8, 30)
    scaled(file, 1000)
    assert "is not kept: the server has another model, machine or size of requests" in plan("--calibration", file, "--observe", f"127.0.0.1:{server.ports['metrics']}", "--keep").stdout
    assert json.loads(file.read_text())["corrections"] == []


def test_bad_corrections_are_named(plan, tmp_path):
    file = tmp_path / "kept.json"
    plan("--calibration", file, "--calibrate", 0.1)
    content = json.loads(file.read_text())
    good = {"digest": "0" * 64, "model": "m", "threads": 1, "rows": 1, "planned": 1, "measured": 1, "runs": 20, "source": "s"}
    file.write_text(json.dumps({**content, "corrections": [good]}))
    assert plan("--calibration", file).returncode == 0
    for bad, said in ((3, "corrections is no array"), ([good, 3], "corrections[1] is no correction"), ([{**good, "planned": 0}], "corrections[0]"), ([{**good, "rows": -1}], "corrections[0]"),
                      ([{**good, "threads": 1e9}], "corrections[0]"), ([{**good, "source": None}], "corrections[0]")):
        file.write_text(json.dumps({**content, "corrections": bad}))
        assert said in plan("--calibration", file, code=2).stderr, bad
    file.write_text(json.dumps({key: value for key, value in content.items() if key != "corrections"}))
    assert plan("--calibration", file).returncode == 0  # of an earlier build
    assert "--keep" in plan("--keep", code=2).stderr and "--leave-out" in plan("--keep", "--observe", "127.0.0.1:1", "--leave-out", code=2).stderr
    file.write_text(json.dumps({**content, "samples": [{**content["samples"][0], "threads": 1e300}]}))
    assert "samples[0] is no sample" in plan("--calibration", file, code=2).stderr
