"""Tensors without elements, which models of detections and of texts meet, and numbers that JSON has no word for, through every door."""

import json
import math
import queue

import grpc
import numpy as np
import onnxruntime
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from conftest import ON_FREE_PORTS, Process, call
from onnx import TensorProto, helper, numpy_helper
from test_tfserving import save
from tritonclient.grpc import service_pb2, service_pb2_grpc

AXIS = numpy_helper.from_array(np.array([1]), "axis")
FLOAT, TEXT = TensorProto.FLOAT, TensorProto.STRING
MODELS = {  # nodes, shape and type of x, those of y, constants
    "same": ([("Identity", ["x"])], ["n", "m"], FLOAT, []),
    "texts": ([("Identity", ["x"])], ["n", "m"], TEXT, []),
    "sum": ([("ReduceSum", ["x", "axis"])], ["n", "m"], FLOAT, [AXIS]),
    "image": ([("Relu", ["x"])], ["n", 4, "h", "w"], FLOAT, []),
}  # fmt: skip
EMPTY = np.zeros((2, 0), np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, (nodes, shape, kind, constants) in MODELS.items():
        made = [helper.make_node(kind_of_node, inputs, ["y"]) for kind_of_node, inputs in nodes]
        save(folder / f"{name}/1/model.onnx", made, [("x", kind, shape)], [("y", kind, None)], constants)
    pairs = [helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), helper.make_node("MatMul", ["x", "t"], ["y"])]
    save(folder / "pairs/1/model.onnx", pairs, [("x", FLOAT, ["n", "m", "k"])], [("y", FLOAT, ["n", "m", "m"])], [])
    last = [numpy_helper.from_array(np.array([2]), "axis")]
    tall = [helper.make_node("ReduceSum", ["x", "axis"], ["y"], keepdims=0)]
    save(folder / "tall/1/model.onnx", tall, [("x", FLOAT, ["n", "m", "k"])], [("y", FLOAT, ["n", "m"])], last)
    (folder / "chain/1").mkdir(parents=True)
    (folder / "chain/serin.yaml").write_text("ensemble: {steps: [{model: same, inputs: {x: x}, outputs: {y: y}}]}")
    return folder


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    process = Process(tmp_path_factory.mktemp("logs"), "serve", "--models", folder, *ON_FREE_PORTS)
    yield process
    assert process.end() == 0


def through(server, module, model, array, binary):
    given = module.InferInput("x", list(array.shape), "BYTES" if array.dtype == object else "FP32")
    wanted = [module.InferRequestedOutput("y", **({"binary_data": binary} if module is triton_http else {}))]
    given.set_data_from_numpy(array, **({"binary_data": binary} if module is triton_http else {}))
    with module.InferenceServerClient(f"127.0.0.1:{server.ports['http' if module is triton_http else 'grpc']}") as client:
        answer = client.infer(model, [given], outputs=wanted)
        return answer.get_output("y"), answer.as_numpy("y")


@pytest.mark.parametrize("module, binary", [(triton_http, True), (triton_http, False), (triton_grpc, True)])
@pytest.mark.parametrize("model, array", [("same", EMPTY), ("texts", np.zeros((1, 0), object)), ("sum", EMPTY),
                                          ("image", np.zeros((1, 4, 0, 3), np.float32))], ids=list(MODELS))  # fmt: skip
def test_tritons_client_sends_and_reads_them(server, folder, module, binary, model, array):
    head, result = through(server, module, model, array, binary)
    session = onnxruntime.InferenceSession(folder / f"{model}/1/model.onnx", providers=["CPUExecutionProvider"])
    expected = session.run(["y"], {"x": array})[0]
    shape = head["shape"] if module is triton_http else head.shape
    assert list(shape) == list(expected.shape) and result.tolist() == expected.tolist()


def test_other_protocols_have_them_too(server):
    assert call(f"{server.url}/v1/models/same:predict", {"instances": [[], []]}).json == {"predictions": [[], []]}
    assert call(f"{server.url}/v1/models/sum:predict", {"inputs": [[], []]}).json == {"outputs": [[0.0], [0.0]]}
    tensor = {"name": "x", "elem_type": 1, "shape": [2, 0], "float_data": []}
    pipeline = call(f"{server.url}/same/prediction", {"key": ["x"], "value": ["[[], []]"]}).json
    assert pipeline["err_no"] == 0 and json.loads(pipeline["value"][0]) == [[], []]
    raw = call(f"{server.url}/v2/models/same/infer", b"", {"Inference-Header-Content-Length": "0"})
    assert raw.json["outputs"][0]["shape"] == [1, 0]
    assert "there are 7" in call(f"{server.url}/GeneralModelService/inference", {"tensor": [tensor]}).error


@pytest.mark.parametrize("model", ["same", "chain"])
@pytest.mark.parametrize("contents", [None, service_pb2.InferTensorContents()], ids=["absent", "empty"])
def test_grpc_needs_no_contents_for_them(server, model, contents):
    request = service_pb2.ModelInferRequest(model_name=model)
    request.inputs.add(name="x", datatype="FP32", shape=[1, 0], contents=contents)
    with grpc.insecure_channel(f"127.0.0.1:{server.ports['grpc']}") as channel:
        ask = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer
        answer = ask(request)
        assert list(answer.outputs[0].shape) == [1, 0] and answer.raw_output_contents == [b""]
        request.inputs[0].shape[:] = [0, 64]
        with pytest.raises(grpc.RpcError, match="a batch of 0 rows"):
            ask(request)


def test_a_result_that_no_machine_holds_is_refused(server):
    """However small the request is that asks for it."""
    body = {"inputs": [{"name": "x", "shape": [1, 100_000, 0], "datatype": "FP32", "data": []}]}
    answer = call(f"{server.url}/v2/models/pairs/infer", body)
    assert answer.status == 413 and "the results would take 40000000000 bytes" in answer.error


def test_a_stream_of_large_answers_is_as_fast_as_its_client(server):
    """Small messages that ask for 32 MB each: none is taken while their answers wait, and none is lost."""
    given = triton_grpc.InferInput("x", [1, 8_000_000, 0], "FP32")
    given.set_data_from_numpy(np.zeros((1, 8_000_000, 0), np.float32))
    answers = queue.Queue()
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{server.ports['grpc']}") as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        for _ in range(5):
            client.async_stream_infer("tall", [given])
        for _ in range(5):
            result, error = answers.get(timeout=60)
            assert error is None and result.as_numpy("y").shape == (1, 8_000_000)
        client.stop_stream()


@pytest.mark.parametrize("path, body", [
    ("/v2/models/same/infer", {"inputs": [{"name": "x", "shape": [0, 2], "datatype": "FP32", "data": []}]}),
    ("/v1/models/same:predict", {"instances": []}), ("/v1/models/same:predict", {"inputs": []}), ("/same/prediction", {"key": ["x"], "value": ["[]"]}),
])  # fmt: skip
def test_a_batch_has_a_row(server, path, body):
    assert call(server.url + path, body).status == 400


@pytest.mark.parametrize("extra", ["", '"id":NaN,', '"parameters":{"sequence_id":NaN},'])
def test_words_for_numbers_are_read_as_elements_and_nowhere_else(server, extra):
    body = '{%s"inputs":[{"name":"x","shape":[1,4],"datatype":"FP32","data":[NaN, Infinity ,-Infinity,1]}]}' % extra
    answer = call(f"{server.url}/v2/models/same/infer", body)
    if extra:
        assert answer.status == 400 and ", before 'NaN" in answer.error
    else:
        values = answer.json["outputs"][0]["data"]
        assert math.isnan(values[0]) and values[1:] == [math.inf, -math.inf, 1]


def test_tritons_client_sends_such_numbers_as_json(server):
    array = np.array([[np.nan, np.inf, -np.inf, 0.5]] * 2, np.float32)
    assert np.array_equal(through(server, triton_http, "same", array, False)[1], array, equal_nan=True)
    many = np.full((1, 5000), np.nan, np.float32)  # long lists are read by other code
    assert np.isnan(through(server, triton_http, "same", many, False)[1]).all()
