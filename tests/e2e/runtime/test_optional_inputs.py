"""Inputs that a request may leave out: the model stores a value for them, which it may replace."""

import numpy as np
import onnx
import pytest
import tritonclient.grpc
import tritonclient.http
from conftest import call
from onnx import TensorProto, helper, numpy_helper

SCALE = np.array([2, 3, 4], np.float32)
X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
CONFIG = """name: "affine" backend: "onnxruntime" max_batch_size: 0
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 3 ] },
        { name: "scale" data_type: TYPE_FP32 dims: [ 3 ] optional: true },
        { name: "shape" data_type: TYPE_INT64 dims: [ 2 ] optional: true },
        { name: "unit" data_type: TYPE_STRING dims: [ 1 ] optional: true } ]
"""


def affine(path):
    """y: x times scale, of that shape; kind: what unit is."""
    stored = {"scale": SCALE, "shape": np.array([-1, 3], np.int64), "unit": np.array(["mm"], object), "one": np.ones(1, np.float32)}
    types = {"scale": (TensorProto.FLOAT, [3]), "shape": (TensorProto.INT64, [2]), "unit": (TensorProto.STRING, [1])}
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "scale"], ["scaled"]), helper.make_node("Mul", ["scaled", "one"], ["same"]),
         helper.make_node("Reshape", ["same", "shape"], ["y"]), helper.make_node("Identity", ["unit"], ["kind"])],
        "affine",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3]),
         *(helper.make_tensor_value_info(name, *type_) for name, type_ in types.items())],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, None]), helper.make_tensor_value_info("kind", TensorProto.STRING, [1])],
        [numpy_helper.from_array(value, name) for name, value in stored.items()])  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)


@pytest.fixture(params=["config.pbtxt", "serin.yaml"])
def optional(request, serve, tmp_path):
    affine(tmp_path / "models/affine/1/model.onnx")
    settings = CONFIG if request.param == "config.pbtxt" else "optional_inputs: [scale, shape, unit]\n"
    (tmp_path / "models/affine" / request.param).write_text(settings)
    return serve(tmp_path / "models")


def tensor(name, datatype, value):
    return {"name": name, "datatype": datatype, "shape": list(np.shape(value)), "data": np.ravel(value).tolist()}


def answer(runtime, *inputs):
    outputs = call(f"{runtime.url}/v2/models/affine/infer", {"inputs": [tensor("x", "FP32", X), *inputs]}).json["outputs"]
    return [(output["shape"], output["data"]) for output in outputs]


def test_what_is_left_out_is_as_the_model_has_it(optional):
    usual = ([2, 3], np.ravel(X * SCALE).tolist())
    assert answer(optional) == [usual, ([1], ["mm"])]
    assert answer(optional, tensor("scale", "FP32", [1, 1, 1])) == [([2, 3], np.ravel(X).tolist()), ([1], ["mm"])]
    assert answer(optional, tensor("unit", "BYTES", ["cm"])) == [usual, ([1], ["cm"])]
    assert answer(optional, tensor("shape", "INT64", [3, 2])) == [([3, 2], usual[1]), ([1], ["mm"])]
    assert answer(optional) == [usual, ([1], ["mm"])], "one request's values are not the next one's"


@pytest.mark.parametrize("module", [tritonclient.http, tritonclient.grpc])
def test_tritons_clients_leave_it_out(optional, module):
    client = module.InferenceServerClient(f"127.0.0.1:{optional.ports['grpc' if module is tritonclient.grpc else 'http']}")
    x, scale = module.InferInput("x", [2, 3], "FP32"), module.InferInput("scale", [3], "FP32")
    x.set_data_from_numpy(X)
    scale.set_data_from_numpy(np.ones(3, np.float32))
    assert (client.infer("affine", [x]).as_numpy("y") == X * SCALE).all()
    assert (client.infer("affine", [x, scale]).as_numpy("y") == X).all()
    assert (client.infer("affine", [scale, x]).as_numpy("y") == X).all()


def test_the_model_config_says_which(optional):
    expected = {"x": False, "scale": True, "shape": True, "unit": True}
    assert {tensor["name"]: tensor["optional"] for tensor in call(f"{optional.url}/v2/models/affine/config").json["input"]} == expected
    with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{optional.ports['grpc']}") as client:
        assert {tensor.name: tensor.optional for tensor in client.get_model_config("affine").config.input} == expected


def test_generate_leaves_it_out(optional):
    whole = call(f"{optional.url}/v2/models/affine/generate", {"x": [1, 2, 3]}).json
    assert whole["y"] == [2, 6, 12] and whole["kind"] == "mm"
    assert call(f"{optional.url}/v2/models/affine/generate", {"x": [1, 2, 3], "unit": "cm"}).json["kind"] == "cm"


def test_what_is_needed_is_asked_for(optional):
    url = f"{optional.url}/v2/models/affine"
    refused = call(f"{url}/infer", {"inputs": [tensor("scale", "FP32", [1, 1, 1])]})
    assert refused.status == 400 and "expected 2 inputs but got 1 inputs" in refused.error and "input 'x' is missing" in refused.error
    wrong = call(f"{url}/infer", {"inputs": [tensor("x", "FP32", X), tensor("scale", "FP32", [1, 1])]})
    assert wrong.status == 400 and "'scale'" in wrong.error
    assert [entry["name"] for entry in call(url).json["inputs"]] == ["x", "scale", "shape", "unit"]
    old = call(f"{optional.url}/v1/models/affine:predict", {"inputs": {"x": X.tolist()}})  # this protocol knows of no such inputs
    assert old.status == 400 and "'scale' is missing" in old.error


def test_without_being_asked_for_they_are_constants(serve, tmp_path):
    affine(tmp_path / "models/affine/1/model.onnx")
    runtime = serve(tmp_path / "models")
    assert [entry["name"] for entry in call(f"{runtime.url}/v2/models/affine").json["inputs"]] == ["x"]
    assert answer(runtime)[0] == ([2, 3], np.ravel(X * SCALE).tolist())


def test_kept_answers_are_those_of_the_values(serve, tmp_path):
    affine(tmp_path / "models/affine/1/model.onnx")
    (tmp_path / "models/affine/serin.yaml").write_text("optional_inputs: [scale]\nresponse_cache: true\n")
    runtime = serve(tmp_path / "models")
    for _ in range(2):
        assert answer(runtime)[0][1] == np.ravel(X * SCALE).tolist()
        assert answer(runtime, tensor("scale", "FP32", [1, 1, 1]))[0][1] == np.ravel(X).tolist()
    assert answer(runtime, tensor("scale", "FP32", SCALE))[0][1] == np.ravel(X * SCALE).tolist()
    assert runtime.metric("nv_cache_num_hits_per_model", model="affine") == 3, "given or not, the value counts"


@pytest.mark.parametrize("names, said", [("one", "a value that the file stores"), ("y", "is no input of the model"), ("x", None)])
def test_what_no_request_may_leave_out(serve, tmp_path, names, said):
    affine(tmp_path / "models/affine/1/model.onnx")
    (tmp_path / "models/affine/serin.yaml").write_text(f"optional_inputs: [{names}]\n")
    runtime = serve(tmp_path / "models")
    refused = call(f"{runtime.url}/v2/models/affine/infer", {"inputs": []})
    if said:
        assert refused.status == 503 and said in refused.error
    else:
        assert refused.status == 400 and "input 'x' is missing" in refused.error
        assert "input 'x' is optional, but the model stores no value for it" in runtime.log
        assert not any(tensor["optional"] for tensor in call(f"{runtime.url}/v2/models/affine/config").json["input"]), "every request brings it"
