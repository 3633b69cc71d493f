"""A registry in a bucket of S3: `serin registry list|show|pull|push` and `serin serve` with s3://. The server verifies signatures."""

import json
import os
import shutil
import subprocess
import threading

import pytest

from conftest import MODELS, ON_FREE_PORTS, SERIN, Process, call, infer_body, serin, wait_until
from file_server import FileServer
from registries import registry_of_digits, tag
from s3_server import REGION, SECRET, S3Server, answer, cut, error_page, once

LARGE = os.urandom(33 << 20)  # over the size of a part


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return registry_of_digits(tmp_path_factory.mktemp("digits") / "registry")


@pytest.fixture
def folder(digits, tmp_path):
    return shutil.copytree(digits, tmp_path / "registry")


@pytest.fixture(scope="module")
def buckets():
    """What the first test has pushed, as files of the server, by its program."""
    return {}


@pytest.fixture
def s3(tmp_path, request):
    with S3Server(tmp_path, getattr(request, "param", "nanio")) as s3:
        yield s3


both_servers = pytest.mark.parametrize("s3", ["nanio", "versitygw"], indirect=True)


@pytest.fixture
def run(s3, tmp_path):
    """`serin registry`, with the settings of the server; its output, or its error if a code is expected."""
    def run(*arguments, code=0, cache="cache", **settings):
        more = ["--registry-cache", tmp_path / cache] if arguments[0] in ("list", "show", "pull", "push") else []
        done = serin("registry", *arguments, *more, env=s3.settings(**{"HOME": tmp_path, **settings}))
        assert done.returncode == code, done.stdout + done.stderr
        assert SECRET not in done.stdout + done.stderr
        return done.stderr if code else done.stdout

    return run


@pytest.fixture
def pushed(folder, run, s3, buckets, tmp_path_factory):
    if s3.program not in buckets:
        for version in "production", 2, 3:
            run("push", folder, f"digits:{version}", "s3://models/registry")
        buckets[s3.program] = shutil.copytree(s3.folder, tmp_path_factory.mktemp("buckets") / s3.program)
    else:
        shutil.copytree(buckets[s3.program], s3.folder, dirs_exist_ok=True)
    s3.asked.clear()
    return folder


@both_servers
def test_what_is_pushed_is_listed_shown_and_pulled(pushed, run, s3, tmp_path):
    for arguments in ("list",), ("list", "digits"), ("show", "digits:production"), ("show", "digits:2"):
        action, *more = arguments
        there = json.loads(run(action, "s3://models/registry", *more, "--json"))
        assert there == json.loads(serin("registry", action, pushed, *more, "--json").stdout)
    run("pull", "s3://models/registry", "digits", tmp_path / "pulled")
    run("pull", "s3://models/registry/", "digits:production", tmp_path / "pulled")
    for number in 1, 3:
        assert (tmp_path / f"pulled/digits/{number}/model.onnx").read_bytes() == (MODELS / f"digits/{number}/model.onnx").read_bytes()
    assert s3.asked and all(each[3]["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=") for each in s3.asked)
    # The bucket is a registry like any other: in a folder it verifies, with its record.
    assert "all digests and the history agree" in serin("registry", "verify", s3.folder / "models/registry").stdout
    history = json.loads(serin("registry", "history", s3.folder / "models/registry", "digits", "--json").stdout)
    assert [(line["event"], line["version"]) for line in history] == [("add", "1"), ("tag", "1"), ("add", "2"), ("add", "3")]


@both_servers
def test_another_client_reads_what_was_pushed(pushed, s3):
    index = json.loads(s3.curl("GET", "/models/registry/digits/index.json"))
    assert len(index["manifests"]) == 4 and pushed.exists()


@pytest.mark.parametrize("s3, prefix", [("nanio", ""), ("nanio", "/a b+c/ä=&?#~'(!*)"), ("nanio", "/x:y"), ("versitygw", "/a b+c/ä=&?#~'(!*)/%20"), ("versitygw", "/x%2F:y")],
                         indirect=["s3"])  # nanio decodes a key twice
def test_a_prefix_with_odd_characters_is_signed_as_it_is_sent(folder, run, s3, tmp_path, prefix):
    run("push", folder, "digits:1", f"s3://models{prefix}")
    assert json.loads(run("list", f"s3://models{prefix}", "--json"))[0]["model"] == "digits"
    run("pull", f"s3://models{prefix}", "digits:1", tmp_path / "pulled", AWS_ENDPOINT_URL_S3=s3.url + "/")
    assert (tmp_path / "pulled/digits/1/model.onnx").exists() and (s3.folder / f"models{prefix}/digits/index.json").exists()


def test_folders_that_are_no_models_are_not_listed(pushed, run, s3):
    for name in "notes", "-odd":
        s3.curl("PUT", f"/models/registry/{name}/readme.txt", "text")
    for each in range(3):
        run("push", pushed, "digits:1", f"s3://models/registry/more{each}")
    assert {version["model"] for version in json.loads(run("list", "s3://models/registry", "--json"))} == {"digits"}


@pytest.mark.parametrize("settings, words", [
    ({"AWS_ACCESS_KEY_ID": "AKIAOTHER"}, ["InvalidAccessKeyId: the server does not know the access key of AWS_ACCESS_KEY_ID"]),
    ({"AWS_SECRET_ACCESS_KEY": "wrong-but-secret"}, ["SignatureDoesNotMatch: the secret of AWS_ACCESS_KEY_ID does not belong"]),
    ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, ["requests are not signed, because there is no AWS_ACCESS_KEY_ID, and", "credentials does not exist"]),
    ({"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1"}, ["http://127.0.0.1:1/models/registry/digits/index.json: 127.0.0.1:1: cannot connect"]),
])
def test_wrong_settings_are_named(pushed, run, tmp_path, settings, words):
    error = run("pull", "s3://models/registry", "digits:1", tmp_path / "pulled", code=3, **settings)
    assert error.count("\n") == 1 and all(word in error for word in words), error
    assert "wrong-but-secret" not in error and pushed.exists()


@pytest.mark.parametrize("s3", ["versitygw"], indirect=True)
def test_the_region_of_the_bucket_is_named(pushed, run, tmp_path):
    error = run("pull", "s3://models/registry", "digits:1", tmp_path / "pulled", code=3, AWS_REGION="us-west-2")
    assert "AuthorizationHeaderMalformed" in error and f"the bucket is in region '{REGION}' and not in 'us-west-2'; set AWS_REGION={REGION}" in error and pushed.exists()


@pytest.mark.parametrize("arguments, code, words", [
    (["list", "s3://nowhere/registry"], 3, ["bucket 'nowhere': NoSuchBucket: there is no such bucket; check its name"]),
    (["pull", "s3://nowhere/registry", "digits", "pulled"], 3, ["bucket 'nowhere', key 'registry/digits/index.json': NoSuchBucket"]),
    (["pull", "s3://models/registry", "nope", "pulled"], 3, ["key 'registry/nope/index.json'", "no registry there, or it has no model 'nope'"]),
    (["pull", "s3://models/registry", "digits:9", "pulled"], 3, ["digits:9: no such version; there are 1, production, 2, 3"]),
    (["list", "s3://models/elsewhere"], 3, ["no registry there"]), (["list", "s3://m"], 2, ["is not s3://BUCKET[/PREFIX]"]),
    (["verify", "s3://models/registry"], 2, ["can be read with list, show and pull"]), (["tag", "s3://models/registry", "digits:1", "x"], 2, ["can be read with"]),
    (["push", "s3://models/registry", "digits", "s3://models/other"], 2, ["do this where its folder is"]),
    (["push", "REGISTRY", "digits", "elsewhere"], 2, ["is not s3://BUCKET[/PREFIX]"]), (["push", "REGISTRY", "digits:7", "s3://models/x"], 3, ["no such version"]),
    (["push", "REGISTRY", "digits", "s3://nowhere/x"], 3, ["NoSuchBucket"]), (["push", "REGISTRY", "digits", "registry+http://127.0.0.1:1/x"], 2, ["is read only"]),
])
def test_wrong_commands_are_named(pushed, run, arguments, code, words):
    error = run(*[str(pushed) if argument == "REGISTRY" else argument for argument in arguments], code=code)
    assert error.count("\n") == 1 and all(word in error for word in words), error


@pytest.mark.parametrize("status, body, headers, words", [
    (403, error_page("RequestTimeTooSkewed"), {"Date": "Sun, 29 Nov 2026 12:00:00 GMT"}, ["RequestTimeTooSkewed: the clocks differ too much", "12:00:00 GMT"]),
    (301, error_page("PermanentRedirect", "<Endpoint>elsewhere</Endpoint>"), {"x_amz_bucket_region": "us-west-2"}, ["set AWS_REGION=us-west-2"]),
    (400, error_page("AuthorizationHeaderMalformed", "<Region>us-west-2</Region>"), {}, [f"is in region 'us-west-2' and not in '{REGION}'; set AWS_REGION=us-west-2"]),
    (403, b"<html>a proxy</html>", {}, ["403 Forbidden", "the access key of AWS_ACCESS_KEY_ID may not do this"]),
    (400, b"\xff\xfe{]", {}, ["400 Bad Request", "the answer is not one of S3, so check AWS_ENDPOINT_URL_S3"]),
    (400, error_page("x" * 3_000_000), {}, ["400 Bad Request"]), (500, b"<" * 3_000_000, {}, ["500 Internal Server Error", "try again later"]),
    (503, error_page("SlowDown"), {}, ["SlowDown: try again later"]), (418, error_page("Odd\x1b[2J"), {}, ["Odd [2J (in its words)"]),
], ids=["skew", "moved", "region", "proxy", "no text", "huge code", "huge", "slow down", "odd"])
def test_refusals_are_named(pushed, run, s3, tmp_path, status, body, headers, words):
    s3.do("GET", "index.json", answer(status, body, **headers))
    error = run("pull", "s3://models/registry", "digits:1", tmp_path / "pulled", code=3)
    assert "key 'registry/digits/index.json'" in error and all(word in error for word in words), error
    assert len(error) < 1000 and error.count("\n") == 1 and pushed.exists()


@pytest.mark.parametrize("text", [b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken></ListBucketResult>",
                                  b"<html/>", b"", b"<ListBucketResult>" + b"<CommonPrefixes><Prefix>registry/" * 10_000])
def test_a_list_that_is_none_ends(run, s3, text):
    s3.do("GET", "/models/", answer(200, text))
    assert any(words in run("list", "s3://models/registry", code=3) for words in ("more than 100 pages", "no list of a bucket", "no registry there"))


def test_keys_come_from_the_shared_file_and_may_change(folder, run, tmp_path):
    profile = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_PROFILE": "ci"}
    (tmp_path / ".aws").mkdir()
    path = tmp_path / ".aws/credentials"
    path.write_text(f"[ci]\naws_access_key_id = AKIATESTTESTTESTTEST\naws_secret_access_key = {SECRET}\n")
    path.chmod(0o644)
    assert "chmod 600 it" in run("push", folder, "digits:1", "s3://models/registry", code=3, **profile)
    path.chmod(0o600)
    run("push", folder, "digits:1", "s3://models/registry", **profile)
    assert "has no profile 'other', which AWS_PROFILE names" in run("list", "s3://models/registry", code=3, **{**profile, "AWS_PROFILE": "other"})


@pytest.mark.parametrize("s3", ["versitygw"], indirect=True)
def test_a_public_bucket_is_read_without_keys(pushed, run, s3, tmp_path):
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*", "Action": ["s3:GetObject", "s3:ListBucket"],
                                                      "Resource": ["arn:aws:s3:::models", "arn:aws:s3:::models/*"]}]}
    s3.curl("PUT", "/models?policy=", json.dumps(policy))
    unsigned = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
    run("pull", "s3://models/registry", "digits:production", tmp_path / "pulled", **unsigned)
    assert json.loads(run("list", "s3://models/registry", "--json", **unsigned)) and pushed.exists()
    assert not any("Authorization" in each[3] for each in s3.asked if each[0] == "GET")
    assert "requests are not signed, because" in run("push", pushed, "digits:2", "s3://models/other", code=3, **unsigned)


def add_large(folder, tmp_path):
    model = tmp_path / "large"
    shutil.copytree(MODELS / "digits/1", model)
    (model / "more.bin").write_bytes(LARGE)
    done = serin("registry", "add", folder, "digits", model, "--json")
    assert done.returncode == 0, done.stderr
    show = json.loads(serin("registry", "show", folder, "digits:4", "--json").stdout)
    return next(file["digest"].removeprefix("sha256:") for file in show["files"] if file["path"] == "more.bin")


@both_servers
def test_a_large_file_goes_in_parts_and_a_download_continues(folder, run, s3, tmp_path):
    blob = add_large(folder, tmp_path)
    run("push", folder, "digits:4", "s3://models/registry")
    assert [each[1].partition("?")[2].partition("=")[0] for each in s3.requests("POST", blob)] == ["uploads", "uploadId"]
    assert len(s3.requests("PUT", blob)) == 2
    s3.do("GET", blob, once(cut))
    run("pull", "s3://models/registry", "digits:4", tmp_path / "pulled")
    assert (tmp_path / "pulled/digits/4/more.bin").read_bytes() == LARGE
    first, second = s3.requests("GET", blob)
    assert (first[2], first[3]["Range"], second[2], second[3]["Range"]) == (206, "bytes=0-", 206, f"bytes={len(LARGE) // 2}-")
    assert first[3]["Authorization"] != second[3]["Authorization"]


def test_parts_of_an_upload_that_fails_are_removed(folder, run, s3, tmp_path):
    blob = add_large(folder, tmp_path)
    s3.do("PUT", blob, answer(403, error_page("AccessDenied")))
    assert "AccessDenied: the access key of AWS_ACCESS_KEY_ID may not do this" in run("push", folder, "digits:4", "s3://models/registry", code=3)
    assert [each[2] for each in s3.requests("DELETE", blob)] == [204]
    assert not (s3.folder / "models/registry/digits/index.json").exists()


def test_a_file_that_has_changed_is_not_uploaded(folder, run, s3, tmp_path):
    blob = add_large(folder, tmp_path)
    for path, size in (folder / "digits/blobs/sha256" / blob, len(LARGE)), (next((folder / "digits/blobs/sha256").glob("*")), 10):
        original = path.read_bytes()
        path.write_bytes(b"x" * size)
        error = run("push", folder, "digits:4", "s3://models/registry", code=3)
        assert "has other contents than its digest" in error
        path.write_bytes(original)
    assert not (s3.folder / "models/registry/digits/index.json").exists()


def test_a_redirect_leads_elsewhere_without_the_signature(pushed, run, s3, tmp_path):
    with FileServer(s3.folder / "models/registry") as other:
        s3.do("GET", "digits/index.json", answer(307, Location=f"{other.url}/digits/index.json"))
        run("pull", "s3://models/registry", "digits:1", tmp_path / "pulled")
        assert [each[0] for each in other.asked] == ["digits/index.json"] and pushed.exists()
        assert not any(name.lower().startswith(("authorization", "x-amz")) for head in other.heads for name in head)


def test_the_same_push_again_changes_nothing(pushed, run, s3):
    assert "was there already" in run("push", pushed, "digits:production", "s3://models/registry")
    assert s3.asked and {each[0] for each in s3.asked} == {"GET"}


def test_a_push_takes_reports_along_and_moves_the_tag(pushed, run, s3, tmp_path):
    (tmp_path / "report.json").write_text("{}")
    assert serin("registry", "attach", pushed, "digits:2", tmp_path / "report.json").returncode == 0
    tag(pushed, "digits:2", "production")
    run("push", pushed, "digits:production", "s3://models/registry")
    there = json.loads(run("show", "s3://models/registry", "digits:production", "--json"))
    assert there == json.loads(serin("registry", "show", pushed, "digits:production", "--json").stdout) and there["reports"]
    history = json.loads(serin("registry", "history", s3.folder / "models/registry", "digits", "--json").stdout)
    assert [line["event"] for line in history[-2:]] == ["attach", "tag"] and history[-1]["detail"] == "production (was 1)"
    assert "all digests and the history agree" in serin("registry", "verify", s3.folder / "models/registry").stdout


def test_a_number_with_other_contents_is_refused(pushed, run, tmp_path):
    other = tmp_path / "other"
    assert serin("registry", "add", other, "digits", MODELS / "digits/3").returncode == 0
    assert "there the contents of digits:1 are digits:3" in run("push", other, "digits:1", "s3://models/registry", code=3)
    assert serin("registry", "add", other, "digits", MODELS / "digits/1/model.onnx", "--version", "2", "--settings", settings(tmp_path)).returncode == 0
    assert "there digits:2 has other contents" in run("push", other, "digits:2", "s3://models/registry", code=3)
    for command in (("tag", pushed, "digits:1", "production", "--remove"), ("retire", pushed, "digits:1", "--reason", "old")):
        assert serin("registry", *command).returncode == 0
    assert "digits:1 is retired: old" in run("push", pushed, "digits:1", "s3://models/registry", code=3)


def settings(tmp_path):
    path = tmp_path / "serin.yaml"
    path.write_text("max_batch: 4\n")
    return path


def test_two_pushes_at_once_are_both_there(pushed, run, s3, tmp_path):
    """The first one stops before it replaces the index until the second one is through; it then finds another index and looks again."""
    add_large(pushed, tmp_path)
    held, goes_on = threading.Event(), threading.Event()

    def hold(handler, request):
        held.set()
        goes_on.wait(30)
        handler.pass_on(request)

    s3.do("PUT", "index.json", once(hold))
    first = subprocess.Popen([SERIN, "registry", "push", pushed, "digits:4", "s3://models/registry", "--registry-cache", tmp_path / "first"],
                             env={**os.environ, **s3.settings()}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert held.wait(30)
    tag(pushed, "digits:2", "canary")
    run("push", pushed, "digits:canary", "s3://models/registry")
    goes_on.set()
    output, error = first.communicate(timeout=60)
    assert first.returncode == 0 and "pushed:" in output, error
    assert [each[2] for each in s3.requests("PUT", "index.json")][-3:] == [200, 412, 200]
    there = json.loads(run("list", "s3://models/registry", "digits", "--json"))
    assert [(version["version"], version["tags"]) for version in there] == [(1, ["production"]), (2, ["canary"]), (3, []), (4, [])]
    # The line of the push that came too late is in the file and off the chain.
    assert "all digests and the history agree" in serin("registry", "verify", s3.folder / "models/registry").stdout
    history = json.loads(serin("registry", "history", s3.folder / "models/registry", "digits", "--json").stdout)
    assert [(line["event"], line["version"]) for line in history[-2:]] == [("tag", "2"), ("add", "4")]
    assert len((s3.folder / "models/registry/digits/history.jsonl").read_text().splitlines()) == len(history) + 1


def test_a_push_that_always_comes_too_late_says_so(pushed, run, s3):
    tag(pushed, "digits:3", "production")
    s3.do("PUT", "index.json", answer(412, error_page("PreconditionFailed")))
    assert "PreconditionFailed: another writer has changed it meanwhile" in run("push", pushed, "digits:production", "s3://models/registry", code=3)
    assert len(s3.requests("PUT", "index.json")) == 30


def test_a_push_that_is_cut_off_leaves_the_index_and_can_be_repeated(folder, run, s3):
    run("push", folder, "digits:1", "s3://models/registry")
    s3.do("PUT", "index.json", answer(501, error_page("NotImplemented")))
    assert "lacks a part of S3 that this needs" in run("push", folder, "digits:2", "s3://models/registry", code=3)
    assert [version["version"] for version in json.loads(run("list", "s3://models/registry", "digits", "--json"))] == [1]
    s3.do("PUT", "index.json", None)
    run("push", folder, "digits:2", "s3://models/registry")
    assert "all digests and the history agree" in serin("registry", "verify", s3.folder / "models/registry").stdout


@pytest.fixture
def serve(s3, tmp_path):
    servers = []

    def start(*places, **changed):
        servers.append(Process(tmp_path, "serve", *places, "--registry-cache", tmp_path / "served", "--poll-seconds", "0.05", *ON_FREE_PORTS,
                               env=s3.settings(**{"HOME": tmp_path, **changed})))
        return servers[-1]

    yield start
    assert [server.end() for server in servers] == [0] * len(servers)
    assert not any(SECRET in server.log for server in servers)


def versions(server, model="digits"):
    return (call(f"{server.url}/v2/models/{model}").json or {}).get("versions")


@both_servers
def test_servers_follow_a_tag_in_the_bucket(pushed, run, serve, s3):
    one, all_of_them = serve("s3://models/registry/digits"), serve("s3://models/registry")
    assert versions(one) == versions(all_of_them) == ["1"]
    assert call(f"{one.url}/v2/models/digits/infer", infer_body([[0.5] * 64])).status == 200
    wait_until(lambda: any(each[2] == 304 for each in s3.requests("GET", "index.json")), 20, "an index that has not changed")
    tag(pushed, "digits:2", "production")
    run("push", pushed, "digits:production", "s3://models/registry")
    for server in one, all_of_them:
        wait_until(lambda server=server: versions(server) == ["2"], 20, "version 2")
    other = pushed.parent / "other"
    assert serin("registry", "add", other, "digits2", MODELS / "digits/1", "--tag", "production").returncode == 0
    run("push", other, "digits2:production", "s3://models/registry")
    wait_until(lambda: versions(all_of_them, "digits2") == ["1"], 20, "a model that is new in the bucket")
    shutil.rmtree(s3.folder / "models/registry/digits2")
    wait_until(lambda: call(f"{all_of_them.url}/v2/models/digits2").status != 200, 20, "its end")
    assert versions(all_of_them) == ["2"]


def test_a_bucket_that_is_away_changes_nothing(pushed, serve, s3):
    server = serve("s3://models/registry")
    s3.do("GET", "/models/", answer(403, error_page("ExpiredToken")))
    wait_until(lambda: "ExpiredToken" in server.log, 20, "the problem in the log")
    assert "the temporary key of AWS_ACCESS_KEY_ID has expired; get a new one; what is loaded goes on serving" in server.log
    s3.do("GET", "/models/", answer(200, b"<ListBucketResult></ListBucketResult>"))
    wait_until(lambda: "no registry there" in server.log, 20, "the problem in the log")
    s3.do("GET", "/models/", None)
    wait_until(lambda: "the registry answers again" in server.log, 20, "its end in the log")
    assert versions(server) == ["1"] and pushed.exists()


@pytest.mark.parametrize("place, words", [
    ("s3://models/nope", "no registry there"), ("s3://models/registry/digits:9", "no such version"), ("s3://models/registry/nope:1", "it has no model 'nope'"),
    ("s3://nowhere", "NoSuchBucket"), ("s3://", "is not s3://BUCKET"), ("s3://models/registry/a b:1", "a name has 1 to 128 letters"),
])
def test_wrong_places_are_named(pushed, s3, tmp_path, place, words):
    done = serin("serve", place, "--registry-cache", tmp_path / "served", *ON_FREE_PORTS, env=s3.settings(HOME=tmp_path))
    assert done.returncode == 2 and words in done.stderr and pushed.exists(), done.stderr
