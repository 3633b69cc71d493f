"""Requests that wait: how many the gauge of Triton's name says there are, and what is left of those that nobody waits for any more."""

import contextlib
import json
import socket

import numpy as np
import onnx
import pytest
import tritonclient.grpc
from conftest import ON_FREE_PORTS, Process, call, resident_mb, wait_until
from onnx import TensorProto, helper
from test_serve import endless_loop

NUMBERS, COUNT = 15_000_000, 12  # 60 MB each
SLACK_MB = 400  # of an allocator, and of a sanitizer, which gives memory back late; COUNT requests take 720
PIPE = "ensemble: {steps: [{model: held, inputs: {trips: trips, x: x}, outputs: {counted: counted}}]}\n"


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    """held: counts for as long as a request asks, one request after the other, and takes along an x that it hardly looks at; kept: keeps its answers; pipe: an
    ensemble of the first."""
    folder = tmp_path_factory.mktemp("models")
    for name, settings in ("held", "instances: 1\n"), ("kept", "instances: 1\nresponse_cache: true\n"):
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "serin.yaml").write_text(settings)
        file = folder / name / "1/model.onnx"
        endless_loop(file)
        model = onnx.load(file)
        model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"]))
        model.graph.node.append(helper.make_node("Shape", ["x"], ["size"]))
        model.graph.output.append(helper.make_tensor_value_info("size", TensorProto.INT64, [1]))
        onnx.save(model, file)
    (folder / "pipe").mkdir()
    (folder / "pipe/serin.yaml").write_text(PIPE)
    process = Process(tmp_path_factory.mktemp("log"), "serve", "--models", folder, *ON_FREE_PORTS)
    yield process
    assert process.end() == 0


def pending(runtime, model="held"):
    return runtime.metric("nv_inference_pending_request_count", model=model)


def failed(runtime):
    return runtime.metric("nv_inference_request_failure", model="held")


def post(model, trips, numbers=1, headers=""):
    """A request as it goes over HTTP/1.1; x is bytes behind the JSON."""
    inputs = [{"name": "trips", "datatype": "INT64", "shape": [], "data": [trips]},
              {"name": "x", "datatype": "FP32", "shape": [numbers], "parameters": {"binary_data_size": 4 * numbers}}]  # fmt: skip
    text = json.dumps({"inputs": inputs}).encode()
    return (f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: {len(text)}\r\n{headers}"
            f"Content-Length: {len(text) + 4 * numbers}\r\n\r\n").encode() + text + bytes(4 * numbers)  # fmt: skip


@contextlib.contextmanager
def asked(runtime, *requests):
    """Clients that wait for their answers until they hang up."""
    with contextlib.ExitStack() as stack:
        for request in requests:
            stack.enter_context(socket.create_connection(("127.0.0.1", runtime.ports["http"]), timeout=60)).sendall(request)
        yield


@contextlib.contextmanager
def busy(runtime, model="held"):
    """The only instance runs one request for as long as this lasts, and none waits."""
    with asked(runtime, post(model, 900_000_000)):
        with asked(runtime, post(model, 900_000_001)):
            wait_until(lambda: pending(runtime, model) == 1, 20, "one runs and one waits")
        wait_until(lambda: pending(runtime, model) == 0, 20, "one runs")
        yield


def hang_up(runtime):
    for _ in range(COUNT):
        with asked(runtime, post("held", 1, NUMBERS)):
            wait_until(lambda: pending(runtime) == 1, 20, "it waits")


def let_time_pass(runtime):
    for _ in range(COUNT):
        with socket.create_connection(("127.0.0.1", runtime.ports["http"]), timeout=60) as client:
            client.sendall(post("held", 1, NUMBERS, "x-serin-timeout-ms: 100\r\n"))
            assert client.recv(12) == b"HTTP/1.1 504"


def grpc_inputs():
    trips, x = tritonclient.grpc.InferInput("trips", [], "INT64"), tritonclient.grpc.InferInput("x", [NUMBERS], "FP32")
    trips.set_data_from_numpy(np.array(1, np.int64))
    x.set_data_from_numpy(np.zeros(NUMBERS, np.float32))
    return [trips, x]


def cancel(runtime):
    inputs = grpc_inputs()
    with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{runtime.ports['grpc']}") as client:
        for _ in range(COUNT):
            under_way = client.async_infer("held", inputs, lambda result, error: None)
            wait_until(lambda: pending(runtime) == 1, 20, "it waits")
            under_way.cancel()
            wait_until(lambda: pending(runtime) == 0, 20, "it does not wait")


def cancel_stream(runtime):
    inputs = grpc_inputs()
    with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{runtime.ports['grpc']}") as client:
        client.start_stream(lambda result, error: None)
        for _ in range(COUNT):
            client.async_stream_infer("held", inputs)
        wait_until(lambda: pending(runtime) == COUNT, 60, "all of them wait")
        client.stop_stream(cancel_requests=True)


@pytest.mark.parametrize("give_up", [hang_up, let_time_pass, cancel, cancel_stream])
def test_what_is_given_up_while_it_waits_leaves_nothing_behind(runtime, give_up):
    before = resident_mb(runtime.process)
    with busy(runtime):
        failures = failed(runtime)
        give_up(runtime)
        wait_until(lambda: failed(runtime) == failures + COUNT, 20, "all were given up")
        wait_until(lambda: pending(runtime) == 0, 20, "none waits")
        wait_until(lambda: resident_mb(runtime.process) < before + SLACK_MB, 20, "memory given back though the model is busy")


def test_pending_are_those_that_await_execution(runtime):
    with busy(runtime):
        with asked(runtime, *[post("held", i) for i in range(5)], post("held", 1, headers="x-serin-shadow: 1\r\n")):
            wait_until(lambda: pending(runtime) == 5, 20, "five wait; of what is nobody's request none is counted")
        wait_until(lambda: pending(runtime) == 0, 20, "none waits")
        with asked(runtime, post("pipe", 1)):
            wait_until(lambda: pending(runtime) == 1, 20, "a step waits for its model")
            assert pending(runtime, "pipe") == 0, "the ensemble waits for nothing of its own"
        wait_until(lambda: pending(runtime) == 0, 20, "the step is gone with its request")
    with busy(runtime, "kept"):
        with asked(runtime, *[post("kept", 900_000_000)] * 3, post("kept", 5)):
            wait_until(lambda: pending(runtime, "kept") == 4, 20, "three wait for the answer that is computed, one for its turn")
        wait_until(lambda: pending(runtime, "kept") == 0, 20, "none waits")
    infer = f"{runtime.url}/v2/models/kept/infer"
    small = {"inputs": [{"name": "trips", "datatype": "INT64", "shape": [], "data": [3]}, {"name": "x", "datatype": "FP32", "shape": [1], "data": [0]}]}
    assert [call(infer, small).json["outputs"][0]["data"] for _ in range(2)] == [[3], [3]]
    assert call(f"{runtime.url}/v2/models/pipe/infer", small).json["outputs"][0]["data"] == [3]
    assert [pending(runtime, model) for model in ("held", "kept", "pipe")] == [0, 0, 0]
