"""TensorFlow Serving's two services over gRPC, as its own client meets them (tfserving_client.py), and whoever sends broken messages."""

import grpc
import numpy as np
import pytest
from onnx import TensorProto, helper

from conftest import ON_FREE_PORTS, Process, run_client
from grpc_backends import field
from test_serve_grpc import ask, refused
from test_tfserving import save, save_half_plus_two, save_two

TYPES = {"FLOAT": TensorProto.FLOAT, "DOUBLE": TensorProto.DOUBLE, "INT32": TensorProto.INT32, "INT16": TensorProto.INT16, "INT8": TensorProto.INT8,
         "UINT8": TensorProto.UINT8, "UINT16": TensorProto.UINT16, "INT64": TensorProto.INT64, "UINT32": TensorProto.UINT32, "UINT64": TensorProto.UINT64,
         "BOOL": TensorProto.BOOL, "STRING": TensorProto.STRING, "HALF": TensorProto.FLOAT16, "BFLOAT16": TensorProto.BFLOAT16}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    save_half_plus_two(folder / "half_plus_two/123/model.onnx")
    save_two(folder / "two/1/model.onnx")
    (folder / "two/serin.yaml").write_text("labels: {stable: 1}\n")
    for name, kind in TYPES.items():
        save(folder / f"same_{name.lower()}/1/model.onnx", [helper.make_node("Identity", ["x"], ["y"])], [("x", kind, ["n"])], [("y", kind, ["n"])])
    process = Process(tmp_path_factory.mktemp("logs"), "serve", "--models", folder, *ON_FREE_PORTS)
    yield process
    assert process.end() == 0


@pytest.fixture(scope="module")
def results(server):
    """Of every call of tfserving_client.py."""
    return run_client("tfserving_client.py", f"127.0.0.1:{server.ports['grpc']}")


SPEC = {"name": "two", "version": "1", "signatureName": "serving_default"}
BOTH = {"sum": [[11, 12], [23, 24]], "twice": [[20], [40]]}


def test_predict(results):
    assert results["content"] == results["label"] == {"spec": SPEC, "outputs": BOTH}
    assert results["filtered"] == {"spec": SPEC, "outputs": {"twice": BOTH["twice"]}}
    assert results["filled"]["outputs"] == {"sum": [[7, 7], [7, 7]], "twice": [[0], [0]]}


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_comes_back(results, dtype):
    assert results[f"same_{dtype}"]["dtype"] == f"DT_{dtype}" and results[f"same_{dtype}"]["same"], results[f"same_{dtype}"]


def test_classify_regress_and_both(results):
    spec = {"name": "half_plus_two", "version": "123", "signatureName": "serving_default"}
    assert results["regress"] == {"modelSpec": spec, "result": {"regressions": [{"value": value} for value in (2.5, 3.0, 4.5)]}}
    assert results["context"]["result"] == {"regressions": [{"value": 2.5}, {"value": 2.5}]}
    assert results["classify"] == {"modelSpec": spec, "result": {"classifications": [{"classes": [{"score": 2.5}]}]}}
    assert results["several"] == {"results": [{"modelSpec": spec, "regressionResult": {"regressions": [{"value": 3.0}]}},
                                              {"modelSpec": spec, "classificationResult": {"classifications": [{"classes": [{"score": 3.0}]}]}}]}


def test_metadata_and_status(results):
    about = results["metadata"]
    signature = about["signatures"]["signatureDef"]["serving_default"]
    assert about["spec"] == {"name": "two", "version": "1"} and signature["methodName"] == "tensorflow/serving/predict"
    assert signature["inputs"]["b"] == {"name": "b:0", "dtype": "DT_FLOAT", "tensorShape": {"dim": [{"size": "-1"}, {"size": "1"}]}}
    assert results["status"] == results["status_version"] == {"model_version_status": [{"version": "1", "state": "AVAILABLE", "status": {}}]}


@pytest.mark.parametrize("what, code, words", [
    ("no_model", "NOT_FOUND", "Servable not found for request: Latest(half)"),
    ("no_version", "NOT_FOUND", "Servable not found for request: Specific(two, 9)"),
    ("no_label", "INVALID_ARGUMENT", "Unrecognized servable version label: nope"),
    ("no_signature", "INVALID_ARGUMENT", '"nope" not found'),
    ("no_input", "INVALID_ARGUMENT", "input 'b' is missing"),
    ("other_input", "INVALID_ARGUMENT", "unexpected inference input 'c'"),
    ("no_output", "INVALID_ARGUMENT", "unexpected inference output 'nope'"),
    ("output_twice", "INVALID_ARGUMENT", "asked for twice"),
    ("dtype", "INVALID_ARGUMENT", "data-type is 'INT32'"),
    ("complex", "INVALID_ARGUMENT", "unknown datatype 'DataType 8'"),
    ("shape", "INVALID_ARGUMENT", "expects [-1,2] FP32, the request has [2,3]"),
    ("negative", "INVALID_ARGUMENT", "a dimension is negative"),
    ("overflow", "RESOURCE_EXHAUSTED", "over the limit"),
    ("huge", "RESOURCE_EXHAUSTED", "too large to be filled with fewer values"),
    ("short", "INVALID_ARGUMENT", "takes 16 bytes, the request has 7"),
    ("long", "INVALID_ARGUMENT", "takes 2 elements, float_val has 3"),
    ("other_list", "INVALID_ARGUMENT", "FP32 comes as 'float_val'"),
    ("rows_disagree", "INVALID_ARGUMENT", "disagree on the batch"),
    ("range", "INVALID_ARGUMENT", "element 1 is 128, which is not an INT8"),
    ("no_examples", "INVALID_ARGUMENT", "Input is empty"),
    ("no_feature", "INVALID_ARGUMENT", "input 'x' is missing"),
    ("other_feature", "INVALID_ARGUMENT", "has no input for; it has 'x'"),
    ("feature_type", "INVALID_ARGUMENT", "element 0 of feature 'x' is not an FP32"),
    ("feature_size", "INVALID_ARGUMENT", "has 2 elements"),
    ("task", "INVALID_ARGUMENT", "Unsupported signature method_name"),
    ("no_task", "INVALID_ARGUMENT", "at least one task"),
    ("metadata_field", "INVALID_ARGUMENT", "Metadata field other is not supported"),
    ("status_none", "NOT_FOUND", "Could not find any versions of model half"),
    ("status_no_version", "NOT_FOUND", "Could not find version 9 of model two"),
    ("no_spec", "INVALID_ARGUMENT", "Missing ModelSpec"),
])
def test_errors_say_what_is_wrong(results, what, code, words):
    assert results[what][0] == code and words in results[what][1], results[what]


def test_orders_are_not_for_clients(results):
    assert results["reload"][0] == "PERMISSION_DENIED"


PREDICT = "/tensorflow.serving.PredictionService/"


@pytest.mark.parametrize("method", ["Predict", "Classify", "Regress", "MultiInference", "GetModelMetadata"])
@pytest.mark.parametrize("message", [b"\xff", b"\x0a\x05ab", b"\x12\xff\xff\xff\xff\x0f", b"\x0a\x02\x0b\x0c", b"\x12\x04\x12\x02\x12\x00"], ids=repr)
def test_messages_that_are_none(server, method, message):
    with grpc.insecure_channel(f"127.0.0.1:{server.ports['grpc']}") as channel:
        code, _ = refused(channel, message, PREDICT + method)
        assert code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)
        pair = lambda name, rows, data: field(2, field(1, name) + field(2, b"\x08\x01" + field(2, b"".join(field(2, b"\x08" + bytes([size])) for size in rows)) + data))
        good = field(1, field(1, "two")) + pair("a", (1, 2), field(5, np.ones(2, np.float32).tobytes())) + pair("b", (1, 1), field(4, b"\0\0\0\0"))
        assert ask(channel, PREDICT + "Predict", good)  # the server is well
