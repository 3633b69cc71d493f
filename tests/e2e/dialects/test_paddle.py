"""Paddle Serving over HTTP, as its clients and those who send nonsense meet it: JSON, protobuf and the pipeline's form."""

import base64
import json
import struct

import numpy as np
import pytest
from onnx import TensorProto, helper

from conftest import MODELS, ON_FREE_PORTS, Process, call
from grpc_backends import field
from test_serve import EVALUATION, expected_scores
from test_tfserving import save

PIXELS = EVALUATION["pixels"][:2]
ROW = [0.0] * 64
FAILED = -5100
ELEM_TYPES = {"FP32": 1, "INT64": 0, "INT32": 2, "FP64": 3, "INT16": 4, "FP16": 5, "UINT8": 7, "INT8": 8, "BOOL": 9, "BYTES": 20}


def message(content):
    """{number: values} of a message of protobuf: numbers and texts."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = content[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value

    while at < len(content):
        tag, value = varint(), varint()
        if tag & 7 == 2:
            at, value = at + value, content[at : at + value]
        found.setdefault(tag >> 3, []).append(value)
    return found


def one_model(tmp_path_factory, make, *arguments):
    folder = tmp_path_factory.mktemp("models")
    make(folder)
    return Process(tmp_path_factory.mktemp("logs"), "serve", "--models", folder, *ON_FREE_PORTS, *arguments)


def digits(folder):
    (folder / "digits/1").mkdir(parents=True)
    (folder / "digits/1/model.onnx").write_bytes((MODELS / "digits/1/model.onnx").read_bytes())


def types(folder):
    """Every input comes back under the name that ends in _out."""
    kinds = {"i64": TensorProto.INT64, "i32": TensorProto.INT32, "f64": TensorProto.DOUBLE, "i16": TensorProto.INT16, "f16": TensorProto.FLOAT16,
             "u8": TensorProto.UINT8, "i8": TensorProto.INT8, "flag": TensorProto.BOOL, "text": TensorProto.STRING}  # fmt: skip
    save(folder / "types/1/model.onnx", [helper.make_node("Identity", [name], [name + "_out"]) for name in kinds],
         [(name, kind, ["n"]) for name, kind in kinds.items()], [(name + "_out", kind, ["n"]) for name, kind in kinds.items()])  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    process = one_model(tmp_path_factory, digits)
    yield process
    assert process.end() == 0


@pytest.fixture
def ask(server):
    """An answer to a body, the server being well before and after."""
    yield lambda body, path="/GeneralModelService/inference", **options: call(server.url + path, body, method="POST", **options)
    assert call(server.url + "/GeneralModelService/inference", request_for([ROW])).status == 200


def request_for(rows, **changes):
    tensor = {"float_data": [value for row in rows for value in row], "elem_type": 1, "name": "pixels", "alias_name": "pixels", "shape": [len(rows), 64]}
    tensor.update(changes.pop("tensor", {}))
    return {"tensor": [{key: value for key, value in tensor.items() if value is not None}], "fetch_var_names": ["scores"], "log_id": 7, **changes}


def proto_request(rows, name="pixels", elem_type=b"\x01", shape=None):
    data = struct.pack(f"<{len(rows) * 64}f", *(value for row in rows for value in row))
    tensor = field(2, data) + b"\x50" + elem_type + field(11, bytes(shape or [len(rows), 64])) + field(13, name) + field(14, name)
    return field(1, tensor) + field(2, "scores") + b"\x20\x07"


def as_proto(ask, body):
    return ask(body, headers={"Content-Type": "application/proto"})


def assert_refused(answer, *words, status=400):
    assert answer.status == status, answer.body
    document = answer.json
    assert document["err_no"] == FAILED and all(word in document["err_msg"] for word in words), document
    assert answer.headers["x-serin-code"] and "x-serin-batch" in answer.headers


# --- what its clients see ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/GeneralModelService/inference", "/GeneralModelService/debug"])
def test_json(ask, path):
    answer = ask(request_for(PIXELS.tolist()), path)
    assert answer.status == 200 and answer.headers["x-serin-version"] == "1" and "x-serin-batch" in answer.headers
    document = answer.json
    (output,) = document["outputs"]
    (tensor,) = output["tensor"]
    assert (document["err_no"], document["err_msg"], document["log_id"], output["engine_name"]) == (0, "", 7, "digits")
    assert (tensor["elem_type"], tensor["shape"], tensor["name"], tensor["alias_name"], tensor["lod"]) == (1, [2, 10], "scores", "scores", [])
    np.testing.assert_allclose(np.array(tensor["float_data"]).reshape(2, 10), expected_scores(1, PIXELS), rtol=1e-4, atol=1e-5)


def test_names_may_be_left_out(ask):
    for changes in ({"name": None, "alias_name": None}, {"alias_name": None}, {"name": "x0"}, {"name": None, "elem_type": None}):
        assert ask(request_for([ROW], tensor=changes, fetch_var_names=[])).json["outputs"][0]["tensor"][0]["name"] == "scores"


def test_protobuf(ask):
    answer = as_proto(ask, proto_request(PIXELS.tolist()))
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/proto", answer.body
    response = message(answer.body)
    assert response[4] == [7] and 5 not in response
    output = message(response[1][0])
    tensor = message(output[1][0])
    assert output[2] == [b"digits"] and tensor[10] == [1] and tensor[11] == [bytes([2, 10])] and tensor[13] == tensor[14] == [b"scores"]
    np.testing.assert_allclose(np.frombuffer(tensor[2][0], np.float32).reshape(2, 10), expected_scores(1, PIXELS), rtol=1e-4, atol=1e-5)


def test_the_pipelines_form(ask):
    answer = ask({"key": ["pixels"], "value": [str(PIXELS.tolist())], "logid": 5}, "/digits/prediction")
    document = answer.json
    assert (document["err_no"], document["key"], document["logid"]) == (0, ["scores"], 5)
    np.testing.assert_allclose(np.array(json.loads(document["value"][0])), expected_scores(1, PIXELS), rtol=1e-4, atol=1e-5)
    assert_refused(ask({"key": ["x"], "value": ["[[1]]"]}, "/nope/prediction"), "unknown model: 'nope'", status=404)


def test_every_type_comes_back(tmp_path_factory):
    process = one_model(tmp_path_factory, types)
    packed = lambda kind, *values: base64.b64encode(np.array(values, kind).tobytes()).decode()
    sent = {"i64": (0, "int64_data", [-(2**63), 2**63 - 1]), "i32": (2, "int_data", [-1, 2**31 - 1]), "f64": (3, "float64_data", [0.1, -1e300]),
            "i16": (4, "tensor_content", packed(np.int16, -32768, 7)), "f16": (5, "tensor_content", packed(np.float16, 1.5, -2)),
            "u8": (7, "tensor_content", packed(np.uint8, 0, 255)), "i8": (8, "tensor_content", packed(np.int8, -128, 127)),
            "flag": (9, "bool_data", [True, False]), "text": (20, "data", ["a", "ü"])}  # fmt: skip
    body = {"tensor": [{"name": name, "elem_type": kind, "shape": [2], data: values} for name, (kind, data, values) in sent.items()]}
    answer = call(process.url + "/GeneralModelService/inference", body)
    assert answer.status == 200, answer.body
    for tensor in answer.json["outputs"][0]["tensor"]:
        kind, data, values = sent[tensor["name"].removesuffix("_out")]
        assert (tensor["elem_type"], tensor[data]) == (kind, values)
    pairs = {name: str(values) for name, (_, data, values) in sent.items() if data not in ("tensor_content", "bool_data", "data")}
    pairs.update(i16="[1,2]", f16="[1.5,2]", u8="[1,2]", i8="[1,2]", flag="[true,false]", text='["a","b"]')
    pipeline = call(process.url + "/types/prediction", {"key": list(pairs), "value": list(pairs.values())})
    assert pipeline.status == 200 and '["a","b"]' in pipeline.json["value"], pipeline.body
    assert process.end() == 0


def test_a_server_of_several_models_asks_which(shared_runtime, tmp_path_factory):
    def two(folder):
        digits(folder)
        (folder / "other/1").mkdir(parents=True)
        (folder / "other/1/model.onnx").write_bytes((MODELS / "digits/1/model.onnx").read_bytes())

    process = one_model(tmp_path_factory, two)
    assert_refused(call(process.url + "/GeneralModelService/inference", request_for([ROW])), "there are 2: POST /<model>/prediction")
    assert call(process.url + "/other/prediction", {"key": ["pixels"], "value": [str([ROW])]}).status == 200
    assert process.end() == 0


def test_as_paddle_errors_have_status_200(tmp_path_factory, start):
    folder = tmp_path_factory.mktemp("model")
    (folder / "model.onnx").write_bytes((MODELS / "digits/1/model.onnx").read_bytes())
    process = start("serve", "--as", "paddle", "--model_dir", folder, "--model_name", "digits", "--port", 0, "--address", "127.0.0.1")
    assert call(process.url + "/GeneralModelService/inference", request_for([ROW])).json["err_no"] == 0
    assert_refused(call(process.url + "/GeneralModelService/inference", {}, method="POST"), "'tensor'", status=200)


# --- bad input -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b" ", b"nonsense", b"[]", b"1", b"null", b'"x"', b"{} {}", b'{"tensor":[]}x', b'{"tensor":{}}', b'{"tensor":[1]}'], ids=repr)
def test_p1_bodies_that_are_no_request(ask, body):
    assert_refused(ask(body))
    assert_refused(ask(body, "/digits/prediction"))


CONF = """feed_var { name: "x:0" alias_name: "image" is_lod_tensor: false feed_type: 1 shape: 2 }
fetch_var { name: "scale_0.tmp_0" alias_name: "prediction" fetch_type: 1 shape: 2 }
fetch_var { name: "gone" alias_name: "gone" }"""


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """A model as Paddle's converter leaves it, beside the names that its clients know."""
    folder = tmp_path_factory.mktemp("named") / "m/1"
    save(folder / "model.onnx", [helper.make_node("Identity", ["x:0"], ["scale_0.tmp_0"])],
         [("x:0", TensorProto.FLOAT, ["n", 2])], [("scale_0.tmp_0", TensorProto.FLOAT, ["n", 2])])  # fmt: skip
    (folder / "serving_server_conf.prototxt").write_text(CONF)
    process = Process(folder.parent, "serve", "--models", folder.parents[1], *ON_FREE_PORTS)
    yield process
    assert process.end() == 0


@pytest.mark.parametrize("name", [{"name": "x:0"}, {"alias_name": "image"}, {"name": "image"}, {"name": "x:0", "alias_name": "image"}, {}])
@pytest.mark.parametrize("fetched", [["prediction"], ["scale_0.tmp_0"], []])
def test_clients_know_tensors_by_their_aliases(named, name, fetched):
    tensor = {"elem_type": 1, "shape": [1, 2], "float_data": [1, 2], **name}
    (output,) = call(named.url + "/GeneralModelService/inference", {"tensor": [tensor], "fetch_var_names": fetched}).json["outputs"][0]["tensor"]
    assert (output["name"], output["alias_name"], output["float_data"]) == ("scale_0.tmp_0", "prediction", [1, 2])


def test_the_pipeline_knows_aliases_too(named):
    assert call(named.url + "/m/prediction", {"key": ["image"], "value": ["[[1, 2]]"]}).json["key"] == ["prediction"]
    refused = call(named.url + "/m/prediction", {"key": ["picture"], "value": ["[[1, 2]]"]}).json
    assert "unexpected inference input 'picture'" in refused["err_msg"] and "'gone' is not in the model" in named.log
    assert call(named.url + "/v2/models/m").json["inputs"][0]["name"] == "x:0"


@pytest.mark.parametrize("depth", [101, 1_000_000])
def test_p2_nesting(ask, depth):
    nested = b"[" * depth + b"]" * depth
    assert_refused(ask(b'{"tensor":[{"name":"pixels","elem_type":1,"shape":[1,64],"float_data":' + nested + b"}]}"))
    assert_refused(ask({"key": ["pixels"], "value": [nested.decode()]}, "/digits/prediction"))


@pytest.mark.parametrize("changes, words", [
    ({"float_data": None}, "no 'float_data'"), ({"shape": None}, "no list 'shape'"), ({"shape": "1,64"}, "shape"), ({"shape": [1.5, 64]}, "whole number"),
    ({"shape": [1, 65]}, "expects [-1,64]"), ({"shape": [0, 64], "float_data": []}, "a batch of 0 rows"), ({"shape": [-1, 64]}, "negative"), ({"shape": [2**32, 2**32]}, "expects"),
    ({"shape": [1] * 65}, "expects"), ({"shape": [2, 64]}, "takes 128 elements"), ({"elem_type": 0}, "'INT64'"),
    ({"elem_type": 77}, "unknown datatype 'elem_type 77'"), ({"elem_type": "1"}, "'elem_type' must be"), ({"name": 5}, "'name' must be a string"),
    ({"name": "a", "alias_name": "b"}, "unexpected inference input 'a'"), ({"float_data": ["x"] * 64}, "is a string"), ({"float_data": 1}, "takes a list"),
    ({"float_data": [1e39] + [0] * 63}, "which is not an FP32"), ({"float_data": None, "tensor_content": "AAAA"}, "no 'float_data'"),
])  # fmt: skip
def test_p5_to_p10_tensors_that_do_not_fit(ask, changes, words):
    assert_refused(ask(request_for([ROW], tensor=changes)), words)


def test_p6_names_and_numbers(ask):
    assert_refused(ask(request_for([ROW], fetch_var_names=["nope"])), "unexpected inference output 'nope'")
    assert_refused(ask(request_for([ROW], fetch_var_names=["scores", "scores"])), "asked for twice")
    assert_refused(ask(request_for([ROW], fetch_var_names="scores")), "'fetch_var_names' must be")
    assert_refused(ask(request_for([ROW], fetch_var_names=["x"] * 1_000_000)))
    assert_refused(ask({"tensor": request_for([ROW])["tensor"] * 2}), "given twice")
    assert_refused(ask(request_for([ROW], log_id=-1)), "'log_id'")
    assert_refused(ask(request_for([ROW], tensor={"shape": [2**40, 64]})), "over the limit", status=413)


@pytest.mark.parametrize("body, words", [
    ({"key": ["pixels"]}, "no lists"), ({"key": ["pixels"], "value": []}, "'key' has 1 elements"), ({"key": [1], "value": ["1"]}, "lists of strings"),
    ({"key": ["pixels"], "value": ["nonsense"]}, "must be a list as JSON"), ({"key": ["pixels"], "value": ['1},"x":{"y":2']}, "must be a list as JSON"),
    ({"key": ["pixels"], "value": ["[[1, 2]]"]}, "expects [-1,64]"), ({"key": ["nope"], "value": ["[1]"]}, "unexpected inference input 'nope'"),
    ({"key": [], "value": []}, "is missing"), ({"key": ["pixels"] * 2, "value": [str([ROW])] * 2}, "given twice"), ({"key": "pixels", "value": "1"}, "no lists"),
])  # fmt: skip
def test_pipeline_values_that_do_not_fit(ask, body, words):
    assert_refused(ask(body, "/digits/prediction"), words)


@pytest.mark.parametrize("body", [b"\xff", b"\x0a\x05ab", b"\x0a\xff\xff\xff\xff\x0f", b"", proto_request([ROW], name="nope"), proto_request([ROW], shape=[1, 65]),
                                  proto_request([ROW], elem_type=b"\x00"), proto_request([ROW], shape=[2, 64]), proto_request([ROW]) * 2], ids=lambda body: repr(body)[:30])
def test_protobuf_that_does_not_fit(ask, body):
    answer = as_proto(ask, body)
    assert answer.status == 400 and answer.headers["Content-Type"] == "application/proto"
    response = message(answer.body)
    assert response[5] == [2**64 + FAILED] and response[6][0]


def test_paths_and_verbs(server):
    assert call(server.url + "/GeneralModelService/inference").status == 405
    for path in ("/GeneralModelService", "/GeneralModelService/other", "/prediction", "/a/b/prediction", "//prediction"):
        assert call(server.url + path, b"{}", method="POST").status == 404
