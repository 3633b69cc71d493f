"""Models, versions and labels of TensorFlow Serving's change while it serves: by HandleReloadConfigRequest, as its own client sends it, and by its file."""

import os
import shutil
import subprocess

import pytest
from conftest import MODELS, SERIN, call, free_port, run_client, serin, wait_until

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
                 f"--rest_api_port={free_port()}", f"--port={free_port()}", "--log-level", "info")  # fmt: skip


def reload(server, *models):
    return run_client("tfserving_reload.py", f"127.0.0.1:{server.ports['grpc']}", "model_config_list { %s }" % " ".join(models))


def versions(server, model):
    status = call(f"{server.url}/v1/models/{model}")
    return {entry["version"] for entry in status.json["model_version_status"] if entry["state"] == "AVAILABLE"} if status.status == 200 else set()


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


def test_it_is_the_only_order_that_clients_give(server):
    assert call(f"{server.url}/v2/logging", {"log_verbose_level": 1}).status == 403


def test_a_label_of_a_version_that_is_not_there_is_refused(server, folder):
    first = folder / "first"
    assert reload(server, MODEL.format("first", first, ALL + 'version_labels { key: "stable" value: 1 }'))[0] == "OK"
    for labels in ('version_labels { key: "stable" value: 9 }', 'model_version_policy { latest {} } version_labels { key: "stable" value: 1 }'):
        answer = reload(server, MODEL.format("first", first, labels))
        assert answer[0] == "FAILED_PRECONDITION" and "Request to assign label to version" in answer[1] and "not currently available" in answer[1]
    assert label(server, "stable").headers["x-serin-version"] == "1" and versions(server, "first") == {"1", "2"}


def test_a_label_stays_until_what_it_is_to_name_is_ready(server, folder):
    first = folder / "first"
    both = "model_version_policy { specific { versions: 2 versions: 3 } }"
    assert reload(server, MODEL.format("first", first, 'version_labels { key: "stable" value: 2 }'))[0] == "OK"
    shutil.copytree(first / "2", first / "3")
    (first / "3/model.onnx").write_bytes(b"<html>")
    reload(server, MODEL.format("first", first, both + 'version_labels { key: "stable" value: 3 }'))
    assert label(server, "stable").headers["x-serin-version"] == "2"
    shutil.copy(first / "2/model.onnx", first / "3/model.onnx")
    wait_until(lambda: label(server, "stable").headers["x-serin-version"] == "3")


# --- the file -------------------------------------------------------------------------------------------------------------------------

def write(folder, *models):
    file, aside = folder.parent / "models.config", folder.parent / "models.config.new"
    aside.write_text("model_config_list { %s }" % " ".join(models))
    aside.rename(file)
    return file


def test_its_file_is_looked_at_as_often_as_asked_for(start, folder):
    file = write(folder, MODEL.format("first", folder / "first", ""), MODEL.format("later", folder / "later", ""))
    server = start("serve", "--as", "tensorflow_model_server", f"--model_config_file={file}", "--model_config_file_poll_wait_seconds=0.2",
                   f"--rest_api_port={free_port()}", f"--port={free_port()}", "--log-level", "info", "--file_system_poll_wait_seconds=0")  # fmt: skip
    assert "model_config_file_poll_wait_seconds" not in server.log and "model 'later' is not served" in server.log
    assert versions(server, "first") == {"2"} and versions(server, "second") == set()
    write(folder, MODEL.format("first", folder / "first", ALL + 'version_labels { key: "stable" value: 1 }'), MODEL.format("second", folder / "second", ""))
    wait_until(lambda: versions(server, "second") == {"1"})
    assert versions(server, "first") == {"1", "2"} and label(server, "stable").headers["x-serin-version"] == "1"

    for wrong, words in (("model_config_list {", f"{file.name}: 2:1: "), (file.read_text().replace("base_path", "base_pth"), "did you mean 'base_path'?"),
                         (file.read_text().replace("value: 1", "value: 9"), "Request to assign label to version 9")):
        file.write_text(wrong.replace("{ config", "{\n config") if "2:1" not in words else wrong + "\n")
        wait_until(lambda words=words: words in server.log, what=words)
    write(folder, MODEL.format("second", folder / "second", ""))
    wait_until(lambda: versions(server, "first") == set())
    assert versions(server, "second") == {"1"} and server.log.count("goes on serving") == 3, "each mistake is said once"


@pytest.mark.parametrize("text, words", [
    ('model_config_list { config { name: "first" base_path: "%s" model_version_polcy { specific { versions: 1 } } } }',
     "unknown field model_version_polcy (line 1); did you mean 'model_version_policy'?"),
    ('model_config_list { config { name: "first" base_path: "%s" version_labels { key: "stable" value: 9 } } }', "assign label to version 9 of model first"),
    ('model_config_list { config { name: "first" base_path: "%s" } config { name: "first" base_path: "/" } }', "named twice"),
])
def test_a_file_that_tensorflow_serving_refuses_is_refused(folder, text, words):
    file = folder.parent / "models.config"
    file.write_text(text % (folder / "first"))
    done = serin("serve", "--as", "tensorflow_model_server", f"--model_config_file={file}", "--port=0")
    assert done.returncode == 2 and words in done.stderr, done.stderr


@pytest.mark.parametrize("flag", ["--allow_version_labels_for_unavailable_models", "--force_allow_any_version_labels_for_absent_models"])
def test_a_label_may_come_first_where_that_is_asked_for(folder, flag):
    file = write(folder, MODEL.format("first", folder / "first", 'version_labels { key: "stable" value: 9 }'))
    done = serin("serve", "--as", "tensorflow_model_server", f"--model_config_file={file}", "--port=0", "--check", flag)
    assert done.returncode == 0 and "model 'first' version 2: ready" in done.stdout, done.stderr


def test_a_file_that_is_a_pipe_is_read_once(folder):
    text = "model_config_list { %s }" % MODEL.format("first", f"file://{folder / 'first'}", "logging_config { log_collector_config { type: 'x' } }")
    pipes = """--model_config_file <(printf %s "$LIST") --monitoring_config_file <(sleep 0.3; echo 'prometheus_config { enable: true }')"""
    done = subprocess.run(["bash", "-c", f'"$SERIN" serve --as tensorflow_model_server --port=0 --check {pipes}'], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "SERIN": str(SERIN), "LIST": text}, check=False)
    assert done.returncode == 0 and "model 'first' version 2: ready" in done.stdout, done.stderr
    assert "can be read again" in done.stderr and "logging_config changes nothing" in done.stderr


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
