"""What runs behind a model's name besides the model: sequences, kept answers, priorities; with the clients that ask for them."""

import queue

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from conftest import DATA, MODELS, call, infer_body

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


def test_a_model_that_asks_for_a_cache_that_is_not_there_does_not_load(serve, repository):
    models = repository({"digits/1": MODELS / "digits/1/model.onnx"})
    (models / "digits/serin.yaml").write_text("response_cache: true\n")
    runtime = serve(models, "--response-cache-bytes", 0)
    answer = call(runtime.url + "/v2/models/digits/infer", infer_body([[0] * 64]))
    assert answer.status == 503 and "--response-cache-bytes is 0" in answer.error


@pytest.mark.parametrize("parameters", [{"priority": -1}, {"priority": 1.5}, {"timeout": 2 ** 64}, {"sequence_id": []}, {"sequence_start": "yes"}])
def test_p15_parameters_of_the_wrong_type(shared_runtime, parameters):
    answer = call(shared_runtime.url + "/v2/models/digits/versions/1/infer", infer_body([[0] * 64], parameters=parameters))
    assert answer.status == 400
    assert answer.headers.get("x-serin-field", "") in ("/parameters/" + next(iter(parameters)), "")
