"""Large bodies over HTTP with one io thread: who sends or asks for much keeps nobody waiting who asks for little."""

import contextlib
import gzip
import json
import select
import signal
import socket

import numpy as np
import pytest

import large_models
from conftest import ON_FREE_PORTS, Process, call, wait_until

COUNT = 10_000_000  # numbers: reading or writing so many takes hundreds of requests' time
PROBES = 30


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return large_models.save(tmp_path_factory.mktemp("models"))


@pytest.fixture
def runtime(models, tmp_path):
    with Process(tmp_path, "serve", "--models", models, *ON_FREE_PORTS, "--io-threads", 1) as process:
        yield process


def numbers(count=COUNT, tail="0.25", end="]}]}"):
    """A request for `size`. Its last number, and what stands at its end, are known only to who has read all of it."""
    return f'{{"inputs":[{{"name":"x","datatype":"FP32","shape":[{count}],"data":[{"0.125," * (count - 1)}{tail}{end}'.encode()


def post(model, body, headers=""):
    return f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body


@contextlib.contextmanager
def asked(runtime, request):
    with socket.create_connection(("127.0.0.1", runtime.ports["http"]), timeout=60) as client:
        client.sendall(request)
        yield client


def answered(client):
    return bool(select.select([client], [], [], 0)[0])


def whole_answer(client):
    text = client.makefile("rb")
    status = int(text.readline().split()[1])
    length = 0
    while (line := text.readline().strip()):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return status, text.read(length)


def small_ones(runtime, client):
    """How many others were answered before it."""
    count = 0
    while count < PROBES and not answered(client):
        assert call(runtime.url + "/v2/health/ready").status == 200
        count += 1
    return count


def gzipped(body, level=1, headers=""):
    return post("size", gzip.compress(body, level), f"Content-Encoding: gzip\r\n{headers}")


@pytest.mark.parametrize("level", [None, 1, 9], ids=["plain", "gzip", "tight"])
def test_one_that_is_read(runtime, level):
    request = post("size", numbers()) if level is None else gzipped(numbers(), level)
    with asked(runtime, request) as client:
        assert small_ones(runtime, client) == PROBES
        status, text = whole_answer(client)
    assert status == 200, text
    assert [output["data"] for output in json.loads(text)["outputs"]] == [[COUNT], [0.25]]


def test_one_that_is_written(runtime):
    body = b'{"inputs":[{"name":"n","datatype":"INT64","shape":[1],"data":[%d]}]}' % COUNT
    with asked(runtime, post("fill", body)) as client:
        # The run is over when it is counted, and what is left is writing the answer.
        wait_until(lambda: runtime.metric("nv_inference_request_success", model="fill") == 1, 30, "the run")
        assert not answered(client)
        status, text = whole_answer(client)
    assert status == 200
    data = json.loads(text)["outputs"][0]["data"]
    assert len(data) == COUNT and set(data) == {0.5}


@pytest.mark.parametrize("body, status, error", [
    (numbers(end="]}]"), 400, "JSON"),
    (numbers(tail='"a"'), 400, "element 9999999 is a string"),
    (numbers().replace(b"[10000000]", b"[10000001]"), 400, "10000001"),
], ids=["text", "value", "shape"])  # fmt: skip
def test_errors_are_told_as_of_a_small_one(runtime, body, status, error):
    answer = call(runtime.url + "/v2/models/size/infer", body)
    assert answer.status == status and error in answer.error, answer.body
    assert answer.headers["x-serin-version"] == "1" and answer.headers["x-serin-batch"]
    assert runtime.metric("serin_bad_requests_total", model="size") == 1


def test_an_answer_that_is_packed(runtime):
    body = b'{"inputs":[{"name":"n","datatype":"INT64","shape":[1],"data":[4000000]}]}'
    answer = call(runtime.url + "/v2/models/fill/infer", body, {"Accept-Encoding": "gzip"})
    assert answer.status == 200 and answer.headers["Content-Encoding"] == "gzip" and len(answer.body) < 1_000_000
    assert json.loads(gzip.decompress(answer.body))["outputs"][0]["data"] == [0.5] * 4_000_000


def test_a_packed_one_that_is_damaged(runtime):
    packed = bytearray(gzip.compress(np.random.default_rng(0).bytes(1_000_000)))
    packed[500_000:500_100] = bytes(100)
    answer = call(runtime.url + "/v2/models/size/infer", bytes(packed), {"Content-Encoding": "gzip"})
    assert answer.status == 400 and "the body" in answer.error, answer.body
    assert call(runtime.url + "/v2/health/ready").status == 200


def test_a_packed_one_that_is_too_large(models, tmp_path):
    with Process(tmp_path, "serve", "--models", models, *ON_FREE_PORTS, "--max-body-bytes", 20_000_000) as runtime:
        answer = call(runtime.url + "/v2/models/size/infer", gzip.compress(numbers(), 1), {"Content-Encoding": "gzip"})
    assert answer.status == 413 and "20000000" in answer.error, answer.body


def test_those_whose_clients_hang_up_are_counted_and_forgotten(runtime):
    body = numbers()
    for _ in range(3):
        with asked(runtime, post("size", body)):
            pass
    wait_until(lambda: runtime.metric("nv_inference_request_failure", model="size", reason="CANCELED") == 3, 30, "they are counted")
    assert call(runtime.url + "/v2/models/size/infer", body).status == 200
    assert runtime.metric("nv_inference_request_success", model="size") == 1


def test_shadows_whose_clients_hang_up_are_not_counted(runtime):
    for _ in range(4):
        with asked(runtime, post("size", numbers(), "x-serin-shadow: 1\r\n")):
            pass
    assert call(runtime.url + "/v2/models/size/infer", numbers()).status == 200
    assert runtime.metric("nv_inference_request_failure", model="size") == 0


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_deadline_counts_from_the_arrival(runtime, packed):
    """It is over while others are read, and is answered then; nothing of it is read any more."""
    late, other, body = "x-serin-timeout-ms: 1\r\n", gzipped(numbers()), numbers(COUNT // 10)
    request = gzipped(body, headers=late) if packed else post("size", body, late)
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(asked(runtime, other)) for _ in range(8)]
        client = stack.enter_context(asked(runtime, request))
        assert whole_answer(client)[0] == 504
        if not packed:
            assert not all(answered(other) for other in others)
        assert [whole_answer(other)[0] for other in others] == [200] * 8
    assert runtime.metric("nv_inference_request_failure", model="size", reason="REJECTED") == 1


def test_the_end_waits_for_it(models, tmp_path):
    with Process(tmp_path, "serve", "--models", models, *ON_FREE_PORTS, "--io-threads", 1) as runtime:
        with asked(runtime, post("size", numbers())) as client:
            small_ones(runtime, client)
            assert not answered(client)
            runtime.process.send_signal(signal.SIGTERM)
            assert whole_answer(client)[0] == 200
        assert runtime.end() == 0


def test_the_end_does_not_wait_for_whoever_hung_up(models, tmp_path):
    with Process(tmp_path, "serve", "--models", models, *ON_FREE_PORTS, "--io-threads", 1) as runtime:
        body = numbers()
        for _ in range(3):
            with asked(runtime, post("size", body)):
                pass
        assert runtime.end() == 0
