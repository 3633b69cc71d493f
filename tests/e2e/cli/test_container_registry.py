"""Models in a container registry: `serin registry list|show|pull` and `serin serve` with oci://. The registry is Distribution, written by skopeo and raw requests."""

import json

import pytest

from conftest import MODELS, ON_FREE_PORTS, Process, call, infer_body, serin, wait_until
from file_server import FileServer
from registries import registry_of_digits, tag
from registry_server import PASSWORD, RegistryServer, TokenFront, login_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return registry_of_digits(tmp_path_factory.mktemp("digits") / "registry")


@pytest.fixture
def containers(tmp_path, folder):
    with RegistryServer(tmp_path) as containers:
        containers.copy(folder, "digits:production", "models")
        yield containers


@pytest.fixture
def run(containers, tmp_path):
    """`serin registry`, with the login; its output, or its error if a code is expected."""
    def run(action, *arguments, code=0, **settings):
        done = serin("registry", action, *arguments, "--registry-cache", tmp_path / "cache", env={"HOME": str(tmp_path), **containers.settings(), **settings})
        assert done.returncode == code, done.stdout + done.stderr
        assert PASSWORD not in done.stdout + done.stderr
        return done.stderr if code else done.stdout

    return run


def test_a_version_that_skopeo_copied_is_the_same_version(folder, containers, run, tmp_path):
    place = f"oci+http://{containers.host}/models"
    there = json.loads(run("show", place, "digits:production", "--json"))
    here = json.loads(serin("registry", "show", folder, "digits:production", "--json").stdout)
    assert there == here and there["tags"] == ["production"]
    run("pull", place, f"digits@{here['digest']}", tmp_path / "pulled")
    assert (tmp_path / "pulled/digits/1/model.onnx").read_bytes() == (MODELS / "digits/1/model.onnx").read_bytes()
    containers.copy(folder, "digits:2", "models")
    assert [(version["version"], version["tags"]) for version in json.loads(run("list", place, "digits", "--json"))] == [(1, ["production"]), (2, [])]
    assert "no such version" in run("show", place, "digits:3", code=3) or "MANIFEST_UNKNOWN" in run("show", place, "digits:3", code=3)


def artifact(version=1):
    return {"model.onnx": (MODELS / f"digits/{version}/model.onnx").read_bytes(), "serin.yaml": b"max_batch: 4\n"}


def test_files_that_another_tool_pushed_are_a_version(containers, run, tmp_path):
    place = f"oci+http://{containers.host}/teams/a"
    containers.put_artifact("teams/a/digits", "7", artifact())
    containers.put_artifact("teams/a/digits", "latest", artifact(2), {"org.opencontainers.image.version": "8"})
    containers.put_artifact("teams/a/digits", "v1.2", artifact(3))
    for name, number in ("digits:7", "7"), ("digits", "8"):
        assert json.loads(run("show", place, name, "--json"))["version"] == int(number)
        run("pull", place, name, tmp_path / "pulled")
        assert (tmp_path / f"pulled/digits/{number}/model.onnx").exists()
    shown = json.loads(run("show", place, "digits:v1.2", "--json"))
    assert shown["version"] == int(shown["digest"].removeprefix("sha256:")[:8], 16) and shown["tags"] == ["v1.2"]
    assert (tmp_path / "pulled/digits/serin.yaml").read_text() == "max_batch: 4\n"


@pytest.mark.parametrize("title, annotations, words", [
    ("../evil", {}, "is no name of a file in a folder"), ("digits", {"io.deis.oras.content.unpack": "true"}, "is an archive of a folder"),
    ("", {}, "it is an image, and no artifact of files"),
])
def test_artifacts_of_other_things_are_refused(containers, run, tmp_path, title, annotations, words):
    containers.put_artifact("models/other", "1", {title: b"x"}, **annotations)
    assert words in run("pull", f"oci+http://{containers.host}/models", "other:1", tmp_path / "pulled", code=3)
    assert not (tmp_path / "evil").exists() and not (tmp_path / "pulled/evil").exists()


def test_a_list_of_manifests_is_refused(containers, run):
    containers.put_manifest("models/digits", "all", {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []},
                            "application/vnd.oci.image.index.v1+json")
    assert "is a list of several manifests; name one" in run("show", f"oci+http://{containers.host}/models", "digits:all", code=3)


@pytest.mark.parametrize("config, words", [
    ({"basic": ""}, ["401", "UNAUTHORIZED", "log in, or allow it:", "config.json has no `auth` of"]),
    ({"basic": "", "credsStore": "desktop"}, ["and the helper that it names is not run"]),
    ({"basic": "Y2k6d3Jvbmc="}, ["401", "UNAUTHORIZED", "the login of 127.0.0.1:"]),
])
def test_a_login_that_is_missing_or_wrong_is_named(containers, run, tmp_path, config, words):
    settings = {"DOCKER_CONFIG": str(login_of(tmp_path / "other", containers.host, **config))}
    error = run("pull", f"oci+http://{containers.host}/models", "digits:production", tmp_path / "pulled", code=3, **settings)
    assert error.count("\n") == 1 and all(word in error for word in words), error
    (tmp_path / "other/config.json").chmod(0o644)
    assert "chmod 600 it" in run("show", f"oci+http://{containers.host}/models", "digits:production", code=3, **settings)
    (tmp_path / "other/config.json").unlink()
    assert "config.json does not exist" in run("show", f"oci+http://{containers.host}/models", "digits:production", code=3, **settings)


def test_tokens_are_fetched_and_renewed(containers, run, tmp_path):
    with TokenFront(containers) as front:
        settings = {"DOCKER_CONFIG": str(login_of(tmp_path / "front", f"https://{front.host}/v2/"))}
        place = f"oci+http://{front.host}/models"
        run("pull", place, "digits:production", tmp_path / "pulled", **settings)
        assert [path.split("?")[0] for path, _ in front.asked][:3] == ["/v2/models/digits/manifests/production", "/token", "/v2/models/digits/manifests/production"]
        assert [path for path, _ in front.asked if path.startswith("/token")] == ["/token?service=tests&scope=repository%3Amodels%3Apull"]
        assert {header.split()[0] for path, header in front.asked if header and not path.startswith("/token")} == {"Bearer"}
        nothing = {"DOCKER_CONFIG": str(login_of(tmp_path / "none", front.host, ""))}
        assert "/token: 401: refuses a token for 127.0.0.1:" in run("show", place, "digits:production", code=3, **nothing)
        for body, words in (b"{}", "answers no token"), (b"<html>", "answers no token"), (b'{"token":5}', "answers no token"):
            front.deeds["/token"] = (200, body)
            assert words in run("show", place, "digits:production", code=3, **settings)
    with TokenFront(containers, realm="token") as front:
        assert "asks for a token of 'token', which is no URL" in run("show", f"oci+http://{front.host}/models", "digits:production", code=3)


def test_a_file_elsewhere_is_fetched_without_the_login(containers, run, tmp_path, folder):
    digest = json.loads(serin("registry", "show", folder, "digits:production", "--json").stdout)["files"][0]["digest"]
    path = digest.removeprefix("sha256:")
    with FileServer(folder / "digits/blobs/sha256") as store, TokenFront(containers) as front:
        front.deeds[f"blobs/{digest}"] = (307, b"", [("Location", f"{store.url}/{path}")])
        run("pull", f"oci+http://{front.host}/models", "digits:production", tmp_path / "pulled", DOCKER_CONFIG=str(login_of(tmp_path / "front", front.host)))
        assert [each[0] for each in store.asked] == [path]
        assert not any(name.lower() == "authorization" for head in store.heads for name in head)


@pytest.mark.parametrize("status, body, words", [
    (404, b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"unknown\\u001b[2J"}]}', ["MANIFEST_UNKNOWN (unknown [2J): there is no such model, tag or file"]),
    (429, b'{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}', ["429", "TOOMANYREQUESTS (slow down)"]),
    (404, b"<html>" * 100_000, ["404 Not Found: there is no such model"]), (400, b"\xff", ["is that a container registry?"]),
    (200, b"<html>", ["is not a JSON object"]), (200, b"{}", ["'layers' is not an array"]), (200, b" " * (17 << 20), ["has more than 16777216 bytes"]),
    (200, json.dumps({"layers": [], "config": {"mediaType": "x", "digest": "md5:1", "size": 1}}).encode(), ["'digest' is not a digest by SHA-256"]),
], ids=["unknown", "too many", "page", "no text", "html", "empty", "large", "digest"])
def test_answers_that_are_wrong_are_named(containers, run, tmp_path, status, body, words):
    with TokenFront(containers) as front:
        front.deeds["manifests/production"] = (status, body)
        error = run("pull", f"oci+http://{front.host}/models", "digits:production", tmp_path / "pulled", code=3)
    assert f"http://{front.host}/v2/models/digits/manifests/production" in error and all(word in error for word in words), error[:2000]
    assert error.count("\n") == 1 and len(error) < 1000


@pytest.mark.parametrize("arguments, code, words", [
    (["list", "PLACE"], 2, "has no list of models"), (["show", "PLACE", "Digits:1"], 2, "names in a container registry are lower case"),
    (["show", "oci://", "digits"], 2, "nor oci://HOST[/PATH]"), (["show", "oci://user@host/x", "digits"], 2, "without user"),
    (["show", "oci+http://127.0.0.1:1/x", "digits:1"], 3, "cannot connect"), (["show", "PLACE", "nope:1"], 3, "there is no such model"),
    (["tag", "PLACE", "digits:production", "x"], 2, "can be read with list, show and pull"),
])
def test_wrong_commands_are_named(containers, tmp_path, arguments, code, words):
    given = [argument.replace("PLACE", f"oci+http://{containers.host}/models") for argument in arguments]
    done = serin("registry", *given, env={"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), **containers.settings()})
    assert done.returncode == code and words in done.stderr, done.stderr


def test_a_server_follows_a_tag(folder, containers, tmp_path):
    def versions(server):
        return call(f"{server.url}/v2/models/digits").json.get("versions")

    place = f"oci+http://{containers.host}/models/digits"
    containers.copy(folder, "digits:2", "models")
    server = Process(tmp_path, "serve", place, f"{place}:2", "--registry-cache", tmp_path / "served", "--poll-seconds", "0.05", *ON_FREE_PORTS,
                     env={"HOME": str(tmp_path), **containers.settings()})
    try:
        assert versions(server) == ["1", "2"]
        assert call(f"{server.url}/v2/models/digits/infer", infer_body([[0.5] * 64])).status == 200
        tag(folder, "digits:3", "production")
        containers.copy(folder, "digits:production", "models")
        wait_until(lambda: versions(server) == ["2", "3"], 20, "version 3")
    finally:
        assert server.end() == 0
        tag(folder, "digits:1", "production")
    assert PASSWORD not in server.log
