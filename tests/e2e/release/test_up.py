"""`serin up models/`: a router and runtimes for a folder of models; a version folder that appears is released; everything ends together."""

import json
import os
import shutil
import signal
import subprocess

import pytest

from conftest import Process, call, serin, wait_until
from release_loop import DIGITS, EVAL, RULES, Load

POLICY = {"data": str(EVAL), "eval": {"require": ["top1 >= 95%"], "noWorseBy": "5pt"}, "rollout": RULES, "load": {"timeout": "20s"}}


class Up(Process):
    def __init__(self, folder, *more):
        self.models = folder / "models"
        super().__init__(folder, "up", self.models, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--poll-seconds", "0.1", *more)

    @property
    def state(self):
        return self.models / ".serin"

    def production(self, model="digits"):
        shown = serin("registry", "show", self.state / "registry", f"{model}:production", "--json")
        return json.loads(shown.stdout)["version"] if shown.returncode == 0 else None

    def records(self):
        listed = serin("history", "list", self.state / "registry", "--json")
        return [(each["outcome"], each["stage"]) for each in json.loads(listed.stdout)] if listed.returncode == 0 else []

    def children(self):
        """{name in its ready file: pid} of what it runs."""
        return {path.stem: json.loads(path.read_text())["pid"] for path in (self.state / "logs").glob("*.ready")}

    def served(self, model="digits"):
        return call(f"{self.url}/v2/models/{model}").json.get("versions")


def put(models, version, files, model="digits"):
    """As an export does it: the folder appears at once."""
    staged = models.parent / "staged"
    shutil.copytree(DIGITS / files, staged)
    (models / model).mkdir(parents=True, exist_ok=True)
    staged.rename(models / model / version)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def models(tmp_path):
    folder = tmp_path / "models"
    put(folder, "1", "1")
    shutil.copy(DIGITS / "serin.yaml", folder / "digits")
    (folder / "digits/release.yaml").write_text(json.dumps(POLICY))
    return folder


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_versions_are_released_as_they_appear_and_everything_ends(models, tmp_path):
    with Up(tmp_path) as up, Load(up.url) as load:
        assert up.production() == 1 and up.served() == ["1"]
        assert set(up.children()) == {"digits-blue", "digits-green", "router"} and len(set(up.children().values())) == 3
        put(models, "2", "2")
        wait_until(lambda: up.records() == [("promoted", "tag")], 120, "the release")
        assert up.production() == 2 and up.served() == ["2"]
        put(models, "3", "3")
        wait_until(lambda: up.records()[1:] == [("refused", "eval")], 60, "its end")
        assert up.production() == 2 and "digits: promoted: digits:2 is in production" in up.log
        wait_until(lambda: "digits: stopped at eval" in up.log, 10, "its last lines")
        seen = load.end()
        assert seen["errors"] == 0 and seen["ok"] > 100, seen
        pids = list(up.children().values())
        assert up.end() == 0 and not any(alive(pid) for pid in pids)
    # It was seen: nothing is released again, and the router still knows its stable slot.
    with Up(tmp_path) as up:
        assert up.production() == 2 and up.served() == ["2"]
        put(models, "4", "3", model="more")
        wait_until(lambda: call(f"{up.url}/v2/models/more").status == 200, 60, "a new model")
        assert up.served("more") == ["1"] and len(up.records()) == 2


def test_a_crash_is_a_restart_and_other_processes_go_on(models, tmp_path):
    with Up(tmp_path) as up, Load(up.url) as load:
        before = up.children()
        os.kill(before["digits-green"], signal.SIGKILL)
        wait_until(lambda: up.children().get("digits-green", before["digits-green"]) != before["digits-green"], 30, "the canary's runtime")
        assert "digits-green was killed by signal 9" in up.log and up.children()["digits-blue"] == before["digits-blue"]
        put(models, "2", "2")
        wait_until(lambda: up.records() == [("promoted", "tag")], 120, "a release after it")
        assert load.end()["errors"] == 0


def test_a_release_goes_on_after_kill_9(models, tmp_path):
    """Whatever it had started ends with it; the next start goes on."""
    with Up(tmp_path) as up, Load(up.url):
        put(models, "2", "2")
        wait_until(lambda: "digits: " in up.log and " load " in up.log, 60, "the release under way")
        pids = list(up.children().values())
        up.kill()
        wait_until(lambda: not any(alive(pid) for pid in pids), 30, "no process left")
    with Up(tmp_path) as up, Load(up.url):
        wait_until(lambda: up.records() == [("promoted", "tag")], 120, "the rest of the release")
        assert "goes on" in up.log and up.production() == 2


def refused(*arguments, code=2):
    done = serin("up", *arguments, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    assert done.returncode == code and done.stderr.startswith("serin up: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_what_cannot_start_is_named(models, tmp_path):
    assert "there is no folder" in refused(tmp_path / "nothing") and not (tmp_path / "nothing").exists()
    (tmp_path / "empty").mkdir()
    assert "has no folders such as NAME/1/model.onnx" in refused(tmp_path / "empty")
    (models / "broken/1").mkdir(parents=True)
    (models / "broken/1/model.onnx").write_bytes(b"no model")
    assert "model 'broken'" in refused(models, code=3)
    shutil.rmtree(models / "broken")
    with Up(tmp_path):
        assert "another serin up works with this folder" in refused(models, code=3)


def test_a_bad_policy_is_named_and_released_once_it_is_right(models, tmp_path):
    (models / "digits/release.yaml").write_text("stages: []\n")
    with Up(tmp_path) as up, Load(up.url):
        put(models, "2", "2")
        wait_until(lambda: "unknown key 'stages'" in up.log, 30, "the mistake")
        (models / "digits/release.yaml").write_text(json.dumps(POLICY))
        wait_until(lambda: up.records() == [("promoted", "tag")], 120, "the release")


def test_a_model_without_a_policy_is_released_by_the_defaults(models, tmp_path):
    (models / "digits/release.yaml").unlink()
    with Up(tmp_path) as up, Load(up.url):
        put(models, "2", "2")
        wait_until(lambda: "  shadow  " in up.log, 60, "the shadow")
        assert "the policy has no evaluation" in up.log and "shadow 10 %" in up.log


def test_a_new_folder_that_is_no_model_hurts_nobody(models, tmp_path):
    with Up(tmp_path) as up:
        (models / "broken/1").mkdir(parents=True)
        (models / "broken/1/model.onnx").write_bytes(b"no model")
        wait_until(lambda: "broken: cannot be served" in up.log, 30, "the reason")
        assert up.served() == ["1"]
        assert subprocess.run(["pgrep", "-P", str(up.process.pid)], capture_output=True, text=True, check=False).stdout.count("\n") == 3
