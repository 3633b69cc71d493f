"""Inference requests that are HTTP but not what a model takes: 400, naming the field, and the model serves on.

The codec is tested case by case in tests/runtime/protocol; here it is the running server, whose memory and whose next client count as well.
"""

import concurrent.futures
import copy
import json
import shutil
import threading

import pytest

from conftest import MODELS, call, infer_body, wait_until

ZEROS = infer_body([[0.0] * 64])


@pytest.fixture
def url(shared_runtime):
    """Inference with version 1 of digits; well before and after."""
    address = shared_runtime.url + "/v2/models/digits/versions/1/infer"
    yield address
    assert call(address, ZEROS).status == 200


def changed(**fields):
    """A good request with fields of its input changed; None removes one."""
    body = copy.deepcopy(ZEROS)
    for name, value in fields.items():
        body["inputs"][0][name] = value
        if value is None:
            del body["inputs"][0][name]
    return body


def assert_refused(answer, *words):
    assert answer.status == 400, answer.body
    assert all(word in answer.error for word in words), answer.error
    assert answer.headers["x-serin-code"] and "x-serin-batch" in answer.headers


@pytest.mark.parametrize("body", [
    b"", b" ", b"nonsense", b"[]", b"1", b"null", b'"x"', b"{} {}", b'{"inputs":[]}x', b'{"inputs":[],"inputs":[]}',
], ids=repr)
def test_p1_bodies_that_are_no_request(url, body):
    assert_refused(call(url, body, method="POST"))


def test_p1_a_byte_order_mark(url):
    answer = call(url, b"\xef\xbb\xbf" + json.dumps(ZEROS).encode())
    assert answer.status in (200, 400)


@pytest.mark.parametrize("depth", [101, 10_000, 1_000_000])
def test_p2_nesting(url, depth):
    data = b"[" * depth + b"]" * depth
    body = b'{"inputs":[{"name":"pixels","datatype":"FP32","shape":[1,64],"data":' + data + b"}]}"
    assert_refused(call(url, body))


@pytest.mark.parametrize("field", ["name", "shape", "datatype", "data"])
def test_p5_a_missing_field_is_named(url, field):
    answer = call(url, changed(**{field: None}))
    assert_refused(answer, field)
    assert answer.headers["x-serin-field"].startswith("/inputs/0")


@pytest.mark.parametrize("fields", [
    {"name": 5}, {"shape": "1,64"}, {"shape": [1.5, 64]}, {"datatype": 32}, {"data": {}}, {"data": ["x"] * 64}, {"data": [None] * 64},
], ids=lambda fields: f"{fields}"[:30])
def test_p5_a_field_of_the_wrong_kind(url, fields):
    assert_refused(call(url, changed(**fields)))


def test_p5_no_inputs(url):
    assert_refused(call(url, {}), "inputs")
    assert_refused(call(url, {"inputs": None}))
    assert_refused(call(url, {"inputs": []}))


def test_p6_inputs_and_outputs_that_the_model_does_not_have(url):
    assert_refused(call(url, changed(name="nope")), "nope")
    assert_refused(call(url, {"inputs": ZEROS["inputs"] * 2}), "pixels")
    assert_refused(call(url, {**ZEROS, "outputs": [{"name": "nope"}]}), "nope")
    assert_refused(call(url, {**ZEROS, "outputs": [{"name": "scores"}, {"name": "scores"}]}), "scores")


def test_p6_a_million_outputs(url):
    assert_refused(call(url, {**ZEROS, "outputs": [{"name": "scores"}] * 1_000_000}))


@pytest.mark.parametrize("shape", [
    [], [0], [-1, 64], [1, -64], [2**32, 2**32], [2**62, 4], [2**63, 64], [1] * 65, [1, 65], [2, 64], [64], [1, 8, 8],
], ids=lambda shape: f"{shape}"[:20])
def test_p7_shapes_that_do_not_fit(url, shape):
    assert_refused(call(url, changed(shape=shape)))


def test_p18_a_version_is_ready_or_says_that_it_is_not_yet(serve, repository):
    """While a slow model loads and warms, requests for it get 503 with the reason; nobody gets a wrong answer."""
    models = repository({"digits/1": MODELS / "digits/1/model.onnx"})
    runtime = serve(models)
    seen, stop = set(), threading.Event()

    def ask():
        while not stop.is_set():
            seen.add(call(runtime.url + "/v2/models/digits/versions/4/infer", ZEROS).status)

    thread = threading.Thread(target=ask)
    thread.start()
    staging = models.parent / "4"
    staging.mkdir()
    (staging / "model.onnx").write_bytes((MODELS / "digits/4/model.onnx").read_bytes())
    staging.rename(models / "digits/4")
    wait_until(lambda: 200 in seen, 20, "version 4 answers")
    stop.set()
    thread.join()
    assert seen <= {200, 404, 503}


def test_p18_requests_under_way_are_answered_when_their_model_goes(serve, repository):
    models = repository({"digits/4": MODELS / "digits/4/model.onnx"})
    runtime = serve(models, "--threads", 1)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = [pool.submit(call, runtime.url + "/v2/models/digits/infer", infer_body([[0.0] * 64] * 8)) for _ in range(6)]
        wait_until(lambda: runtime.metric("nv_inference_pending_request_count") == 5, 10, "one runs and five wait")
        shutil.rmtree(models / "digits")
        assert [answer.result().status for answer in answers] == [200] * 6
    wait_until(lambda: call(runtime.url + "/v2/models/digits/infer", ZEROS).status == 404, 10, "the model gone")
