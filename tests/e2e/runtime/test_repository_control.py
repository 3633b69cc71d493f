"""Models loaded and unloaded on request, as Triton's clients do it; places that models lie in."""

import base64
import concurrent.futures
import json
import shutil
import threading

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton
from conftest import MODELS, ON_FREE_PORTS, call, infer_body, serin, wait_until
from test_serve import EVALUATION, expected_scores
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

GOOD = MODELS / "digits" / "1" / "model.onnx"
OTHER = MODELS / "digits" / "3" / "model.onnx"
ZEROS = infer_body([[0.0] * 64])


EXPLICIT = ["serve", "--as", "tritonserver", "--model-control-mode", "explicit", "--http-port", 0, "--grpc-port", 0, "--metrics-port", 0]


@pytest.fixture
def explicit(start):
    """explicit(folder, ...): a runtime that loads what it is asked to."""
    return lambda folder, *arguments: start(*EXPLICIT, "--model-repository", folder, *arguments)


@pytest.fixture
def http():
    clients = []

    def connect(runtime):
        clients.append(triton.InferenceServerClient(runtime.url.removeprefix("http://")))
        return clients[-1]
    yield connect
    for client in clients:
        client.close()


def states(runtime):
    return {(entry["name"], entry.get("version"), entry.get("state")) for entry in call(f"{runtime.url}/v2/repository/index", "").json}


def scores(client, version=""):
    tensor = triton.InferInput("pixels", [2, 64], "FP32")
    tensor.set_data_from_numpy(EVALUATION["pixels"][:2])
    return client.infer("digits", [tensor], model_version=version).as_numpy("scores")


def same(answer, version):
    np.testing.assert_allclose(answer, expected_scores(version, EVALUATION["pixels"][:2]), rtol=1e-4, atol=1e-5)


def test_load_and_unload(explicit, repository, http):
    runtime = explicit(repository({"digits/1": GOOD, "digits/2": OTHER, "spare/1": GOOD}))
    client = http(runtime)
    assert states(runtime) == {("digits", None, None), ("spare", None, None)}, "nothing is loaded yet"
    assert not client.is_model_ready("digits") and client.is_server_ready()
    client.load_model("digits")
    assert states(runtime) == {("digits", "2", "READY"), ("spare", None, None)}, "the latest, as Triton"
    assert client.is_model_ready("digits")
    same(scores(client), 3)
    client.load_model("digits")  # once more: nothing changed
    client.unload_model("digits")
    assert not client.is_model_ready("digits")
    assert {state for name, version, state in states(runtime) if name == "digits"} == {"UNAVAILABLE"}
    with pytest.raises(InferenceServerException, match="Request for unknown model: 'digits' has no available versions: it is unloaded") as failed:
        scores(client)
    assert failed.value.status() == "404"
    client.unload_model("digits")
    client.unload_model("never there")  # there is nothing to take away
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{runtime.ports['grpc']}") as other:
        other.load_model("digits")
        assert other.is_model_ready("digits")
        other.unload_model("digits")
        assert not other.is_model_ready("digits")
        with pytest.raises(InferenceServerException, match="failed to load 'nope'"):
            other.load_model("nope")


def test_a_config_and_files_come_with_the_request(explicit, repository, http):
    runtime = explicit(repository({"digits/1": GOOD}))
    client = http(runtime)
    client.load_model("digits", config=json.dumps({"max_batch_size": 2, "input": [{"name": "pixels", "dims": [64]}], "shiny": True}))
    assert client.get_model_config("digits")["max_batch_size"] == 2
    assert call(f"{runtime.url}/v2/models/digits/infer", infer_body([[0.0] * 64] * 3)).status == 400
    client.load_model("digits", config=json.dumps({"backend": "onnxruntime", "version_policy": {"all": {}}}),
                      files={"file:7/model.onnx": OTHER.read_bytes()})  # fmt: skip
    assert client.get_model_metadata("digits")["versions"] == ["7"]
    same(scores(client), 3)
    client.load_model("fresh", config="{}", files={"file:1/model.onnx": OTHER.read_bytes()})  # a model that lies nowhere
    assert client.is_model_ready("fresh")
    client.load_model("digits")  # without them it is what lies there
    assert client.get_model_metadata("digits")["versions"] == ["1"]
    same(scores(client), 1)


WRONG = {
    "not there": ("nope", {}, 500, "failed to load 'nope'"),
    "up": ("..", {}, 400, ""),
    "hidden": (".git", {}, 500, ""),
    "escaped": ("%2e%2e%2fdigits", {}, 400, ""),
    "double": ("%252e%252e", {}, 500, ""),
    "zero byte": ("digits%00", {}, 400, ""),
    "long": ("a" * 5000, {}, 500, ""),
    "a file above": ("digits", {"config": "{}", "file:../../evil": "AAAA"}, 400, "must be file:<version>/<name>"),
    "a file elsewhere": ("digits", {"config": "{}", "file:/tmp/evil": "AAAA"}, 400, "must be file:<version>/<name>"),
    "a file within": ("digits", {"config": "{}", "file:1/a/b": "AAAA"}, 400, "must be file:<version>/<name>"),
    "a hidden file": ("digits", {"config": "{}", "file:1/..": "AAAA"}, 400, "must be file:<version>/<name>"),
    "no base64": ("digits", {"config": "{}", "file:1/model.onnx": "*"}, 400, "base64"),
    "files alone": ("digits", {"file:1/model.onnx": "AAAA"}, 400, "'config'"),
    "no model": ("digits", {"config": "{}", "file:1/model.onnx": base64.b64encode(b"<html>").decode()}, 400, "HTML"),
    "no config": ("digits", {"config": "}"}, 400, "config"),
    "no text": ("digits", {"config": {"a": 1}}, 400, "'config'"),
    "bad config": ("digits", {"config": '{"max_batch_size": -4}'}, 400, "max_batch_size"),
}


def test_a_config_that_was_told_can_be_sent_back(explicit, repository, http):
    """As tools do that change one number of it. What it said to be ignored is said anew, and no more often."""
    models = repository({"digits/1": GOOD})
    (models / "digits/config.pbtxt").write_text("max_batch_size: 8 dynamic_batching { preserve_ordering: true } model_metrics { }")
    client = http(explicit(models))
    client.load_model("digits")
    told = client.get_model_config("digits")
    client.load_model("digits", config=json.dumps({**told, "max_batch_size": 4, "model_metrics": None}))
    again = client.get_model_config("digits")
    assert again["max_batch_size"] == 4 and again["dynamic_batching"] == told["dynamic_batching"]
    ignored = [config["parameters"]["serin_ignored"]["string_value"] for config in (told, again)]
    assert all(text.count("preserve_ordering") == 1 for text in ignored) and ["model_metrics" in text for text in ignored] == [True, False]


def test_a_model_is_loaded_from_the_first_place_that_has_it(explicit, repository, http, tmp_path):
    first, second, alone = repository({"spare/1": GOOD}), tmp_path / "second", tmp_path / "alone.onnx"
    for folder, file in ((second / "spare" / "1", OTHER), (second / "digits" / "1", OTHER)):
        folder.mkdir(parents=True)
        shutil.copy(file, folder / "model.onnx")
    shutil.copy(GOOD, alone)
    runtime = explicit(first, "--model-repository", second, "--model-repository", alone)
    client = http(runtime)
    for name in ("digits", "spare", "alone"):
        client.load_model(name)
    same(scores(client), 3)
    assert {(entry["name"], entry["state"]) for entry in client.get_model_repository_index()} == {(name, "READY") for name in ("digits", "spare", "alone")}
    with pytest.raises(InferenceServerException, match="failed to load 'second'"):
        client.load_model("second")
    second.rename(tmp_path / "gone")
    assert call(f"{runtime.url}/v2/repository/models/digits/load", {}).status >= 500, "whether it is still there cannot be known"
    same(scores(client), 3)


def test_what_keeps_every_version_from_loading_is_said_once(explicit, repository):
    runtime = explicit(repository({"digits/1": GOOD, "digits/2": GOOD}))
    answer = call(f"{runtime.url}/v2/repository/models/digits/load", {"parameters": {"config": '{"max_batch_size": -4, "version_policy": {"all": {}}}'}})
    assert answer.status == 400 and answer.error.count("max_batch_size") == 1, answer.body


@pytest.fixture(scope="module")
def unharmed(start_once, tmp_path_factory):
    """A runtime that has loaded digits, and its folder."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "digits/1").mkdir(parents=True)
    shutil.copy(GOOD, folder / "digits/1/model.onnx")
    return start_once(*EXPLICIT, "--model-repository", folder, "--load-model", "digits"), folder


@pytest.mark.parametrize("case", WRONG)
def test_p16_what_is_wrong_is_refused_and_harms_nothing(unharmed, http, case):
    runtime, folder = unharmed
    name, parameters, status, text = WRONG[case]
    before = sorted(folder.rglob("*"))
    answer = call(f"{runtime.url}/v2/repository/models/{name}/load", {"parameters": parameters})
    assert answer.status == status and text in answer.error, (answer.status, answer.body)
    assert str(folder) not in answer.error and "/tmp" not in answer.error.replace("file:/tmp", "")
    assert sorted(folder.rglob("*")) == before
    same(scores(http(runtime)), 1)  # what was loaded goes on
    assert call(f"{runtime.url}/v2/repository/models/digits/unload", {"parameters": {"unload_dependents": 1}}).status == 400


def test_an_order_that_names_a_repository_is_refused(explicit, repository, http):
    runtime = explicit(repository({"digits/1": GOOD}))
    for action in ("load", "unload"):
        answer = call(f"{runtime.url}/v2/repository/models/models/digits/{action}", {})
        assert answer.status == 501 and "'repository_name' specification is not supported" in answer.error
        assert call(f"{runtime.url}/v2/repository/any/models/digits/{action}").headers["Allow"] == "POST"
    with grpc.insecure_channel(f"127.0.0.1:{runtime.ports['grpc']}") as channel:
        orders = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for order, message in ((orders.RepositoryModelLoad, service_pb2.RepositoryModelLoadRequest), (orders.RepositoryModelUnload, service_pb2.RepositoryModelUnloadRequest)):
            with pytest.raises(grpc.RpcError) as refused:
                order(message(repository_name="models", model_name="digits"))
            assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED and "repository_name" in refused.value.details()
    assert states(runtime) == {("digits", None, None)}


def test_p18_unloading_answers_what_is_under_way(explicit, repository, http):
    runtime = explicit(repository({"digits/1": GOOD}), "--load-model", "digits")
    client = http(runtime)
    stop, refused, wrong = threading.Event(), [], []

    def ask():
        while not stop.is_set():
            answer = call(f"{runtime.url}/v2/models/digits/infer", ZEROS)
            if answer.status in (404, 503):
                refused.append(answer.error)
            elif answer.status != 200:
                wrong.append((answer.status, answer.body))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        client.unload_model("digits")
        client.load_model("digits")
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert all("unloaded" in text or "being loaded" in text or "not loaded" in text for text in refused)
    same(scores(client), 1)


def test_m16_a_storm_of_loads_and_unloads(explicit, repository, http):
    runtime = explicit(repository({"digits/1": GOOD, "digits/2": OTHER}))

    def order(i):
        return call(f"{runtime.url}/v2/repository/models/digits/{'load' if i % 2 else 'unload'}", "{}", timeout=60).status

    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        codes = set(pool.map(order, range(100)))
    assert codes == {200}
    client = http(runtime)
    client.load_model("digits")
    same(scores(client), 3)
    client.unload_model("digits")
    assert wait_until(lambda: runtime.metric("serin_model_weight_bytes") == 0, 5, "nothing is held")
    assert runtime.end() == 0


def test_elsewhere_the_mode_is_named(serve, repository):
    models = repository({"digits/1": GOOD})
    runtime = serve(models, "--admin-on-data-port")
    for action in ("load", "unload"):
        answer = call(f"{runtime.url}/v2/repository/models/digits/{action}", "")
        assert answer.status == 409 and "'explicit', here it is 'poll'" in answer.error
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{runtime.ports['grpc']}") as client:
        with pytest.raises(InferenceServerException, match="here it is 'poll'"):
            client.load_model("digits")


def test_index_by_repository(shared_runtime):
    everything = call(f"{shared_runtime.url}/v2/repository/index", "").json
    assert call(f"{shared_runtime.url}/v2/repository/models/index", {"ready": True}).json == everything, "a repository is called as its folder is"
    assert call(f"{shared_runtime.url}/v2/repository/other/index", "").status == 404


def test_in_tritons_place_orders_are_refused_with_its_codes(explicit, repository):
    """What a real one answers: tests/differential (control/...)."""
    runtime = explicit(repository({"digits/1": GOOD}), "--load-model=digits", "--log-verbose=3")
    not_polled, no_memory = "failed to load 'nope', failed to poll from model repository", "Unable to open shared memory region: 'r'"
    for path, body, status, words in (
        ("/v2/repository/models/nope/load", {}, 500, not_polled),
        ("/v2/repository/models/nope/load", {"parameters": {"config": "{}"}}, 500, not_polled),
        ("/v2/repository/models/nope/unload", {}, 200, None),
        ("/v2/logging", {"log_file": "/tmp/x"}, 501, "log file location can not be updated through network protocol"),
        ("/v2/trace/setting", {"trace_file": "/tmp/x"}, 501, "trace file location can not be updated through network protocol"),
        ("/v2/models/digits/trace/setting", {"trace_file": None}, 501, "trace file location can not be updated through network protocol"),
        ("/v2/systemsharedmemory/region/r/register", {"key": "/nothing-of-that-name", "byte_size": 64}, 500, no_memory),
        ("/v2/systemsharedmemory/region/r/unregister", None, 200, None),
    ):  # fmt: skip
        answer = call(runtime.url + path, body if body is not None else "")
        assert answer.status == status and (words is None or words in answer.error), (path, answer.status, answer.body)
    assert call(f"{runtime.url}/v2/systemsharedmemory/region/r/status").status == 404
    assert call(f"{runtime.url}/v2/logging").json["log_verbose_level"] == 3
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{runtime.ports['grpc']}") as client:
        for order, code, words in (
            (lambda: client.load_model("nope"), "INTERNAL", not_polled),
            (lambda: client.update_log_settings({"log_file": "/tmp/x"}), "UNIMPLEMENTED", "log file location can not be updated"),
            (lambda: client.update_trace_settings(settings={"trace_file": "/tmp/x"}), "UNIMPLEMENTED", "trace file location can not be updated"),
            (lambda: client.register_system_shared_memory("r", "/nothing-of-that-name", 64), "INTERNAL", no_memory),
            (lambda: client.get_system_shared_memory_status("r"), "NOT_FOUND", "Unable to find system shared memory region: 'r'"),
            (lambda: client.get_cuda_shared_memory_status("r"), "NOT_FOUND", "Unable to find cuda shared memory region: 'r'"),
        ):  # fmt: skip
            with pytest.raises(InferenceServerException) as refused:
                order()
            assert refused.value.status() == f"StatusCode.{code}" and words in refused.value.message(), refused.value
        client.unregister_system_shared_memory("r")


# --- where models lie -----------------------------------------------------------------------------------------------------------------


FOREIGN = {
    "inference.pdiparams": "whose program",
    "model.pdparams": "paddle.jit.save",
    "saved_model.pbtxt": "tf2onnx.convert --saved-model",
    "model.pt": "torch.onnx.export",
    "model.h5": "save('model.keras')",
    "model.keras": "zip archive",
    "model.tflite": "tf2onnx.convert --tflite",
    "model.plan": "TensorRT plan",
    "model.trt": "TensorRT plan",
    "model.torchscript": "torch.onnx.export",
    "pytorch_model.bin": "optimum-cli export onnx",
    "model.safetensors": "optimum-cli export onnx",
    "model.xml": "OpenVINO",
    "model.graphdef": "tf2onnx.convert --graphdef",
    "model.py": "Python backend",
    "model.pt2": "zip archive",
    "model.mar": "TorchServe",
    "model.bst": "save_model('model.ubj')",
    "model.cbm": "format='onnx'",
    "model.pmml": "skl2onnx",
}


def test_m4_models_of_other_kinds_say_how_they_become_servable(serve, repository):
    models = repository({"digits/1": GOOD})
    for i, name in enumerate(FOREIGN):
        (models / f"other{i}/1").mkdir(parents=True)
        (models / f"other{i}/1" / name).write_bytes(b"\x08\x01 whatever")
    runtime = serve(models)
    entries = {entry["name"]: entry for entry in call(f"{runtime.url}/v2/repository/index", "").json}
    assert entries["digits"]["state"] == "READY"
    for i, (name, command) in enumerate(FOREIGN.items()):
        entry = entries[f"other{i}"]
        assert entry["state"] == "UNAVAILABLE" and name in entry["reason"] and command in entry["reason"], entry


def test_two_repositories_a_file_and_a_name_given_twice(start, tmp_path):
    for folder, source in (("a/digits/1", GOOD), ("a/twice/1", GOOD), ("b/twice/1", OTHER), ("b/spare/1", GOOD)):
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(source, tmp_path / folder / "model.onnx")
    shutil.copy(OTHER, tmp_path / "alone.onnx")
    runtime = start("serve", tmp_path / "a", tmp_path / "b", tmp_path / "alone.onnx", *ON_FREE_PORTS)
    assert states(runtime) == {(name, "1", "READY") for name in ("digits", "twice", "spare", "alone")}
    assert "model 'twice' of" in runtime.log and "is left out" in runtime.log
    pixels = EVALUATION["pixels"][:2].tolist()
    answer = call(f"{runtime.url}/v2/models/twice/infer", infer_body(pixels)).json
    np.testing.assert_allclose(np.reshape(answer["outputs"][0]["data"], (2, 10)), expected_scores(1, EVALUATION["pixels"][:2]), rtol=1e-4, atol=1e-5)
    names = {entry["name"] for entry in call(f"{runtime.url}/v2/repository/b/index", "").json}
    assert names == {"spare"}


def test_the_only_onnx_file_of_a_version_is_the_model_whatever_its_name(serve, tmp_path):
    version = tmp_path / "models/digits/1"
    version.mkdir(parents=True)
    shutil.copy(GOOD, version / "digits.onnx")
    runtime = serve(tmp_path / "models")
    assert states(runtime) == {("digits", "1", "READY")}
    shutil.copy(GOOD, version / "second.onnx")
    wait_until(lambda: "more than one other model" in runtime.log, 10, "ambiguous")
    assert states(runtime) == {("digits", "1", "READY")}, "what was loaded goes on"


MISPLACED = {
    "model.onnx": "'model.onnx' lies right in it: serin serve {folder}/model.onnx",
    "model.safetensors": "'model.safetensors' is a safetensors file: weights without a graph; optimum-cli export onnx",
    "1/model.onnx": "'1/model.onnx' lies in it, a version of one model: serin serve {folder} --name NAME",
}


@pytest.mark.parametrize("name", MISPLACED)
def test_a_place_without_models_says_what_lies_in_it(serve, tmp_path, name):
    (tmp_path / "here" / name).parent.mkdir(parents=True)
    shutil.copy(GOOD, tmp_path / "here" / name)
    runtime = serve(tmp_path / "here")
    assert "no model in it yet" in runtime.log and MISPLACED[name].format(folder=tmp_path / "here") in runtime.log


def test_models_beside_the_folders_of_others_are_named_once(serve, tmp_path):
    here = tmp_path / "here"
    (here / "digits/1").mkdir(parents=True)
    for name in ("digits/1/model.onnx", "b.onnx", "a b.onnx", "notes.txt"):
        shutil.copy(GOOD, here / name)
    says = f"{here}: left out: a b.onnx, b.onnx; a model lies in a folder of its own (a b/1/model.onnx), or its file is named, too: serin serve {here} {here}/a b.onnx"
    checked = serin("serve", "--check", here)
    assert checked.returncode == 0 and checked.stderr.count(says) == 1
    runtime = serve(here)  # which looks there again and again
    (here / "late/1").mkdir(parents=True)
    shutil.copy(OTHER, here / "late/1/model.onnx")
    wait_until(lambda: ("late", "1", "READY") in states(runtime), what="a later look")
    assert runtime.log.count("left out") == 1 and says in runtime.log


def test_a_file_that_is_named_itself_is_not_left_out(start, tmp_path):
    (tmp_path / "digits/1").mkdir(parents=True)
    for name in ("digits/1/model.onnx", "alone.onnx", *(f"{i}.onnx" for i in range(10))):
        shutil.copy(GOOD, tmp_path / name)
    runtime = start("serve", tmp_path, tmp_path / "digits/../alone.onnx", *ON_FREE_PORTS)
    assert states(runtime) == {("digits", "1", "READY"), ("alone", "1", "READY")}
    assert f"left out: {', '.join(f'{i}.onnx' for i in range(8))} and 2 more; " in runtime.log


# --- settings of the server -----------------------------------------------------------------------------------------------------------


def test_logging_changes_take_effect(start):
    runtime = start("serve", MODELS, *ON_FREE_PORTS, "--admin-on-data-port")
    url = f"{runtime.url}/v2/logging"
    assert call(url).json == {"log_file": "", "log_info": True, "log_warning": True, "log_error": True, "log_verbose_level": 0, "log_format": "default"}
    quiet = call(url, {"log_info": False}).json
    assert quiet["log_info"] is False and quiet["log_warning"] is True
    assert call(url, {"log_info": True, "log_verbose_level": 2, "log_format": "json"}).json["log_verbose_level"] == 2
    assert call(url).json["log_format"] == "json" and call(url).json["log_verbose_level"] == 2
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{runtime.ports['grpc']}") as client:
        assert client.get_log_settings(as_json=True)["settings"]["log_info"]["bool_param"] is True
        told = client.update_log_settings({"log_verbose_level": 7, "log_format": "ISO8601"}, as_json=True)["settings"]
        assert told["log_verbose_level"]["uint32_param"] == 7 and told["log_format"]["string_param"] == "ISO8601"
        assert call(url).json["log_verbose_level"] == 7 and call(url).json["log_format"] == "ISO8601"
        client.update_log_settings({"log_verbose_level": 0, "log_format": "default"})
        with pytest.raises(InferenceServerException, match="log_file: log file location") as refused:
            client.update_log_settings({"log_file": "/tmp/x"})
        assert refused.value.status() == "StatusCode.PERMISSION_DENIED"
    assert call(url).json["log_verbose_level"] == 0 and call(url).json["log_format"] == "default"
    for body, text in (({"log_file": "/tmp/x"}, "log_file"), ({"log_verbose_level": -1}, "log_verbose_level"), ({"log_info": 1}, "log_info"),
                       ({"log_format": "xml"}, "log_format"), ({"loud": True}, "loud")):
        answer = call(url, body)
        assert answer.status == (403 if text == "log_file" else 400) and text in answer.error
    assert call(url, "[1]").status == 400 and call(url, method="DELETE").status == 405
    apart = call(url, {"log_info": False, "log_verbose_level": 1}).json
    assert apart["log_info"] is False and apart["log_verbose_level"] == 1 and apart["log_warning"] is True, "each by itself, as Triton has it"
    assert call(url).json == apart
    assert call(url, {"log_info": True, "log_verbose_level": 0, "log_warning": False}).json["log_warning"] is False
    call(url, {"log_info": False, "log_warning": False, "log_error": False})
    lines = runtime.log.count("\n")
    assert runtime.end() == 0 and runtime.log.count("\n") == lines, "silence is silence"
