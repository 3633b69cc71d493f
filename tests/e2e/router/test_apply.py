"""`serin rollout apply` and `diff`, and PUT /v1/rollouts/{service}: a file is applied again and again, as a pipeline or a tool of GitOps does."""

import json

import pytest

from backends import Faults
from conftest import call, serin, wait_until
from router_group import HOLD
from routers import JSON, service
from traffic import Traffic

FILE = """kind: Rollout
service: digits
canary: {version: "2", sticky: {header: x-user}}
steps: [{setWeight: 25, until: {duration: 1h}}]
"""


@pytest.fixture
def router(pair):
    return pair[0]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rollout.yaml"
    path.write_text(FILE)
    return path


def apply(router, file, *more, verb="apply"):
    return serin("rollout", verb, file, *more, "--admin", router.admin)


def test_it_is_started_once(router, file):
    first = apply(router, file)
    assert (first.returncode, first.stdout) == (0, "digits: started: rollout 'digits-1' has started\n"), first.stderr
    again = apply(router, file)
    assert (again.returncode, again.stdout) == (0, "digits: unchanged: version '2' is rolled out by 'digits-1', which is Progressing\n")
    assert [entry["event"] for entry in router.history()] == ["started"]
    file.write_text(FILE.replace("25", "50"))
    other = apply(router, file)
    assert other.returncode == 0 and "its rules differ from the file" in other.stdout
    assert router.rollout()["weight"] == 25


def test_what_was_rolled_back_stays_so_until_version_or_revision_change(route, pair, file):
    router, stable, canary = pair
    assert apply(router, file).returncode == 0
    canary.faults = Faults(error_rate=1)
    with Traffic(router.url, clients=2) as traffic:
        wait_until(lambda: router.rollout()["phase"] == "RolledBack", 20, "rolled back")
    assert set(traffic.statuses) == {200}
    canary.faults = Faults()
    for _ in range(3):
        blocked = apply(router, file)
        assert blocked.returncode == 3 and "digits: blocked: version '2' was rolled back by 'digits-1' (err: " in blocked.stdout, blocked.stdout
    router.kill()
    router = route(service(stable, canary))
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    assert apply(router, file).returncode == 3, "also by the next process"
    assert router.rollout()["id"] == "digits-1"
    file.write_text(FILE + "revision: sha256:4f1c\n")
    assert "digits: started: rollout 'digits-" in apply(router, file).stdout
    second = router.rollout()["id"]
    assert second != "digits-1" and apply(router, file).returncode == 0
    file.write_text(FILE)  # somebody takes the change of the revision back
    back = apply(router, file)
    assert back.returncode == 3 and "was rolled back by 'digits-1'" in back.stdout
    assert (router.rollout()["id"], router.rollout()["phase"]) == (second, "Progressing")


def test_another_revision_takes_the_place_of_the_one_that_runs(router, file):
    assert apply(router, file).returncode == 0
    file.write_text(FILE + "revision: b\n")
    dry = apply(router, file, "--dry-run")
    assert (dry.returncode, dry.stdout) == (0, "digits: replaced: version '2' with revision 'b' takes the place of rollout 'digits-1'\n")
    assert router.rollout()["id"] == "digits-1"
    assert apply(router, file).stdout == dry.stdout
    second = router.rollout()["id"]
    assert [(entry["rollout"], entry["event"]) for entry in router.history()] == [("digits-1", "started"), ("digits-1", "rolled_back"), (second, "started")]
    file.write_text(FILE.replace('"2"', '"7"'))
    refused = apply(router, file)
    assert refused.returncode == 1 and "has no version '7'" in refused.stderr
    assert router.rollout()["phase"] == "Progressing", "what cannot begin ends nothing"


def test_a_promoted_one_is_left_alone(router, file):
    file.write_text(FILE.replace("1h", "1s"))
    assert apply(router, file).returncode == 0
    with Traffic(router.url, clients=2):
        wait_until(lambda: router.rollout()["phase"] == "Succeeded", 40, "promoted")
    again = apply(router, file)
    assert (again.returncode, again.stdout) == (0, "digits: unchanged: version '2' was promoted by 'digits-1'\n")


def test_the_difference(router, file):
    new = apply(router, file, verb="diff")
    assert new.returncode == 1 and "+service: \"digits\"\n" in new.stdout and new.stdout.endswith("# started: \n")
    assert router.status()["rollout"] is None
    assert apply(router, file).returncode == 0
    same = apply(router, file, verb="diff")
    assert same.returncode == 0 and same.stdout.startswith("# unchanged: "), same.stdout
    file.write_text(FILE.replace("setWeight: 25", "setWeight: 10"))
    other = apply(router, file, verb="diff")
    assert other.returncode == 1 and "-  - {setWeight: 25, until: {duration: 1h}}\n+  - {setWeight: 10, until: {duration: 1h}}\n" in other.stdout, other.stdout
    assert "x-user" not in [line for line in other.stdout.splitlines() if line[0] in "+-"]


@pytest.mark.parametrize(("text", "says"), [
    ("service: digits\n", "canary"), ("service: digits\ncanary: 2\nstepps: [5]\n", "stepps"), ("service: other\ncanary: 2\n", "no service 'other'"),
    ("service: digits\ncanary: 2\nrevision: 'two words'\n", "revision"), ("service: digits\ncanary: 2\nrevision: '" + "x" * 201 + "'\n", "200"),
    ("{", "rollout.yaml"),
])
def test_a_bad_file_is_named(router, file, text, says):
    file.write_text(text)
    for verb, code in (("apply", None), ("diff", 2)):
        refused = apply(router, file, verb=verb)
        assert refused.returncode == (code or refused.returncode) != 0 and says in refused.stderr, refused.stderr
    assert router.status()["rollout"] is None


def test_the_request_itself(router):
    path = f"{router.admin}/v1/rollouts/digits"
    document = {"service": "digits", "canary": "2", "steps": [{"setWeight": 25, **HOLD}]}
    dry = call(path + "?dry_run=true", document, JSON, method="PUT")
    assert (dry.status, dry.json["action"], dry.json["status"]["rollout"]) == (200, "started", None)
    first = call(path, document, JSON, method="PUT")
    assert (first.status, first.json["action"]) == (201, "started") and first.json["status"]["rollout"]["id"] == "digits-1"
    again = call(path, document, JSON, method="PUT")
    assert (again.status, again.json["action"], again.json["specification_differs"]) == (200, "unchanged", False)
    assert call(path + "?dry=1", document, JSON, method="PUT").status == 400
    assert call(f"{router.admin}/v1/rollouts/other", document, JSON, method="PUT").status == 400
    assert call(path, {**document, "service": "other"}, JSON, method="PUT").status == 404
    assert call(path + "/history", document, JSON, method="PUT").status == 405
    assert json.loads(serin("rollout", "apply", "/dev/null", "--admin", router.admin, "--json").stdout or "{}") == {}
