"""Large messages over gRPC with one io thread: who sends or asks for much keeps nobody waiting who asks for little. Few bytes on the wire stand for them, so that
what is measured is reading, not sending."""

import concurrent.futures
import contextlib
import gzip
import os
import signal
import socket
import uuid

import grpc
import numpy as np
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

import large_models
from conftest import ON_FREE_PORTS, Process, call, resident_mb
from h2_frames import DATA, END_STREAM, HEADERS, Peer

INFER = "/inference.GRPCInferenceService/ModelInfer"
PREDICT = "/tensorflow.serving.PredictionService/Predict"
TEXTS = 8_000_000  # unpacking them takes a small part of the time that making strings of them does
NUMBERS = 15_000_000
PROBES = 300


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return large_models.save(tmp_path_factory.mktemp("models"))


@pytest.fixture
def runtime(models, tmp_path):
    with Process(tmp_path, "serve", "--models", models, *ON_FREE_PORTS, "--io-threads", 1) as process:
        yield process


@pytest.fixture
def stub(runtime):
    with grpc.insecure_channel(f"127.0.0.1:{runtime.ports['grpc']}", options=[("grpc.max_receive_message_length", -1)]) as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)


def varint(number):
    out = b""
    while number >= 128:
        out, number = out + bytes([number % 128 | 128]), number // 128
    return out + bytes([number])


def long_field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def texts(shape=TEXTS, end=b""):
    """A ModelInferRequest for `texts`, each of one letter."""
    contents = b"\x42\x01a" * TEXTS + end
    tensor = long_field(1, b"x") + long_field(2, b"BYTES") + long_field(3, varint(shape)) + long_field(5, contents)
    return long_field(1, b"texts") + long_field(5, tensor)


def numbers(count=NUMBERS, **more):
    request = service_pb2.ModelInferRequest(model_name="size", **more)
    request.inputs.add(name="x", datatype="FP32", shape=[count])
    raw = np.full(count, 0.125, np.float32)
    raw[-1] = 0.25
    request.raw_input_contents.append(raw.tobytes())
    return request


def predict(shape=TEXTS):
    """A PredictRequest of TensorFlow Serving for the same."""
    tensor = b"\x08\x07" + long_field(2, long_field(2, b"\x08" + varint(shape))) + b"\x42\x01a" * TEXTS
    return long_field(1, long_field(1, b"texts")) + long_field(2, long_field(1, b"x") + long_field(2, tensor))


class Asking:
    """A call whose message has gone out when this is made, packed; what comes back is read in a thread."""

    def __init__(self, runtime, message, path=INFER, **headers):
        self.peer = Peer(runtime.ports["grpc"], timeout=60)
        self.peer.open(1, path, grpc_encoding="gzip", **headers)
        self.peer.message(1, gzip.compress(message, 9), END_STREAM, compressed=True)
        self._pool = concurrent.futures.ThreadPoolExecutor(1)
        self._frames = self._pool.submit(self.peer.read, lambda one: one.stream == 1 and one.flags & END_STREAM)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.peer.socket.shutdown(socket.SHUT_RDWR)
        self._pool.shutdown()
        self.peer.socket.close()

    def answered(self):
        return self._frames.done()

    def answer(self):
        """The message; empty where there is a status instead."""
        frames = [one for one in self._frames.result(100) if one.stream == 1]
        assert frames and frames[-1].type == HEADERS, "the call has come to no end"
        return b"".join(one.payload for one in frames if one.type == DATA)


def refusal(runtime, message):
    """Of one whose message is packed: the status and what it says."""
    with grpc.insecure_channel(f"127.0.0.1:{runtime.ports['grpc']}") as channel, pytest.raises(grpc.RpcError) as error:
        channel.unary_unary(INFER)(message, timeout=60, compression=grpc.Compression.Gzip)
    return error.value.code(), error.value.details()


def small_ones(runtime, asking):
    """How many others were answered before it."""
    count = 0
    while count < PROBES and not asking.answered():
        assert call(runtime.url + "/v2/health/ready").status == 200
        count += 1
    return count


def failures(runtime, reason):
    return runtime.metric("nv_inference_request_failure", model="texts", reason=reason)


@pytest.mark.parametrize("path, message", [(INFER, texts), (PREDICT, predict)], ids=["inference", "tensorflow"])
def test_one_that_is_read(runtime, path, message):
    with Asking(runtime, message(shape=TEXTS - 1), path) as asking:  # all there is to it is being read
        assert small_ones(runtime, asking) == PROBES
        assert not asking.answer()
    with Asking(runtime, message(), path) as asking:
        assert (TEXTS.to_bytes(8, "little") if path == INFER else varint(TEXTS)) in asking.answer()


@pytest.mark.parametrize("path, entry", [(INFER, b"\x3a\x00"), (INFER, b"\x7a\x00"), (PREDICT, b"\x12\x00")], ids=["raw", "unknown", "tensorflow"])
def test_one_of_nothing_but_entries(runtime, path, entry):
    """30 million of them in 60 KB: looking through them takes time, and must take no memory."""
    with Asking(runtime, entry * 30_000_000, path) as asking:
        assert small_ones(runtime, asking) > 20
        assert not asking.answer()
    assert resident_mb(runtime.process) < 400


@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip], ids=["plain", "gzip"])
def test_what_is_read_is_what_was_sent(stub, compression):
    answer = stub.ModelInfer(numbers(id="a"), compression=compression, timeout=60)
    assert answer.id == "a"
    assert np.frombuffer(answer.raw_output_contents[0], np.int64) == NUMBERS and np.frombuffer(answer.raw_output_contents[1], np.float32) == 0.25


@contextlib.contextmanager
def texts_in_memory(runtime):
    """A region "texts" of as many, each of one letter."""
    name = f"/serin-test-{uuid.uuid4().hex}"
    with open(f"/dev/shm{name}", "xb") as file:
        file.write(b"\x01\x00\x00\x00a" * TEXTS)
    try:
        register = {"key": name, "offset": 0, "byte_size": 5 * TEXTS}
        assert call(runtime.url + "/v2/systemsharedmemory/region/texts/register", register).status == 200
        yield
    finally:
        os.unlink(f"/dev/shm{name}")


def naming_them(shape):
    request = service_pb2.ModelInferRequest(model_name="texts")
    tensor = request.inputs.add(name="x", datatype="BYTES", shape=[shape])
    tensor.parameters["shared_memory_region"].string_param = "texts"
    tensor.parameters["shared_memory_byte_size"].int64_param = 5 * TEXTS
    return request.SerializeToString()


def naming_them_in_json(shape):
    parameters = {"shared_memory_region": "texts", "shared_memory_byte_size": 5 * TEXTS}
    return {"inputs": [{"name": "x", "datatype": "BYTES", "shape": [shape], "parameters": parameters}]}


class AskingOverHttp:
    def __init__(self, runtime, request):
        self.pool = concurrent.futures.ThreadPoolExecutor(1)
        self.asked = self.pool.submit(call, runtime.url + "/v2/models/texts/infer", request, timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pool.shutdown()

    def answered(self):
        return self.asked.done()


def test_one_in_shared_memory(models, tmp_path):
    """A message of some hundred bytes, which stands for 40 MB."""
    with Process(tmp_path, "serve", "--models", models, *ON_FREE_PORTS, "--io-threads", 1, "--shared-memory", "--admin-on-data-port") as runtime:
        with texts_in_memory(runtime):
            with Asking(runtime, naming_them(TEXTS - 1)) as asking:
                assert small_ones(runtime, asking) > 20
                assert not asking.answer()
            with AskingOverHttp(runtime, naming_them_in_json(TEXTS - 1)) as asking:
                assert small_ones(runtime, asking) > 20
                assert asking.asked.result().status == 400
            with Asking(runtime, naming_them(TEXTS)) as asking:
                assert TEXTS.to_bytes(8, "little") in asking.answer()
            assert call(runtime.url + "/v2/models/texts/infer", naming_them_in_json(TEXTS), timeout=60).json["outputs"][0]["data"] == [TEXTS]


def halves(count, number=0):
    request = service_pb2.ModelInferRequest(model_name="fill", id=str(number))
    request.inputs.add(name="n", datatype="INT64", shape=[1]).contents.int64_contents.append(count)
    return request


def test_one_that_is_written(stub):
    assert stub.ModelInfer(halves(NUMBERS), timeout=60).raw_output_contents == [np.full(NUMBERS, 0.5, np.float32).tobytes()]


def test_a_stream_of_large_and_small_ones(stub):
    """All are answered, each with its own, though the small ones need not wait for the large ones to be written."""
    sizes = [NUMBERS, 3, NUMBERS // 2, 5, 7]
    asked = [request for i, size in enumerate(sizes) for request in (numbers(size, id=f"r{i}"), halves(size, i))]
    found = {answer.infer_response.id: answer for answer in stub.ModelStreamInfer(iter(asked), timeout=120)}
    assert len(found) == len(asked) and not any(answer.error_message for answer in found.values())
    for i, size in enumerate(sizes):
        assert np.frombuffer(found[f"r{i}"].infer_response.raw_output_contents[0], np.int64) == size
        assert len(found[str(i)].infer_response.raw_output_contents[0]) == 4 * size


def test_one_of_a_stream_that_is_wrong(stub):
    wrong = numbers(id="wrong")
    wrong.inputs[0].shape[0] += 1
    answers = {answer.infer_response.id: answer.error_message for answer in stub.ModelStreamInfer(iter([wrong, numbers(id="right")]), timeout=60)}
    assert set(answers) == {"wrong", "right"} and str(NUMBERS + 1) in answers["wrong"] and not answers["right"]


@pytest.mark.parametrize("message, error", [
    (texts(shape=TEXTS + 1), str(TEXTS + 1)),
    (texts(end=b"\x42\xff"), "byte 24000033: field 8 of InferTensorContents"),
], ids=["shape", "contents"])  # fmt: skip
def test_errors_are_told_as_of_a_small_one(runtime, message, error):
    status, details = refusal(runtime, message)
    assert status == grpc.StatusCode.INVALID_ARGUMENT and error in details
    assert runtime.metric("serin_bad_requests_total", model="texts") == 1


def test_a_packed_one_that_is_damaged(runtime):
    packed = bytearray(gzip.compress(texts(), 9))
    packed[-8:] = bytes(8)  # what it is to be checked by
    with Peer(runtime.ports["grpc"]) as peer:
        peer.open(1, INFER, grpc_encoding="gzip")
        peer.message(1, bytes(packed), END_STREAM, compressed=True)
        assert [one.type for one in peer.read(lambda one: one.stream == 1) if one.stream == 1] == [HEADERS]  # and no answer
    assert runtime.metric("nv_inference_request_success", model="texts") == 0


def test_a_packed_one_that_is_too_large(models, tmp_path):
    with Process(tmp_path, "serve", "--models", models, *ON_FREE_PORTS, "--max-body-bytes", 20_000_000) as runtime:
        status, details = refusal(runtime, texts())
    assert status == grpc.StatusCode.RESOURCE_EXHAUSTED and "once unpacked, is over the limit of 20000000 bytes" in details


def test_those_whose_clients_hang_up_are_counted_and_forgotten(runtime):
    """Once it is known what they ask, which is when they are unpacked."""
    asked, cancelled = 0, 0
    while not cancelled:
        asked += 1
        assert asked < 12, "none of those that were hung up on was counted"
        with Asking(runtime, texts()) as asking:
            for _ in range(asked):
                small_ones(runtime, asking)
            assert not asking.answered()
        with Asking(runtime, texts()) as asking:
            assert asking.answer()
        cancelled = failures(runtime, "CANCELED")
    assert cancelled == 1 and runtime.metric("nv_inference_request_success", model="texts") == asked


def test_a_deadline_ends_it(runtime):
    """While others are read, and so is it perhaps."""
    with Asking(runtime, texts()) as other, Asking(runtime, texts(), grpc_timeout="100m") as late:
        assert not late.answer()
        assert other.answer()
    assert call(runtime.url + "/v2/health/ready").status == 200


def test_the_end_waits_for_it(models, tmp_path):
    """So long as the end may take: by Triton's flag, as half a minute is little under TSan."""
    flags = ["--exit-timeout-secs=100", "--http-port=0", "--grpc-port=0", "--metrics-port=0", "--io-threads=1"]
    with Process(tmp_path, "serve", "--as", "tritonserver", f"--model-repository={models}", *flags) as runtime:
        with Asking(runtime, texts()) as asking:
            small_ones(runtime, asking)
            assert not asking.answered()
            runtime.process.send_signal(signal.SIGTERM)
            assert asking.answer()
        assert runtime.end() == 0
