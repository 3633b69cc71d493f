"""What runs behind a model's name besides the model: sequences, kept answers, priorities; with the clients that ask for them."""

import concurrent.futures
import json
import queue
import shutil
import threading
import time

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from conftest import DATA, MODELS, ON_FREE_PORTS, call, infer_body, wait_until
from slow_model import save_slow, turns

STATE = "sequences: {strategy: oldest, max_candidates: 8, idle: 60s, state: [{input: PAST, output: PRESENT}]}\n"
CONTROLS = """
sequences:
  controls:
    START: {kind: start, dtype: INT32, values: [0, 1]}
    END: {kind: end, dtype: FP32}
    READY: {kind: ready}
    CORRID: {kind: id, dtype: INT64}
"""


def numbers(client, value):
    tensor = client.InferInput("INPUT", [1, 1], "INT32")
    tensor.set_data_from_numpy(np.array([[value]], np.int32))
    return [tensor]


@pytest.fixture
def sequences(serve, repository):
    models = repository({"state/1": DATA / "sequence_state/model.onnx", "controls/1": DATA / "sequence_controls/model.onnx"})
    (models / "state/serin.yaml").write_text(STATE)
    (models / "controls/serin.yaml").write_text(CONTROLS)
    return serve(models)


@pytest.mark.parametrize("one, two", [(1007, 1008), ("seven", "eight")])
def test_sequences_over_http(sequences, one, two):
    with http_client.InferenceServerClient(f"127.0.0.1:{sequences.ports['http']}") as client:
        totals = {one: [], two: []}
        for i, value in enumerate([11, 7, 5, 3]):
            for sequence, sign in ((one, 1), (two, -1)):
                answer = client.infer("state", numbers(http_client, sign * value), sequence_id=sequence, sequence_start=i == 0, sequence_end=i == 3)
                totals[sequence].append(int(answer.as_numpy("OUTPUT")[0, 0]))
        assert totals == {one: [11, 18, 23, 26], two: [-11, -18, -23, -26]}
        with pytest.raises(InferenceServerException) as error:
            client.infer("state", numbers(http_client, 1), sequence_id=one)
        assert "must specify the START flag on the first request of the sequence" in str(error.value)
        assert error.value.status() == "400"


def test_sequences_over_a_grpc_stream(sequences):
    answers = queue.Queue()
    with grpc_client.InferenceServerClient(f"127.0.0.1:{sequences.ports['grpc']}") as client:
        client.start_stream(callback=lambda result, error: answers.put((result, error)))
        for i in range(20):
            for sequence in ("a", "b"):
                client.async_stream_infer("state", numbers(grpc_client, i + 1), request_id=f"{sequence}{i}", sequence_id=sequence,
                                          sequence_start=i == 0, sequence_end=i == 19)
        totals = {"a": [], "b": []}
        for _ in range(40):
            result, error = answers.get(timeout=30)
            assert error is None
            totals[result.get_response().id[0]].append(int(result.as_numpy("OUTPUT")[0, 0]))
        client.stop_stream()
    assert totals["a"] == totals["b"] == [i * (i + 1) // 2 for i in range(1, 21)]


def test_controls_are_told_and_hidden(sequences):
    with grpc_client.InferenceServerClient(f"127.0.0.1:{sequences.ports['grpc']}") as client:
        assert [tensor.name for tensor in client.get_model_metadata("controls").inputs] == ["INPUT"]
        for place, expected in (({"sequence_start": True}, 1015), ({}, 1005), ({"sequence_end": True}, 1105)):
            answer = client.infer("controls", numbers(grpc_client, 5), sequence_id=9, **place)
            assert answer.as_numpy("OUTPUT")[0, 0] == expected
            assert answer.as_numpy("SEQUENCE")[0, 0] == 9


def test_answers_that_are_kept(serve, repository):
    models = repository({"digits/1": MODELS / "digits/1/model.onnx"})
    (models / "digits/serin.yaml").write_text("response_cache: true\n")
    runtime = serve(models)
    url = runtime.url + "/v2/models/digits"
    answers = [call(url + "/infer", infer_body([[pixel] * 64])).json["outputs"] for pixel in (1, 1, 2, 1)]
    assert answers[0] == answers[1] == answers[3] != answers[2]
    assert runtime.metric("nv_cache_num_hits_per_model", model="digits") == 2
    assert runtime.metric("nv_cache_num_misses_per_model", model="digits") == 2
    assert runtime.metric("nv_inference_count", model="digits") == 2, "what is not computed is no inference"
    assert runtime.metric("nv_inference_request_success", model="digits") == 4
    statistics = call(url + "/stats").json["model_stats"][0]["inference_stats"]
    assert (statistics["cache_hit"]["count"], statistics["cache_miss"]["count"]) == (2, 2)
    assert all(0 < int(statistics[what]["ns"]) < 10**9 for what in ("cache_hit", "cache_miss"))
    assert [statistics[what]["count"] for what in ("success", "compute_input", "compute_infer")] == [4, 2, 2]


def test_a_model_that_asks_for_a_cache_that_is_not_there_does_not_load(serve, repository):
    models = repository({"digits/1": MODELS / "digits/1/model.onnx"})
    (models / "digits/serin.yaml").write_text("response_cache: true\n")
    runtime = serve(models, "--response-cache-bytes", 0)
    answer = call(runtime.url + "/v2/models/digits/infer", infer_body([[0] * 64]))
    assert answer.status == 503 and "--response-cache-bytes is 0" in answer.error


PIPE = """
ensemble:
  steps:
    - {model: sum, inputs: {INPUT: ab, PAST: ab}, outputs: {OUTPUT: quadruple}}
    - {model: sum, inputs: {INPUT: a, PAST: a}, outputs: {OUTPUT: ab}}
"""


def column(name, *values):
    return {"inputs": [{"name": name, "datatype": "INT32", "shape": [len(values), 1], "data": list(values)}]}


@pytest.fixture
def pipe(repository):
    """A model and an ensemble that runs it twice: quadruple = 4 * a."""
    models = repository({"sum/1": DATA / "sequence_state/model.onnx"})
    (models / "pipe/1").mkdir(parents=True)
    (models / "pipe/serin.yaml").write_text(PIPE)
    return models


def test_an_ensemble(serve, pipe):
    runtime = serve(pipe)
    url = runtime.url + "/v2/models/pipe"
    metadata = call(url).json
    assert [(tensor["name"], tensor["datatype"], tensor["shape"]) for tensor in metadata["inputs"]] == [("a", "INT32", [-1, 1])]
    assert [tensor["name"] for tensor in metadata["outputs"]] == ["quadruple"]
    assert call(url + "/infer", column("a", 1, 2, 3)).json["outputs"][0]["data"] == [4, 8, 12]
    assert runtime.metric("nv_inference_count", model="pipe") == 3
    assert runtime.metric("nv_inference_count", model="sum") == 6
    assert runtime.metric("nv_inference_exec_count", model="sum") == 2
    assert runtime.metric("nv_inference_pending_request_count", model="sum") == 0
    late = call(url + "/infer", {**column("a", 1), "parameters": {"timeout": 1}})
    assert late.status in (200, 504)


def test_an_ensemble_without_a_folder_of_its_version_is_the_first(serve, pipe):
    (pipe / "pipe/1").rmdir()
    runtime = serve(pipe)
    assert call(runtime.url + "/v2/models/pipe/versions/1/infer", column("a", 1)).json["outputs"][0]["data"] == [4]
    (pipe / "pipe/3").mkdir()
    wait_until(lambda: call(runtime.url + "/v2/models/pipe").json["versions"] == ["3"])
    (pipe / "pipe/3").rmdir()
    wait_until(lambda: call(runtime.url + "/v2/models/pipe").json["versions"] == ["1"])
    assert "has no version" not in runtime.log


PIPE_PBTXT = """
platform: "ensemble"
max_batch_size: 8
input { name: "a" data_type: TYPE_INT32 dims: [ 1 ] }
output { name: "quadruple" data_type: TYPE_INT32 dims: [ -1 ] }
output { name: "ab" data_type: TYPE_INT32 dims: [ 1 ] }
ensemble_scheduling {
  step [
    { model_name: "sum" model_version: -1
      input_map { key: "INPUT" value: "a" } input_map { key: "PAST" value: "a" } output_map { key: "OUTPUT" value: "ab" } },
    { model_name: "sum" model_version: 1
      input_map [ { key: "INPUT" value: "ab" }, { key: "PAST" value: "ab" } ] output_map { key: "OUTPUT" value: "quadruple" } }
  ]
}
"""


@pytest.mark.parametrize("settings", ["config.pbtxt", "serin.yaml"])
def test_an_ensemble_is_loaded_and_unloaded_with_its_members(start, pipe, settings):
    if settings == "config.pbtxt":
        (pipe / "pipe/serin.yaml").unlink()
        (pipe / "pipe/config.pbtxt").write_text(PIPE_PBTXT)
    runtime = start("serve", "--as", "tritonserver", "--model-repository", pipe, "--model-control-mode", "explicit", "--http-port", 0,
                    "--grpc-port", 0, "--metrics-port", 0)
    with http_client.InferenceServerClient(runtime.url.removeprefix("http://")) as client:
        client.load_model("pipe")
        assert client.is_model_ready("sum"), "members come with it"
        assert client.get_model_metadata("pipe")["platform"] == "ensemble"
        config = client.get_model_config("pipe")
        assert config["platform"] == "ensemble" and {step["model_name"] for step in config["ensemble_scheduling"]["step"]} == {"sum"}
        outputs = call(f"{runtime.url}/v2/models/pipe/infer", column("a", 1, 2, 3)).json["outputs"]
        expected = {"quadruple": [4, 8, 12], "ab": [2, 4, 6]}
        assert [tensor["name"] for tensor in outputs] == (["quadruple", "ab"] if settings == "config.pbtxt" else ["quadruple"]), "as declared"
        assert all(tensor["data"] == expected[tensor["name"]] for tensor in outputs)
        client.unload_model("pipe", unload_dependents=True)
        assert not client.is_model_ready("pipe") and not client.is_model_ready("sum")


@pytest.mark.parametrize("folder_of_its_version", [True, False])
@pytest.mark.parametrize("at_the_start", [True, False])
def test_an_ensemble_that_is_named_brings_its_members_and_theirs(start, pipe, at_the_start, folder_of_its_version):
    (pipe / "eight/1").mkdir(parents=True)
    (pipe / "eight/serin.yaml").write_text(EIGHTFOLD)
    if not folder_of_its_version:
        (pipe / "eight/1").rmdir()
        (pipe / "pipe/1").rmdir()
    runtime = start("serve", "--as", "tritonserver", "--model-repository", pipe, "--model-control-mode", "explicit", "--http-port", 0,
                    "--grpc-port", 0, "--metrics-port", 0, *(["--load-model", "eight"] if at_the_start else []))  # fmt: skip
    if not at_the_start:
        assert call(f"{runtime.url}/v2/repository/models/eight/load", {}).status == 200
    (output,) = call(f"{runtime.url}/v2/models/eight/infer", column("a", 1, 2)).json["outputs"]
    assert output["data"] == [8, 16] and call(f"{runtime.url}/v2/health/ready").status == 200
    assert {entry["name"]: entry["state"] for entry in call(f"{runtime.url}/v2/repository/index", "").json} == dict.fromkeys(("eight", "pipe", "sum"), "READY")


@pytest.mark.parametrize("was, text, why", [
    ("ensemble_scheduling", "dynamic_batching", "there is no step"),
    ("TYPE_INT32 dims: [ -1 ]", "TYPE_FP32 dims: [ -1 ]", "output 'quadruple' is declared as FP32"),
    ("model_version: 1", "model_version: -2", "model_version is -2"),
    ('"INPUT" value: "ab"', '"INPUT" value: "nowhere"', "reads tensor 'nowhere', which is no input"),
    ("dims: [ 1 ]", "dims: [ 0 ]", "'a': 0 is no size"),
    ("dims: [ 1 ]", f"dims: {[1] * 12}", "'a' has 12 dims"),
])
def test_what_is_wrong_with_an_ensemble_is_named(serve, pipe, was, text, why):
    (pipe / "pipe/serin.yaml").unlink()
    if text == "dynamic_batching":
        wrong = PIPE_PBTXT[:PIPE_PBTXT.index(was)]
    else:
        wrong = PIPE_PBTXT.replace(was, text, 1)
    (pipe / "pipe/config.pbtxt").write_text(wrong)
    runtime = serve(pipe)
    answer = call(runtime.url + "/v2/models/pipe/infer", column("a", 1))
    assert answer.status == 503 and why in answer.error
    assert call(runtime.url + "/v2/models/sum/ready").status == 200


def test_a_step_that_is_answered_from_the_cache_starts_the_next(serve, pipe):
    (pipe / "sum/serin.yaml").write_text("response_cache: true\n")
    runtime = serve(pipe)
    for _ in range(3):
        assert call(runtime.url + "/v2/models/pipe/infer", column("a", 1, 2)).json["outputs"][0]["data"] == [4, 8]


@pytest.mark.parametrize("was, typo, why", [("{OUTPUT: ab}", "{OUTPUTT: ab}", "has no output 'OUTPUTT'"),
                                            ("model: sum", "model: sun", "unknown model: 'sun'")])
def test_an_ensemble_serves_on_where_its_settings_break(serve, pipe, was, typo, why):
    runtime = serve(pipe)
    url = runtime.url + "/v2/models/pipe"
    (pipe / "pipe/serin.yaml").write_text(PIPE.replace(was, typo))

    def reason():
        return {entry["name"]: entry for entry in call(runtime.url + "/v2/repository/index", {}).json}["pipe"].get("reason", "")

    wait_until(lambda: why in reason())
    assert call(url + "/infer", column("a", 5)).json["outputs"][0]["data"] == [20]
    shutil.rmtree(pipe / "sum")
    wait_until(lambda: call(url + "/infer", column("a", 5)).status == 503, what="the end of what it was made of")


@pytest.mark.parametrize("rows", [1, 5000])
def test_rows_without_a_limit(serve, repository, rows):
    models = repository({"sum/1": DATA / "sequence_state/model.onnx"})
    (models / "sum/config.pbtxt").write_text('name: "sum" platform: "onnxruntime_onnx" max_batch_size: 0\n')
    body = {"inputs": column("INPUT", *range(rows))["inputs"] + column("PAST", *[1] * rows)["inputs"]}
    runtime = serve(models)
    for _ in range(3):
        assert call(runtime.url + "/v2/models/sum/infer", body).json["outputs"][0]["data"] == [i + 1 for i in range(rows)]


def test_an_ensemble_follows_its_members(serve, pipe):
    runtime = serve(pipe)
    url = runtime.url + "/v2/models/pipe"
    shutil.rmtree(pipe / "sum/1")
    wait_until(lambda: call(url + "/ready").status == 503)
    gone = call(url + "/infer", column("a", 1))
    assert gone.status == 503 and "step 1 (model 'sum')" in gone.error
    assert call(runtime.url + "/v2/health/ready").status == 200, "the server is well"
    index = {entry["name"]: entry for entry in call(runtime.url + "/v2/repository/index", {}).json}
    assert index["pipe"]["state"] == "UNAVAILABLE" and "step 1" in index["pipe"]["reason"]
    (pipe / "sum/2").mkdir()
    shutil.copy(DATA / "sequence_state/model.onnx", pipe / "sum/2/model.onnx")
    wait_until(lambda: call(url + "/ready").status == 200)
    assert call(url + "/infer", column("a", 5)).json["outputs"][0]["data"] == [20]


@pytest.mark.parametrize("first, second", [("pipe", "pipe"), ("pipe", "other")])
def test_an_ensemble_that_runs_itself_is_refused(serve, pipe, first, second):
    (pipe / "other/1").mkdir(parents=True)
    for name, step in ((first, second), (second, first)):
        (pipe / name / "serin.yaml").write_text(f"ensemble: {{steps: [{{model: {step}, inputs: {{a: a}}, outputs: {{b: b}}}}]}}\n")
    runtime = serve(pipe)
    answer = call(runtime.url + "/v2/models/pipe/infer", column("a", 1))
    assert answer.status == 503 and "step 1" in answer.error
    circle = "pipe, pipe" if second == "pipe" else "pipe, other, pipe"
    assert answer.error.endswith(f"step 1 (model '{second}') runs this ensemble itself: {circle}"), answer.error
    assert "did you mean" not in runtime.log


EIGHTFOLD = """
ensemble:
  steps:
    - {model: pipe, inputs: {a: a}, outputs: {quadruple: four}}
    - {model: sum, inputs: {INPUT: four, PAST: four}, outputs: {OUTPUT: eight}}
"""


@pytest.mark.parametrize("mode", ["poll", "explicit"])
def test_an_ensemble_of_an_ensemble_is_made_once_and_without_a_complaint(start, pipe, mode):
    """Its name comes before that of its member, which is no order to make them in."""
    (pipe / "eight/1").mkdir(parents=True)
    (pipe / "eight/serin.yaml").write_text(EIGHTFOLD)
    if mode == "poll":
        runtime = start("serve", pipe, *ON_FREE_PORTS)
    else:
        runtime = start("serve", "--as", "tritonserver", "--model-repository", pipe, "--model-control-mode", "explicit", "--http-port", 0,
                        "--grpc-port", 0, "--metrics-port", 0)
        with http_client.InferenceServerClient(runtime.url.removeprefix("http://")) as client:
            client.load_model("eight")
    (output,) = call(f"{runtime.url}/v2/models/eight/infer", column("a", 1, 2)).json["outputs"]
    assert output["data"] == [8, 16]
    assert " error " not in runtime.log and runtime.log.count("model 'eight' version 1: ready") == runtime.log.count("model 'pipe' version 1: ready") == 1


def test_everything_at_once_while_models_are_replaced(serve, pipe):
    """A plain model, one whose answers are kept, one of sequences and an ensemble, asked from several threads while the files of the ensemble's member change."""
    shutil.copytree(MODELS / "digits/1", pipe / "plain/1")
    shutil.copytree(MODELS / "digits/1", pipe / "kept/1")
    (pipe / "kept/serin.yaml").write_text("response_cache: true\n")
    (pipe / "state/1").mkdir(parents=True)
    shutil.copy(DATA / "sequence_state/model.onnx", pipe / "state/1/model.onnx")
    (pipe / "state/serin.yaml").write_text(STATE)
    runtime = serve(pipe)
    expected = call(runtime.url + "/v2/models/plain/infer", infer_body([[1] * 64])).json["outputs"]
    stop, wrong, answered = threading.Event(), [], []

    def repeat(ask):
        try:
            while not stop.is_set():
                wrong.extend(ask())
                answered.append(ask)
        except Exception as error:  # pylint: disable=broad-exception-caught
            wrong.append(error)

    def ask_digits(model):
        answer = call(runtime.url + f"/v2/models/{model}/infer", infer_body([[1] * 64]))
        return [] if answer.status == 200 and answer.json["outputs"] == expected else [(model, answer.status, answer.body)]

    def ask_pipe():
        answer = call(runtime.url + "/v2/models/pipe/infer", column("a", 1, 2))
        return [] if answer.status == 200 and answer.json["outputs"][0]["data"] == [4, 8] else [("pipe", answer.status, answer.body)]

    def ask_sequence():
        total, identity = 0, threading.get_ident()
        for i in range(5):
            place = {"sequence_id": identity, "sequence_start": i == 0, "sequence_end": i == 4}
            answer = call(runtime.url + "/v2/models/state/infer", {**column("INPUT", i), "parameters": place})
            total += i
            if answer.status != 200 or answer.json["outputs"][0]["data"] != [total]:
                return [("state", answer.status, answer.body)]
        return []

    asks = [ask_pipe, ask_pipe, ask_sequence, ask_sequence, lambda: ask_digits("plain"), lambda: ask_digits("kept")]
    threads = [threading.Thread(target=repeat, args=(ask,)) for ask in asks]
    for thread in threads:
        thread.start()
    for version in (2, 3, 4):
        (pipe / f"sum/{version}").mkdir()
        shutil.copy(DATA / "sequence_state/model.onnx", pipe / f"sum/{version}/model.onnx")
        wait_until(lambda: f"model 'sum' version {version}: ready" in runtime.log, what="the member is replaced")  # pylint: disable=cell-var-from-loop
        time.sleep(0.3)  # of traffic on it
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]
    assert {ask for ask in answered} == set(asks)
    for model in ("pipe", "sum", "state", "plain", "kept"):
        assert runtime.metric("nv_inference_pending_request_count", model=model) == 0
    assert runtime.metric("nv_cache_num_misses_per_model", model="kept") == 1
    assert runtime.end() == 0


@pytest.mark.parametrize("parameters", [{"priority": -1}, {"priority": 1.5}, {"timeout": 2 ** 64}, {"sequence_id": []}, {"sequence_start": "yes"},
                                        {"sequence_id": "x" * 129}])
def test_p15_parameters_of_the_wrong_type(shared_runtime, parameters):
    answer = call(shared_runtime.url + "/v2/models/digits/versions/1/infer", infer_body([[0] * 64], parameters=parameters))
    assert answer.status == 400
    assert answer.headers.get("x-serin-field", "") in ("/parameters/" + next(iter(parameters)), "")


@pytest.mark.parametrize("policy, timeout, waited", [
    ("", 20_000, 200), ("allow_timeout_override: true", 20_000, 504), ("allow_timeout_override: true default_timeout_microseconds: 500000", 60_000_000, 504)])
def test_how_long_a_request_lets_itself_wait_in_a_queue_of_tritons(serve, tmp_path, policy, timeout, waited):
    """Its `timeout` is for the queue alone, where the configuration lets it be; what runs takes as long as it takes."""
    save_slow(tmp_path)
    (tmp_path / "slow/config.pbtxt").write_text(f"dynamic_batching {{ default_queue_policy {{ {policy} }} }} instance_group {{ count: 1 }}\n")
    url = serve(tmp_path).url + "/v2/models/slow/infer"
    began = time.monotonic()
    assert call(url, turns(20_000)).status == 200
    a_second = int(20_000 / (time.monotonic() - began))  # of turns: a sanitizer makes them many times as long
    hurried = {**json.loads(turns(a_second // 10)), "parameters": {"timeout": timeout}}
    assert policy or call(url, hurried).status == 200, "nobody is before it"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        holder = pool.submit(call, url, turns(3 * a_second))
        time.sleep(0.3)
        answer = call(url, hurried)
        assert answer.status == waited and holder.result().status == 200
        assert waited == 200 or "while the request was queued" in answer.error
