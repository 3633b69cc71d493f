"""The commands of deploy/training, as they stand there, with real runtimes and a real router: only places and addresses are replaced."""

import json
import re
import shlex
import shutil
import subprocess

import pytest
import yaml

from conftest import ON_FREE_PORTS, ROOT, SERIN, Process, call
from release_loop import DIGITS

FOLDER = ROOT / "deploy/training"


def documents(name):
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def policy(loop):
    """That of the Job, but for places, the least traffic of a test, and no ten minutes of bake."""
    found = yaml.safe_load(documents("release.yaml")[0]["data"]["release.yaml"])
    written = json.loads(loop.policy().read_text())
    found.update({key: written[key] for key in ("registry", "data", "slots", "rollout", "load")})
    found["plan"] = {"memory": "2Gi"}
    loop.file.write_text(json.dumps(found))
    return loop.file


@pytest.fixture
def here(loop):
    """Replaces what is elsewhere in a cluster."""
    shutil.copytree(DIGITS / "2", loop.folder / "exports/digits/20261129")
    (loop.folder / "exports/digits/.new").mkdir()
    (loop.folder / "token").write_text("none\n")
    places = {"/exports/digits": loop.folder / "exports/digits", "/etc/serin-release/release.yaml": policy(loop), "--policy=release.yaml": f"--policy={policy(loop)}",
              "serin-router-admin:8081": f"127.0.0.1:{loop.router.ports['admin']}", "/etc/serin-token/token": loop.folder / "token",
              "$(TRAINING)": "paddlejobs.kubeflow.org/digits", "{{workflow.name}}": "digits-x7x2p"}

    def replaced(word):
        for old, new in places.items():
            word = word.replace(old, str(new))
        return word
    return replaced


def run(args):
    return subprocess.run([SERIN, *args], capture_output=True, text=True, timeout=180, check=False)


def test_the_job_brings_its_export_into_production(loop, clients, here):
    container = documents("release.yaml")[1]["spec"]["template"]["spec"]["containers"][0]
    done = run([here(word) for word in container["args"]])
    assert done.returncode == 0, done.stdout + done.stderr
    assert loop.tags() == {"production": 2, "blue": 1, "green": 2}
    [record] = loop.records()
    assert record["outcome"] == "promoted" and record["by"] == "digits-release" and record["model"]["origin"] == {"job": "paddlejobs.kubeflow.org/digits"}
    again = run([here(word) for word in container["args"]])
    assert again.returncode == 0 and "nothing to do" in again.stdout, "a Job that is applied again"


def command_in(text, **variables):
    """The arguments of `serin` in a script, as a shell makes them."""
    script = re.search(r"serin (release [^|>]*)", text)[1].replace("\\\n", " ")
    for name, value in variables.items():
        script = re.sub(rf"\$\{{?{name}\b\}}?", value, script)
    assert "$" not in script, script
    return shlex.split(script)


def others():
    workflow = documents("argo-workflow.yaml")[0]["spec"]["templates"][-1]["container"]["args"]
    github = yaml.safe_load((FOLDER / "github-actions.yml").read_text())["jobs"]["release"]["steps"][1]["run"]
    gitlab = yaml.safe_load((FOLDER / "gitlab-ci.yml").read_text())["release"]["script"][0]
    jenkins = (FOLDER / "Jenkinsfile").read_text()
    export = {"EXPORT": "digits"}
    return {"argo-workflow": workflow,
            "github-actions": command_in(github, **export, GITHUB_SHA="4f2c", GITHUB_RUN_ID="7", GITHUB_ACTOR="ann"),
            "gitlab-ci": command_in(gitlab, **export, CI_COMMIT_SHA="4f2c", CI_JOB_ID="7", GITLAB_USER_LOGIN="ann"),
            "jenkins": command_in(jenkins, **export, GIT_COMMIT="4f2c", BUILD_TAG="digits-7")}


def test_the_other_commands_would_do_the_same(loop, here):
    for name, args in others().items():
        done = run([*map(here, args), "--dry-run"])
        assert done.returncode == 0, (name, done.stdout, done.stderr)
    assert loop.tags() == {"production": 1, "blue": 1, "green": 1} and loop.records() == []


def test_a_runtime_of_a_slot_starts_with_its_arguments(loop, tmp_path):
    args = documents("slots.yaml")[3]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[0] == "serve"
    places = {"/registry/": f"{loop.registry}/", "=/cache": f"={tmp_path}/cache", "0.0.0.0": "127.0.0.1", "--drain-seconds=10": "--drain-seconds=0"}
    for old, new in places.items():
        args = [word.replace(old, new) for word in args]
    with Process(tmp_path, *args, *ON_FREE_PORTS[:-2]) as runtime:
        assert call(f"{runtime.url}/v2/models/digits").json["versions"] == ["1"]
