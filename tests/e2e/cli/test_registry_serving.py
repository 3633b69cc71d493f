"""`serin serve registry://...`: a server follows the tags of a registry."""

import threading

import numpy as np
import pytest

from conftest import MODELS, ON_FREE_PORTS, Process, call, infer_body, serin, wait_until
from registries import registry_of_digits, tag

ROW = np.linspace(0, 1, 64, dtype=np.float32).tolist()


@pytest.fixture
def registry(tmp_path):
    return registry_of_digits(tmp_path / "registry")


@pytest.fixture
def serve(tmp_path):
    servers = []

    def start(*places, **options):
        servers.append(Process(tmp_path, "serve", *places, "--registry-cache", tmp_path / "cache", *ON_FREE_PORTS, **options))
        return servers[-1]

    yield start
    assert [server.end() for server in servers] == [0] * len(servers)


def versions(server, model="digits"):
    return call(f"{server.url}/v2/models/{model}").json.get("versions")


def answers(server, path="digits"):
    answer = call(f"{server.url}/v2/models/{path}/infer", infer_body([ROW]))
    return answer.json["outputs"][0]["data"] if answer.status == 200 else answer.status


def test_a_tag_that_moves_moves_the_server_and_no_request_fails(registry, serve):
    server = serve(f"registry://{registry}")
    assert versions(server) == ["1"]
    before, statuses, ended = answers(server), set(), threading.Event()

    def ask():
        while not ended.is_set():
            statuses.add(call(f"{server.url}/v2/models/digits/infer", infer_body([ROW])).status)

    clients = [threading.Thread(target=ask) for _ in range(2)]
    for client in clients:
        client.start()
    tag(registry, "digits:2", "production")
    wait_until(lambda: versions(server) == ["2"], 20, "version 2 alone")
    after = answers(server)
    tag(registry, "digits:1", "production")
    wait_until(lambda: versions(server) == ["1"], 20, "back to version 1")
    ended.set()
    for client in clients:
        client.join()
    assert statuses == {200} and before == answers(server) != after


def test_tags_are_labels_of_versions_that_are_served_together(registry, serve):
    tag(registry, "digits:3", "canary")
    server = serve(f"registry://{registry}/digits:canary", f"registry://{registry}/digits")
    assert versions(server) == ["1", "3"] and answers(server, "digits/versions/1") != answers(server, "digits/versions/3")
    labelled = {label: call(f"{server.url}/v1/models/digits/labels/{label}:predict", {"instances": [ROW]}) for label in ("production", "canary")}
    for label, version in {"production": 1, "canary": 3}.items():
        assert labelled[label].status == 200
        np.testing.assert_allclose(labelled[label].json["predictions"][0], answers(server, f"digits/versions/{version}"), rtol=1e-5)


def test_a_model_that_is_added_later_is_served_once_it_is_tagged(registry, serve):
    server = serve(f"registry://{registry}")
    assert serin("registry", "add", registry, "more", MODELS / "digits/2", "--tag", "production").returncode == 0
    wait_until(lambda: call(f"{server.url}/v2/models/more/ready").status == 200, 20, "the new model")
    tag(registry, "more", "production", "--remove")
    wait_until(lambda: call(f"{server.url}/v2/models/more/ready").status != 200, 20, "the model gone")
    assert versions(server) == ["1"]


def test_settings_go_with_their_version(registry, serve, tmp_path):
    small = tmp_path / "serin.yaml"
    small.write_text("max_batch: 1\n")
    assert serin("registry", "add", registry, "digits", MODELS / "digits/4", "--settings", small).returncode == 0
    server = serve(f"registry://{registry}/digits")
    tag(registry, "digits:4", "production")
    wait_until(lambda: versions(server) == ["4"], 20, "version 4")
    settings = list((tmp_path / "cache").glob("*/digits/serin.yaml"))
    assert [path.read_text() for path in settings] == [small.read_text()]
    assert len(list((tmp_path / "cache").glob("*/digits/*/model.onnx"))) == 2


def test_a_version_that_cannot_be_copied_changes_nothing_until_it_can(registry, serve, tmp_path):
    server = serve(f"registry://{registry}/digits")
    shown = serin("registry", "show", registry, "digits:2").stdout
    digest = next(line.split()[-1] for line in shown.splitlines() if line.startswith("file "))
    blob = registry / "digits/blobs/sha256" / digest.removeprefix("sha256:")
    whole = blob.read_bytes()
    blob.write_bytes(b"rotten")
    tag(registry, "digits:2", "production")
    wait_until(lambda: "has other contents than its digest says" in server.log, 20, "the problem in the log")
    assert "what is loaded goes on serving" in server.log and versions(server) == ["1"] and len(answers(server)) == 10
    assert not list((tmp_path / "cache").glob("*/digits/2"))
    blob.write_bytes(whole)
    wait_until(lambda: versions(server) == ["2"], 30, "version 2, without another change")


def test_two_servers_share_a_cache(registry, serve, tmp_path):
    first, second = serve(f"registry://{registry}"), serve(f"registry://{registry}")
    tag(registry, "digits:3", "production")
    for server in first, second:
        wait_until(lambda server=server: versions(server) == ["3"], 20, "version 3")
    assert answers(first) == answers(second)
    assert sorted(path.name for path in (tmp_path / "cache").glob("*/digits/*")) == ["1", "3"]


@pytest.mark.parametrize("places, words", [
    (["registry://REGISTRY/nope:production"], "has no model 'nope'"), (["registry://REGISTRY/digits:9"], "digits:9: no such version; there are 1, production, 2, 3"),
    (["registry://REGISTRY/digits:staging"], "no such version"), (["registry://"], "names no folder"), (["registry://nowhere"], "nowhere"),
    (["registry://REGISTRY", MODELS], "folders and registries do not go together"), (["registry://REGISTRY", "--name", "x"], "models of a registry have names"),
    (["registry://REGISTRY", "--control", "explicit"], "tags decide what is loaded"), (["registry://REGISTRY/digits:a b"], "a name has 1 to 128 letters"),
])
def test_wrong_places_are_named(registry, tmp_path, places, words):
    given = [str(place).replace("REGISTRY", str(registry)) for place in places]
    done = serin("serve", *given, "--registry-cache", tmp_path / "cache", *ON_FREE_PORTS, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr, done.stderr


def test_a_registry_without_the_tag_is_named(registry, tmp_path):
    tag(registry, "digits:1", "production", "--remove")
    done = serin("serve", f"registry://{registry}", "--registry-cache", tmp_path / "cache", *ON_FREE_PORTS)
    assert done.returncode == 2 and "no model is tagged 'production'" in done.stderr
