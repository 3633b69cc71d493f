"""The same model asked through every door gives the same bits: one row, max_batch 1, so that nothing depends on who else asks."""

import json
import struct

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from tritonclient.grpc import service_pb2, service_pb2_grpc

from conftest import MODELS, ON_FREE_PORTS, Process, call
from grpc_backends import field
from test_paddle import message
from test_serve import EVALUATION

ROW = EVALUATION["pixels"][:1]
ROWS = ROW.tolist()  # a float32 as a float64 has all of its bits, and JSON prints them
DATA = ROW.tobytes()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    (folder / "digits/1").mkdir(parents=True)
    (folder / "digits/1/model.onnx").write_bytes((MODELS / "digits/3/model.onnx").read_bytes())
    (folder / "digits/serin.yaml").write_text("max_batch: 1\n")
    process = Process(tmp_path_factory.mktemp("logs"), "serve", "--models", folder, *ON_FREE_PORTS)
    yield process
    assert process.end() == 0


def bits(values):
    """Of floats as JSON has them, or of bytes."""
    return values if isinstance(values, bytes) else np.array(values, np.float64).astype(np.float32).tobytes()


def ask(server, path, body, headers=None):
    answer = call(server.url + path, body, headers)
    assert answer.status == 200, answer.body
    return answer


def rest_json(server):
    body = {"inputs": [{"name": "pixels", "datatype": "FP32", "shape": list(ROW.shape), "data": ROWS}]}
    return ask(server, "/v2/models/digits/infer", body).json["outputs"][0]["data"]


def rest_binary(server):
    tensor = triton_http.InferInput("pixels", list(ROW.shape), "FP32")
    tensor.set_data_from_numpy(ROW, binary_data=True)
    with triton_http.InferenceServerClient(server.url.removeprefix("http://")) as client:
        return client.infer("digits", [tensor], outputs=[triton_http.InferRequestedOutput("scores", binary_data=True)]).as_numpy("scores").tobytes()


def rest_raw(server):
    answer = ask(server, "/v2/models/digits/infer", DATA, {"Inference-Header-Content-Length": "0"})
    return answer.body[int(answer.headers["Inference-Header-Content-Length"]):]


def grpc_raw(server):
    tensor = triton_grpc.InferInput("pixels", list(ROW.shape), "FP32")
    tensor.set_data_from_numpy(ROW)
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{server.ports['grpc']}") as client:
        return client.infer("digits", [tensor]).as_numpy("scores").tobytes()


def grpc_typed(server):
    request = service_pb2.ModelInferRequest(model_name="digits")
    tensor = request.inputs.add(name="pixels", datatype="FP32", shape=ROW.shape)
    tensor.contents.fp32_contents.extend(ROWS[0])
    with grpc.insecure_channel(f"127.0.0.1:{server.ports['grpc']}") as channel:
        return service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request, timeout=30).raw_output_contents[0]


def tf_grpc(server, number):
    """PredictRequest by hand: the elements as field `number` of the TensorProto; the answer's float_val."""
    dims = b"".join(field(2, b"\x08" + bytes([size])) for size in ROW.shape)
    proto = b"\x08\x01" + field(2, dims) + field(number, DATA)
    request = field(1, field(1, "digits")) + field(2, field(1, "pixels") + field(2, proto))
    with grpc.insecure_channel(f"127.0.0.1:{server.ports['grpc']}") as channel:
        predict = channel.unary_unary("/tensorflow.serving.PredictionService/Predict", request_serializer=bytes, response_deserializer=bytes)
        output = message(message(predict(request, timeout=30))[1][0])
    return message(output[2][0])[5][0]


def tf_rest(server, body, key):
    return ask(server, "/v1/models/digits:predict", body).json[key]


def paddle_json(server):
    body = {"tensor": [{"name": "pixels", "elem_type": 1, "shape": list(ROW.shape), "float_data": ROWS[0]}]}
    return ask(server, "/GeneralModelService/inference", body).json["outputs"][0]["tensor"][0]["float_data"]


def paddle_proto(server):
    tensor = field(2, struct.pack("<64f", *ROWS[0])) + b"\x50\x01" + field(11, bytes(ROW.shape)) + field(13, "pixels")
    answer = ask(server, "/GeneralModelService/inference", field(1, tensor), {"Content-Type": "application/proto"})
    return message(message(message(answer.body)[1][0])[1][0])[2][0]


def paddle_pipeline(server):
    return json.loads(ask(server, "/digits/prediction", {"key": ["pixels"], "value": [str(ROWS)]}).json["value"][0])


DOORS = {
    "rest-binary": rest_binary,
    "rest-raw": rest_raw,
    "grpc-raw": grpc_raw,
    "grpc-typed": grpc_typed,
    "tensorflow-rows": lambda server: tf_rest(server, {"instances": ROWS}, "predictions"),
    "tensorflow-named-rows": lambda server: tf_rest(server, {"instances": [{"pixels": ROWS[0]}]}, "predictions"),
    "tensorflow-columns": lambda server: tf_rest(server, {"inputs": {"pixels": ROWS}}, "outputs"),
    "tensorflow-classify": lambda server: [score for _, score in ask(server, "/v1/models/digits:classify", {"examples": [{"pixels": ROWS[0]}]}).json["results"][0]],
    "tensorflow-grpc-content": lambda server: tf_grpc(server, 4),
    "tensorflow-grpc-typed": lambda server: tf_grpc(server, 5),
    "paddle-json": paddle_json,
    "paddle-proto": paddle_proto,
    "paddle-pipeline": paddle_pipeline,
}


@pytest.mark.parametrize("door", DOORS)
def test_the_same_bits_through(server, door):
    expected = bits(rest_json(server))
    assert len(expected) == 40 and bits(DOORS[door](server)) == expected


def test_the_same_bits_through_kserve(server, start, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model/model.onnx").write_bytes((MODELS / "digits/3/model.onnx").read_bytes())
    kserve = start("serve", "--as", "kserve", "--model_dir", tmp_path / "model", "--model_name", "digits", "--http_port", 0, "--grpc_port", 0, "--address", "127.0.0.1")
    expected = bits(rest_json(server))
    for body in ({"instances": ROWS}, {"inputs": ROWS}):
        assert bits(call(kserve.url + "/v1/models/digits:predict", body).json["predictions"]) == expected
