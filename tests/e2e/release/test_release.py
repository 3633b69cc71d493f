"""`serin release`: a model goes from files to all requests, or is stopped where it shows to be bad, while clients ask and see nothing of it."""

import json
import shutil
import subprocess

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from conftest import SERIN, call, serin, wait_until
from release_loop import DIGITS, EVAL, RULES, stages
from routers import SOON
from terminal import Terminal

BEFORE = {"production": 1, "blue": 1, "green": 1}


def stays_as_it_was(loop):
    """Nothing has moved: no weight, no tag."""
    assert loop.tags() == BEFORE and loop.weight() == 0 and loop.router.status()["stable"] == "blue" and not loop.journal().exists()


def test_a_good_model_goes_to_production(loop, clients):
    done = loop.release(DIGITS / "2", "--origin", "commit=4f2c", "--by", "ci")
    order = stages(done.stdout)
    assert [stage for stage in order if stage != "canary"] == ["check", "plan", "eval", "register", "load", "shadow", "100 %", "tag"] and "canary" in order, done.stdout
    assert "not worse by more than 0.01" in done.stdout and "promoted: digits:2 is in production" in done.stdout
    assert loop.tags() == {"production": 2, "blue": 1, "green": 2} and loop.router.status()["stable"] == "green" and not loop.journal().exists()
    shown = json.loads(serin("registry", "show", loop.registry, "digits:2", "--json").stdout)
    assert shown["origin"] == {"commit": "4f2c"} and shown["by"] == "ci"
    [record] = loop.records()
    assert {report["title"] for report in shown["reports"]} == {"evaluation.json", "evaluation.html", f"release-{record['id']}.json"}
    assert record["outcome"] == "promoted" and record["tag"] == {"name": "production", "before": 1, "version": 2} and record["model"]["content"] == shown["content"]
    evaluation = json.loads(record["evaluation"]["report"])
    assert evaluation["comparison"]["verdict"] == "no worse" and evaluation["rows"] == 540
    assert [entry["event"] for entry in record["rollout"]["history"]][0] == "started" and json.loads(record["rollout"]["verdict"])["phase"] == "Succeeded"
    # The next one goes the other way round, and is compared with this one.
    assert "nothing to do" in loop.release(DIGITS / "2").stdout
    worse = loop.outcome(DIGITS / "1", code=3)
    assert worse["stage"] == "eval" and "worse by more than 0.01" in worse["reason"] and loop.tags()["production"] == 2


def test_the_other_slot_is_next(loop, clients):
    loop.policy(eval=None)
    assert loop.outcome(DIGITS / "2")["production"] == 2
    assert loop.outcome(DIGITS / "1")["production"] == 1
    assert loop.tags() == {"production": 1, "blue": 1, "green": 2} and loop.router.status()["stable"] == "blue" and loop.versions() == [1, 2]
    assert [record["outcome"] for record in loop.records()] == ["promoted", "promoted"]


def test_a_dry_run_changes_nothing(loop):
    before = sorted(path for path in loop.registry.rglob("*"))
    done = loop.release(DIGITS / "2", "--dry-run")
    for words in ("check", "must have top1 >= 95%", "no worse by more than 1pt", "'green'", "copies of 20 %, 20 %, 50 %", "'production'"):
        assert words in done.stdout, done.stdout
    assert sorted(path for path in loop.registry.rglob("*")) == before and loop.router.status()["rollout"] is None
    stays_as_it_was(loop)


def test_a_terminal_shows_the_stages_and_the_rollout_below_them(loop, clients):
    terminal = Terminal(*loop.command(DIGITS / "2"), columns=110, lines=40)
    terminal.wait_for("evidence against the canary", 60)
    assert [stage for stage in ("check", "plan", "eval", "register", "load") if any(f" s  {stage}" in line for line in terminal.lines)] == ["check", "plan", "eval", "register", "load"]
    terminal.wait_for("promoted: digits:2 is in production", 120)
    assert terminal.end() == 0 and not any("evidence" in line for line in terminal.lines), "the picture is gone"


def test_everything_may_stand_on_the_command_line(loop, clients):
    """Without a file; the default steps take long, so it is watched until they begin."""
    slots = [word for slot, runtime in loop.runtimes.items() for word in ("--slot", f"{slot}={runtime.url}")]
    command = [SERIN, "release", DIGITS / "2", "--service", "digits", "--registry", loop.registry, *slots, "--admin", loop.router.admin]
    running = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    wait_until(lambda: loop.router.rollout(), 60, "the rollout")
    assert loop.router.rollout()["canary"] == "green" and loop.router.command("abort").status == 200
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 3 and stages(out)[:5] == ["check", "plan", "eval", "register", "load"] and "the policy has no evaluation" in out
    stays_as_it_was(loop)


@pytest.mark.parametrize("arguments, words", [
    (["--slot", "blue=http://127.0.0.1:1"], "give two slots"), (["--slot", "blue"], "must be NAME=http://HOST:PORT"), (["--slot", "7=http://127.0.0.1:1"], "'7' is no name"),
    (["--slot", "blue=http://127.0.0.1:1", "--slot", "green=http://127.0.0.1:1"], "runtime http://127.0.0.1:1 is named twice"),
    (["--slot", "blue=http://127.0.0.1:1", "--slot", "production=http://127.0.0.1:2"], "a slot needs a tag of its own"),
    (["--slot", "blue=http://127.0.0.1:1", "--slot", "green=ftp://x"], "must be http://HOST:PORT"), ([], "key 'slots' is missing"),
])
def test_wrong_flags_are_named(tmp_path, arguments, words):
    done = serin("release", DIGITS / "2", "--service", "digits", "--registry", tmp_path, *arguments)
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_flag_and_a_key_contradict_each_other(loop):
    assert "registry: is given with --registry, too" in loop.release(DIGITS / "2", "--registry", "other", code=2).stderr
    assert "slots: are given with --slot, too" in loop.release(DIGITS / "2", "--slot", "a=http://127.0.0.1:1", "--slot", "b=http://127.0.0.1:2", code=2).stderr


# --- Bad models, each stopped where it shows ----------------------------------------------------------------------------------------


def stopped(loop, model, stage, words, *more, outcome="refused"):
    said = loop.outcome(model, *more, code=3)
    assert (said["outcome"], said["stage"]) == (outcome, stage) and words in said["reason"], said
    assert said["production"] == 1
    stays_as_it_was(loop)
    record = loop.records()[-1]
    assert (record["outcome"], record["stage"], record["reason"]) == (outcome, stage, said["reason"]) and "tag" not in record
    return record


def test_a_file_that_is_no_model_is_stopped_at_the_check(loop, clients, tmp_path):
    file = tmp_path / "model.onnx"
    file.write_bytes((DIGITS / "2/model.onnx").read_bytes()[:5000])
    stopped(loop, file, "check", "it cannot be read")
    assert loop.versions() == [1]


def test_another_input_shape_is_stopped_at_the_check(loop, clients):
    stopped(loop, DIGITS / "5", "check", "its inputs are pixels: f32[?,1,8,8], and those of production are pixels: f32[?,64]")


def test_answers_that_are_not_the_stored_ones_are_stopped_at_the_check(loop, clients):
    loop.policy(check={"cases": str(cases(loop, 2))})
    stopped(loop, DIGITS / "3", "check", "are not the stored ones")


def cases(loop, version):
    """Inputs and outputs of a version, as `serin check` reads them."""
    import onnxruntime

    with np.load(EVAL) as data:
        pixels = data["pixels"][:8]
    folder = loop.folder / "cases/test_data_set_0"
    folder.mkdir(parents=True)
    np.save(folder / "input_0.npy", pixels)
    np.save(folder / "output_0.npy", onnxruntime.InferenceSession(DIGITS / f"{version}/model.onnx").run(None, {"pixels": pixels})[0])
    return folder.parent


def test_a_model_that_is_too_large_is_stopped_at_the_plan(loop, clients):
    loop.policy(plan={"memory": "1Mi"})
    stopped(loop, DIGITS / "2", "plan", "it needs")
    assert loop.versions() == [1]


def test_wrong_labels_are_stopped_at_the_evaluation(loop, clients):
    record = stopped(loop, DIGITS / "3", "eval", "does not hold: top1 >= 95% (0.2185)")
    assert record["evaluation"]["exit_code"] == 1 and loop.versions() == [1]
    # It was not rolled back, so it may come again without a flag.
    assert loop.outcome(DIGITS / "3", code=3)["stage"] == "eval"


def test_a_poisoned_preprocessing_is_stopped_at_the_evaluation(loop, clients, tmp_path):
    """The network of version 2, behind an export that divides grey values by 255 as if they were bytes."""
    model = onnx.load(DIGITS / "2/model.onnx")
    for node in model.graph.node:
        node.input[:] = ["scaled" if name == "pixels" else name for name in node.input]
    model.graph.initializer.append(numpy_helper.from_array(np.float32(255), "bytes"))
    model.graph.node.insert(0, helper.make_node("Div", ["pixels", "bytes"], ["scaled"]))
    onnx.save(model, tmp_path / "model.onnx")
    stopped(loop, tmp_path / "model.onnx", "eval", "does not hold: top1 >= 95%")


def test_too_few_rows_decide_nothing(loop, clients, tmp_path):
    with np.load(EVAL) as data:
        np.savez(tmp_path / "few.npz", **{name: data[name][:40] for name in data})
    loop.policy(data=str(tmp_path / "few.npz"))
    stopped(loop, DIGITS / "2", "eval", "not shown to be no worse by more than 0.01")


def test_a_version_that_a_runtime_cannot_load_is_stopped_at_the_load(loop, clients, tmp_path):
    model = tmp_path / "digits"
    shutil.copytree(DIGITS / "2", model / "2")
    (model / "serin.yaml").write_text("warmup: [{name: first, inputs: {pixels: {dtype: FP32, dims: [64], file: missing.bin}}}]\n")
    record = stopped(loop, model, "load", "missing.bin", outcome="failed")
    assert "green" in record["timeline"][-1]["text"] and loop.versions() == [1, 2]
    wait_until(lambda: call(f"{loop.runtimes['green'].url}/v2/models/digits").json["versions"] == ["1"], 30, "the slot has its version again")


def test_a_crash_at_load_is_stopped_at_the_load(loop, clients):
    loop.policy(load={"timeout": "3s"})
    loop.runtimes["green"].kill()  # as a model does that crashes the process which loads it
    stopped(loop, DIGITS / "2", "load", "does not answer", outcome="failed")


def test_wrong_answers_that_the_data_agree_with_are_stopped_in_the_shadow(loop, clients, tmp_path):
    """Training and evaluation have the same wrong labels. Only live requests show it."""
    answers = tmp_path / "answers.npz"
    assert serin("predict", DIGITS / "3", EVAL, answers).returncode == 0
    with np.load(answers) as file, np.load(EVAL) as data:
        np.savez(tmp_path / "wrong.npz", pixels=data["pixels"], label=file["scores"].argmax(1))
    loop.policy(data=str(tmp_path / "wrong.npz"))
    record = stopped(loop, DIGITS / "3", "shadow", "shadow", outcome="rolled_back")
    assert json.loads(record["rollout"]["verdict"])["cause"] == "shadow" and record["rollout"]["history"][-1]["event"] == "rolled_back"


SLOWNESS = {"steps": [5], "guard": {"latency": {"baseline": 200, "skip": 5, "floor": "10ms"}, "resources": "off"}, "certify": SOON}


def test_a_slow_model_is_stopped_as_a_canary(loop, clients):
    loop.policy(rollout=SLOWNESS)
    record = stopped(loop, DIGITS / "4", "canary", "lat", outcome="rolled_back")
    assert json.loads(record["rollout"]["verdict"])["cause"].startswith("lat")


def test_refusals_are_stopped_as_a_canary(loop, clients):
    loop.policy(eval=None, check={"contract": "any"}, rollout={**RULES, "steps": [20]})
    stopped(loop, DIGITS / "5", "canary", "rej", outcome="rolled_back")


def test_what_was_rolled_back_is_refused_until_somebody_insists(loop, clients):
    loop.policy(eval=None, check={"contract": "any"}, rollout={**RULES, "steps": [20]})
    first = stopped(loop, DIGITS / "5", "canary", "rej", outcome="rolled_back")
    rollout = loop.router.rollout()["id"]
    for _ in range(2):
        again = loop.release(DIGITS / "5", code=3)
        assert f"was rolled back at canary by release {first['id']}" in again.stdout and "--again" in again.stdout
    assert len(loop.records()) == 1 and loop.router.rollout()["id"] == rollout, "nothing was even tried"
    assert loop.outcome(DIGITS / "2")["outcome"] == "promoted", "other contents need no flag"
    assert loop.outcome(DIGITS / "5", "--again", code=3)["stage"] == "canary"
    assert [record["again"] for record in loop.records()] == [False, False, True] and loop.router.rollout()["id"] != rollout


def test_what_a_person_ends_counts_as_rolled_back(loop, clients):
    loop.policy(rollout={**RULES, "steps": [{"setWeight": 20, "until": {"duration": "1h"}}, {"promote": {}}]})
    running = subprocess.Popen(loop.command(DIGITS / "2"), stdout=subprocess.PIPE, text=True)
    wait_until(lambda: loop.weight() == 20, 60, "the canary")
    assert loop.router.command("abort", {"reason": "not on a Friday"}).status == 200
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 3 and "not on a Friday" in out
    stays_as_it_was(loop)
    assert "not on a Friday" in loop.release(DIGITS / "2", code=3).stdout


def test_a_rollout_without_a_verdict_in_time_is_taken_back(loop, clients):
    loop.policy(rollout={**RULES, "steps": [5], "certify": {"maxStepDuration": "1s", "margin": "0.01%"}})
    stopped(loop, DIGITS / "2", "canary", "not shown to be as good as production in time", outcome="rolled_back")


# --- What is in the way -------------------------------------------------------------------------------------------------------------


def refused(loop, words, *more, code=1, model=DIGITS / "2"):
    done = loop.release(model, *more, code=code)
    assert done.stderr.startswith("serin release: ") and words in done.stderr and done.stderr.count("\n") == 1, done.stderr
    return done


def test_a_rollout_of_somebody_else_is_not_ended(loop, clients):
    assert loop.router.post("/v1/rollouts", {"service": "digits", "canary": "green", "steps": [{"setWeight": 5, "until": {"duration": "1h"}}, 50]}).status == 201
    refused(loop, "another rollout of the service is under way")
    assert loop.router.rollout()["phase"] == "Progressing" and loop.router.rollout()["weight"] == 5
    assert loop.router.command("abort").status == 200
    assert loop.outcome(DIGITS / "2")["outcome"] == "promoted", "the same command goes on"


def test_tags_that_do_not_fit_the_router_are_named(loop):
    assert serin("registry", "add", loop.registry, "digits", DIGITS / "2", "--tag", "production").returncode == 0
    refused(loop, "stable slot 'blue' has digits:1, but 'production' is digits:2")
    assert serin("registry", "tag", loop.registry, "digits:2", "production", "--remove").returncode == 0
    refused(loop, "no version of 'digits' is tagged 'production'")


@pytest.mark.parametrize("change, words, code", [
    ({"slots": {"blue": {"runtimes": ["http://127.0.0.1:1"]}, "red": {"runtimes": ["http://127.0.0.1:2"]}}}, "router.yaml has no version 'red'", 1),
    ({"registry": "nowhere"}, "there is no registry", 2), ({"data": "missing.npz"}, "missing.npz: no such file", 2), ({"data": None}, "'eval' needs data", 2),
])
def test_what_does_not_exist_is_named(loop, change, words, code):
    loop.policy(**change)
    refused(loop, words, code=code)


def test_other_things_that_are_not_there(loop, tmp_path):
    refused(loop, "no such model", code=2, model=tmp_path / "nothing")
    refused(loop, "nowhere.pem", "--sign", tmp_path / "nowhere.pem", code=2)
    refused(loop, "is not KEY=VALUE", "--origin", "commit", code=2)
    done = serin("release", DIGITS / "2", "--service", "digits", "--policy", loop.file, "--admin", "127.0.0.1:1")
    assert done.returncode == 5 and "router at 127.0.0.1:1" in done.stderr
    done = serin("release", DIGITS / "2", "--service", "cats", "--policy", loop.file, "--admin", loop.router.admin)
    assert done.returncode != 0 and "has no model 'cats'" in done.stderr


def test_two_releases_at_once(loop, clients):
    loop.policy(rollout={**RULES, "steps": [{"setWeight": 20, "until": {"duration": "1h"}}, 50]})
    first = subprocess.Popen(loop.command(DIGITS / "2"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: loop.weight() == 20, 60, "the canary")
    refused(loop, "another release of 'digits' is under way")
    assert loop.router.command("abort").status == 200 and first.wait(60) == 3
