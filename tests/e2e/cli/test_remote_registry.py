"""A registry that a server of plain files offers: `serin registry list|show|pull` and `serin serve` with registry+http(s)://."""

import json
import os
import shutil
import signal
import subprocess

import pytest

from conftest import MODELS, ON_FREE_PORTS, SERIN, Process, call, infer_body, serin, wait_until
from certificates import Authority
from file_server import FileServer
from registries import registry_of_digits, tag

LARGE = os.urandom(6 << 20)  # of a file next to the model: downloads can be caught in the middle


@pytest.fixture
def folder(tmp_path):
    return registry_of_digits(tmp_path / "registry")


@pytest.fixture
def files(folder):
    with FileServer(folder) as files:
        yield files


def add_large(folder, tmp_path):
    model = tmp_path / "large"
    shutil.copytree(MODELS / "digits/1", model)
    (model / "more.bin").write_bytes(LARGE)
    done = serin("registry", "add", folder, "digits", model, "--json")
    assert done.returncode == 0, done.stderr
    return blobs(folder, "digits:4")["more.bin"]


def blobs(folder, version):
    """Paths of its files below the registry, by name."""
    done = serin("registry", "show", folder, version, "--json")
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout)["files"]
    return {file["path"]: f"digits/blobs/sha256/{file['digest'].removeprefix('sha256:')}" for file in files}


def pull(files, version, tmp_path, code=0, prefix="registry+", into="models", **options):
    done = serin("registry", "pull", prefix + files.url, version, tmp_path / into, "--registry-cache", tmp_path / "cache", **options)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout


def test_pull_brings_the_files_of_a_version(folder, files, tmp_path):
    digest = json.loads(serin("registry", "show", folder, "digits:2", "--json").stdout)["digest"]
    for name in "digits:production", "digits:2", f"digits@{digest}", "digits":
        pull(files, name, tmp_path)
    for number in 1, 2, 3:
        assert (tmp_path / f"models/digits/{number}/model.onnx").read_bytes() == (MODELS / f"digits/{number}/model.onnx").read_bytes()
    assert len(files.bodies(blobs(folder, "digits:2")["model.onnx"])) == 1  # the cache has it the second time


def test_list_and_show_say_the_same_as_in_the_folder(folder, files, tmp_path):
    for action, *more in ("list", "digits"), ("show", "digits:production"):
        there = serin("registry", action, f"registry+{files.url}", *more, "--json", "--registry-cache", tmp_path / "cache")
        assert there.returncode == 0 and json.loads(there.stdout) == json.loads(serin("registry", action, folder, *more, "--json").stdout)


def test_https_is_compared_with_its_authority(folder, tmp_path):
    authority = Authority(tmp_path)
    with FileServer(folder, authority.server(authority.issue("server"))) as files:
        pull(files, "digits:1", tmp_path, env=os.environ | {"SERIN_CA": authority.ca})
        error = pull(files, "digits:2", tmp_path, code=3)
        assert files.url in error and "certificate" in error
        other = Authority(tmp_path, "other")
        assert "certificate" in pull(files, "digits:2", tmp_path, code=3, env=os.environ | {"SERIN_CA": other.ca})
        assert not (tmp_path / "models/digits/2").exists()


@pytest.mark.parametrize("file, deed, words", [
    ("index", "forbid", ["index.json: 403 Forbidden", "does not let everybody read"]), ("index", "break", ["503", "try again later"]),
    ("index", "loop", ["302", "redirects more than 5 times"]), ("index", ("redirect", "ftp://else"), ["redirects to no URL ('ftp://else')"]),
    ("index", "truncate", ["in the middle of the answer"]), ("manifest", "corrupt", ["has other contents than its digest sha256:"]),
    ("model", "corrupt", ["digits:1, file 'model.onnx'", "has other contents than its digest sha256:"]),
    ("model", "long", ["is longer than the", "bytes of its entry"]), ("model", "forbid", ["403"]), ("model", "gone", ["404"]),
])
def test_what_servers_do_wrong_is_named(folder, files, tmp_path, file, deed, words):
    version = json.loads(serin("registry", "show", folder, "digits:1", "--json").stdout)
    path = {"index": "digits/index.json", "manifest": f"digits/blobs/sha256/{version['digest'].removeprefix('sha256:')}",
            "model": blobs(folder, "digits:1")["model.onnx"]}[file]
    if deed == "gone":
        (folder / path).unlink()
    files.do(path, deed)
    error = pull(files, "digits:1", tmp_path, code=3)
    assert error.startswith("serin registry pull: ") and error.count("\n") == 1 and f"{files.url}/{path}" in error
    assert all(word in error for word in words), error
    assert not (tmp_path / "models/digits/1").exists() and not list((tmp_path / "cache").rglob("*.part"))
    if deed != "gone":
        files.do(path, None)
        pull(files, "digits:1", tmp_path)


def test_an_answer_that_always_ends_early_is_named_and_kept(folder, files, tmp_path):
    blob = add_large(folder, tmp_path)
    files.do(blob, "truncate")
    error = pull(files, "digits:4", tmp_path, code=3)
    assert f"{files.url}/{blob}" in error and f"; {len(LARGE) // 2} of {len(LARGE)} bytes are here" in error
    files.do(blob, None)
    pull(files, "digits:4", tmp_path)
    assert files.bodies(blob)[-1][2] == f"bytes={len(LARGE) // 2}-"


@pytest.mark.parametrize("text, words", [
    ("<html>", "is not a JSON object: no index of an OCI image layout"), ("{}", "'manifests' is not an array: no index"),
    (json.dumps({"manifests": [{"mediaType": "x", "digest": "md5:1", "size": 1}]}), "'digest' is not a digest by SHA-256"),
    (json.dumps({"manifests": [{"mediaType": "x", "digest": "sha256:" + "0" * 64, "size": 1 << 40,
                                "annotations": {"org.opencontainers.image.ref.name": "1"}}]}), "over the limit of"),
    (" " * (17 << 20), "has more than 16777216 bytes"),
], ids=["html", "no list", "digest", "large manifest", "large"])
def test_an_index_that_is_none_is_refused(folder, files, tmp_path, text, words):
    (folder / "digits/index.json").write_text(text)
    error = pull(files, "digits:1", tmp_path, code=3)
    assert words in error and f"{files.url}/digits/" in error


@pytest.mark.parametrize("arguments, code, words", [
    (["pull", "URL", "nope:1", "models"], 3, "404 Not Found: no registry there, or it has no model 'nope'"),
    (["pull", "URL", "digits:9", "models"], 3, "digits:9: no such version; there are 1, production, 2, 3"),
    (["list", "URL"], 2, "has no list of models"), (["tag", "URL", "digits:1", "x"], 2, "can be read with list, show and pull"),
    (["verify", "URL"], 2, "can be read with list, show and pull"), (["gc", "URL"], 2, "can be read with list, show and pull"),
    (["pull", "registry+https://a@b/c", "digits", "models"], 2, "is not registry+https://HOST"),
    (["pull", "registry+http://127.0.0.1:1", "digits", "models"], 3, "http://127.0.0.1:1/digits/index.json: 127.0.0.1:1: cannot connect"),
])
def test_wrong_commands_are_named(files, tmp_path, arguments, code, words):
    given = [argument.replace("URL", f"registry+{files.url}") for argument in arguments]
    done = serin("registry", *given, cwd=tmp_path, env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)})
    assert done.returncode == code and words in done.stderr, done.stderr


def test_redirects_lead_to_other_servers_but_never_out_of_tls(folder, files, tmp_path):
    model = blobs(folder, "digits:1")["model.onnx"]
    files.do("moved", ("redirect", f"/{model}"))
    with FileServer(folder) as first:
        first.do(model, ("redirect", f"{files.url}/moved"))
        pull(first, "digits:1", tmp_path)
    assert len(files.bodies(model)) == 1
    authority = Authority(tmp_path)
    with FileServer(folder, authority.server(authority.issue("server"))) as secure:
        secure.do("digits/index.json", ("redirect", f"{files.url}/digits/index.json"))
        assert "which is not followed" in pull(secure, "digits:1", tmp_path, code=3, env=os.environ | {"SERIN_CA": authority.ca})


@pytest.mark.parametrize("deed", ["fail once", "crumbs", "plain"])
def test_a_download_that_is_cut_off_goes_on(folder, files, tmp_path, deed):
    blob = add_large(folder, tmp_path)
    files.do(blob, deed)
    pull(files, "digits:4", tmp_path)
    assert (tmp_path / "models/digits/4/more.bin").read_bytes() == LARGE
    if deed == "fail once":
        assert [each[1:] for each in files.bodies(blob)] == [(206, "bytes=0-"), (206, f"bytes={len(LARGE) // 2}-")]


def start_pull(files, tmp_path, into):
    return subprocess.Popen([SERIN, "registry", "pull", f"registry+{files.url}", "digits:4", tmp_path / into, "--registry-cache", tmp_path / "cache"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def parts(tmp_path):
    return [path.stat().st_size for path in (tmp_path / "cache").rglob("*.part")]


def test_a_process_that_is_killed_leaves_what_the_next_one_continues(folder, files, tmp_path):
    blob = add_large(folder, tmp_path)
    files.do(blob, "stall")
    killed = start_pull(files, tmp_path, "models")
    wait_until(lambda: parts(tmp_path) == [len(LARGE) // 2], 20, "half of the file")
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert not (tmp_path / "models/digits/4").exists()
    files.do(blob, None)
    pull(files, "digits:4", tmp_path)
    assert (tmp_path / "models/digits/4/more.bin").read_bytes() == LARGE and parts(tmp_path) == []
    assert files.bodies(blob)[-1][2] == f"bytes={len(LARGE) // 2}-"


@pytest.mark.parametrize("part", [b"rotten" * 1000, LARGE + b"more"], ids=["rotten", "too long"])
def test_a_part_with_other_bytes_is_downloaded_again(folder, files, tmp_path, part):
    blob = add_large(folder, tmp_path)
    pull(files, "digits:3", tmp_path)  # makes the mirror
    mirror = next((tmp_path / "cache/remote").glob("*/digits/blobs/sha256"))
    (mirror / f"{blob.rsplit('/', 1)[1]}.part").write_bytes(part)
    pull(files, "digits:4", tmp_path)
    assert (tmp_path / "models/digits/4/more.bin").read_bytes() == LARGE


def test_a_cached_file_that_rots_is_downloaded_again(folder, files, tmp_path):
    pull(files, "digits:1", tmp_path)
    model = blobs(folder, "digits:1")["model.onnx"]
    cached = next((tmp_path / "cache/remote").glob(f"*/{model}"))
    cached.write_bytes(b"rotten")
    pull(files, "digits:1", tmp_path, into="again")
    assert cached.read_bytes() == (MODELS / "digits/1/model.onnx").read_bytes() and len(files.bodies(model)) == 2


def test_two_processes_download_once(folder, files, tmp_path):
    blob = add_large(folder, tmp_path)
    files.do(blob, "stall")
    first = start_pull(files, tmp_path, "first")
    assert files.stalled.wait(20)
    second = start_pull(files, tmp_path, "second")
    wait_until(lambda: len([each for each in files.asked if each[0] == "digits/index.json"]) == 2, 20, "the second one at work")
    files.do(blob, None)
    files.goes_on.set()
    for process in first, second:
        assert process.wait(60) == 0, process.stderr.read()
    assert [(tmp_path / into / "digits/4/more.bin").read_bytes() == LARGE for into in ("first", "second")] == [True, True]
    assert [each[2] for each in files.bodies(blob)] == ["bytes=0-", f"bytes={len(LARGE) // 2}-"]


@pytest.fixture
def serve(tmp_path):
    servers = []

    def start(*places):
        servers.append(Process(tmp_path, "serve", *places, "--registry-cache", tmp_path / "cache", "--poll-seconds", "0.05", *ON_FREE_PORTS))
        return servers[-1]

    yield start
    assert [server.end() for server in servers] == [0] * len(servers)


def versions(server):
    return call(f"{server.url}/v2/models/digits").json.get("versions")


def test_servers_follow_a_tag_and_download_once(folder, files, serve):
    server, other = (serve(f"registry+{files.url}/digits:production") for _ in range(2))
    assert versions(server) == versions(other) == ["1"]
    assert call(f"{server.url}/v2/models/digits/infer", infer_body([[0.5] * 64])).status == 200
    wait_until(lambda: ("digits/index.json", 304, None) in files.asked, 20, "an index that has not changed")
    tag(folder, "digits:2", "production")
    for each in server, other:
        wait_until(lambda each=each: versions(each) == ["2"], 20, "version 2")
    for version in 1, 2:
        assert len(files.bodies(blobs(folder, f"digits:{version}")["model.onnx"])) == 1


def test_serve_believes_the_authority_it_is_given(folder, serve, tmp_path):
    authority = Authority(tmp_path)
    with FileServer(folder, authority.server(authority.issue("server"))) as files:
        place = f"registry+{files.url}/digits"
        server = serve(place, "--registry-ca", authority.ca)
        assert versions(server) == ["1"]
        done = serin("serve", place, "--registry-cache", tmp_path / "other", *ON_FREE_PORTS)
        assert done.returncode == 2 and "certificate" in done.stderr, done.stderr


def test_a_server_that_still_downloads_ends_when_it_is_asked_to(folder, files, tmp_path):
    blob = add_large(folder, tmp_path)
    files.do(blob, "stall")
    server = subprocess.Popen([SERIN, "serve", f"registry+{files.url}/digits:4", "--registry-cache", tmp_path / "cache", *map(str, ON_FREE_PORTS)])
    try:
        assert files.stalled.wait(20)
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == -signal.SIGTERM  # nothing is served yet that would have to be ended in order
    finally:
        server.kill()
        server.wait()


def test_a_registry_that_is_away_changes_nothing(folder, files, serve):
    server = serve(f"registry+{files.url}/digits")
    files.do("digits/index.json", "break")
    wait_until(lambda: "what is loaded goes on serving" in server.log, 20, "the problem in the log")
    assert "503" in server.log and versions(server) == ["1"]
    tag(folder, "digits:3", "production")
    files.do("digits/index.json", None)
    wait_until(lambda: versions(server) == ["3"], 20, "version 3")
    assert "the registry answers again" in server.log


def test_a_version_that_arrives_damaged_is_not_served(folder, files, serve):
    server = serve(f"registry+{files.url}/digits")
    model = blobs(folder, "digits:2")["model.onnx"]
    files.do(model, "corrupt")
    tag(folder, "digits:2", "production")
    wait_until(lambda: "has other contents than its digest" in server.log, 20, "the problem in the log")
    assert versions(server) == ["1"]
    files.do(model, None)
    wait_until(lambda: versions(server) == ["2"], 30, "version 2, without another change")


@pytest.mark.parametrize("place, words", [
    ("registry+URL", "names no model"), ("registry+URL/", "names no model"), ("registry+URL/nope", "no registry there, or it has no model 'nope'"),
    ("registry+URL/digits:9", "no such version"), ("registry+https://", "names no model"), ("registry+URL/digits:a b", "a name has 1 to 128 letters"),
    ("registry+URL/?x/digits", "without user, '?' and '#'"),
])
def test_wrong_places_are_named(files, tmp_path, place, words):
    done = serin("serve", place.replace("URL", files.url), "--registry-cache", tmp_path / "cache", *ON_FREE_PORTS)
    assert done.returncode == 2 and words in done.stderr, done.stderr
