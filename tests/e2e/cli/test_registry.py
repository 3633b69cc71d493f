"""`serin registry`: versions of models in a folder, which containers' own tools read, too."""

import hashlib
import json
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

from conftest import MODELS, ON_FREE_PORTS, SERIN, Process, call, infer_body, serin

DIGITS = MODELS / "digits"


@pytest.fixture
def registry(tmp_path):
    return tmp_path / "registry"


def done(*arguments, code=0, **options):
    result = serin("registry", *arguments, **options)
    assert result.returncode == code, result.stdout + result.stderr
    return result


def refused(*arguments, code=3):
    result = done(*arguments, code=code)
    assert result.stdout == "" and result.stderr.startswith(f"serin registry {arguments[0]}: ") and result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def add(registry, version, *more, model="digits"):
    return json.loads(done("add", registry, model, DIGITS / str(version), "--json", *more).stdout)


def versions(registry, model="digits"):
    return {each["version"]: each for each in json.loads(done("list", registry, model, "--json").stdout)}


def blobs(registry, model="digits"):
    return {path.name for path in (registry / model / "blobs/sha256").iterdir()}


def test_a_version_is_added_tagged_pulled_and_served(registry, tmp_path):
    settings = tmp_path / "serin.yaml"
    settings.write_text("max_batch: 4\n")
    added = add(registry, 1, "--tag", "production", "--origin", "commit=4f2c", "--origin", "data=sha256:12=34", "--settings", settings, "--by", "ci")
    assert (added["version"], added["tags"], added["by"], added["existed"]) == (1, [], "ci", False)
    shown = json.loads(done("show", registry, "digits:production", "--json").stdout)
    assert shown["origin"] == {"commit": "4f2c", "data": "sha256:12=34"} and shown["tags"] == ["production"]
    assert shown["details"]["inputs"] == ["pixels: f32[batch,64]"] and shown["details"]["outputs"] == ["scores: f32[batch,10]"]
    contents = (DIGITS / "1/model.onnx").read_bytes()
    assert [(file["path"], file["digest"], file["bytes"]) for file in shown["files"] if not file["settings"]] == [
        ("model.onnx", f"sha256:{hashlib.sha256(contents).hexdigest()}", len(contents))]
    pulled = json.loads(done("pull", registry, f"digits@{added['digest']}", tmp_path / "models", "--json").stdout)
    assert pulled["folder"] == str(tmp_path / "models/digits/1") and not pulled["existed"]
    assert (tmp_path / "models/digits/1/model.onnx").read_bytes() == contents and (tmp_path / "models/digits/serin.yaml").read_text() == "max_batch: 4\n"
    assert json.loads(done("pull", registry, "digits", tmp_path / "models", "--json").stdout)["existed"]
    server = Process(tmp_path, "serve", "--models", tmp_path / "models", *ON_FREE_PORTS)
    row = np.linspace(0, 1, 64, dtype=np.float32).tolist()
    answer = call(f"{server.url}/v2/models/digits/infer", infer_body([row]))
    assert answer.status == 200 and len(answer.json["outputs"][0]["data"]) == 10
    assert server.end() == 0


def test_no_version_follows_the_largest_number(registry):
    """Counting on would begin at 0 again, and the next version would take its place."""
    add(registry, 1, "--version", str(2**64 - 1))
    assert f"no number follows digits:{2**64 - 1}; name a free one with --version" in refused("add", registry, "digits", DIGITS / "2")
    assert add(registry, 2, "--version", "7")["version"] == 7 and sorted(versions(registry)) == [7, 2**64 - 1]


def test_equal_contents_are_one_version(registry, tmp_path):
    first = add(registry, 1)
    copy = tmp_path / "copy/model.onnx"
    copy.parent.mkdir()
    shutil.copy(DIGITS / "1/model.onnx", copy)
    again = json.loads(done("add", registry, "digits", copy, "--json").stdout)
    assert again["existed"] and again["digest"] == first["digest"] and list(versions(registry)) == [1]
    assert "these contents are already digits:1" in refused("add", registry, "digits", copy, "--version", "2")
    assert "digits:1 has other contents" in refused("add", registry, "digits", DIGITS / "2", "--version", "1")
    assert add(registry, 2, "--version", "7")["version"] == 7 and add(registry, 3)["version"] == 8
    assert blobs(registry) >= {file["digest"].removeprefix("sha256:") for each in versions(registry).values() for file in each["files"]}


def test_a_tag_moves_and_a_retired_version_is_left_alone(registry, tmp_path):
    for version in 1, 2, 3:
        add(registry, version)
    assert done("tag", registry, "digits:1", "production").stdout == "digits:production is digits:1\n"
    assert "digits:1 is 'production'; give that tag to another version first" in refused("retire", registry, "digits:1", "--reason", "wrong for 2 %")
    done("tag", registry, "digits:2", "production")
    done("retire", registry, "digits:1", "--reason", "wrong for 2 %")
    done("retire", registry, "digits:3", "--reason", "too slow")
    assert json.loads(done("show", registry, "digits", "--json").stdout)["version"] == 2, "the newest that is not retired"
    assert "digits:3 is retired: too slow" in refused("tag", registry, "digits:3", "canary")
    message = refused("pull", registry, "digits:3", tmp_path / "models")
    assert "is retired: too slow; its digest still names it: digits@sha256:" in message and not (tmp_path / "models").exists()
    assert "these contents are digits:3, which is retired: too slow" in refused("add", registry, "digits", DIGITS / "3")
    done("pull", registry, message.split()[-1], tmp_path / "models")
    done("tag", registry, "digits", "production", "--remove")
    assert "digits has no tag 'production'" in refused("tag", registry, "digits", "production", "--remove")
    history = json.loads(done("history", registry, "digits", "--json").stdout)
    assert [(line["event"], line["version"]) for line in history] == [
        ("add", "1"), ("add", "2"), ("add", "3"), ("tag", "1"), ("tag", "2"), ("retire", "1"), ("retire", "3"), ("untag", "2")]
    assert history[4]["detail"] == "production (was 1)" and history[6]["detail"] == "too slow"


def test_gc_removes_what_is_long_retired_and_nothing_else(registry, tmp_path):
    report = tmp_path / "report.json"
    report.write_text('{"top1": 0.97}')
    for version in 1, 2:
        add(registry, version)
        done("attach", registry, f"digits:{version}", report)
    done("attach", registry, "digits:2", report)
    assert [[each["title"] for each in version["reports"]] for version in versions(registry).values()] == [["report.json"], ["report.json"]]
    done("retire", registry, "digits:1", "--reason", "old")
    assert "0 blobs" in done("gc", registry).stdout and len(versions(registry)) == 2
    kept = versions(registry)[2]
    assert "digits:1 removed" in done("gc", registry, "--days", "0").stdout
    assert versions(registry) == {2: kept} and kept["files"][0]["digest"].removeprefix("sha256:") in blobs(registry)
    assert hashlib.sha256((DIGITS / "1/model.onnx").read_bytes()).hexdigest() not in blobs(registry)
    assert "all digests and the history agree" in done("verify", registry).stdout
    assert add(registry, 3)["version"] == 3, "the number of a removed version is not the last"


def test_registrations_at_once_are_whole(registry, tmp_path):
    folders = []
    for number in range(8):
        folders.append(tmp_path / f"model{number}")
        shutil.copytree(DIGITS / "1", folders[-1])
        (folders[-1] / "labels.txt").write_text(str(number // 2))  # two and two are equal
    running = [subprocess.Popen([SERIN, "registry", "add", registry, "digits", folder, "--tag", "newest"], stdout=subprocess.DEVNULL) for folder in folders]
    assert [process.wait(60) for process in running] == [0] * 8
    found = versions(registry)
    assert list(found) == [1, 2, 3, 4] and len({each["content"] for each in found.values()}) == 4
    assert sum("newest" in each["tags"] for each in found.values()) == 1
    assert "all digests and the history agree" in done("verify", registry).stdout


def test_a_killed_registration_leaves_nothing_that_counts(registry, tmp_path):
    add(registry, 1)
    large = tmp_path / "large"
    shutil.copytree(DIGITS / "2", large)
    with open(large / "weights.bin", "wb") as file:
        file.truncate(3 << 30)
    before = blobs(registry)
    process = subprocess.Popen([SERIN, "registry", "add", registry, "digits", large], stdout=subprocess.DEVNULL)
    end = time.monotonic() + 30
    while blobs(registry) == before and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL and blobs(registry) > before
    assert list(versions(registry)) == [1] and "agree" in done("verify", registry).stdout
    assert done("gc", registry).stdout.splitlines()[-1].startswith("digits: ") and blobs(registry) == before
    (large / "weights.bin").write_bytes(b"small")
    assert json.loads(done("add", registry, "digits", large, "--json").stdout)["version"] == 2


def test_changed_files_are_named_and_never_delivered(registry, tmp_path):
    added = add(registry, 1)
    blob = registry / "digits/blobs/sha256" / added["files"][0]["digest"].removeprefix("sha256:")
    whole = blob.read_bytes()
    blob.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert f"{blob} has other contents than its digest says; 'model.onnx' is not delivered" in refused("pull", registry, "digits", tmp_path / "models")
    assert list((tmp_path / "models/digits").iterdir()) == []
    assert str(blob) in done("verify", registry, code=1).stderr
    blob.write_bytes(whole)
    done("pull", registry, "digits", tmp_path / "models")
    (tmp_path / "models/digits/1/model.onnx").write_bytes(b"other")
    assert "has other contents than digits:1" in refused("pull", registry, "digits", tmp_path / "models")
    record = registry / "digits/history.jsonl"
    lines = record.read_text()
    done("tag", registry, "digits", "production")
    record.write_text(record.read_text().replace('"by":"', '"by":"not ', 1))
    assert "history.jsonl" in done("verify", registry, code=1).stderr
    record.write_text(lines)
    assert "the last line that index.json names is missing or was changed" in done("verify", registry, code=1).stderr


@pytest.mark.parametrize("title", ["../evil", "/tmp/evil", "a/../../evil", "", "a//b", "line\nbreak", "."])
def test_names_that_leave_the_folder_are_refused(registry, tmp_path, title):
    add(registry, 1)
    layout = registry / "digits"
    index = json.loads((layout / "index.json").read_text())
    entry = next(each for each in index["manifests"] if each["annotations"]["org.opencontainers.image.ref.name"] == "1")
    manifest = json.loads((layout / "blobs/sha256" / entry["digest"].removeprefix("sha256:")).read_text())
    manifest["layers"][0]["annotations"]["org.opencontainers.image.title"] = title
    text = json.dumps(manifest)
    entry["digest"] = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    (layout / "blobs/sha256" / entry["digest"].removeprefix("sha256:")).write_text(text)
    (layout / "index.json").write_text(json.dumps(index))
    assert "is no name of a file in a folder" in refused("pull", registry, "digits", tmp_path / "models")
    assert not (tmp_path / "models").exists() and not (tmp_path / "evil").exists()


@pytest.mark.parametrize("damage, words", [
    ('{"manifests":[]', "is not a JSON object"), ("[]", "is not a JSON object"), ("{}", "'manifests' is not an array"), ('{"manifests":[1]}', "'manifests' is not an object"),
    ('{"manifests":[{"mediaType":"x","digest":"md5:1","size":1}]}', "'digest' is not a digest by SHA-256"),
    ('{"manifests":[{"mediaType":"x","digest":"sha256:%s","size":-1}]}' % ("0" * 64), "'size' is not a number of bytes"),
    ('{"manifests":[{"mediaType":"x","digest":"sha256:%s","size":1,"annotations":{"org.opencontainers.image.ref.name":"4"}}]}' % ("0" * 64), "0000"),
])
def test_a_damaged_index_is_named(registry, damage, words):
    add(registry, 1)
    (registry / "digits/index.json").write_text(damage)
    message = refused("list", registry, "digits")
    assert words in message and str(registry / "digits") in message
    assert done("verify", registry, code=1).stderr.strip()


@pytest.mark.parametrize("arguments, words, code", [
    (("show", "REGISTRY", "nope"), "has no model 'nope'", 3), (("show", "REGISTRY", "digits:9"), "digits:9: no such version; there are 1", 3),
    (("show", "REGISTRY", "../digits"), "a name has 1 to 128 letters", 2), (("show", "REGISTRY", "digits:"), "a name has 1 to 128 letters", 2),
    (("show", "REGISTRY", "digits@sha256:12"), "after '@' stands sha256: and 64 digits", 2), (("tag", "REGISTRY", "digits", "12"), "a number is a version", 2),
    (("tag", "REGISTRY", "digits", "latest"), "'latest' is always the newest", 2), (("tag", "REGISTRY", "digits", "a b"), "a name has 1 to 128 letters", 2),
    (("add", "REGISTRY", "digits", "README.md"), "models of these formats are read", 3), (("add", "REGISTRY", "digits", "nowhere"), "nowhere", 3),
    (("add", "REGISTRY", "digits", DIGITS / "1", "--origin", "commit"), "--origin 'commit' is not KEY=VALUE", 2),
    (("add", "REGISTRY", "digits", DIGITS / "2", "--settings", "nowhere.yaml"), "nowhere.yaml", 3),
    (("add", "REGISTRY", "digits", DIGITS / "2", "--settings", "bad.yaml"), "bad.yaml:1:1: unknown key 'max_bach'; allowed: max_batch, ", 2),
    (("attach", "REGISTRY", "digits", "nowhere.json"), "nowhere.json", 3), (("list", "nowhere"), "nowhere", 3), (("history", "REGISTRY", "nope"), "has no model 'nope'", 3),
])
def test_wrong_arguments_are_named(registry, tmp_path, arguments, words, code):
    add(registry, 1)
    (tmp_path / "README.md").write_text("no model")
    (tmp_path / "bad.yaml").write_text("max_bach: 4\n")
    given = [registry if each == "REGISTRY" else each for each in arguments]
    result = serin("registry", *given, cwd=tmp_path)
    assert result.returncode == code and words in result.stderr, result.stderr
    assert list(versions(registry)) == [1] and "agree" in done("verify", registry).stdout


def test_a_container_tool_copies_a_version_there_and_back(registry, tmp_path):
    if not shutil.which("skopeo"):
        pytest.skip("needs skopeo")
    added = add(registry, 1, "--tag", "production")
    (tmp_path / "elsewhere").mkdir()
    subprocess.run(["skopeo", "copy", "-q", f"oci:{registry / 'digits'}:production", f"oci:{tmp_path / 'elsewhere/digits'}:1"], check=True)
    back = json.loads(done("show", tmp_path / "elsewhere", "digits:1", "--json").stdout)
    assert back["digest"] == added["digest"] and back["files"] == added["files"]
    done("pull", tmp_path / "elsewhere", "digits", tmp_path / "models")
    assert (tmp_path / "models/digits/1/model.onnx").read_bytes() == (DIGITS / "1/model.onnx").read_bytes()
    assert "agree" in done("verify", tmp_path / "elsewhere").stdout
    done("tag", tmp_path / "elsewhere", "digits:1", "staging")
    assert [line["event"] for line in json.loads(done("history", tmp_path / "elsewhere", "digits", "--json").stdout)] == ["tag"]


def test_a_registry_that_is_mounted_for_reading_can_be_pulled_from(registry, tmp_path):
    add(registry, 1)
    (registry / "digits/.lock").unlink()
    mounted = f"mount --bind {registry} {registry} && mount -o remount,ro,bind {registry} {registry}"
    if subprocess.run(["unshare", "-m", "sh", "-c", mounted], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not mount")

    def inside(*arguments):
        return subprocess.run(["unshare", "-m", "sh", "-c", f'{mounted} && exec "$@"', "sh", SERIN, "registry", *arguments], capture_output=True, text=True, check=False)

    assert inside("pull", registry, "digits", tmp_path / "models").returncode == 0 and (tmp_path / "models/digits/1/model.onnx").exists()
    refused = inside("tag", registry, "digits", "production")
    assert refused.returncode == 3 and "Read-only file system" in refused.stderr
