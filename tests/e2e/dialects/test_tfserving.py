"""TensorFlow Serving's REST API at a running server: routes, versions, labels, states, errors. The codec is tested case by case in tests/runtime/protocol."""

import base64
import json
import socket

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from conftest import MODELS, call, wait_until
from test_serve import EVALUATION, expected_scores

PIXELS = EVALUATION["pixels"][:3]
ROW = [0.0] * 64


def save(path, nodes, inputs, outputs, constants=()):
    """A model of these nodes; tensors are (name, type, shape)."""
    infos = [[helper.make_tensor_value_info(*tensor) for tensor in tensors] for tensors in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *infos, list(constants))
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def save_two(path):
    """sum = a + b, twice = b + b: two inputs and two outputs, in rows."""
    save(path, [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Add", ["b", "b"], ["twice"])],
         [("a", TensorProto.FLOAT, ["n", 2]), ("b", TensorProto.FLOAT, ["n", 1])],
         [("sum", TensorProto.FLOAT, ["n", 2]), ("twice", TensorProto.FLOAT, ["n", 1])])  # fmt: skip


def save_texts(path):
    save(path, [helper.make_node("Identity", ["t"], ["copy_bytes"])],
         [("t", TensorProto.STRING, ["n"])], [("copy_bytes", TensorProto.STRING, ["n"])])  # fmt: skip


def save_half_plus_two(path):
    half, two = (helper.make_tensor(name, TensorProto.FLOAT, [], [value]) for name, value in (("half", 0.5), ("two", 2.0)))
    save(path, [helper.make_node("Mul", ["x", "half"], ["h"]), helper.make_node("Add", ["h", "two"], ["y"])],
         [("x", TensorProto.FLOAT, ["n"])], [("y", TensorProto.FLOAT, ["n"])], [half, two])  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """half, two and texts; and digits with labels."""
    from conftest import ON_FREE_PORTS, Process

    folder = tmp_path_factory.mktemp("models")
    save_half_plus_two(folder / "half_plus_two/123/model.onnx")
    save_two(folder / "two/1/model.onnx")
    save_texts(folder / "texts/1/model.onnx")
    for version in (1, 2):
        (folder / f"digits/{version}").mkdir(parents=True)
        (folder / f"digits/{version}/model.onnx").write_bytes((MODELS / f"digits/{version}/model.onnx").read_bytes())
    (folder / "digits/serin.yaml").write_text("labels: {stable: 1, 'A label': 2, gone: 9}\n")
    process = Process(tmp_path_factory.mktemp("logs"), "serve", "--models", folder, *ON_FREE_PORTS)
    yield process
    assert process.end() == 0


@pytest.fixture
def ask(server):
    """ask("digits:predict", {..}): an answer below /v1/models."""
    return lambda path, body=None, **options: call(f"{server.url}/v1/models/{path}", body, **options)


def assert_refused(answer, *words, status=400):
    assert answer.status == status, answer.body
    assert set(answer.json) == {"error"} and all(word in answer.error for word in words), answer.error
    assert answer.headers["x-serin-code"] and "x-serin-batch" in answer.headers and answer.headers["Content-Type"] == "application/json"


# --- what its documentation shows -----------------------------------------------------------------------------------------------------


def test_the_example_of_the_documentation(ask):
    assert ask("half_plus_two").json == {
        "model_version_status": [{"version": "123", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}]}
    answer = ask("half_plus_two:predict", {"instances": [1.0, 2.0, 5.0]})
    assert (answer.status, answer.json) == (200, {"predictions": [2.5, 3.0, 4.5]})
    assert b"3.0" in answer.body  # a float, to whoever tells the two apart
    assert answer.headers["x-serin-version"] == "123" and "x-serin-batch" in answer.headers
    regress = {"signature_name": "tensorflow/serving/regress", "examples": [{"x": 1.0}, {"x": [2.0]}]}
    assert ask("half_plus_two:regress", regress).json == {"results": [2.5, 3.0]}
    assert ask("half_plus_two:predict", {"inputs": {"x": [1.0]}}).json == {"outputs": [2.5]}
    assert_refused(ask("half:predict", {"instances": [1.0, 5.0]}), "Servable not found for request: Latest(half)", status=404)


def test_metadata_is_a_signature(ask):
    tensor = lambda name, *sizes: {"dtype": "DT_FLOAT", "name": f"{name}:0",
                                   "tensor_shape": {"dim": [{"size": size, "name": ""} for size in sizes], "unknown_rank": False}}
    for path in ("digits/versions/2/metadata", "digits/labels/A%20label/metadata", "digits/metadata"):
        assert ask(path).json == {
            "model_spec": {"name": "digits", "signature_name": "", "version": "2"},
            "metadata": {"signature_def": {"signature_def": {"serving_default": {
                "inputs": {"pixels": tensor("pixels", "-1", "64")}, "outputs": {"scores": tensor("scores", "-1", "10")},
                "defaults": {}, "method_name": "tensorflow/serving/predict"}}}}}  # fmt: skip


def test_predictions_are_onnx_runtimes(ask):
    expected = expected_scores(1, PIXELS)
    for body, key in (({"instances": PIXELS.tolist()}, "predictions"), ({"instances": [{"pixels": row} for row in PIXELS.tolist()]}, "predictions"),
                      ({"inputs": PIXELS.tolist()}, "outputs"), ({"inputs": {"pixels": PIXELS.tolist()}}, "outputs")):
        for version in ("versions/1", "labels/stable"):
            answer = ask(f"digits/{version}:predict", body)
            assert answer.status == 200 and answer.headers["x-serin-version"] == "1"
            np.testing.assert_allclose(np.array(answer.json[key]), expected, rtol=1e-4, atol=1e-5)


def test_several_inputs_and_outputs(ask):
    rows = ask("two:predict", {"instances": [{"a": [1, 2], "b": [10]}, {"b": [20], "a": [3, 4]}]})
    assert rows.json == {"predictions": [{"sum": [11.0, 12.0], "twice": [20.0]}, {"sum": [23.0, 24.0], "twice": [40.0]}]}
    columns = ask("two:predict", {"inputs": {"a": [[1, 2], [3, 4]], "b": [[10], [20]]}})
    assert columns.json == {"outputs": {"sum": [[11.0, 12.0], [23.0, 24.0]], "twice": [[20.0], [40.0]]}}


def test_bytes_are_base64_both_ways(ask):
    blob = bytes(range(256))
    answer = ask("texts:predict", {"instances": [{"b64": base64.b64encode(blob).decode()}, "plain \u00fc"]})
    assert [base64.b64decode(text["b64"]) for text in answer.json["predictions"]] == [blob, "plain ü".encode()]


def test_classify_lists_every_class(ask):
    answer = ask("digits/versions/1:classify", {"examples": [{"pixels": row} for row in PIXELS.tolist()]})
    scores = [[score for label, score in row if label == ""] for row in answer.json["results"]]
    np.testing.assert_allclose(np.array(scores), expected_scores(1, PIXELS), rtol=1e-4, atol=1e-5)
    assert_refused(ask("digits/versions/1:regress", {"examples": [{"pixels": ROW}]}), "'scores'", "regress takes")
    assert_refused(ask("texts:classify", {"examples": [{"t": "a"}]}), "copy_bytes", "use predict")


def test_words_for_numbers_both_ways(ask):
    answer = ask("half_plus_two:predict", '{"instances": [NaN, Infinity, -Infinity, 1e39]}')
    assert answer.body == b'{"predictions":[NaN,Infinity,-Infinity,Infinity]}'


# --- routes -------------------------------------------------------------------------------------------------------------------------


def test_fixed_words_may_have_any_case(ask, server):
    assert call(f"{server.url}/V1/MODELS/half_plus_two/Versions/123:Predict", {"instances": [2]}).json == {"predictions": [3.0]}
    assert call(f"{server.url}/v1/Models/half_plus_two/VERSIONS/123/Metadata").status == 200
    assert_refused(ask("Half_Plus_Two:predict", {"instances": [2]}), "Latest(Half_Plus_Two)", status=404)


@pytest.mark.parametrize("method, path", [
    ("GET", "/v1/models/digits/nope"), ("GET", "/v1/models/digits/versions"), ("GET", "/v1/models/digits/versions/x"), ("GET", "/v1/models//metadata"),
    ("GET", "/v1/models/digits:predict"), ("POST", "/v1/models/digits"), ("POST", "/v1/models/digits/metadata"), ("POST", "/v1/models/digits:explain"),
    ("POST", "/v1/models/digits/versions/-1:predict"), ("POST", "/v1/models:predict"), ("POST", "/v1/models/digits/versions/1/labels/stable:predict"),
    ("DELETE", "/v1/models/digits"), ("PUT", "/v1/models/digits:predict"), ("POST", "/v1/models/digits/metadata:predict"), ("GET", "/v1/models/a:b"),
])  # fmt: skip
def test_what_is_no_route_is_malformed(server, method, path):
    answer = call(server.url + path, b"{}" if method in ("POST", "PUT") else None, method=method)
    assert_refused(answer, f"Malformed request: {method} {path}")


def test_a_model_has_to_be_named(server):
    for path in ("/v1/models", "/v1/models/"):
        assert_refused(call(server.url + path), "Missing model name in request.")
    assert call(server.url + "/v1/modelss").status == 404


def test_options_ask_whether_pages_may(server):
    answer = call(server.url + "/v1/models/digits:predict", method="OPTIONS", headers={"Origin": "https://page.example"})
    assert answer.status == 200 and "Access-Control-Allow-Origin" not in answer.headers
    assert_refused(call(server.url + "/v1/models/digits:predict", method="OPTIONS"), "Origin header is missing")


def test_labels(ask):
    assert [status["version"] for status in ask("digits/labels/stable").json["model_version_status"]] == ["1"]
    assert_refused(ask("digits/labels/nope:predict", {"instances": [ROW]}), "Unrecognized servable version label: nope")
    assert_refused(ask("digits/labels/gone:predict", {"instances": [ROW]}), "Specific(digits, 9)", status=404)


def test_labels_follow_their_file(serve, repository):
    models = repository({f"digits/{version}": MODELS / f"digits/{version}/model.onnx" for version in (1, 2)})
    (models / "digits/serin.yaml").write_text("labels: {stable: 1}")
    runtime = serve(models)
    ask = lambda: call(runtime.url + "/v1/models/digits/labels/stable:predict", {"instances": [ROW]}).headers["x-serin-version"]
    assert ask() == "1"
    (models / "digits/serin.yaml").write_text("labels: {stable: 2}")
    wait_until(lambda: ask() == "2", 20, "the label names version 2")


def test_a_version_that_cannot_be_loaded(serve, repository):
    models = repository({"digits/1": MODELS / "digits/1/model.onnx", "digits/2": __file__})
    runtime = serve(models)
    first, second = call(runtime.url + "/v1/models/digits").json["model_version_status"]
    assert (first["version"], first["state"], first["status"]["error_code"]) == ("2", "END", "FAILED_PRECONDITION")
    assert first["status"]["error_message"] and second["state"] == "AVAILABLE"
    assert_refused(call(runtime.url + "/v1/models/digits/versions/2:predict", {"instances": [ROW]}), "version 2 is not ready", status=503)
    assert call(runtime.url + "/v1/models/digits:predict", {"instances": [ROW]}).headers["x-serin-version"] == "1"


# --- bad input ------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def predict(ask):
    """Of version 1 of digits; well before and after."""
    yield lambda body: ask("digits/versions/1:predict", body, method="POST")
    assert ask("digits/versions/1:predict", {"instances": [ROW]}).status == 200


@pytest.mark.parametrize("body", [b"", b" ", b"nonsense", b"[]", b"1", b"null", b'"x"', b"{} {}", b'{"instances":[]}x', b'{"instances":[[1]],"instances":[]}'],
                         ids=repr)
def test_p1_bodies_that_are_no_request(predict, body):
    assert_refused(predict(body))


def test_p1_a_byte_order_mark(predict):
    assert predict(b"\xef\xbb\xbf" + json.dumps({"instances": [ROW]}).encode()).status in (200, 400)


@pytest.mark.parametrize("depth", [101, 10_000, 1_000_000])
def test_p2_nesting(predict, depth):
    for key in (b"instances", b"inputs", b"other"):
        assert_refused(predict(b'{"' + key + b'":' + b"[" * depth + b"]" * depth + b"}"))


@pytest.mark.parametrize("number, status", [("1e400", 400), ("-1e400", 400), ("1e-400", 200), ("-0", 200), ("9223372036854775808", 200), ("18446744073709551616", 200),
                                            ("123456789012345678901234567890", 200), ("9" * 400, 400), ("NaN", 200), ("Infinity", 200), ("nan", 400), ("0x10", 400), ("01", 400)])
def test_p3_numbers(predict, number, status):
    assert predict('{"instances": [[' + ",".join(["0"] * 63) + f",{number}]]}}").status == status


@pytest.mark.parametrize("text", [b'"\xff"', b'"\\ud800"', b'"a\x00b"', b'"unended', b'{"b64": "*"}', b'{"b64": 1}', b'{"b64": null, "x": 1}'], ids=repr)
def test_p4_strings(ask, text):
    assert_refused(ask("texts:predict", b'{"instances": [' + text + b"]}"))


def test_p4_a_string_of_sixty_megabytes(ask):
    answer = ask("texts:predict", b'{"instances": ["' + b"x" * 60_000_000 + b'"]}')
    assert answer.status == 200 and len(answer.body) > 80_000_000  # its name ends in _bytes: base64
    assert_refused(ask("texts:predict", b'{"inputs": {"' + b"n" * 30_000_000 + b'": ["x"]}}'), "unexpected inference input 'nnn")


@pytest.mark.parametrize("body", [{}, {"instances": None}, {"inputs": None}, {"instances": 5}, {"instances": "x"}, {"instances": [None]}, {"instances": [{}]},
                                  {"instances": [[None] * 64]}, {"instances": [["x"] * 64]}, {"signature_name": 1, "instances": [ROW]},
                                  {"signature_name": "x" * 100_000, "instances": [ROW]}], ids=lambda body: f"{body}"[:30])
def test_p5_missing_and_wrong_kinds(predict, body):
    assert_refused(predict(body))


def test_p6_names_that_the_model_does_not_have(ask, predict):
    assert_refused(predict({"inputs": {"nope": [ROW]}}), "nope", "'pixels'")
    assert_refused(predict({"inputs": {"pixels": [ROW], "more": [1]}}), "more")
    assert_refused(predict(b'{"inputs": {"pixels": [[1]], "pixels": [[1]]}}'))
    assert_refused(ask("two:predict", {"inputs": {"a": [[1, 2]]}}), "input 'b' is missing")
    assert_refused(ask("two:predict", {"instances": [{"a": [1, 2], "b": [1]}, {"a": [1, 2]}]}), "element 1")
    assert_refused(predict({"inputs": {f"n{i}": [1] for i in range(100_000)}}))


@pytest.mark.parametrize("body", [{"instances": []}, {"instances": [[]]}, {"instances": [ROW[:-1]]}, {"instances": [ROW + [1.0]]}, {"instances": ROW},
                                  {"instances": [[ROW]]}, {"inputs": [[[]]]}, {"instances": [ROW, ROW[:-1]]}, {"instances": [ROW, 1]}],
                         ids=lambda body: f"{body}"[:30])  # fmt: skip
def test_p7_p10_shapes_that_do_not_fit(predict, body):
    assert_refused(predict(body))


def test_p8_inputs_that_disagree_on_the_batch(ask):
    assert_refused(ask("two:predict", {"inputs": {"a": [[1, 2]], "b": [[1], [2]]}}), "disagree on the batch")


def test_p9_elements_of_another_type(predict, ask):
    assert_refused(predict({"instances": [["0"] * 64]}), "element 0 is a string, which is not an FP32")
    assert_refused(predict({"instances": [[True] * 64]}), "element 0 is true or false, which is not an FP32")
    assert_refused(ask("texts:predict", {"instances": [1]}), "which is not a BYTES")


@pytest.mark.parametrize("name", ["..%2fx", "%2e%2e", "..", ".git", "a%00b", "%20", "x" * 7000, "CON", "a%3Ab"])
def test_p16_names_of_models(server, name):
    assert call(f"{server.url}/v1/models/{name}:predict", {"instances": [1]}).status in (400, 404)
    assert call(f"{server.url}/v1/models/{name}").status in (400, 404)


@pytest.mark.parametrize("version", ["0", "-1", "01", "9" * 21, "latest", "1%2f..%2f2", "1 "])
def test_p17_versions(server, version):
    path = f"{server.url}/v1/models/digits/versions/{version}".replace(" ", "%20")
    for answer in (call(path), call(path + "/metadata"), call(path + ":predict", {"instances": [ROW]})):
        assert answer.status in (400, 404) and answer.error


# --- KServe's V1 protocol, which has the same paths ------------------------------------------------------------------------------------


@pytest.fixture
def kserve(start, tmp_path):
    save_half_plus_two(tmp_path / "model/model.onnx")
    return start("serve", "--as", "kserve", "--model_dir", tmp_path / "model", "--model_name", "half", "--http_port", 0, "--grpc_port", 0, "--address", "127.0.0.1")


def test_kserve_v1(kserve):
    ask = lambda path, body=None, **options: call(kserve.url + path, body, **options)
    assert ask("/").json == {"status": "alive"} and ask("/", {}).status == 405
    assert ask("/v1/models").json == {"models": ["half"]}
    assert ask("/v1/models/half").json == {"name": "half", "ready": True}
    assert_refused(ask("/v1/models/nope"), "nope", status=404)
    for body in ({"instances": [1.0, 2.0]}, {"inputs": {"x": [1.0, 2.0]}}):
        assert ask("/v1/models/half:predict", body).json == {"predictions": [2.5, 3.0]}
    assert_refused(ask("/v1/models/nope:predict", {"instances": [1]}), "nope", status=404)
    assert_refused(ask("/v1/models/half:predict", {"instances": ["x"]}), "which is not an FP32")
    assert ask("/v1/models/half:explain", {"instances": [1]}).status == 501
    assert ask("/v2/health/live").json == {"live": True} and ask("/v2/health/ready").json == {"ready": True}


def test_pages_of_any_origin_where_asked_for(start, tmp_path):
    save_half_plus_two(tmp_path / "half/1/model.onnx")
    with socket.create_server(("127.0.0.1", 0)) as free:  # 0 means none to this one
        port = free.getsockname()[1]
    server = start("serve", "--as", "tensorflow_model_server", "--model_name", "half", "--model_base_path", tmp_path / "half", "--rest_api_port", port, "--port", 0,
                   "--rest_api_enable_cors_support", "--address", "127.0.0.1")
    for options in ({"body": {"instances": [1]}}, {"body": {"instances": ["x"]}}, {"method": "OPTIONS", "headers": {"Origin": "http://a"}}):
        assert call(server.url + "/v1/models/half:predict", **options).headers["Access-Control-Allow-Origin"] == "*"
    assert call(server.url + "/v1/models/half").headers["Access-Control-Allow-Methods"] == "POST, GET"
