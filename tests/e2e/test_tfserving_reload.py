"""TensorFlow Serving's HandleReloadConfigRequest, as its own client sends it: models, versions and labels change while it serves."""

import shutil

import pytest
from conftest import MODELS, call, run_client, wait_until
from test_serve_as import free_port

MODEL = 'config {{ name: "{0}" base_path: "{1}" model_platform: "tensorflow" {2} }}'
ALL = "model_version_policy { all {} }"


@pytest.fixture
def folder(tmp_path):
    for name, versions in (("first", "12"), ("second", "1")):
        for version in versions:
            shutil.copytree(MODELS / "digits/1", tmp_path / f"served/{name}/{version}")
    shutil.copytree(MODELS / "digits/1", tmp_path / "elsewhere/1")
    return tmp_path / "served"


@pytest.fixture
def server(start, folder):
    return start("serve", "--as", "tensorflow_model_server", "--model_name=first", f"--model_base_path={folder / 'first'}",
                 f"--rest_api_port={free_port()}", f"--port={free_port()}", "--log-level", "info", "--admin-on-data-port")  # fmt: skip


def reload(server, *models):
    return run_client("tfserving_reload.py", f"127.0.0.1:{server.ports['grpc']}", "model_config_list { %s }" % " ".join(models))


def versions(server, model):
    status = call(f"{server.url}/v1/models/{model}")
    return {entry["version"] for entry in status.json["model_version_status"]} if status.status == 200 else set()


def label(server, name):
    return call(f"{server.url}/v1/models/first/labels/{name}:predict", {"instances": [[0.0] * 64]})


def test_models_versions_and_labels_change(server, folder):
    assert versions(server, "first") == {"2"} and versions(server, "second") == set()
    first = folder / "first"
    labels = 'version_labels { key: "stable" value: 1 } version_labels { key: "canary" value: 2 }'
    assert reload(server, MODEL.format("first", first, ALL + labels), MODEL.format("second", folder / "second", ""))[0] == "OK"
    assert versions(server, "first") == {"1", "2"} and versions(server, "second") == {"1"}
    assert label(server, "stable").headers["x-serin-version"] == "1"

    loads = server.log.count(": ready")
    assert reload(server, MODEL.format("first", first, ALL + 'version_labels { key: "stable" value: 2 }'))[0] == "OK"
    assert label(server, "stable").headers["x-serin-version"] == "2" and label(server, "canary").status == 400
    assert versions(server, "second") == set(), "what is not listed is not served"
    assert server.log.count(": ready") == loads, "other labels load nothing"


def test_what_cannot_be_meant_changes_nothing(server, folder):
    first = folder / "first"
    for models, code, words in [
        ([MODEL.format("first", first, ""), MODEL.format("other", folder.parent / "elsewhere", "")], "INVALID_ARGUMENT", "no place that this server was started with"),
        ([MODEL.format("first", f"{first}/../../elsewhere", "")], "INVALID_ARGUMENT", "no place that this server was started with"),
        ([MODEL.format("first", folder / "nowhere", "")], "INVALID_ARGUMENT", "no folder"),
        ([MODEL.format("first", first, ""), MODEL.format("first", first, "")], "INVALID_ARGUMENT", "named twice"),
        ([MODEL.format("../first", first, "")], "INVALID_ARGUMENT", "a name has at most 256 bytes"), ([], "INVALID_ARGUMENT", "names no model"),
        ([MODEL.format("first", first, 'version_labels { key: "x" value: -1 }')], "INVALID_ARGUMENT", "version -1 is none"),
    ]:  # fmt: skip
        answer = reload(server, *models)
        assert answer[0] == code and words in answer[1], answer
    assert versions(server, "first") == {"2"} and str(folder) not in answer[1]


def test_a_model_that_does_not_load_is_said(server, folder):
    (folder / "second/1/model.onnx").write_bytes(b"<html>")
    answer = reload(server, MODEL.format("first", folder / "first", ""), MODEL.format("second", folder / "second", ""))
    assert answer[0] == "UNAVAILABLE" and "model 'second' is not ready: version 1: " in answer[1] and "HTML" in answer[1]
    assert versions(server, "first") == {"2"}


def test_labels_of_serin_yaml_load_nothing_anew(serve, folder):
    settings = folder / "first/serin.yaml"
    settings.write_text("max_batch: 4\nlabels: {stable: 1}\n")
    server = serve(folder, "--log-level", "info")
    loads = server.log.count(": ready")
    settings.write_text("max_batch: 4\nlabels: {stable: 2}\n")
    wait_until(lambda: label(server, "stable").headers["x-serin-version"] == "2")
    assert server.log.count(": ready") == loads
    settings.write_text("max_batch: 8\nlabels: {stable: 2}\n")
    wait_until(lambda: server.log.count(": ready") == loads + 2, what="versions with other settings")
