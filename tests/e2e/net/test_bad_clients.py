"""Clients that mean the runtime harm, over HTTP and over gRPC: its memory stays where it was, nothing they left behind is worked on, and the next one is
answered."""

import concurrent.futures
import contextlib
import gzip
import json
import re
import resource
import socket
import struct
import zlib

import numpy as np
import pytest
from h2_frames import CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PREFACE, RESET, SETTINGS, Peer, call_fields, field, frame
from onnx import TensorProto, helper
from test_bad_tensors import save
from tritonclient.grpc import service_pb2

from conftest import ON_FREE_PORTS, Process, call, resident_mb, wait_until

INFER, STREAM = "/inference.GRPCInferenceService/ModelInfer", "/inference.GRPCInferenceService/ModelStreamInfer"
SLACK_MB = 400  # of an allocator, and of a sanitizer, which gives memory back late; what is tried here would take gigabytes


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    """An identity, and a model whose answer is as large as the client asks for."""
    folder = tmp_path_factory.mktemp("models")
    save(folder, "same", [helper.make_node("Identity", ["x"], ["y"])], [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "m"])],
         [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "m"])])
    save(folder, "sized", [helper.make_node("ConstantOfShape", ["sizes"], ["y"])], [helper.make_tensor_value_info("sizes", TensorProto.INT64, [2])],
         [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b"])])
    process = Process(tmp_path_factory.mktemp("log"), "serve", "--models", folder, *ON_FREE_PORTS, "--control", "explicit", "--load", "*",
                      "--admin-on-data-port", "--log-level", "debug")
    yield process
    assert process.end() == 0


@pytest.fixture
def harmed(runtime):
    """The runtime; afterwards it is no larger, has nothing to do, and answers."""
    before = resident_mb(runtime.process)
    yield runtime
    wait_until(lambda: runtime.metric("nv_inference_pending_request_count") == 0, 20, "nobody waits any more")
    assert_well(runtime)
    wait_until(lambda: resident_mb(runtime.process) < before + SLACK_MB, 20, "what still ran has ended")


def assert_well(runtime):
    answer = call(f"{runtime.url}/v2/models/same/infer", {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]})
    assert answer.status == 200 and answer.json["outputs"][0]["data"] == [1, 2]


def request_for(model, name, datatype, array):
    request = service_pb2.ModelInferRequest(model_name=model, raw_input_contents=[array.tobytes()])
    request.inputs.add(name=name, datatype=datatype, shape=array.shape)
    return request.SerializeToString()


SMALL = request_for("same", "x", "FP32", np.ones((1, 2), np.float32))
LARGE = request_for("sized", "sizes", "INT64", np.array([512, 512], np.int64))  # a megabyte comes back


def ends(stream):
    """Of a frame: whether the server has ended that call with it."""
    return lambda each: each.stream == stream and (each.type == RESET or (each.type in (DATA, HEADERS) and bool(each.flags & END_STREAM)))


def await_end(peer, stream):
    assert ends(stream)(peer.read(ends(stream))[-1]), "the call was ended, and the connection not before"


def test_h11_what_is_announced_takes_no_room(harmed):
    with socket.create_connection(("127.0.0.1", harmed.ports["http"]), timeout=20) as client:
        client.sendall(b"POST /v2/models/same/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 413"
    with Peer(harmed.ports["grpc"]) as peer:
        peer.open(1, INFER)
        peer.send(frame(DATA, 0, 1, struct.pack(">BI", 0, 2**32 - 1) + b"x" * 100))
        await_end(peer, 1)
    with contextlib.ExitStack() as stack:  # 60 MB each, which may be: room is made for what came of it
        for _ in range(100):
            peer = stack.enter_context(Peer(harmed.ports["grpc"]))
            peer.open(1, INFER)
            peer.send(frame(DATA, 0, 1, struct.pack(">BI", 0, 60_000_000) + b"x" * 100))
        assert_well(harmed)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_h14_a_bomb_is_not_unpacked_beyond_the_limit(harmed, coding):
    spaces = b" " * (100 << 20)
    bomb = gzip.compress(spaces, 5) if coding == "gzip" else zlib.compress(spaces, 5)
    assert len(bomb) < 1 << 20
    for _ in range(2):
        assert call(f"{harmed.url}/v2/models/same/infer", bomb, {"Content-Encoding": coding}).status == 413
        with Peer(harmed.ports["grpc"]) as peer:
            peer.open(1, INFER, grpc_encoding=coding)
            peer.message(1, bomb, END_STREAM, compressed=True)
            await_end(peer, 1)


def test_h16_whoever_stops_halfway_keeps_nobody_waiting(harmed):
    opened = PREFACE + frame(SETTINGS, 0, 0)
    halves = [("http", b"POST /v2"), ("http", b"POST /v2/models/same/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{"),
              ("grpc", PREFACE[:10]), ("grpc", opened + frame(HEADERS, 0, 1, field(":method", "POST"))),
              ("grpc", opened + frame(HEADERS, END_HEADERS, 1, call_fields(INFER)) + frame(DATA, 0, 1, b"\0\0\0"))]  # fmt: skip
    with contextlib.ExitStack() as stack:
        for port, half in halves * 50:
            stack.enter_context(socket.create_connection(("127.0.0.1", harmed.ports[port]))).sendall(half)
        for _ in range(20):
            assert_well(harmed)


def test_h17_thousands_of_idle_connections_hold_nobody_up(harmed):
    count = 4000  # at each port
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * count + 500:
        pytest.skip(f"only {hard} descriptors here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.ExitStack() as stack:
        for port, begun in ("http", b"POST /v2"), ("grpc", PREFACE + frame(SETTINGS, 0, 0)):
            idle = [stack.enter_context(socket.create_connection(("127.0.0.1", harmed.ports[port]))) for _ in range(count)]
            for client in idle[::2]:
                client.sendall(begun)
        wait_until(lambda: harmed.metric("serin_http_connections", listener="grpc") >= count, 20, "all accepted")
        assert_well(harmed)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    wait_until(lambda: harmed.metric("serin_http_connections", listener="grpc") == 0, 20, "all gone")


def test_h18_a_reader_that_stops_is_not_read_from_either(harmed):
    """Answers of a megabyte each, asked for one behind the other, and none of them read."""
    body = json.dumps({"inputs": [{"name": "sizes", "shape": [2], "datatype": "INT64", "data": [512, 512]}],
                       "outputs": [{"name": "y", "parameters": {"binary_data": True}}]})  # fmt: skip
    request = f"POST /v2/models/sized/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    with socket.create_connection(("127.0.0.1", harmed.ports["http"]), timeout=2) as client, pytest.raises(TimeoutError):
        while True:
            client.sendall(request * 100)


def test_h24_calls_that_are_taken_back_at_once(harmed):
    with Peer(harmed.ports["grpc"]) as peer:
        with contextlib.suppress(ConnectionError):
            for stream in range(1, 40_000, 2):
                peer.call(stream, INFER, SMALL)
                peer.reset(stream)
        assert peer.read(lambda each: each.type == GOAWAY)[-1].type == GOAWAY


def test_h24_a_stream_of_requests_whose_answers_nobody_reads(harmed):
    """The server takes no more of them than it has answers waiting for, or ends the call."""
    message = frame(DATA, 0, 1, struct.pack(">BI", 0, len(LARGE)) + LARGE)
    before = harmed.metric("nv_inference_count", model="sized")
    with Peer(harmed.ports["grpc"], window=0, timeout=2) as peer:
        peer.open(1, STREAM)
        peer.send(message * (65_535 // (len(message) - 9)))  # as many as the first window takes
        with contextlib.suppress(TimeoutError):
            assert peer.read(ends(1))
        assert_well(harmed)
    assert harmed.metric("nv_inference_count", model="sized") - before < 1000


def test_h24_a_head_without_an_end(harmed):
    with Peer(harmed.ports["grpc"]) as peer:
        peer.send(frame(HEADERS, 0, 1, field(":method", "POST")))
        with contextlib.suppress(ConnectionError):
            for i in range(20_000):
                peer.send(frame(CONTINUATION, 0, 1, field(f"x-{i}", "y" * 1000)))
        assert peer.read(lambda each: each.type == GOAWAY)[-1].type == GOAWAY


FORGED = ["a\n2026-01-01T00:00:00.000+00:00 info forged", "\x1b[2J\x1b[31mred", "a\r\nb", "\u009b31m", "x" * (1 << 20)]


@pytest.mark.parametrize("name", FORGED, ids=["line", "terminal", "carriage-return", "c1", "a-megabyte"])
def test_h28_what_clients_write_forges_no_line_of_the_log(harmed, name):
    """Names of models and of fields reach log lines in whole or in part: of an order that failed, and with all levels on."""
    begun = len(harmed.log)
    with Peer(harmed.ports["grpc"]) as peer:
        order = service_pb2.RepositoryModelLoadRequest(model_name=name)
        order.parameters[f"file:{name}"].string_param = "eA=="
        order.parameters["config"].string_param = json.dumps({"name": name, "backend": name, "nonsense": name})
        for stream, path, message in (
            (1, "/inference.GRPCInferenceService/RepositoryModelLoad", order.SerializeToString()),
            (3, "/inference.GRPCInferenceService/RepositoryModelUnload", service_pb2.RepositoryModelUnloadRequest(model_name=name).SerializeToString()),
            (5, INFER, service_pb2.ModelInferRequest(model_name=name, id=name).SerializeToString()),
            (7, "/inference.GRPCInferenceService/ModelConfig", b"\x0a\x03\xff\x1b["),  # not UTF-8: the library that reads it complains
        ):
            peer.call(stream, path, message)
            await_end(peer, stream)
    config = json.dumps({"name": "same", "backend": name, name[:100_000]: name, "parameters": {name[:1000]: {"string_value": name}}})
    call(f"{harmed.url}/v2/repository/models/same/load", {"parameters": {"config": config}})
    assert call(f"{harmed.url}/v2/repository/models/same/load", {}).status == 200  # as it was
    written = harmed.log[begun:]
    assert written
    assert "\x1b" not in written and "\u009b" not in written and "\r" not in written
    for line in written.splitlines():
        assert re.match(r"\d{4}-\d\d-\d\dT[\d:.+-]+ (debug|info|warning|error) ", line) and not line.startswith("2026-01-01"), line[:200]
        assert len(line) < 10_000


def test_a_burst_of_large_requests_leaves_no_memory_behind(runtime):
    array = np.ones((1, 4_000_000), np.float32)
    head = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": array.shape, "parameters": {"binary_data_size": array.nbytes}}],
                       "parameters": {"binary_data_output": True}}).encode()
    before = resident_mb(runtime.process)

    def ask(_):
        answer = call(f"{runtime.url}/v2/models/same/infer", head + array.tobytes(), {"Inference-Header-Content-Length": str(len(head))})
        return answer.status, len(answer.body) > array.nbytes

    with concurrent.futures.ThreadPoolExecutor(24) as clients:
        assert set(clients.map(ask, range(72))) == {(200, True)}
    wait_until(lambda: resident_mb(runtime.process) < before + SLACK_MB, 60, "memory given back")
