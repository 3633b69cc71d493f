"""`serin rollout` and the admin API behind it: what people read, what pipelines parse, and what is refused."""

import json
import signal
import subprocess

import pytest

from backends import Faults
from conftest import SERIN, call, serin, wait_until
from routers import service, spec
from traffic import Traffic

HOLD = {"setWeight": 25, "until": {"duration": "1h"}}


@pytest.fixture
def cli(pair):
    """cli("status", "digits"): `serin rollout` with that router."""
    router = pair[0]
    return lambda *arguments, timeout=60: serin("rollout", *arguments, "--admin", f"127.0.0.1:{router.ports['admin']}", timeout=timeout)


@pytest.fixture
def spec_file(tmp_path):
    def write(**asked):
        path = tmp_path / "rollout.yaml"
        path.write_text(json.dumps(spec(**asked)))
        return path
    return write


def parsed(done, exit_code=0):
    assert done.returncode == exit_code, done.stderr
    return json.loads(done.stdout)


# --- the way of a rollout -----------------------------------------------------------------------------------------------------------


def test_every_step_by_hand(cli, pair):
    router = pair[0]
    started = parsed(cli("start", "digits", "--canary", "2", "--steps", "5,25,100", "--json"))
    assert started["service"] == "digits" and started["stable"] == "1"
    assert (started["rollout"]["canary"], started["rollout"]["weight"], started["rollout"]["phase"]) == ("2", 5, "Progressing")
    assert parsed(cli("set-weight", "digits", "12.5", "--json"))["rollout"]["weight"] == 12.5
    assert router.metric("serin_route_weight_ppm", version="2") == 125_000
    assert parsed(cli("status", "digits", "--json"))["rollout"]["phase"] == "Paused"
    assert parsed(cli("resume", "digits", "--json"))["rollout"]["phase"] == "Progressing"
    assert parsed(cli("pause", "digits", "--json"))["rollout"]["phase"] == "Paused"
    assert parsed(cli("promote", "digits", "--reason", "it is Friday", "--json"))["rollout"]["weight"] == 100
    assert router.wait_for("Succeeded")["weight"] == 100
    assert parsed(cli("status", "digits", "--json"))["stable"] == "2"


def test_what_people_read(cli):
    assert "no rollout yet" in cli("status").stdout and "no rollout yet" in cli("status", "digits").stdout
    started = cli("start", "digits", "--canary", "2", "--steps", "5,100")
    assert started.returncode == 0 and "step 1 of 2" in started.stdout and "5 %" in started.stdout
    status = cli("status", "digits").stdout
    assert "Progressing" in status and "bits" in status and "err" in status and "certificate" in status
    assert cli("status").stdout == cli("status", "digits").stdout or "digits" in cli("status").stdout
    aborted = cli("abort", "digits", "--reason", "lunch time")
    assert aborted.returncode == 0 and "RolledBack" in aborted.stdout
    history = cli("history", "digits").stdout.splitlines()
    assert len(history) == 2 and "started" in history[0] and "rolled_back" in history[1] and "lunch time" in history[1]


def test_history_says_who_did_what_when_and_why(cli):
    cli("start", "digits", "--canary", "2", "--steps", "5,25,100")
    cli("set-weight", "digits", "50", "--reason", "in a hurry")
    cli("abort", "digits", "--reason", "in no hurry")
    history = parsed(cli("history", "digits", "--json"))["history"]
    assert [entry["event"] for entry in history] == ["started", "weight", "rolled_back"]
    assert [entry["weight"] for entry in history] == [5, 50, 0]
    assert "in a hurry" in history[1]["detail"] and "in no hurry" in history[2]["detail"]
    assert [entry["id"] for entry in history] == sorted(entry["id"] for entry in history)
    assert len({entry["rollout"] for entry in history}) == 1 and all(entry["actor"] and entry["time"].endswith("Z") for entry in history)
    assert len(parsed(cli("history", "digits", "--limit", "1", "--json"))["history"]) == 1


def test_history_names_the_router_where_it_decided_by_itself(cli, pair, spec_file):
    router, _, canary = pair
    canary.faults = Faults(error_rate=1)
    cli("start", "digits", "--spec", spec_file(steps=[HOLD]))
    with Traffic(router.url, clients=3):
        router.wait_for("RolledBack")
    verdict = parsed(cli("history", "digits", "--json"))["history"][-1]
    assert verdict["event"] == "rolled_back" and verdict["actor"] == "router" and verdict["detail"].startswith("err: ")


def test_h28_what_people_write_forges_no_line_of_the_log(cli, pair):
    router = pair[0]
    cli("start", "digits", "--canary", "2", "--steps", "5,100")
    reason = "lunch\n2026-01-01T00:00:00.000+00:00 info service 'digits': promoted\x1b[31m\x9b31m\r" + "x" * 900
    assert router.command("abort", {"reason": reason}).status == 200
    assert router.command("abort", {"reason": "x" * 1_000_000}).status == 400
    lines = [line for line in router.log.split("\n") if ("lunch" in line or "promoted" in line) and not line.startswith('{"audit":')]
    assert len(lines) == 1 and r"lunch\n2026" in lines[0] and r"\u001b[31m\u009b31m\u000d" in lines[0]
    assert "\x1b" not in router.log and "\x9b" not in router.log and max(map(len, router.log.split("\n"))) < 10_000
    assert reason in router.history()[-1]["detail"], "the audit log keeps it as it was written"


def test_a_manual_gate_waits_for_resume(cli, pair, spec_file):
    router = pair[0]
    cli("start", "digits", "--spec", spec_file(steps=[50, {"pause": {}}, 100]))
    with Traffic(router.url, clients=3):
        router.wait_for("Paused")
        assert "waits for resume" in cli("status", "digits").stdout
        assert cli("resume", "digits").returncode == 0
        router.wait_for("Succeeded")


def test_watch_prints_a_line_for_every_change_until_the_verdict(cli, pair):
    router = pair[0]
    cli("start", "digits", "--canary", "2", "--steps", "5,100")
    command = [SERIN, "rollout", "watch", "digits", "--admin", f"127.0.0.1:{router.ports['admin']}"]
    watch = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert "Progressing" in watch.stdout.readline()
    cli("pause", "digits")
    assert "Paused" in watch.stdout.readline()
    cli("abort", "digits")
    assert "RolledBack" in watch.stdout.read() and watch.wait(20) == 3


# --- exit codes ---------------------------------------------------------------------------------------------------------------------


def test_wait_is_0_where_it_was_promoted(cli, pair, spec_file):
    with Traffic(pair[0].url, clients=3):
        done = cli("start", "digits", "--spec", spec_file(steps=[50]), "--wait", "--json")
    assert parsed(done)["rollout"]["phase"] == "Succeeded"


def test_wait_is_3_where_it_was_rolled_back(cli, pair, spec_file):
    router, _, canary = pair
    canary.faults = Faults(error_rate=1)
    with Traffic(router.url, clients=3):
        done = cli("start", "digits", "--spec", spec_file(steps=[HOLD]), "--wait")
    assert done.returncode == 3 and "RolledBack" in done.stdout and "err: " in done.stdout


def test_wait_is_4_where_it_is_inconclusive(cli, spec_file):
    done = cli("start", "digits", "--spec", spec_file(steps=[5], certify={"maxStepDuration": "1s"}), "--wait", "--json")
    assert parsed(done, exit_code=4)["rollout"]["phase"] == "Inconclusive"


def test_an_unreachable_router_is_5(pair):
    router = pair[0]
    assert router.end() == 0
    for arguments in (["status"], ["abort", "digits"], ["history", "digits"], ["watch", "digits"], ["start", "digits", "--canary", "2"]):
        done = serin("rollout", *arguments, "--admin", f"127.0.0.1:{router.ports['admin']}")
        assert done.returncode == 5 and str(router.ports["admin"]) in done.stderr, arguments


@pytest.mark.parametrize("arguments", [
    [], ["frobnicate"], ["start"], ["set-weight", "digits"], ["set-weight", "digits", "101"], ["set-weight", "digits", "-1"],
    ["set-weight", "digits", "0.00001"], ["set-weight", "digits", "NaN"], ["set-weight", "digits", "5 %%"], ["status", "--nope"],
    ["start", "digits", "--canary", "2", "--steps", "5,4"], ["start", "digits", "--canary", "2", "--steps", "5,,6"], ["start", "digits"],
    ["start", "digits", "--spec", "/nowhere.yaml"], ["history", "digits", "--limit", "0"], ["status", "--admin", "nonsense/path"],
], ids=lambda arguments: "-".join(arguments) or "nothing")
def test_c5_usage_mistakes_are_one_line_and_exit_code_2(arguments):
    done = serin("rollout", *arguments, timeout=20)
    assert done.returncode == 2 and done.stdout == "" and len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize("text, words", [
    ("service: digits\ncanary: 2\nsteps: [5, 25]\nguard: {errors: {treshold: 1%}}\n", ["rollout.yaml:4:", "'treshold'", "max"]),
    ("service: digits\ncanary: 2\nsteps: [50, 25]\n", ["rollout.yaml:3:", "rise"]),
    ("service: digits\ncanary: 1\nstable: 1\n", ["rollout.yaml:2:", "differ"]),
    ("service: digits\nsteps: [5]\n", ["canary"]),
    ("service: letters\ncanary: 2\n", ["rollout.yaml:1:10", "command line says digits"]),
    ("service: digits\ncanary: 3\n", ["rollout.yaml:2:9", "command line says 2"]),
])
def test_a_mistake_in_the_specification_is_named_with_its_line(tmp_path, text, words):
    (tmp_path / "rollout.yaml").write_text(text)
    canary = ["--canary", "2"] if "canary: 3" in text else []
    done = serin("rollout", "start", "digits", "--spec", tmp_path / "rollout.yaml", *canary)
    assert done.returncode == 2 and all(word in done.stderr for word in words), done.stderr


# --- R: what the router refuses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [-1, 101, "NaN", "1.00001", "five", None, [5], 1e9, ""])
def test_r1_weights_that_are_none_are_400(pair, weight):
    router = pair[0]
    router.start_rollout(steps=[HOLD])
    refused = router.command("set-weight", {"weight": weight})
    assert refused.status == 400 and "weight" in refused.error
    assert router.rollout()["weight"] == 25


@pytest.mark.parametrize("steps", [[-1], [101], ["NaN"], [1.00001], [50, 50], [50, 20], [], [{"setWeight": 5, "wait": 1}], "5"])
def test_r1_steps_that_are_none_are_400(pair, steps):
    refused = pair[0].post("/v1/rollouts", spec(steps=steps) if isinstance(steps, list) else {**spec(), "steps": steps})
    assert refused.status == 400 and "step" in refused.error.lower() + str(steps)


def test_r2_the_canary_must_be_another_version_that_there_is(pair):
    router = pair[0]
    for canary, words in (("1", ["'1'", "differ"]), ("9", ["'9'", "it has 1, 2"])):
        refused = router.post("/v1/rollouts", spec(canary=canary))
        assert refused.status == 400 and all(word in refused.error for word in words), refused.error
    unknown = router.post("/v1/rollouts", spec(name="nope"))
    assert unknown.status == 404 and "'nope'" in unknown.error
    assert router.rollout() is None


def test_r2_a_canary_without_a_healthy_endpoint_is_400(pair):
    router, _, canary = pair
    canary.healthy = False
    wait_until(lambda: router.healthy("2") == 0, 10, "seen to be down")
    refused = router.post("/v1/rollouts", spec())
    assert refused.status == 400 and "healthy" in refused.error and "'2'" in refused.error


def test_r2_stable_named_in_the_specification_must_be_stable(pair):
    refused = pair[0].post("/v1/rollouts", {**spec(canary="1"), "stable": "2"})
    assert refused.status in (400, 409) and "'1'" in refused.error


def test_r3_a_second_start_is_409(cli, pair):
    router = pair[0]
    router.start_rollout(steps=[HOLD])
    refused = router.post("/v1/rollouts", spec())
    assert refused.status == 409 and "Progressing" in refused.error
    done = cli("start", "digits", "--canary", "2")
    assert done.returncode == 1 and "Progressing" in done.stderr


@pytest.mark.parametrize("verb", ["pause", "resume", "promote", "abort", "set-weight"])
def test_r3_commands_without_a_rollout_are_409(pair, verb):
    refused = pair[0].command(verb, {"weight": 5} if verb == "set-weight" else None)
    assert refused.status == 409 and "'digits'" in refused.error


def test_r3_commands_in_the_wrong_phase_name_the_phase(pair):
    router = pair[0]
    router.start_rollout(steps=[HOLD])
    refused = router.command("resume")
    assert refused.status == 409 and "Progressing" in refused.error
    assert router.command("abort").status == 200
    for verb in ("promote", "pause", "resume"):
        refused = router.command(verb)
        assert refused.status == 409 and "RolledBack" in refused.error


def test_r3_a_repeated_abort_changes_nothing(cli, pair):
    router = pair[0]
    router.start_rollout(steps=[HOLD])
    first, again = (router.command("abort").json for _ in range(2))
    first["recent"] = again["recent"]  # of the last seconds: renewed every second
    assert again == first and cli("abort", "digits").returncode == 0
    assert [entry["event"] for entry in router.history()] == ["started", "rolled_back"]


def test_r4_of_two_changes_that_saw_the_same_epoch_one_wins(pair):
    router = pair[0]
    router.start_rollout(steps=[HOLD])
    epoch = call(f"{router.admin}/v1/rollouts/digits").headers["ETag"]
    assert epoch.strip('"') == str(router.status()["epoch"])
    first = router.command("set-weight", {"weight": 10}, **{"If-Match": epoch})
    second = router.command("set-weight", {"weight": 90}, **{"If-Match": epoch})
    assert (first.status, second.status) == (200, 412) and "epoch" in second.error
    assert router.rollout()["weight"] == 10
    assert router.command("abort", **{"If-Match": "soon"}).status == 400
    assert router.command("abort", **{"If-Match": "*"}).status == 200


@pytest.mark.parametrize("guard", [
    {"errors": {"max": "0%"}}, {"errors": {"max": "100%"}}, {"latency": {"p99": "0ms"}}, {"latency": {"p99": "-5ms"}}, {"falseRollback": 0},
    {"falseRollback": 0.6}, {"unit": "key"}, {"prometheus": []}, {"output": {"compare": "vibes"}},
])
def test_r5_guards_that_make_no_sense_are_400(pair, guard):
    refused = pair[0].post("/v1/rollouts", {**spec(), "guard": guard})
    assert refused.status == 400 and list(guard)[0] in refused.error


# --- the admin API as a server ------------------------------------------------------------------------------------------------------


def test_h22_wrong_verbs_and_paths(pair):
    router = pair[0]
    assert call(router.admin + "/v1/nothing").status == 404
    assert call(router.admin + "/v1/rollouts/nope").status == 404
    assert router.command("frobnicate").status == 404
    assert call(router.admin + "/v1/rollouts/digits:abort").headers["Allow"] == "POST"
    assert call(router.admin + "/metrics", method="DELETE").status == 405
    assert call(router.admin + "/health/live").json == {"live": True} and call(router.admin + "/health/ready").json == {"ready": True}


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"\x00\xff", b"kind: Deployment\nservice: digits\ncanary: 2", b"service: digits\nservice: digits\ncanary: 2",
])
def test_a_body_that_is_no_rollout_is_400(pair, body):
    refused = call(pair[0].admin + "/v1/rollouts", body, {"Content-Type": "application/json"}, method="POST")
    assert refused.status == 400 and refused.error


def test_a_web_page_may_not_steer_the_router(pair):
    router = pair[0]
    router.start_rollout(steps=[HOLD])
    target = router.admin + "/v1/rollouts/digits:abort"
    json_type = {"Content-Type": "application/json"}
    assert call(target, b"{}", {"Content-Type": "text/plain"}).status == 415
    assert call(target, b"{}", {**json_type, "Origin": "http://evil.example"}).status == 403
    assert call(target, b"{}", {**json_type, "Host": "evil.example"}).status == 403
    assert router.rollout()["phase"] == "Progressing"


# --- waiting ------------------------------------------------------------------------------------------------------------------------


def waiting(router, *arguments):
    """`serin rollout start --wait` once it has begun."""
    command = [SERIN, "rollout", "start", "digits", *arguments, "--wait", "--admin", f"127.0.0.1:{router.ports['admin']}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "Progressing" in process.stdout.readline()
    return process


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_command_and_not_the_rollout(pair, end):
    router = pair[0]
    process = waiting(router, "--canary", "2", "--steps", "5,100")
    process.send_signal(end)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130 and "goes on" in said and "rollout abort digits" in said and len(said.splitlines()) == 1
    assert router.rollout()["phase"] == "Progressing"


def test_a_router_that_is_restarted_is_waited_for(route, backend):
    stable, canary = backend("1"), backend("2")
    router = route(service(stable, canary))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    process = waiting(router, "--canary", "2", "--steps", "5,100")
    router.kill()
    router = route(service(stable, canary), admin=f"127.0.0.1:{router.ports['admin']}")
    router.command("abort", {"reason": "after the restart"})
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 3 and "after the restart" in said
