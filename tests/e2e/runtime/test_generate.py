"""Triton's generate extension: texts and numbers in, flat JSON out, as one answer or as a stream of one event. Beside a real Triton: tests/differential."""

import concurrent.futures
import json

import numpy as np
import onnx
import pytest
from conftest import DATA, MODELS, call, infer_body
from onnx import TensorProto, helper
from test_bad_tensors import assert_refused
from test_serve import endless_loop
from test_serve_access import bearer, write_tokens
from test_traces import DOORS, check_times, wait_for

ROW = [float(i % 17) for i in range(64)]
EVENTS = "text/event-stream; charset=utf-8"


def save_word_model(folder):
    """Texts -> their words, how many characters were asked for among them: a model as sklearn's converters write it."""
    words = helper.make_node("Tokenizer", ["text"], ["words"], domain="com.microsoft", mark=0, mincharnum=1, pad_value="", separators=[" "])
    graph = helper.make_graph([words], "words", [helper.make_tensor_value_info("text", TensorProto.STRING, ["n"])],
                              [helper.make_tensor_value_info("words", TensorProto.STRING, ["n", "w"])])  # fmt: skip
    (folder / "words/1").mkdir(parents=True)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "words/1/model.onnx")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_word_model(folder)
    (folder / "digits/1").mkdir(parents=True)
    (folder / "digits/1/model.onnx").write_bytes((MODELS / "digits/1/model.onnx").read_bytes())
    (folder / "digits/serin.yaml").write_text("response_cache: true\n")
    (folder / "count/1").mkdir(parents=True)
    (folder / "narrow/1").mkdir(parents=True)
    for name in ("count", "narrow"):
        endless_loop(folder / name / "1/model.onnx")
    (folder / "narrow/serin.yaml").write_text("instances: 1\nqueue_limit: 1\n")
    return folder


@pytest.fixture
def runtime(serve, models, tmp_path):
    return serve(models, "--trace-file", tmp_path / "trace.json", "--trace-rate", 1)


@pytest.fixture
def ask(runtime):
    """ask("words", body): what generate answers; "words/versions/1" names a version."""
    return lambda model, body, verb="generate", **options: call(f"{runtime.url}/v2/models/{model}/{verb}", body, **options)


def test_a_text_as_a_person_types_it(ask):
    answer = ask("words", '{"text": "hello big world"}')
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.json == {"model_name": "words", "model_version": "1", "words": ["hello", "big", "world"]}
    assert answer.headers["x-serin-version"] == "1" and answer.headers["x-serin-batch"].endswith("/0/1")
    assert ask("words/versions/1", {"text": "hello", "id": "a-1", "temperature": 0.5}).json == {
        "model_name": "words", "model_version": "1", "id": "a-1", "words": "hello"}  # fmt: skip
    assert ask("words", {"parameters": {"text": ["a b", "c d"], "stream": False}}).json["words"] == ["a", "b", "c", "d"], "flat"


def test_a_stream_is_one_event(ask):
    answer = ask("words", {"text": "hello"}, "generate_stream")
    assert (answer.status, answer.headers["Content-Type"]) == (200, EVENTS)
    assert answer.body == b'data: {"model_name":"words","model_version":"1","words":"hello"}\n\n'


def test_numbers_are_those_of_infer(ask, runtime):
    scores = call(f"{runtime.url}/v2/models/digits/infer", infer_body([ROW, ROW])).json["outputs"][0]["data"]
    assert ask("digits", {"pixels": ROW + ROW}).json["scores"] == scores


def test_an_error_before_the_inference_is_no_event(ask):
    for verb in ("generate", "generate_stream"):
        missing = ask("words", {"txt": "hello"}, verb)
        assert_refused(missing, "input 'text' is missing", "did you mean it by 'txt'")
        assert missing.headers["Content-Type"] == "application/json"
        shape = ask("digits", {"pixels": [1, 2, 3]}, verb)
        assert_refused(shape, "input 'pixels' expects [-1,64] FP32, the request has 3 values")
        assert shape.headers["x-serin-field"] == "/pixels"
        assert_refused(ask("words", {"text": 5}, verb), "element 0 is 5, which is not a BYTES")
        assert_refused(ask("nope", {"text": "a"}, verb), "nope", status=404)
        assert_refused(ask("words/versions/9", {"text": "a"}, verb), "9", status=404)
        assert_refused(ask("words", "[" * 200 + "]" * 200, verb), "nested deeper than 100")
        assert_refused(ask("words", {"text": "a"}, verb, headers={"x-serin-timeout-ms": "soon"}))


def test_an_error_of_the_inference_is_an_event_of_its_stream(ask):
    late = {"headers": {"x-serin-timeout-ms": "100"}}
    plain = ask("count", {"trips": 900_000_000}, **late)
    assert plain.status == 504 and plain.headers["Content-Type"] == "application/json" and "deadline" in plain.error
    event = ask("count", {"trips": 900_000_000}, "generate_stream", **late)
    assert event.status == 504 and event.headers["Content-Type"] == EVENTS
    assert event.body.startswith(b"data: ") and event.body.endswith(b"\n\n") and event.headers["x-serin-code"] == "deadline_exceeded"
    assert json.loads(event.body[6:]) == plain.json


def test_who_is_not_even_taken_gets_no_event(ask):
    """Of five at once one runs and one waits, at most."""
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        late = {"headers": {"x-serin-timeout-ms": "2000"}}
        answers = list(pool.map(lambda trips: ask("narrow", {"trips": trips}, "generate_stream", **late), range(900_000_000, 900_000_005)))
    taken, refused = ([answer for answer in answers if answer.status == status] for status in (504, 429))
    assert taken and refused and len(taken) + len(refused) == len(answers)
    assert {answer.headers["Content-Type"] for answer in taken} == {EVENTS}
    for answer in refused:
        assert_refused(answer, "exceeds maximum queue size", status=429)
        assert answer.headers["Content-Type"] == "application/json" and int(answer.headers["Retry-After"]) >= 1


@pytest.mark.parametrize("verb", ["generate", "generate_stream"])
def test_other_verbs_and_paths(runtime, verb):
    answer = call(f"{runtime.url}/v2/models/words/{verb}")
    assert answer.status == 405 and answer.headers["Allow"] == "POST"
    assert call(f"{runtime.url}/v2/models/words/{verb}/more", {"text": "a"}).status == 404


def test_it_is_counted_traced_and_kept_as_any_inference(ask, runtime, tmp_path):
    for verb in ("generate", "generate_stream"):
        assert ask("digits", {"pixels": ROW, "id": verb}, verb).status == 200
    assert call(f"{runtime.url}/v2/models/digits/infer", infer_body([ROW])).status == 200
    assert ask("digits", {"pixels": 1}).status == 400
    statistics = call(f"{runtime.url}/v2/models/digits/stats").json["model_stats"][0]["inference_stats"]
    assert (statistics["success"]["count"], statistics["cache_hit"]["count"], statistics["cache_miss"]["count"]) == (3, 2, 1)
    assert statistics["fail"]["count"] == 0 and runtime.metric("serin_bad_requests_total", model="digits") == 1
    found = wait_for(tmp_path / "trace.json", 3)
    assert [trace.get("request_id") for trace in found.values()] == ["generate", "generate_stream", None]
    check_times(found[1], DOORS["HTTP"])


@pytest.mark.parametrize("role, status", [(None, 401), ("read", 403), ("infer", 200)])
def test_it_takes_the_role_of_inference(serve, models, tmp_path, role, status):
    runtime = serve(models, "--tokens", write_tokens(tmp_path / "tokens.yaml"))
    for verb in ("generate", "generate_stream"):
        assert call(f"{runtime.url}/v2/models/words/{verb}", {"text": "a"}, headers=bearer(role)).status == status


def test_it_is_called_so_by_tritons_users_too(start, models):
    runtime = start("serve", "--as", "tritonserver", f"--model-repository={models}", "--http-port=0", "--grpc-port=0", "--metrics-port=0")
    assert call(f"{runtime.url}/v2/models/words/generate", {"text": "a"}).json["words"] == "a"
    assert "generate" not in call(f"{runtime.url}/v2").json["extensions"], "Triton names it nowhere either"


def test_answers_of_a_model_with_a_batch_of_its_own(serve, repository):
    runtime = serve(repository({"sum/1": DATA / "sequence_state/model.onnx"}))
    answer = call(f"{runtime.url}/v2/models/sum/generate", {"INPUT": [1, 2], "PAST": [10, 20]}).json
    np.testing.assert_array_equal(answer["OUTPUT"], [11, 22])
