"""Who may steer the router: tokens and their roles over real connections, in the file and taken back, from `serin rollout` and on every path."""

import hashlib
import json
import os

import pytest

from conftest import call, serin, wait_until
from routers import JSON, service, spec, write_config

TOKENS = {"viewer": "the-token-of-a-viewer-01", "operator": "the-token-of-an-operator", "admin": "the-token-of-an-admin-01"}
HOLD = {"setWeight": 25, "until": {"duration": "1h"}}
COMMANDS = ("pause", "resume", "promote", "abort", "undo", "retry", "set-weight")


def write_tokens(path, roles):
    lines = [f"  - {{name: the-{role}, role: {role}, sha256: {hashlib.sha256(TOKENS[role].encode()).hexdigest()}}}" for role in roles]
    aside = path.with_suffix(".new")
    aside.write_text("tokens:\n" + "\n".join(lines) + "\n")
    os.replace(aside, path)


def bearer(role):
    return {"Authorization": f"Bearer {TOKENS[role]}", **JSON}


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens.yaml"
    write_tokens(path, TOKENS)
    return path


@pytest.fixture
def router(route, backend, tokens):
    started = route(service(backend("1"), backend("2")), admin={"listen": "127.0.0.1:0", "tokens": str(tokens)})
    wait_until(lambda: services(started), 10, "health checked")
    return started


def services(router, role="viewer"):
    answer = call(router.admin + "/v1/services", headers=bearer(role))
    assert answer.status == 200, answer.body
    return all(version["healthy"] == 1 for version in answer.json["services"][0]["versions"])


def ask(router, verb, role):
    body = {"weight": 5} if verb == "set-weight" else {}
    return call(f"{router.admin}/v1/rollouts/digits:{verb}", body, bearer(role))


def start(router, role):
    return call(f"{router.admin}/v1/rollouts", spec(steps=[HOLD]), bearer(role))


def test_a_viewer_reads_an_operator_steers_an_admin_promotes(router):
    assert start(router, "viewer").status == 403
    assert start(router, "operator").status == 201
    for verb in COMMANDS:
        refused = ask(router, verb, "viewer")
        assert refused.status == 403 and "'the-viewer' has viewer" in refused.error, verb
    assert ask(router, "pause", "operator").status == 200 and ask(router, "resume", "operator").status == 200
    refused = ask(router, "promote", "operator")
    assert refused.status == 403 and "needs the role admin" in refused.error
    assert call(f"{router.admin}/v1/rollouts/digits", headers=bearer("viewer")).json["rollout"]["weight"] == 25
    assert ask(router, "promote", "admin").status == 200


def test_everybody_can_ask_what_he_may(router):
    may = {role: call(router.admin + "/v1/me", headers=bearer(role)).json for role in TOKENS}
    assert may["viewer"] == {"name": "the-viewer", "role": "viewer", "may": []}
    assert "abort" in may["operator"]["may"] and "promote" not in may["operator"]["may"]
    assert set(may["admin"]["may"]) == {"start", *COMMANDS}


@pytest.mark.parametrize("path", ["/v1/rollouts", "/v1/rollouts/digits", "/v1/rollouts/digits/history", "/v1/services", "/v1/verdicts/digits",
                                  "/v1/me", "/metrics", "/nothing"])
def test_r12_without_a_token_there_is_nothing_but_health(router, path):
    answer = call(router.admin + path)
    assert answer.status == 401 and answer.headers["WWW-Authenticate"].startswith("Bearer") and "digits-" not in answer.body.decode()
    assert call(router.admin + "/health/live").status == 200 and call(router.admin + "/health/ready").status == 200


@pytest.mark.parametrize("path", ["//v1/rollouts/digits:promote", "/v1/rollouts/digits%3Apromote", "/v1/rollouts/digits:promote/",
                                  "/v1//rollouts/digits:promote", "/%76%31/rollouts/digits:promote", "/v1/rollouts/digits:PROMOTE",
                                  "/v1/./rollouts/digits:promote", "/health/../v1/rollouts/digits:promote", "/health/live:promote"])
def test_r12_no_spelling_of_a_path_needs_a_smaller_role(router, path):
    assert start(router, "operator").status == 201
    for headers, allowed in ((JSON, (400, 401, 404)), (bearer("viewer"), (400, 403, 404, 405)), (bearer("operator"), (400, 403, 404, 405))):
        answer = call(router.admin + path, {}, headers)
        assert answer.status in allowed, (path, answer.status, answer.body)
    assert call(f"{router.admin}/v1/rollouts/digits", headers=bearer("viewer")).json["rollout"]["weight"] == 25


def test_r12_the_data_port_knows_no_command(router):
    assert start(router, "operator").status == 201
    for role in TOKENS:
        assert call(f"{router.url}/v1/rollouts/digits:abort", {}, bearer(role)).status == 404
    assert call(f"{router.admin}/v1/rollouts/digits", headers=bearer("viewer")).json["rollout"]["phase"] == "Progressing"


def test_a_token_that_was_taken_back_is_worth_nothing_at_once(router, tokens):
    assert ask(router, "pause", "operator").status == 409
    write_tokens(tokens, ["admin"])
    assert ask(router, "pause", "operator").status == 401 and ask(router, "pause", "admin").status == 409


def test_c7_a_file_that_becomes_bad_changes_nothing_and_is_said(router, tokens):
    tokens.write_text("tokens: [{name: the-operator")
    assert ask(router, "pause", "operator").status == 409
    assert "tokens.yaml:" in router.log and "those of before stay" in router.log
    metrics = call(router.admin + "/metrics", headers=bearer("viewer")).body.decode()
    assert "serin_admin_tokens_stale 1" in metrics


def test_the_audit_log_names_the_token_and_whom_it_acts_for(router):
    assert start(router, "operator").status == 201
    call(f"{router.admin}/v1/rollouts/digits:pause", {}, {**bearer("admin"), "x-serin-actor": "ann"})
    history = call(f"{router.admin}/v1/rollouts/digits/history", headers=bearer("viewer")).json["history"]
    assert [entry["actor"] for entry in history] == ["the-operator", "the-admin (ann)"]


def test_the_command_line_sends_its_token_from_a_file_or_the_environment(router, tmp_path):
    admin = ["--admin", f"127.0.0.1:{router.ports['admin']}"]
    nobody = serin("rollout", "status", *admin, env={"SERIN_TOKEN": ""})
    assert nobody.returncode == 1 and "token is needed" in nobody.stderr
    assert serin("rollout", "status", *admin, env={"SERIN_TOKEN": TOKENS["viewer"]}).returncode == 0
    token_file = tmp_path / "token"
    token_file.write_text(TOKENS["operator"] + "\n")
    started = serin("rollout", "start", "digits", "--canary", "2", "--steps", "5,100", *admin, "--token-file", token_file)
    assert started.returncode == 0, started.stderr
    refused = serin("rollout", "promote", "digits", *admin, "--token-file", token_file)
    assert refused.returncode == 1 and "needs the role admin" in refused.stderr
    token_file.write_text("two words\n")
    assert serin("rollout", "status", *admin, "--token-file", token_file).returncode == 2


def test_c8_no_token_is_logged_or_shown(router, tokens):
    start(router, "operator")
    call(router.admin + "/v1/services", headers={"Authorization": "Bearer a-wrong-token-nobody-has"})
    write_tokens(tokens, ["viewer"])
    seen = router.log + call(router.admin + "/metrics", headers=bearer("viewer")).body.decode()
    assert "a-wrong-token" not in seen and not any(token in seen for token in TOKENS.values())


@pytest.mark.parametrize("admin, words", [
    ({"listen": "127.0.0.1:0", "tokens": "/nowhere/tokens.yaml"}, ["/nowhere/tokens.yaml"]),
    ({"listen": "127.0.0.1:0", "tokens": ""}, ["admin.tokens", "path"]),
    ({"listen": "127.0.0.1:0", "rate": -1}, ["admin.rate", "0 to 100000"]),
    ({"listen": "127.0.0.1:0", "password": "x"}, ["'password'", "listen, tokens, rate"]),
    ("0.0.0.0:0", ["not loopback", "tokens: none"]),
    ({"listen": "[::]:0"}, ["not loopback", "tokens: none"]),
])
def test_c1_a_mistake_in_the_admin_section_ends_with_2(tmp_path, backend, admin, words):
    path = write_config(tmp_path, service(backend("1")), admin=admin)
    for arguments in ([], ["--check"]):
        done = serin("route", "--config", path, *arguments, timeout=20)
        assert done.returncode == 2 and all(word in done.stderr for word in words), done.stderr


def test_beyond_loopback_somebody_must_have_said_that_everybody_may(route, backend):
    router = route(service(backend("1")), admin={"listen": "0.0.0.0:0", "tokens": "none"})
    assert call(router.admin + "/v1/me").json["role"] == "admin"


def test_too_many_requests_are_429_with_retry_after(route, backend):
    router = route(service(backend("1")), admin={"listen": "127.0.0.1:0", "rate": 2})
    answers = [call(router.admin + "/v1/services") for _ in range(12)]
    refused = [answer for answer in answers if answer.status == 429]
    assert refused and refused[0].headers["Retry-After"] == "1" and answers[0].status == 200
    assert call(router.admin + "/health/ready").status == 200 and call(router.admin + "/v1/rollouts/digits:abort", {}, JSON).status == 409
    wait_until(lambda: call(router.admin + "/v1/services").status == 200, 10, "a share again")


def audit(router, kind):
    return [json.loads(line) for line in router.log.splitlines() if line.startswith('{"audit":"' + kind)]


def test_standard_output_is_the_audit_log_for_collectors(router):
    assert start(router, "operator").status == 201
    call(f"{router.admin}/v1/rollouts/digits:abort", {"reason": "lunch \"time\""}, bearer("operator"))
    lines = wait_until(lambda: len(audit(router, "change")) == 2 and audit(router, "change"), 10, "both are told")
    assert [(line["event"], line["actor"], line["weight"]) for line in lines] == [("started", "the-operator", 25), ("rolled_back", "the-operator", 0)]
    assert 'lunch "time"' in lines[1]["detail"] and lines[1]["id"] > lines[0]["id"] and lines[1]["time"].endswith("Z")


def test_what_was_refused_is_told_to_collectors_too(router):
    start(router, "viewer")
    call(f"{router.admin}/v1/rollouts/digits:promote", {}, JSON)
    call(router.admin + "/v1/services", headers=bearer("viewer"))
    lines = wait_until(lambda: len(audit(router, "refused")) == 2 and audit(router, "refused"), 10, "both are told")
    assert [(line["actor"], line["status"], line["path"]) for line in lines] == [
        ("the-viewer", 403, "/v1/rollouts"), ("127.0.0.1", 401, "/v1/rollouts/digits:promote")]
    assert all(line["peer"].startswith("127.0.0.1:") and line["method"] == "POST" and line["error"] for line in lines)
